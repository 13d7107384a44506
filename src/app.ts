/**
 * The composition root: picks the engines, wires the services, starts and stops them in order. Nothing else names an
 * engine; `tests/unit/floors_test.ts` sees to it.
 */
import { join } from "node:path";
import type { Accounts } from "./account/account.ts";
import { DEFAULT_PLANS } from "./account/plan.ts";
import { makeAccountKeys } from "./account/keys.ts";
import { makeIdempotency } from "./account/idempotency.ts";
import { type Service, startServices, together } from "./base/service.ts";
import type { Config, WhatsAppConfig } from "./config.ts";
import { backup, restore } from "./data/backup.ts";
import { backupShared, restoreShared } from "./data/shared_backup.ts";
import { type DataConfig, type DataFolder, openDataFolder, pathsOf, placeOf } from "./data/data_folder.ts";
import { readAllowList } from "./egress/address.ts";
import { type Proxy, readProxy } from "./egress/proxy.ts";
import { makeSafeFetch } from "./egress/safe_fetch.ts";
import { makeEventLog } from "./event/log.ts";
import { splitEventOrder } from "./event/order_migration.ts";
import { acceptedWithRoom, makeDiskReserve } from "./ops/disk_reserve.ts";
import { addGauges } from "./ops/gauges.ts";
import { listen, type Listening } from "./http/listen/listen.ts";
import type { Services } from "./http/api/services.ts";
import { makeBudgets } from "./http/edge/budgets.ts";
import { createApi } from "./http/server.ts";
import { makeBulkView } from "./line/bulk_view.ts";
import { laneOf } from "./line/chats.ts";
import { nameGenerations } from "./line/generation_migration.ts";
import { lineIdsOf, makeSessionName } from "./line/line_row.ts";
import { makeLines } from "./line/lines.ts";
import type { LineSessionDeps } from "./line/line_session.ts";
import { soleOwnership } from "./line/ownership.ts";
import { orderQueues } from "./line/queue_migration.ts";
import { makeLookups } from "./line/lookups.ts";
import { makeUnread } from "./line/unread.ts";
import { makeFindWaits } from "./line/waiting.ts";
import { makeQueueView } from "./line/queue_view.ts";
import { makeAmendments } from "./line/amendments.ts";
import { makeFindReferred } from "./line/references.ts";
import { Supervisor } from "./line/supervisor.ts";
import { lockGateway } from "./data/gateway_lock.ts";
import { makeMaintenance } from "./ops/maintenance.ts";
import { openBucket } from "./media/bucket.ts";
import { filesOfBucket } from "./media/bucket_backup.ts";
import { makeBucketMediaStore } from "./media/bucket_store.ts";
import { openDiskMediaStore } from "./media/disk.ts";
import { indexFileEnds } from "./media/file_ends_migration.ts";
import { makeMediaIngest } from "./media/ingest.ts";
import { makeMediaLinks } from "./media/link.ts";
import { makeServeMedia } from "./media/serve.ts";
import type { MediaStore } from "./media/store.ts";
import { sweepOrphans } from "./media/sweep.ts";
import { makeAccept } from "./message/accept.ts";
import { makeReschedule } from "./message/reschedule.ts";
import { makeCancel } from "./message/cancel.ts";
import { makeFetchAttachment } from "./message/fetch_attachment.ts";
import { makeFetchPreview } from "./message/link_preview.ts";
import { makeHistory, recordStatus } from "./message/history/history.ts";
import { makeQueuedCount } from "./message/history/counts.ts";
import { makeQuotaView } from "./message/history/counts.ts";
import { makeRecorder } from "./message/record.ts";
import { makeOptOuts } from "./message/opt_outs.ts";
import { makeReplay } from "./message/replay.ts";
import { makeBulkIds } from "./message/bulk.ts";
import { listBulks } from "./message/bulk_migration.ts";
import { removeAllStaged } from "./message/staged_bulk.ts";
import { measuredEvents, measuredRecorder, measuredStore, measuredWebhooks } from "./ops/measure.ts";
import { makeMetrics } from "./ops/metrics.ts";
import { addPanel } from "./panel/panel.ts";
import type { Runtime } from "./runtime.ts";
import { makeProbe } from "./data/probe.ts";
import { openDenoKvBell } from "./store/deno_kv/bell.ts";
import { openRemoteDenoKv } from "./store/deno_kv/remote.ts";
import { denoKvFiles } from "./store/deno_kv/file_engine.ts";
import { denoKvWire } from "./store/deno_kv/wire.ts";
import type { Bell } from "./store/bell.ts";
import type { Kv } from "./store/kv.ts";
import type { ChunkedKv } from "./store/layers/chunk.ts";
import { shareBell } from "./store/layers/shared_bell.ts";
import type { Seal } from "./store/seal.ts";
import { sweeps, type SweptMedia } from "./ops/sweeps.ts";
import { makeTallyOf } from "./message/votes.ts";
import { makeDispatcher } from "./webhook/dispatcher.ts";
import { makeWebhooks } from "./webhook/webhooks.ts";
import { makeLinkCopy } from "./whatsapp/baileys/link_copy.ts";
import type { LinkCopy, Network } from "./whatsapp/connection.ts";
import { networkOnDemand } from "./whatsapp/on_demand.ts";

/** What a data folder is made of, and the steps that bring an older one up to date. */
const engine = denoKvFiles;
const migrations = [indexFileEnds, splitEventOrder, nameGenerations, orderQueues, listBulks];

/** The store that the settings name. The engine of a shared one is read in only where there is one. */
async function openStore({ dataDir, store = null }: DataConfig, runtime: Runtime): Promise<ChunkedKv> {
  if (store === null) return await engine.open(pathsOf(dataDir).store, { runtime });
  if (/^https?:/.test(store)) return await openRemoteDenoKv(store, { runtime });
  const { openPostgres } = await import("./store/postgres/postgres.ts");
  return await openPostgres(store, { runtime });
}

/** The bell of this process, and of all others on a shared store. */
async function openBell({ store }: Pick<Config, "store">, runtime: Runtime): Promise<Bell> {
  const own = await openDenoKvBell({ runtime });
  if (store === null) return own;
  if (/^https?:/.test(store)) return await shareBell(own, denoKvWire(store, { runtime }), { runtime });
  const { postgresWire } = await import("./store/postgres/wire.ts");
  return await shareBell(own, postgresWire(store, { runtime }), { runtime });
}

/** The files, in the data folder or in the bucket that the settings name. */
async function openMedia(
  config: Pick<Config, "dataDir" | "media">,
  { kv, runtime }: { kv: Kv; runtime: Runtime },
): Promise<MediaStore & SweptMedia> {
  if (config.media !== null) {
    return makeBucketMediaStore({ bucket: openBucket(config.media, runtime), kv, runtime });
  }
  const media = await openDiskMediaStore(join(config.dataDir, "media"), runtime);
  return { ...media, sweepOrphans: (signal) => sweepOrphans({ kv, media, runtime }, { signal }) };
}

const isElsewhere = ({ store, media }: Config) => store !== null || media !== null;

/** What of the data lies elsewhere, for its backup. */
function elsewhere(config: Config, runtime: Runtime) {
  const { store, media } = config;
  return {
    engine,
    runtime,
    openShared: store === null ? null : () => openStore(config, runtime),
    files: media === null ? null : filesOfBucket(openBucket(media, runtime), runtime),
  };
}

/**
 * The data folder that the settings name, for the gateway and for the commands beside it. Each throws StoreError, and
 * what `openDataFolder`, `backup` and `restore` throw.
 */
export const dataFolder = {
  open: (config: DataConfig, runtime: Runtime): Promise<DataFolder> =>
    openDataFolder(config, { runtime, migrations, openStore: () => openStore(config, runtime) }),
  backup: (config: Config, file: string, runtime: Runtime) =>
    isElsewhere(config)
      ? backupShared(pathsOf(config.dataDir), file, elsewhere(config, runtime))
      : backup(pathsOf(config.dataDir), file, engine),
  lock: (dataDir: string) => lockGateway(dataDir, engine),
  /** What links the lines of an open folder. */
  linkCopy: (data: Pick<DataFolder, "kv" | "seal">): LinkCopy => makeLinkCopy(data),
  restore: (file: string, config: Config, runtime: Runtime) =>
    isElsewhere(config)
      ? restoreShared(file, pathsOf(config.dataDir), elsewhere(config, runtime))
      : restore(file, pathsOf(config.dataDir), engine),
};

const SWEEP_PANEL_MS = 60 * 60_000;

export interface NetworkOptions {
  runtime: Runtime;
  kv: Kv;
  /** The store as the line's owner writes it. */
  storeOf(lineId: string): Kv;
  seal: Seal;
  whatsapp: WhatsAppConfig;
  /** Opens a line's own way out. */
  openProxy?: (proxy: string) => Promise<Proxy>;
  /** Counts a stanza of the network that nobody handles. */
  countStray?: (stanza: { tag: string; type: string }) => void;
}

export interface GatewayOptions {
  config: Config;
  runtime: Runtime;
  /** The engine behind the port to the messaging network; Baileys unless given. */
  openNetwork?: (options: NetworkOptions) => Network;
}

export interface Gateway {
  /** `http://HOST:PORT/v1`. */
  baseUrl: string;
  panelUrl: string;
  /** While the panel has no operator: a new one-time link that makes one. */
  firstRunLink(): Promise<string | null>;
  accounts: Accounts;
  /** Stops taking requests, lets what is on its way come to its end, closes the lines and the store. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts a gateway; resolves when it listens and its lines begin to connect. A start that fails leaves nothing open.
 * Throws AlreadyRunning, CannotListen, SecretKeyError, SchemaTooNew, StoreError.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, runtime } = options;
  await using starting = new AsyncDisposableStack();
  starting.adopt(await lockGateway(config.dataDir, engine), (lock) => lock.release());
  const data = starting.adopt(await dataFolder.open(config, runtime), (folder) => folder.close());
  const bell = starting.adopt(await openBell(config, runtime), (bell) => bell.close());
  // What a crash left of a bulk that nobody was told of.
  await removeAllStaged(data.kv);
  const { services, url, firstRunLink } = await gatewayRole(options, { data, bell });
  await startServices(starting, services);
  runtime.log.info({ url: url(), data: placeOf(config) }, "the gateway is up");

  const running = starting.move();
  let stopped: Promise<void> | null = null;
  return {
    baseUrl: `${url()}/v1`,
    panelUrl: `${url()}/panel`,
    firstRunLink,
    accounts: data.accounts,
    stop: () => stopped ??= running.disposeAsync().then(() => runtime.log.info("the gateway has stopped")),
  };
}

interface Role {
  /** In the order of their start. */
  services: readonly Service[];
  /** `http://HOST:PORT`, once the services have started. */
  url(): string;
  firstRunLink(): Promise<string | null>;
}

function openBaileys(options: NetworkOptions): Network {
  return networkOnDemand(async () => (await import("./whatsapp/baileys/network.ts")).baileysNetwork(options));
}

/** The whole gateway in one process: `paloma serve`. */
async function gatewayRole(
  { config, runtime, openNetwork = openBaileys }: GatewayOptions,
  { data, bell }: { data: DataFolder; bell: Bell },
): Promise<Role> {
  const { seal, accounts } = data;
  const metrics = makeMetrics();
  const stopping = new AbortController();
  let server: Listening | null = null;
  const url = () => server!.url;

  const links = makeMediaLinks(() => config.publicUrl ?? url(), data.key);
  const kv = measuredStore(data.kv, metrics, runtime.clock);
  const media = await openMedia(config, { kv, runtime });
  const events = measuredEvents(makeEventLog(kv, runtime), metrics);
  const idempotency = makeIdempotency({ kv, clock: runtime.clock, seal });
  const recorderOn = (kv: Kv) =>
    measuredRecorder(
      makeRecorder({ kv, events, recordStatus, sessionName: makeSessionName(kv), files: media, runtime }),
      metrics,
      runtime.clock,
    );
  const recorder = recorderOn(kv);
  const ownership = soleOwnership(kv);
  const safeFetch = makeSafeFetch({ clock: runtime.clock, allow: readAllowList(config.outboundAllow) });
  const plan = async (accountId: string) => (await accounts.caller(accountId))?.plan ?? DEFAULT_PLANS[0]!;

  const lookups = makeLookups(runtime);
  const network = openNetwork({
    runtime,
    kv,
    storeOf: (lineId) => ownership.storeOf(lineId) ?? kv,
    seal,
    whatsapp: config.whatsapp,
    openProxy: (proxy) => safeFetch.proxy(readProxy(proxy)),
    countStray: (stanza) => metrics.strays.inc(stanza),
  });
  const optOuts = makeOptOuts({
    kv,
    clock: runtime.clock,
    events,
    recorder,
    linesOf: (accountId) => lineIdsOf(kv, accountId),
    wordsOf: async (accountId) => (await accounts.caller(accountId))?.account.optOutWords ?? [],
    queueChanged: (lineId) => supervisor.queueChanged(lineId),
  });
  const shared = {
    optOuts,
    runtime,
    bell,
    files: media,
    fetchPreview: makeFetchPreview({ safeFetch, clock: runtime.clock }),
    plan,
    events,
    media: makeMediaIngest({ media, links, runtime }),
    seal,
    lookups,
    network,
  };
  /** A line's own: whatever it writes goes through its store. */
  const session = (kv: Kv): LineSessionDeps => {
    const recorder = recorderOn(kv);
    return {
      ...shared,
      kv,
      recorder,
      fetchAttachment: makeFetchAttachment({ kv, runtime, safeFetch, files: media, recorder }),
    };
  };
  const supervisor = new Supervisor({ kv, runtime, bell, ownership, session });
  const queueChanged = (lineId: string) => supervisor.queueChanged(lineId);
  const lines = makeLines({ kv, runtime, accounts, supervisor, seal, safeFetch });
  const dispatcher = makeDispatcher({
    kv,
    events,
    runtime,
    safeFetch: measuredWebhooks(safeFetch, metrics),
    seal,
    bell,
  });

  const queuedCount = makeQueuedCount(kv);
  const reserve = makeDiskReserve({ folder: config.dataDir, minFreeBytes: config.minFreeDisk, runtime });
  metrics.gauge("paloma_disk_free_bytes", "Room on the disk of the data folder", () => reserve.free());
  addGauges(metrics, {
    kv,
    clock: runtime.clock,
    network,
    lines: supervisor,
    queuedCount,
    connections: () => server?.connections() ?? 0,
    webhookAttemptsWaiting: () => dispatcher.waiting(),
  });

  const apiServices: Services = {
    runtime,
    metrics,
    accounts,
    keys: makeAccountKeys({ kv, accounts, runtime }),
    idempotency,
    lines,
    accept: acceptedWithRoom(makeAccept({ kv, runtime, idempotency, queued: queueChanged }), reserve),
    optOuts,
    replay: makeReplay({ kv, idempotency }),
    findReferred: makeFindReferred({ kv, network }),
    history: makeHistory(kv),
    amendments: makeAmendments({
      kv,
      runtime,
      recorder,
      connection: (lineId) => supervisor.connection(lineId),
      queueChanged: (lineId) => supervisor.queueChanged(lineId),
    }),
    cancel: makeCancel({ kv, recorder, dequeued: queueChanged }),
    tallyOf: makeTallyOf(kv),
    quotaView: makeQuotaView({ kv, clock: runtime.clock }),
    reschedule: makeReschedule({
      kv,
      laneOf: (lineId, chat) => laneOf(kv, lineId, { chat, now: runtime.clock.now() }),
      queueChanged,
    }),
    bulkIds: makeBulkIds(kv),
    bulkView: makeBulkView({ kv, clock: runtime.clock, accounts }),
    queueView: makeQueueView({ kv, clock: runtime.clock, accounts }),
    findWaits: makeFindWaits({ kv, clock: runtime.clock, accounts }),
    lookups,
    unread: makeUnread({ kv, clock: runtime.clock }),
    media,
    serveMedia: makeServeMedia({ kv, media, links, runtime }),
    events,
    webhooks: makeWebhooks({ kv, events, safeFetch, seal, runtime, dispatcher, sessions: lines }),
    budgets: makeBudgets({ bodyBytes: config.maxBodies, metrics, clock: runtime.clock }),
    trustedProxies: config.trustedProxies,
    probe: makeProbe(kv, runtime.clock),
    stopping: stopping.signal,
  };
  const app = createApi(apiServices);
  const panel = addPanel(app, {
    ...apiServices,
    kv,
    seal,
    plans: data.plans,
    queuedCount,
    watchLine: (lineId, look) => supervisor.watch(lineId, look),
    publicUrl: config.publicUrl,
    dataDir: config.dataDir,
    webVersion: config.whatsapp.version,
    panelUrl: () => `${config.publicUrl ?? url()}/panel`,
  });

  const requests: Service = {
    async start() {
      server ??= await listen(app, { ...config, runtime });
    },
    async stop() {
      stopping.abort();
      await server?.stop();
    },
  };
  const maintenance = makeMaintenance([
    ...sweeps({ kv, runtime, media, network, events, eventDays: config.eventDays, historyDays: config.historyDays }),
    { name: "logins, links and the audit log", everyMs: SWEEP_PANEL_MS, run: panel.sweep },
  ], { runtime });
  return {
    url,
    firstRunLink: panel.firstRunLink,
    services: [
      // Before the lines, whose media links carry the port.
      requests,
      together(dispatcher, supervisor, maintenance),
      // And to the end before the lines, which bring about what requests ask for.
      { start: () => Promise.resolve(), stop: requests.stop },
    ],
  };
}
