/** The API's part of a process: health from the start, the API and the panel with the first request that needs them. */
import { makeProbe } from "../data/probe.ts";
import { makeBudgets } from "../http/edge/budgets.ts";
import { type Answers, apiOnDemand } from "../http/front.ts";
import { createHealth } from "../http/health.ts";
import { firstRunLink, makeLinks } from "../panel/logins/links.ts";
import { makePeople } from "../panel/logins/people.ts";
import type { ApiOptions } from "./api_app.ts";
import type { Ground } from "./ground.ts";

interface ApiPart {
  /** Takes the requests. */
  app: Answers;
  /** While the panel has no operator: a new one-time link that makes one. */
  firstRunLink(): Promise<string | null>;
}

/** `url`: `http://HOST:PORT`, once it listens. */
export function makeApi(ground: Ground, { url, ...options }: ApiOptions & { url(): string }): ApiPart {
  const { config, runtime, metrics, kv, data: { seal } } = ground;
  const { clock } = runtime;
  const { stopping } = options;
  const panelUrl = () => `${config.publicUrl ?? url()}/panel`;
  const probe = makeProbe(kv, clock);
  // Their gauges are there before a request is.
  const budgets = makeBudgets({ bodyBytes: config.maxBodies, metrics, clock });

  async function loadApi() {
    const { makeApiApp } = await import("./api_app.ts");
    return makeApiApp(ground, { ...options, budgets, probe, panelUrl });
  }

  return {
    app: apiOnDemand(createHealth({ runtime, metrics, probe, stopping }), loadApi),
    firstRunLink: () =>
      firstRunLink({
        people: makePeople({ kv, seal, runtime }),
        links: makeLinks({ kv, runtime }),
        panelUrl: panelUrl(),
      }),
  };
}
