/**
 * The composition root: picks the engines, wires the services, starts and stops them in order. Nothing else names an
 * engine; `tests/unit/floors_test.ts` checks this.
 */
import { join } from "node:path";
import type { Accounts } from "./account/accounts.ts";
import { exists } from "./base/files.ts";
import { startServices } from "./base/service.ts";
import { type Config, SettingsError } from "./config.ts";
import {
  assertSecret,
  type DataConfig,
  type DataFolder,
  inDataFolder,
  isBegun,
  lockGateway,
  openDataFolder,
  pathsOf,
  placeOf,
} from "./data/data_folder.ts";
import type { FileSeal } from "./data/sealed_file.ts";
import { openDiskMediaStore } from "./media/disk_store.ts";
import { noMediaStore } from "./media/store.ts";
import { withFairWrites } from "./media/fair_shares.ts";
import { mediaKeys } from "./media/rows.ts";
import { chatKeys } from "./chat/rows.ts";
import { messageKeys } from "./message/rows.ts";
import { eventKeys } from "./event/rows.ts";
import { migrations } from "./ops/migrations.ts";
import type { Runtime } from "./runtime.ts";
import { openDenoKvBell } from "./store/deno_kv/bell.ts";
import { denoKvFiles } from "./store/deno_kv/file_engine.ts";
import type { Bell } from "./store/bell.ts";
import type { Claims } from "./cluster/holder.ts";
import type { Kv } from "./store/kv.ts";
import type { Emulation } from "./cloud/emulation.ts";
import type { ChunkedKv } from "./store/layers/chunk.ts";
import { type LinkCopy, type Network, networkOnDemand, noteSetback } from "./whatsapp/network.ts";
import { verificationKeys } from "./verification/rows.ts";
import type { Media, NetworkOptions, RoleOptions } from "./roles/context.ts";
import type { RoleName } from "./roles/role.ts";

/** The storage engine of data folders. */
const engine = denoKvFiles;

/** Row families that an account may have sealed: messages, templates, events, chats, verifications and received files. */
const contents = new Set(
  [
    messageKeys.messages(),
    messageKeys.allTemplateVersions(),
    eventKeys.events(""),
    mediaKeys.files(),
    chatKeys.recordsOfLine(""),
    chatKeys.messagesOfLine(""),
    verificationKeys.ofAccount(""),
  ].map(([family]) => family!),
);

/** Opens the store that the settings name. The engine of a shared store is loaded only if there is one. */
async function openStore({ dataDir, store = null }: DataConfig, runtime: Runtime): Promise<ChunkedKv> {
  if (store === null) return await engine.open(pathsOf(dataDir).store, { runtime });
  if (/^https?:/.test(store)) {
    const { openRemoteDenoKv } = await import("./store/deno_kv/remote.ts");
    return await openRemoteDenoKv(store, { runtime });
  }
  const { openPostgres } = await import("./store/postgres/postgres.ts");
  return await openPostgres(store, { runtime });
}

/** Opens the bell: of this process, or of all processes on a shared store. */
async function openBell({ store }: Pick<Config, "store">, runtime: Runtime): Promise<Bell> {
  const own = await openDenoKvBell({ runtime });
  if (store === null) return own;
  const { shareBell } = await import("./store/layers/shared_bell.ts");
  if (/^https?:/.test(store)) {
    const { denoKvWire } = await import("./store/deno_kv/wire.ts");
    return await shareBell(own, denoKvWire(store, { runtime }), { runtime });
  }
  const { postgresWire } = await import("./store/postgres/wire.ts");
  return await shareBell(own, postgresWire(store, { runtime }), { runtime });
}

/** Options of every restore. `mark` notes that the keys of lines may be older than what was sent with them. */
const restoring = (runtime: Runtime) => ({
  engine,
  runtime,
  mark: (kv: Kv) => noteSetback(kv, runtime),
});

/** Returns the backup and restore of a shared store or a bucket; null if all data is in the folder. */
async function elsewhere(config: Config, runtime: Runtime) {
  const { store, media } = config;
  if (store === null && media === null) return null;
  const [{ openBucket }, { filesOfBucket }, { backupShared, restoreShared }] = await Promise.all([
    import("./media/s3.ts"),
    import("./media/bucket_store.ts"),
    import("./data/shared_backup.ts"),
  ]);
  const paths = pathsOf(config.dataDir);
  const openOwn = store === null ? null : async () => {
    await using opening = new AsyncDisposableStack();
    const kv = opening.adopt(await openStore(config, runtime), (kv) => kv.close());
    await assertSecret(kv, config, runtime);
    opening.move();
    return kv;
  };
  const options = {
    ...restoring(runtime),
    openShared: store === null ? null : () => openStore(config, runtime),
    files: media === null ? null : filesOfBucket(openBucket(media, runtime), runtime),
  };
  return {
    backup: (file: string, seal: FileSeal | null) =>
      backupShared(paths, file, { ...options, seal, openShared: openOwn }),
    restore: (file: string) => restoreShared(file, paths, options),
  };
}

/**
 * The data that the settings name, for the gateway and for commands. Code that few of them need is loaded on demand.
 * Each function throws StoreError, and what `openDataFolder`, `backup` and `restore` throw.
 */
export const dataFolder = {
  open: (config: DataConfig, runtime: Runtime): Promise<DataFolder> =>
    openDataFolder(config, { runtime, migrations, contents, openStore: () => openStore(config, runtime) }),
  /** Resolves to whether there is any data; creates none. */
  async isBegun(config: DataConfig, runtime: Runtime): Promise<boolean> {
    if (!config.store) return await inDataFolder(config.dataDir, () => exists(pathsOf(config.dataDir).store));
    const kv = await openStore(config, runtime);
    try {
      return await isBegun(kv);
    } finally {
      kv.close();
    }
  },
  /** `seal`: with what the backup is sealed; null for one that is not. */
  async backup(config: Config, file: string, { runtime, seal }: { runtime: Runtime; seal: FileSeal | null }) {
    const shared = await elsewhere(config, runtime);
    if (shared !== null) return await shared.backup(file, seal);
    const { backup } = await import("./data/backup.ts");
    return await backup(pathsOf(config.dataDir), file, engine, { seal });
  },
  /** Records that a backup was made. Needs no key, and migrates nothing. */
  async noteBackup(config: DataConfig, runtime: Runtime): Promise<void> {
    const { noteBackup } = await import("./data/backup.ts");
    const kv = await inDataFolder(config.dataDir, () => openStore(config, runtime));
    try {
      await noteBackup(kv, runtime.clock);
    } finally {
      kv.close();
    }
  },
  lock: (dataDir: string) => lockGateway(dataDir, engine),
  /** Resolves to what claims new lines on the open data; null if they are in the folder. */
  async claims({ kv }: Pick<DataFolder, "kv">, { store }: Pick<Config, "store">): Promise<Claims | null> {
    return store === null ? null : (await import("./cluster/leases.ts")).makeClaims(kv);
  },
  /** Re-encrypts the data under the key `to`; null: under a new key of the folder's own. */
  async rekey(config: DataConfig, to: string | null, runtime: Runtime): Promise<number> {
    const { rekeyDataFolder } = await import("./data/rekey.ts");
    return await rekeyDataFolder(config, { runtime, migrations, to, openStore: () => openStore(config, runtime) });
  },
  /** Rewrites the account's rows after it was sealed or unsealed; resolves to their number. */
  async rewriteContents(data: Pick<DataFolder, "kv">, accountId: string, { clock }: Runtime): Promise<number> {
    const { rewriteContents } = await import("./data/rekey.ts");
    return await rewriteContents(data.kv, { accountId, families: contents, clock });
  },
  /** Resolves to what copies the links of lines of an open folder. */
  async linkCopy(data: Pick<DataFolder, "kv" | "seal"> & { runtime: Runtime }): Promise<LinkCopy> {
    const { makeLinkCopy } = await import("./whatsapp/baileys/link_copy.ts");
    return makeLinkCopy(data);
  },
  /** The files of an open folder. */
  media: (config: Config, { kv, runtime }: Pick<DataFolder, "kv"> & { runtime: Runtime }): Promise<Media> =>
    openMedia({ config, runtime }, kv),
  async restore(file: string, config: Config, runtime: Runtime) {
    const shared = await elsewhere(config, runtime);
    if (shared !== null) return await shared.restore(file);
    const { restore } = await import("./data/backup.ts");
    return await restore(file, pathsOf(config.dataDir), restoring(runtime));
  },
};

interface GatewayOptions {
  config: Config;
  runtime: Runtime;
  /** By default the whole gateway; the other roles need a shared store. */
  role?: RoleName;
  /** The engine behind the port to the messaging network; Baileys unless given. */
  openNetwork?: (options: NetworkOptions) => Network;
  /** Makes `/cloud` emulate the official API, instead of speaking for linked lines alone. */
  emulation?: Emulation | undefined;
}

export interface Gateway {
  /** `http://HOST:PORT/v1`. */
  baseUrl: string;
  panelUrl: string;
  /** Resolves to a new one-time link that makes an operator; null if the panel has one. */
  firstRunLink(): Promise<string | null>;
  accounts: Accounts;
  /** Stops accepting requests, lets work in progress finish, closes the lines and the store. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts the process in its role; resolves when it listens and its lines begin to connect. A start that fails leaves
 * nothing open. Throws AlreadyRunning, CannotListen, SecretKeyError, SchemaTooNew, StoreError.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, runtime, role = "serve" } = options;
  // Loaded while the store opens, which waits for the disk.
  const loading = import("./roles/role.ts");
  await using starting = new AsyncDisposableStack();
  const parts = await openParts(options, starting);
  const { ROLES } = await loading;
  const { services, url, firstRunLink } = await ROLES[role](parts);
  await startServices(starting, services);
  runtime.log.info({ role, url: url(), data: placeOf(config) }, "the gateway is up");

  const running = starting.move();
  let stopped: Promise<void> | null = null;

  async function stop(): Promise<void> {
    await running.disposeAsync();
    runtime.log.info("the gateway has stopped");
  }

  return {
    baseUrl: `${url()}/v1`,
    panelUrl: `${url()}/panel`,
    firstRunLink,
    accounts: parts.data.accounts,
    stop: () => stopped ??= stop(),
  };
}

/** Answers a request; `address` is where it comes from. */
type Handler = (request: Request, address: string) => Response | Promise<Response>;

/**
 * Opens the API on a shared store without a port, for hosts that listen themselves. Nothing has to be stopped:
 * everything in memory may be lost at any moment. Throws SettingsError, SecretKeyError, SchemaTooNew, StoreError.
 */
export async function openApi(options: GatewayOptions): Promise<Handler> {
  const { config } = options;
  if (config.store === null) throw new SettingsError(["PALOMA_STORE: is required where there is no disk"]);
  await using opening = new AsyncDisposableStack();
  const parts = await openParts({ ...options, role: "api" }, opening);
  const { apiOn } = await import("./roles/role.ts");
  const { app } = apiOn(parts, {
    stopping: new AbortController().signal,
    url: () => config.publicUrl ?? "http://localhost",
    connections: () => 0,
  });
  opening.move();
  return (request, address) => app.fetch(request, { incoming: { socket: { remoteAddress: address } } });
}

/** Opens what a role needs before it starts; `opened` closes it. */
async function openParts(options: GatewayOptions, opened: AsyncDisposableStack): Promise<RoleOptions> {
  const { config, runtime, role = "serve", openNetwork = openBaileys, emulation } = options;
  const isShared = config.store !== null;
  // A shared store has leases instead of the lock.
  if (!isShared) opened.adopt(await lockGateway(config.dataDir, engine), (lock) => lock.release());
  const place = isShared && role !== "api" ? await placeIn(config, runtime) : null;
  if (place) opened.adopt(place, (place) => place.release());
  const data = opened.adopt(await dataFolder.open(config, runtime), (folder) => folder.close());
  const bell = opened.adopt(await openBell(config, runtime), (bell) => bell.close());
  const media = await openMedia(options, data.kv);
  const hasChanged = isShared
    ? () => true
    : opened.adopt(engine.watch(pathsOf(config.dataDir).store), (watch) => watch.close()).hasChanged;
  const engineOfNetwork = { load: loadBaileys, open: openNetwork };
  return { config, runtime, engine: engineOfNetwork, data, bell, media, hasChanged, place, emulation };
}

async function placeIn({ dataDir }: Config, runtime: Runtime) {
  const { takePlace } = await import("./cluster/place.ts");
  return await takePlace(dataDir, { engine, runtime });
}

/** Opens the store of files: a bucket, or the data folder, or none for `api` and `worker` without a bucket. */
async function openMedia({ config, runtime, role = "serve" }: GatewayOptions, kv: Kv): Promise<Media> {
  const { clock } = runtime;
  if (config.media !== null) {
    const [{ openBucket }, { makeBucketMediaStore }] = await Promise.all([
      import("./media/s3.ts"),
      import("./media/bucket_store.ts"),
    ]);
    return withFairWrites(makeBucketMediaStore({ bucket: openBucket(config.media, runtime), kv, runtime }), clock);
  }
  if (role !== "serve") return withFairWrites(noMediaStore(), clock);
  const media = await openDiskMediaStore(join(config.dataDir, "media"), runtime);
  return {
    ...withFairWrites(media, clock),
    async sweepOrphans(kv, signal) {
      const { sweepOrphans } = await import("./media/sweep.ts");
      return await sweepOrphans({ kv, media, runtime }, { signal });
    },
  };
}

const loadBaileys = () => import("./whatsapp/baileys/network.ts");

function openBaileys(options: NetworkOptions): Network {
  return networkOnDemand(async () => (await loadBaileys()).baileysNetwork(options));
}
