/**
 * The services of each role, in the order of their start. Loaded while the store opens, which mostly waits for the
 * disk.
 */
import type { Emulation } from "../cloud/emulation.ts";
import type { Service, Step } from "../base/service.ts";
import type { Place } from "../cluster/place.ts";
import type { Config, WhatsAppConfig } from "../config.ts";
import { type DataFolder, makeProbe } from "../data/data_folder.ts";
import type { Proxy } from "../egress/proxy.ts";
import { readProxy } from "../egress/proxy_address.ts";
import type { Answers } from "../http/listen/serve.ts";
import { createHealth } from "../http/health.ts";
import { listen, type Listening } from "../http/listen/listen.ts";
import { acceptedWithRoom, makeDiskReserve, writtenWithRoom } from "../ops/disk_reserve.ts";
import { addProcessGauges } from "../ops/gauges.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import type { Kv } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import type { Network } from "../whatsapp/network.ts";
import { makeApi } from "./api.ts";
import type { Holders } from "./api_app.ts";
import { type Ground, layGround, type Media } from "./ground.ts";
import { type OpenNetwork, soleWorker, type WorkerPart } from "./worker.ts";

export type RoleName = "serve" | "api" | "worker";

export interface NetworkOptions {
  runtime: Runtime;
  kv: Kv;
  /** Returns the store through which the line's owner writes. */
  storeOf(lineId: string): Kv;
  seal: Seal;
  whatsapp: WhatsAppConfig;
  /** Opens a line's own proxy. */
  openProxy?: (proxy: string) => Promise<Proxy>;
  /** Counts a stanza of the network that nobody handles. */
  countStray?: (stanza: { tag: string; type: string }) => void;
  countSetAside?: () => void;
}

/** The engine behind the port to the messaging network. */
interface NetworkEngine {
  /** Loads the engine's code in advance; otherwise the first line does. */
  load(): Promise<unknown>;
  open(options: NetworkOptions): Network;
}

/** Resources that are open before a role starts. */
export interface RoleOptions {
  config: Config;
  runtime: Runtime;
  engine: NetworkEngine;
  data: DataFolder;
  bell: Bell;
  media: Media;
  /** Whether anything was committed to the store since the last call; true if that is unknown. */
  hasChanged(): boolean;
  /** Null if the role holds no leases, or another process has the folder. */
  place: Place | null;
  /** Absent unless `/cloud` emulates the official API. */
  emulation?: Emulation | undefined;
}

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
  const ground = layGround({ ...options, media, url: port.url });
  const { metrics } = ground;
  addProcessGauges(metrics, port);
  const { network, supervisor, dispatcher, service } = await workerOn(options, ground);
  if (reserve) metrics.gauge("paloma_disk_free_bytes", "Room on the disk of the data folder", () => reserve.free());
  const { app, ahead, firstRunLink } = makeApi(ground, {
    ...port,
    holders: async () => ({
      network,
      ...(isShared ? await anyProcess(ground) : { live: supervisor, webhookOwner: dispatcher, claims: null }),
    }),
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
      service,
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

async function anyProcess(ground: Ground): Promise<Omit<Holders, "network">> {
  return (await import("./api_app.ts")).anyProcess(ground);
}

/** Returns the API and the panel, for lines and webhooks that other processes hold. */
export function apiOn(options: RoleOptions, port: Omit<ReturnType<typeof makePort>, "listening">) {
  const ground = layGround({ ...options, url: port.url });
  addProcessGauges(ground.metrics, port);
  return makeApi(ground, {
    ...port,
    holders: async () => ({ ...await anyProcess(ground), network: networkOf(options, ground)(() => ground.kv) }),
    accepted: (accept) => accept,
  });
}

/** `paloma worker`: lines, webhooks and upkeep; over HTTP only health and metrics. */
async function workerRole(options: RoleOptions): Promise<RunningRole> {
  const { runtime } = options;
  const port = makePort(options);
  const ground = layGround({ ...options, url: port.url });
  addProcessGauges(ground.metrics, port);
  const { service } = await workerOn(options, ground);
  const probe = makeProbe(ground.kv, runtime.clock);
  const app = createHealth({ runtime, metrics: ground.metrics, probe, stopping: port.stopping });
  return {
    url: port.url,
    firstRunLink: () => Promise.resolve(null),
    services: [port.listening(app), engineOfLines(options), service],
  };
}

/** Makes the worker's part; the code for shared stores is loaded only if the store is shared. */
async function workerOn(options: RoleOptions, ground: Ground): Promise<WorkerPart> {
  const openNetwork = networkOf(options, ground);
  if (options.config.store === null) return soleWorker(ground, openNetwork);
  const { sharedWorker } = await import("./shared_worker.ts");
  return sharedWorker(ground, openNetwork, options.place);
}

function networkOf({ engine }: RoleOptions, ground: Ground): OpenNetwork {
  const { config, runtime, kv, metrics, safeFetch, data: { seal } } = ground;
  return (storeOf) =>
    engine.open({
      runtime,
      kv,
      storeOf,
      seal,
      whatsapp: config.whatsapp,
      openProxy: (proxy) => safeFetch.proxy(readProxy(proxy)),
      countStray: (stanza) => metrics.strays.inc(stanza),
      countSetAside: () => metrics.setAside.inc(),
    });
}

/** Loads the engine before the process takes over lines, because loading may take seconds on a busy machine. */
function engineOfLines({ engine }: RoleOptions): Step {
  return { start: async () => void await engine.load() };
}
