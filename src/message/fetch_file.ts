/**
 * Fetches the file that a message names by URL (bulk `fileUrl`), when the message's turn comes: a 202 must not wait for
 * ten thousand downloads, and files of messages that are cancelled are never fetched. Kept with the message in one
 * commit, so a restart does not fetch again.
 */
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch, SafeResponse } from "../egress/safe_fetch.ts";
import { generatedFilename, safeFilename } from "../media/filename.ts";
import type { MediaStore } from "../media/store.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { keys } from "../store/keys.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { Problem } from "../errors.ts";
import { type FileContent, type OutgoingContent, remoteFile, type StoredFile } from "./content.ts";
import { fileKind } from "./file_kind.ts";
import type { Message } from "./message.ts";
import { keepFileOf } from "./message_rows.ts";
import type { Recorder } from "./record.ts";

/** What a multipart upload may have, a file behind a URL may have too. */
export const REMOTE_FILE_MAX_BYTES = 100 * 1024 ** 2;
const TIMEOUT_MS = 60_000;
const MAX_REDIRECTS = 5;
/** Pauses between the attempts; while one runs, the line waits. */
const RETRY_PAUSES_MS = [1_000, 4_000];
/** Trying again changes nothing. */
const FINAL: readonly EgressError["code"][] = ["forbidden_url", "forbidden_address", "too_large", "too_many_redirects"];
const PASSING_STATUSES = [408, 425, 429];

/**
 * Afterwards the message has its file, or has ended as failed (`file_unavailable`), unless the signal aborted. Never
 * called for two messages of a line at once. Throws StoreError.
 */
export type FetchFile = (message: Message, signal: AbortSignal) => Promise<void>;

export interface FetchFileDeps {
  kv: Kv;
  runtime: Runtime;
  safeFetch: SafeFetch;
  files: MediaStore;
  recorder: Pick<Recorder, "dropped">;
}

export function makeFetchFile(deps: FetchFileDeps): FetchFile {
  const { kv, runtime, safeFetch, files, recorder } = deps;

  async function attempt(content: FileContent, url: string, signal: AbortSignal): Promise<Attempt> {
    try {
      const response = await safeFetch.fetch({
        url,
        method: "GET",
        schemes: ["https:", "http:"],
        maxRedirects: MAX_REDIRECTS,
        timeoutMs: TIMEOUT_MS,
        maxBytes: REMOTE_FILE_MAX_BYTES,
        signal,
      });
      const { status } = response;
      if (status < 200 || status > 299) {
        await response.body.cancel();
        const again = status >= 500 || PASSING_STATUSES.includes(status);
        return { kind: again ? "again" : "never", reason: `the address answered ${status}` };
      }
      const { id: fileId, size, sha256 } = await files.write(response.body, REMOTE_FILE_MAX_BYTES);
      return { kind: "fetched", content: named(content, { response, file: { fileId, size, sha256 } }) };
    } catch (error) {
      if (error instanceof Problem) return { kind: "never", reason: error.message };
      if (!(error instanceof EgressError)) throw error;
      return { kind: FINAL.includes(error.code) ? "never" : "again", reason: error.message };
    }
  }

  async function keep(messageId: string, content: FileContent<StoredFile>): Promise<void> {
    const kept = await retryOnConflict(kv, async () => {
      const slot = await kv.get(keys.message(messageId));
      const change = new Change().check(slot);
      // Cancelled or expired in the meantime.
      if (slot.value?.status !== "queued" || !remoteFile(slot.value.content)) return { change, result: false };
      const message = { ...slot.value, content };
      keepFileOf(change.set(keys.message(messageId), message), message);
      return { change, result: true };
    });
    if (!kept) await files.remove(content.file.fileId);
  }

  /** Pictures and documents alike get their name from their address, unless that tells no kind. */
  function named(
    content: FileContent,
    { response, file }: { response: SafeResponse; file: StoredFile },
  ): FileContent<StoredFile> {
    if (hasExtension(content.filename)) return { ...content, file };
    const offered = safeFilename(offeredFilename(response.headers.get("content-disposition") ?? "") ?? "");
    const mimetype = response.headers.get("content-type") ?? "";
    const filename = offered && hasExtension(offered)
      ? offered
      : generatedFilename("file", { mimetype, at: runtime.clock.now() });
    return { ...fileKind(filename), file, filename, caption: content.caption };
  }

  return async (message, signal) => {
    const remote = remoteFile(message.content);
    if (!remote) return;
    let reason = "";
    for (const pauseMs of [...RETRY_PAUSES_MS, 0]) {
      const outcome = await attempt(message.content as FileContent, remote.url, signal);
      if (signal.aborted) return;
      if (outcome.kind === "fetched") return await keep(message.id, outcome.content);
      reason = outcome.reason;
      if (outcome.kind === "never") break;
      await sleep(runtime.clock, pauseMs, signal);
    }
    if (signal.aborted) return;
    await recorder.dropped(message.id, {
      code: "file_unavailable",
      message: `The file could not be fetched: ${reason}.`,
    });
  };
}

type Attempt =
  | { kind: "fetched"; content: FileContent<StoredFile> }
  | { kind: "again" | "never"; reason: string };

/** What is known of a remote file before it is fetched: the name in its address decides the kind. */
export function remoteContent(url: string, caption: string | null): OutgoingContent {
  const segment = new URL(url).pathname.split("/").at(-1) ?? "";
  const filename = safeFilename(decoded(segment)) ?? "file";
  return { ...fileKind(filename), file: { url }, filename, caption };
}

function hasExtension(filename: string): boolean {
  return /\.[A-Za-z0-9]{1,8}$/.test(filename);
}

/** `filename*` (UTF-8), else `filename`, of a Content-Disposition; null without one. */
function offeredFilename(disposition: string): string | null {
  const extended = /filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition)?.[1];
  if (extended) return decoded(extended);
  const plain = /filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(disposition);
  return plain?.[1]?.replace(/\\(.)/g, "$1") ?? plain?.[2] ?? null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
