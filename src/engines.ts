/**
 * The engines: the only file that names them, and picks those that the settings ask for. What few processes need is
 * loaded on demand.
 */
import { join } from "node:path";
import { chatKeys } from "./chat/rows.ts";
import type { Config } from "./config.ts";
import { type DataConfig, type DataFolder, openDataFolder, type OpenOptions, pathsOf } from "./data/data_folder.ts";
import type { CopyOptions } from "./data/shared_backup.ts";
import { eventKeys } from "./event/rows.ts";
import { openDiskMediaStore } from "./media/disk_store.ts";
import { withFairWrites } from "./media/fair_shares.ts";
import { mediaKeys } from "./media/rows.ts";
import { noMediaStore } from "./media/store.ts";
import { messageKeys } from "./message/rows.ts";
import { migrations } from "./ops/migrations.ts";
import type { Media } from "./roles/context.ts";
import type { RoleName } from "./roles/role.ts";
import type { Runtime } from "./runtime.ts";
import type { Bell } from "./store/bell.ts";
import { openDenoKvBell } from "./store/deno_kv/bell.ts";
import { denoKvFiles } from "./store/deno_kv/file_engine.ts";
import type { Kv } from "./store/kv.ts";
import type { ChunkedKv } from "./store/layers/chunk.ts";
import { verificationKeys } from "./verification/rows.ts";
import { type LinkCopy, type Network, networkOnDemand, type NetworkOptions, noteSetback } from "./whatsapp/network.ts";

/** The storage engine of data folders. */
export const fileEngine = denoKvFiles;

/** Row families that an account may have sealed: messages, templates, events, chats, verifications and received files. */
export const contents = new Set(
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
export async function openStore({ dataDir, store = null }: DataConfig, runtime: Runtime): Promise<ChunkedKv> {
  if (store === null) return await fileEngine.open(pathsOf(dataDir).store, { runtime });
  if (/^https?:/.test(store)) {
    const { openRemoteDenoKv } = await import("./store/deno_kv/remote.ts");
    return await openRemoteDenoKv(store, { runtime });
  }
  const { openPostgres } = await import("./store/postgres/postgres.ts");
  return await openPostgres(store, { runtime });
}

/** What opening the data that the settings name takes. */
export function openOptions(config: DataConfig, runtime: Runtime): OpenOptions {
  return { runtime, migrations, contents, openStore: () => openStore(config, runtime) };
}

/** Opens the data that the settings name. Throws StoreError, and what `openDataFolder` throws. */
export function openData(config: DataConfig, runtime: Runtime): Promise<DataFolder> {
  return openDataFolder(config, openOptions(config, runtime));
}

/** Resolves to what backup and restore of the data that the settings name take. */
export async function copyOptions(config: Config, runtime: Runtime): Promise<CopyOptions> {
  const { store, media } = config;
  const [{ openBucket }, { filesOfBucket }] = await loadBucket();
  return {
    engine: fileEngine,
    runtime,
    // The keys of the restored lines may be older than what was sent with them.
    mark: (kv) => noteSetback(kv, runtime),
    openShared: store === null ? null : () => openStore(config, runtime),
    files: media === null ? null : filesOfBucket({ bucket: openBucket(media, runtime), runtime, engine: fileEngine }),
  };
}

/** Opens the bell: of this process, or of all processes on a shared store. */
export async function openBell({ store }: Pick<Config, "store">, runtime: Runtime): Promise<Bell> {
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

const loadBucket = () => Promise.all([import("./media/s3.ts"), import("./media/bucket_store.ts")]);

/** Opens the store of files: a bucket, or the data folder, or none for `api` and `worker` without a bucket. */
export async function openMedia(
  { config, runtime, kv, role = "serve" }: { config: Config; runtime: Runtime; kv: Kv; role?: RoleName },
): Promise<Media> {
  const { clock } = runtime;
  if (config.media !== null) {
    const [{ openBucket }, { makeBucketMediaStore }] = await loadBucket();
    const bucket = openBucket(config.media, runtime);
    return withFairWrites(makeBucketMediaStore({ bucket, kv, runtime, engine: fileEngine }), clock);
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

/** Loads the engine of lines. */
export const loadBaileys = () => import("./whatsapp/baileys/network.ts");

export function openBaileys(options: NetworkOptions): Network {
  return networkOnDemand(async () => (await loadBaileys()).baileysNetwork(options));
}

/** Resolves to what copies the links of lines of the open data. */
export async function linkCopy(data: Pick<DataFolder, "kv" | "seal"> & { runtime: Runtime }): Promise<LinkCopy> {
  const { makeLinkCopy } = await import("./whatsapp/baileys/link_copy.ts");
  return makeLinkCopy(data);
}
