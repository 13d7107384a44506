/**
 * The services of each role, in the order of their start. Loaded while the store opens, which mostly waits for the
 * disk.
 */
import type { Service, Step } from "../base/service.ts";
import { makeProbe } from "../data/data_folder.ts";
import type { Answers } from "../http/listen/serve.ts";
import { createHealth, inFrontOf } from "../http/health.ts";
import { listen, type Listening } from "../http/listen/listen.ts";
import { acceptedWithRoom, makeDiskReserve, writtenWithRoom } from "../ops/disk_reserve.ts";
import { addProcessGauges } from "../ops/gauges.ts";
import { firstRow } from "../store/kv.ts";
import type { ApiOptions } from "./api.ts";
import { type Context, makeContext, type RoleOptions } from "./context.ts";
import { makeWorker } from "./worker.ts";
import { accountKeys } from "../account/rows.ts";
import { onDemand } from "../base/single_flight.ts";
import { makeBudgets } from "../http/edge/budgets.ts";
import { firstRunLink, makeLinks } from "../panel/logins/links.ts";
import { makePeople } from "../panel/logins/people.ts";

export type RoleName = "serve" | "api" | "worker";

interface RunningRole {
  /** In the order of their start. */
  services: readonly Step[];
  /** `http://HOST:PORT`, once the services have started. */
  url(): string;
  /** Resolves to a link that makes an operator; null if there is one, or no panel. */
  firstRunLink(): Promise<string | null>;
}

export const ROLES: Readonly<Record<RoleName, (options: RoleOptions) => RunningRole | Promise<RunningRole>>> = {
  serve: serveRole,
  api: apiRole,
  worker: workerRole,
};

/** Makes the process's port. Its app, which needs things that need the port, is given to `listening` later. */
function makePort({ config, runtime }: RoleOptions) {
  const stopping = new AbortController();
  let server: Listening | null = null;
  return {
    stopping: stopping.signal,
    url: () => server!.url,
    connections: () => server?.connections() ?? 0,
    listening: (app: Answers): Service => ({
      async start() {
        server ??= await listen(app, { ...config, runtime });
      },
      async stop() {
        stopping.abort();
        await server?.stop();
      },
    }),
  };
}

/** `paloma serve`: the whole gateway in one process, alone on its data or as one of several on a shared store. */
async function serveRole(options: RoleOptions): Promise<RunningRole> {
  const { config, runtime } = options;
  const port = makePort(options);
  const isShared = config.store !== null;
  // A shared store is not on this machine's disk.
  const reserve = isShared
    ? null
    : makeDiskReserve({ folder: config.dataDir, minFreeBytes: config.minFreeDisk, runtime });
  const media = reserve && config.media === null ? writtenWithRoom(options.media, reserve) : options.media;
  const context = makeContext({ ...options, media, url: port.url });
  const { metrics } = context;
  addProcessGauges(metrics, port);
  const { network, supervisor, dispatcher, services } = await makeWorker(context);
  if (reserve) metrics.gauge("paloma_disk_free_bytes", "Room on the disk of the data folder", () => reserve.free());
  const { app, ahead, firstRunLink } = makeApi(context, {
    ...port,
    network,
    own: isShared ? null : { live: supervisor, webhookOwner: dispatcher },
    accepted: (accept) => reserve ? acceptedWithRoom(accept, reserve) : accept,
  });
  const requests = port.listening(app);
  return {
    url: port.url,
    firstRunLink,
    services: [
      // Before the lines, whose media links contain the port.
      requests,
      ...(isShared ? [engineOfLines(options)] : []),
      ...services,
      ahead,
      // Listed again to be stopped before the lines, because requests in progress need them.
      { stop: requests.stop },
    ],
  };
}

/** `paloma api`: HTTP and panel, without connections to the network. */
function apiRole(options: RoleOptions): RunningRole {
  const port = makePort(options);
  const { app, ahead, firstRunLink } = apiOn(options, port);
  return { url: port.url, firstRunLink, services: [port.listening(app), ahead] };
}

/** Returns the API and the panel, for lines and webhooks that other processes hold. */
export function apiOn(options: RoleOptions, port: Omit<ReturnType<typeof makePort>, "listening">) {
  const context = makeContext({ ...options, url: port.url });
  addProcessGauges(context.metrics, port);
  return makeApi(context, {
    ...port,
    network: context.openNetwork(() => context.kv),
    own: null,
    accepted: (accept) => accept,
  });
}

/** `paloma worker`: lines, webhooks and upkeep; over HTTP only health and metrics. */
async function workerRole(options: RoleOptions): Promise<RunningRole> {
  const { runtime } = options;
  const port = makePort(options);
  const context = makeContext({ ...options, url: port.url });
  addProcessGauges(context.metrics, port);
  const { services } = await makeWorker(context);
  const probe = makeProbe(context.kv, runtime.clock);
  const app = createHealth({ ...context, probe, stopping: port.stopping });
  return {
    url: port.url,
    firstRunLink: () => Promise.resolve(null),
    services: [port.listening(app), engineOfLines(options), ...services],
  };
}

/** Loads the engine before the process takes over lines, because loading may take seconds on a busy machine. */
function engineOfLines({ engine }: RoleOptions): Step {
  return { start: async () => void await engine.load() };
}

/** Makes the API's part of a process: health from the start, the API and the panel once a request needs them. */
function makeApi(context: Context, options: Omit<ApiOptions, "budgets" | "probe" | "panelUrl">) {
  const { config, runtime, metrics, kv, url, data: { seal } } = context;
  const { clock } = runtime;
  const { stopping } = options;
  const panelUrl = () => `${config.publicUrl ?? url()}/panel`;
  const probe = makeProbe(kv, clock);
  // Made here and not with the API, so that their gauges exist before the first request.
  const budgets = makeBudgets({ bodyBytes: config.maxBodies, metrics, clock });

  const api = onDemand(async () => {
    const { makeApiApp } = await import("./api.ts");
    return makeApiApp(context, { ...options, budgets, probe, panelUrl });
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
