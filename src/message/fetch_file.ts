/**
 * Fetches the file that a message names by URL (bulk `fileUrl`), when the message's turn comes: a 202 must not wait for
 * ten thousand downloads, and files of messages that are cancelled are never fetched. Kept with the message in one
 * commit, so a restart does not fetch again.
 */
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { Problem } from "../errors.ts";
import { makeFetchFile as makeDownload } from "../media/fetch_file.ts";
import { safeFilename } from "../media/filename.ts";
import type { MediaStore } from "../media/store.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { messageKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict, StoreError } from "../store/kv.ts";
import { type FileContent, remoteFile } from "./content.ts";
import { fileKind } from "./file_kind.ts";
import type { Message } from "./message.ts";
import { keepFileOf } from "./message_rows.ts";
import type { Recorder } from "./record.ts";

/** Pauses between the attempts; while they run, the line waits. */
const RETRY_PAUSES_MS = [1_000, 4_000];
/** After trouble with the store. */
const STORE_PAUSE_MS = 1_000;
/** Where trying again changes nothing. */
const FINAL: readonly EgressError["code"][] = ["forbidden_url", "forbidden_address", "too_large", "too_many_redirects"];

/**
 * Afterwards the message has its file, or has ended as failed (`file_unavailable`), unless the signal aborted. Never
 * called for two messages of a line at once.
 */
export type FetchFile = (message: Message, signal: AbortSignal) => Promise<void>;

export interface FetchFileDeps {
  kv: Kv;
  runtime: Runtime;
  safeFetch: SafeFetch;
  files: MediaStore;
  recorder: Pick<Recorder, "dropped">;
}

export function makeFetchFile({ kv, runtime, safeFetch, files, recorder }: FetchFileDeps): FetchFile {
  const download = makeDownload({ safeFetch, media: files });

  async function keep(message: Message, fetched: Awaited<ReturnType<typeof download>>): Promise<void> {
    const kept = await retryOnConflict(kv, async () => {
      const slot = await kv.get(messageKeys.message(message.id));
      const change = new Change().check(slot);
      const content = slot.value?.content;
      // Cancelled or expired in the meantime.
      if (slot.value?.status !== "queued" || !content || content.kind === "text") return { change, result: false };
      const { file, filename, mimetype } = fetched;
      const next = { ...slot.value, content: { ...contentOf(filename, { file, mimetype }), caption: content.caption } };
      keepFileOf(change.set(messageKeys.message(message.id), next), next);
      return { change, result: true };
    });
    if (!kept) await files.remove(fetched.file.fileId);
  }

  /** Keeps it however long the store is in trouble: it need not be fetched again, nor lie here several times. */
  async function keepAtLast(
    message: Message,
    fetched: Awaited<ReturnType<typeof download>>,
    signal: AbortSignal,
  ): Promise<void> {
    for (;;) {
      try {
        return await keep(message, fetched);
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        runtime.log.warn({ messageId: message.id, error: String(error) }, "a fetched file waits to be kept");
        await sleep(runtime.clock, STORE_PAUSE_MS, signal);
        // Whether an uncertain commit has named it shows at the next start; the sweep knows then.
        if (signal.aborted) return;
      }
    }
  }

  return async (message, signal) => {
    const remote = remoteFile(message.content);
    if (!remote) return;
    let failure: Problem | null = null;
    for (const pauseMs of [...RETRY_PAUSES_MS, 0]) {
      try {
        return await keepAtLast(message, await download(remote.url, { path: "fileUrl", signal }), signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        failure = error;
        const { cause } = error.extras;
        if (!(cause instanceof EgressError) || FINAL.includes(cause.code)) break;
        await sleep(runtime.clock, pauseMs, signal);
        if (signal.aborted) return;
      }
    }
    await recorder.dropped(message.id, { code: "file_unavailable", message: failure!.message });
  };
}

/** What is known of a remote file before it is fetched: the name in its address decides the kind. */
export function remoteContent(url: string, caption: string | null): FileContent {
  const segment = new URL(url).pathname.split("/").at(-1) ?? "";
  return { ...contentOf(safeFilename(decoded(segment)) ?? "file", { file: { url } }), caption };
}

/** Kind and mimetype by extension; for another extension what the server said, if anything. */
function contentOf<File extends FileContent["file"]>(
  filename: string,
  { file, mimetype }: { file: File; mimetype?: string },
): FileContent<File> {
  const known = fileKind(filename);
  const other = known.mimetype === "application/octet-stream" && mimetype ? { mimetype } : {};
  return { ...known, ...other, file, filename, caption: null };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
