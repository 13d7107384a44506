/**
 * Fetches the file that a message names by URL (`fileUrl`) when the message's turn comes: a 202 must not wait for ten
 * thousand downloads, and files of cancelled messages are never fetched. One commit keeps the file with the message, so
 * a restart does not fetch it again.
 */
import { HEAD_BYTES } from "../base/file_types.ts";
import { retry } from "../base/retry.ts";
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { Problem } from "../errors.ts";
import { makeFetchFile } from "../media/fetch_file.ts";
import type { StoredFile } from "../media/store.ts";
import type { SharedMediaStore } from "../media/fair_shares.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict, untilStored } from "../store/kv.ts";
import { refusalOf, remoteFile, storedFile, withAttachment } from "./content.ts";
import { keepFileOf } from "./queue/place.ts";
import type { Attachment } from "./kinds/plain.ts";
import type { Message } from "./message.ts";
import type { Recorder } from "./record.ts";
import { messageKeys } from "./rows.ts";

/** Pauses between attempts. They are short, because the line waits. */
const RETRY_PAUSES_MS = [1_000, 4_000];
/** Errors for which a retry is pointless. */
const FINAL: readonly EgressError["code"][] = ["forbidden_url", "forbidden_address", "too_large", "too_many_redirects"];

/**
 * Fetches the message's file. Afterwards the message has its file, or has failed (`file_unavailable`,
 * `file_unsuitable`), unless the signal aborted. Never called for two messages of a line at once.
 */
export type FetchAttachment = (message: Message, signal: AbortSignal) => Promise<void>;

interface FetchAttachmentDeps {
  kv: Kv;
  runtime: Runtime;
  safeFetch: SafeFetch;
  files: SharedMediaStore;
  recorder: Pick<Recorder, "drop">;
}

export function makeFetchAttachment({ kv, runtime, safeFetch, files, recorder }: FetchAttachmentDeps): FetchAttachment {
  const { clock, log } = runtime;
  const download = makeFetchFile({ safeFetch, media: files });

  async function keep(messageId: string, fetched: Attachment<StoredFile>): Promise<void> {
    const kept = await retryOnConflict(kv, async () => {
      const slot = await kv.get(messageKeys.message(messageId));
      const change = new Change().check(slot);
      // An earlier commit of unknown outcome has kept it.
      if (slot.value && storedFile(slot.value.content)?.fileId === fetched.file.fileId) return { change, result: true };
      // The message was cancelled or expired in the meantime.
      if (slot.value?.status !== "queued" || !remoteFile(slot.value.content)) return { change, result: false };
      const next = { ...slot.value, content: withAttachment(slot.value.content, fetched) };
      keepFileOf(change.set(messageKeys.message(messageId), next), next);
      return { change, result: true };
    });
    if (!kept) await files.remove(fetched.file.fileId);
  }

  return async (message, signal) => {
    const remote = remoteFile(message.content);
    if (!remote) return;
    try {
      const fetched = await retry(
        () => download(remote.url, { accountId: message.accountId, signal }),
        {
          clock,
          pauseMs: RETRY_PAUSES_MS,
          signal,
          isTransient: mayPass,
        },
      );
      const refusal = refusalOf(
        withAttachment(message.content, fetched),
        await files.head(fetched.file.fileId, HEAD_BYTES),
      );
      if (refusal) {
        await files.remove(fetched.file.fileId);
        await recorder.drop(message.id, { code: "file_unsuitable", message: `The file ${refusal}.` });
        return;
      }
      // Retries for as long as the store fails, so that the file need not be fetched and stored again.
      await untilStored(() => keep(message.id, fetched), {
        clock,
        signal,
        onRetry: (error) =>
          log.warn({ messageId: message.id, error: String(error) }, "a fetched file could not be recorded yet"),
      });
    } catch (error) {
      // If the commit's outcome is unknown, the sweep of orphans decides later whether the file is in use.
      if (signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      await recorder.drop(message.id, { code: "file_unavailable", message: error.message });
    }
  };
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof Problem)) return false;
  const { cause } = error.extras;
  return cause instanceof EgressError && !FINAL.includes(cause.code);
}
