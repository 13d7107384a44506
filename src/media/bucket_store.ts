/**
 * The media store in a bucket. Files are uploaded in parts through memory, without a disk. Each object has a row that
 * says when to check whether it is still needed. The row is written before the object, so that leftovers of a crash are
 * found without listing the bucket.
 */
import { basename, join } from "node:path";
import { exists } from "../base/files.ts";
import { firstBytes, GatheredBytes } from "../base/gathered_bytes.ts";
import { makeCopyFolder } from "../data/copies.ts";
import type { FilesElsewhere } from "../data/shared_backup.ts";
import { notFound } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import type { FileEngine } from "../store/file_engine.ts";
import { Change, isRow, type Kv, type Row } from "../store/kv.ts";
import type { Bucket, UploadedPart } from "./s3.ts";
import { openDiskMediaStore } from "./disk_store.ts";
import { mediaKeys, type ObjectRow } from "./rows.ts";
import { measured, type MediaStore } from "./store.ts";

/** Least and most bytes of a part: S3's minimum, and what is held in memory of each upload. */
const PART_BYTES = { min: 5 * 1024 ** 2, max: 8 * 1024 ** 2 };
/** When a new object is first checked: a bulk may fetch files for hours before its commit refers to them. */
const LOOK_AFTER_MS = 24 * 3_600_000;
/** Grace period after a file's end, because it may still be being downloaded. */
const ENDED_MS = 3_600_000;
/** Objects checked per run of the sweep. */
const A_TURN = 1_000;

interface BucketMediaStore extends MediaStore {
  /** As `write`, for a file that already has its id. */
  writeAs(fileId: string, content: ReadableStream<Uint8Array>, maxBytes: number): ReturnType<MediaStore["write"]>;
  /** Removes objects that no file needs any longer and, through the given store, their rows; resolves to their number. */
  sweepOrphans(kv: Kv, signal: AbortSignal): Promise<number>;
}

interface Options {
  bucket: Bucket;
  kv: Kv;
  runtime: Runtime;
  engine: Pick<FileEngine, "tryLock">;
}

export function makeBucketMediaStore({ bucket, kv, runtime, engine }: Options): BucketMediaStore {
  const { clock, confirmed, ids } = runtime;

  async function writeAs(fileId: string, content: ReadableStream<Uint8Array>, maxBytes: number) {
    const { chunks, result } = measured(content, maxBytes);
    const upload = new Upload({ bucket, kv }, { fileId, lookAt: clock.now() + LOOK_AFTER_MS });
    try {
      await upload.note();
      for await (const chunk of chunks) await upload.add(chunk);
      await upload.finish();
      return { fileId, ...result() };
    } catch (error) {
      await upload.abort();
      await content.cancel(error).catch(() => {});
      throw error;
    }
  }

  async function read(fileId: string, part?: { start: number; length: number }) {
    const body = await bucket.get(fileId, part);
    if (body === null) throw notFound("file");
    return body;
  }

  async function lookLater(kv: Kv, { key, value }: Row<ObjectRow>): Promise<void> {
    const later = mediaKeys.object(confirmed.now() + LOOK_AFTER_MS, String(key[2]));
    await kv.commit(new Change().delete(key).set(later, value));
  }

  /**
   * Checks an object: removes it unless a file needs it, otherwise schedules the next check. Resolves to whether it is
   * needed.
   */
  async function look(kv: Kv, row: Row<ObjectRow>): Promise<boolean> {
    const { key, value } = row;
    const fileId = String(key[2]);
    const { value: file } = await kv.get(mediaKeys.file(fileId));
    if (file && (file.expiresAt === null || confirmed.now() - file.expiresAt < ENDED_MS)) {
      await lookLater(kv, row);
      return true;
    }
    if (value.uploadId !== null) await bucket.abort(fileId, value.uploadId);
    await bucket.delete(fileId);
    await kv.commit(new Change().delete(key).delete(mediaKeys.file(fileId)));
    return false;
  }

  /** An upload's beginning may be answered when nobody listens any more: then no row has its id. */
  async function abortForgotten(): Promise<void> {
    for (const { name, uploadId, begunAt } of await bucket.unfinished()) {
      const isOurs = name.startsWith("med_");
      if (isOurs && confirmed.now() - begunAt >= LOOK_AFTER_MS) await bucket.abort(name, uploadId);
    }
  }

  return {
    assertPlace() {},
    write: (content, maxBytes) => writeAs(ids.next("med"), content, maxBytes),

    writeAs,

    head: async (fileId, length) => await firstBytes(await read(fileId), length),

    // S3 does not support ranges of zero bytes.
    read: (fileId, part) => read(fileId, part.length === 0 ? undefined : part),

    async onDisk(fileId, signal) {
      const content = await read(fileId);
      using copying = new DisposableStack();
      const path = join(copying.use(await makeCopyFolder(engine)).path, fileId);
      await Deno.writeFile(path, content, { signal });
      const copied = copying.move();
      return { path, [Symbol.asyncDispose]: () => Promise.resolve(copied.dispose()) };
    },

    remove: (fileId) => bucket.delete(fileId),

    async sweepOrphans(kv, signal) {
      let removed = 0;
      const due = { prefix: mediaKeys.objects(), end: mediaKeys.object(confirmed.now(), "") };
      for await (const row of kv.list(due, { limit: A_TURN })) {
        if (signal.aborted) break;
        try {
          if (!await look(kv, row)) removed++;
        } catch (error) {
          // An object that cannot be removed must not block all others.
          await lookLater(kv, row);
          throw error;
        }
      }
      await abortForgotten();
      return removed;
    },
  };
}

/** Converts the bucket's files to a folder in the layout of the disk store, and back, for backups. */
export function filesOfBucket({ bucket, runtime, engine }: Omit<Options, "kv">): FilesElsewhere {
  return {
    async save(kv, folder) {
      const disk = await openDiskMediaStore(folder, runtime);
      // The rows may be sealed: only their keys are read.
      for await (const { key } of kv.list({ prefix: mediaKeys.files() })) {
        const id = String(key[1]);
        if (await exists(disk.path(id))) continue;
        // A file removed in the meantime is no longer needed.
        const content = await contentOf(id, { bucket, kv });
        if (content === null) continue;
        await Deno.mkdir(join(disk.path(id), ".."), { recursive: true, mode: 0o700 });
        await Deno.writeFile(disk.path(id), content, { mode: 0o600 });
      }
    },
    async load(kv, folder) {
      const media = makeBucketMediaStore({ bucket, kv, runtime, engine });
      const disk = await openDiskMediaStore(folder, runtime);
      for await (const files of disk.folders()) {
        for (const { path } of files) await media.writeAs(basename(path), (await Deno.open(path)).readable, Infinity);
      }
    },
  };
}

/**
 * Returns the content of a file; null if it has been removed. S3 answers a read of a missing object as one that is
 * forbidden, unless the key may list the bucket, so then its row decides.
 */
async function contentOf(fileId: string, { bucket, kv }: { bucket: Bucket; kv: Kv }) {
  try {
    return await bucket.get(fileId);
  } catch (error) {
    if (isRow(await kv.get(mediaKeys.file(fileId)))) throw error;
    return null;
  }
}

/** An object being uploaded: in parts, or whole if it is smaller than one part. */
class Upload {
  readonly #deps: { bucket: Bucket; kv: Kv };
  readonly #object: { fileId: string; lookAt: number };
  /** Null until the first part is full. */
  #uploadId: string | null = null;
  readonly #parts: UploadedPart[] = [];
  #waiting = new GatheredBytes();

  constructor(deps: { bucket: Bucket; kv: Kv }, object: { fileId: string; lookAt: number }) {
    this.#deps = deps;
    this.#object = object;
  }

  /** Writes the row by which the sweep finds leftovers of a crash; called before anything is in the bucket. */
  async note(): Promise<void> {
    const { fileId, lookAt } = this.#object;
    await this.#deps.kv.commit(new Change().set(mediaKeys.object(lookAt, fileId), { uploadId: this.#uploadId }));
  }

  async add(chunk: Uint8Array): Promise<void> {
    const { size } = this.#waiting;
    if (size >= PART_BYTES.min && size + chunk.length > PART_BYTES.max) await this.#sendPart();
    this.#waiting.add(chunk);
  }

  async finish(): Promise<void> {
    const { bucket } = this.#deps;
    const { fileId } = this.#object;
    if (this.#uploadId === null) return await bucket.put(fileId, this.#taken());
    if (this.#waiting.size > 0) await this.#sendPart();
    await bucket.finish(fileId, this.#uploadId, this.#parts);
  }

  /** Aborts the upload; the sweep removes whatever remains. */
  async abort(): Promise<void> {
    if (this.#uploadId !== null) await this.#deps.bucket.abort(this.#object.fileId, this.#uploadId).catch(() => {});
  }

  async #sendPart(): Promise<void> {
    const { bucket } = this.#deps;
    const { fileId } = this.#object;
    if (this.#uploadId === null) {
      this.#uploadId = await bucket.begin(fileId);
      await this.note();
    }
    const bytes = this.#taken();
    this.#parts.push(await bucket.part(fileId, this.#uploadId, { number: this.#parts.length + 1, bytes }));
  }

  #taken(): Uint8Array<ArrayBuffer> {
    const { all } = this.#waiting;
    this.#waiting = new GatheredBytes();
    return all;
  }
}
