/** The API's part of a process: health from the start, the API and the panel once a request needs them. */
import { accountKeys } from "../account/rows.ts";
import { onDemand } from "../base/single_flight.ts";
import { makeProbe } from "../data/data_folder.ts";
import { makeBudgets } from "../http/edge/budgets.ts";
import { createHealth, inFrontOf } from "../http/health.ts";
import { firstRunLink, makeLinks } from "../panel/logins/links.ts";
import { makePeople } from "../panel/logins/people.ts";
import { firstRow } from "../store/kv.ts";
import type { ApiOptions, Holders } from "./api_app.ts";
import type { Ground } from "./ground.ts";

interface Options extends Pick<ApiOptions, "accepted" | "stopping"> {
  /** `http://HOST:PORT`, once it listens. */
  url(): string;
  /** Called when the API is loaded. */
  holders(): Promise<Holders>;
}

export function makeApi(ground: Ground, { url, holders, ...options }: Options) {
  const { config, runtime, metrics, kv, data: { seal } } = ground;
  const { clock } = runtime;
  const { stopping } = options;
  const panelUrl = () => `${config.publicUrl ?? url()}/panel`;
  const probe = makeProbe(kv, clock);
  // Made here and not with the API, so that their gauges exist before the first request.
  const budgets = makeBudgets({ bodyBytes: config.maxBodies, metrics, clock });

  const api = onDemand(async () => {
    const [{ makeApiApp }, held] = await Promise.all([import("./api_app.ts"), holders()]);
    return makeApiApp(ground, { ...options, ...held, budgets, probe, panelUrl, url });
  });

  return {
    /** Answers all requests. */
    app: inFrontOf(api, createHealth({ runtime, metrics, probe, stopping })),
    /** Loads the API before the first request if one is to be expected: if there are accounts. */
    ahead: { start: async () => void (await firstRow(kv, { prefix: accountKeys.accounts() }) && api.need()) },
    /** Resolves to a new one-time link that makes an operator; null if the panel has one. */
    firstRunLink: () =>
      firstRunLink({
        people: makePeople({ kv, seal, runtime }),
        links: makeLinks({ kv, runtime }),
        panelUrl: panelUrl(),
      }),
  };
}
