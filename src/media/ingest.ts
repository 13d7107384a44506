/** Files of incoming messages: downloaded with a size limit, stored, and linked for 24 h; or the reason why not. */
import { retry } from "../base/retry.ts";
import { timeLimit, unlessAborted } from "../base/within.ts";
import { Problem } from "../errors.ts";
import type { EventData } from "../event/event.ts";
import type { Runtime } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";
import { type Incoming, type IncomingMedia, MediaTrouble, MediaUnavailable } from "../whatsapp/incoming.ts";
import { generatedFilename, safeFilename, safeMimetype } from "./filename.ts";
import type { MediaLinks } from "./signed_link.ts";
import type { FileRecord } from "./rows.ts";
import type { StoredFile } from "./store.ts";
import type { SharedMediaStore } from "./fair_shares.ts";

export type MediaIngest = ReturnType<typeof makeMediaIngest>;

/** A file as the event tells it, and its row; null if it could not be downloaded. */
interface Ingested {
  media: NonNullable<EventData<"message.received">["media"]>;
  file: FileRecord | null;
}

/** The same limit as for uploads by the API. */
const RECEIVED_MAX_BYTES = 100 * 1024 ** 2;
/** Links are valid for 24 h (spec, Limits). */
const MEDIA_LINK_MS = 24 * 3_600_000;
/** Time limit over all attempts: a message must not wait for its file forever. */
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Pauses between attempts, if the network is at fault rather than the file. */
const RETRY_PAUSES_MS = [1_000, 4_000];
/** Pause between attempts while the place of files is away, as a bucket may be, or the store of its rows. */
const AWAY_PAUSE_MS = 10_000;

interface MediaIngestContext {
  media: Pick<SharedMediaStore, "write">;
  links: Pick<MediaLinks, "sign">;
  runtime: Runtime;
}

export function makeMediaIngest(context: MediaIngestContext) {
  const { links, runtime } = context;
  return {
    /**
     * Downloads the message's file; null if it has none. If the file cannot be downloaded, the result has `url: null`
     * with a reason, and no `file`. Rejects only when the signal aborts. The caller adds `file` to the commit of its
     * event with `keepFile`, so that row and event are written together or not at all.
     */
    async take(accountId: string, message: Incoming, signal: AbortSignal): Promise<Ingested | null> {
      if (message.media === null) return null;
      const { media } = message;
      const mimetype = safeMimetype(media.mimetype);
      const filename = safeFilename(media.filename ?? "") ??
        generatedFilename(message.type.replace(/Message$/, ""), { mimetype, at: message.timestamp * 1000 });
      const got = await download(context, { accountId, media }, signal);
      if ("reason" in got) {
        runtime.log.warn(
          { networkId: message.networkId, reason: got.reason },
          "the file of a message could not be downloaded",
        );
        return { media: { url: null, mimetype, size: media.size ?? 0, filename, reason: got.reason }, file: null };
      }
      const { fileId, size, sha256 } = got;
      const now = runtime.clock.now();
      // Rounded up to whole seconds, as in the link, so never less than 24 h.
      const expiresAt = Math.ceil((now + MEDIA_LINK_MS) / 1000) * 1000;
      return {
        media: { url: links.sign(fileId, expiresAt), mimetype, size, filename },
        file: { id: fileId, size, sha256, accountId, mimetype, filename, expiresAt },
      };
    },
  };
}

async function download(
  { media: store, runtime }: MediaIngestContext,
  { accountId, media }: { accountId: string; media: IncomingMedia },
  signal: AbortSignal,
): Promise<StoredFile | { reason: string }> {
  if (media.size !== null && media.size > RECEIVED_MAX_BYTES) return { reason: tooLarge() };
  const { clock } = runtime;
  using limit = timeLimit(clock, DOWNLOAD_TIMEOUT_MS, signal);
  const attempt = async () => {
    limit.signal.throwIfAborted();
    const content = await unlessAborted(limit.signal, media.download(limit.signal));
    return await store.write(stopOnAbort(content, limit.signal), { accountId, maxBytes: RECEIVED_MAX_BYTES });
  };
  const waiting = { clock, signal: limit.signal };
  const isOfNetwork = (error: unknown) => finalReason(error) === null && !isAway(error);
  try {
    return await retry(
      () => retry(attempt, { ...waiting, pauseMs: RETRY_PAUSES_MS, isTransient: isOfNetwork }),
      { ...waiting, pauseMs: AWAY_PAUSE_MS, isTransient: isAway },
    );
  } catch (error) {
    signal.throwIfAborted();
    if (isAway(error)) return { reason: "the file could not be kept" };
    if (limit.isOver) return { reason: `the download took longer than ${DOWNLOAD_TIMEOUT_MS / 1000} s` };
    return { reason: finalReason(error) ?? passingReason(error) };
  }
}

/** Whether the place of files is away. It may be back soon, and until then the network keeps the file. */
function isAway(error: unknown): boolean {
  return error instanceof StoreError && error.code !== "full";
}

/** Returns why a retry is useless; null if it may help. */
function finalReason(error: unknown): string | null {
  if (error instanceof MediaUnavailable) return error.message;
  if (error instanceof Problem && error.code === "payload_too_large") return tooLarge();
  if (error instanceof Problem && error.code === "storage_unavailable") return "there is no place for files";
  if (error instanceof StoreError && error.code === "full") return "there was no space left to keep the file";
  return null;
}

/** Returns why the last attempt failed. */
function passingReason(error: unknown): string {
  return error instanceof MediaTrouble ? error.message : "the file could not be downloaded";
}

function tooLarge(): string {
  return `the file is larger than ${RECEIVED_MAX_BYTES / 1024 ** 2} MiB`;
}

function stopOnAbort(content: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  return content.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), { signal });
}
