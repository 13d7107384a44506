/**
 * Prepares a message on its line's connection: fetches and uploads its file, makes its link preview, looks up its
 * recipient. A file that repeatedly crashes the process makes its message fail.
 */
import { timeLimit, within } from "../../base/within.ts";
import { Problem } from "../../errors.ts";
import type { MediaStore, StoredFile } from "../../media/store.ts";
import { bodyOf, remoteFile, storedFile } from "../../message/content.ts";
import type { FetchAttachment } from "../../message/fetch_attachment.ts";
import type { FetchPreview } from "../../message/link_preview.ts";
import type { Message, MessageError } from "../../message/message.ts";
import { optedOutAmong } from "../../message/opt_outs.ts";
import type { Recorder } from "../../message/record.ts";
import { messageKeys } from "../../message/rows.ts";
import { filled } from "../../message/templates/filled.ts";
import { type Runtime, sleep } from "../../runtime.ts";
import { Change, type Kv } from "../../store/kv.ts";
import type { Connection } from "../../whatsapp/connection.ts";
import type { Outgoing, OutgoingBody, Prepared, SendOutcome } from "../../whatsapp/outgoing.ts";
import { TROUBLE_PAUSE_MS } from "./retry_policy.ts";
import { lineKeys } from "../rows.ts";

/**
 * How long a connection may take to prepare one message, and before that the opening of its file, plus the time of the
 * transfer at the slowest accepted speed.
 */
const PREPARE_DEADLINE_MS = 120_000;
const SLOWEST_BYTES_PER_MS = 50;
/** A message whose file was being prepared when the process died this often fails; it would block its line forever. */
const MAX_CRASHES = 10;

const UNPREPARED: MessageError = {
  code: "send_failed",
  message: "The gateway stopped repeatedly while it was preparing the file.",
};

export interface PrepareDeps {
  kv: Kv;
  runtime: Runtime;
  recorder: Pick<Recorder, "drop">;
  files: Pick<MediaStore, "onDisk">;
  fetchAttachment: FetchAttachment;
  fetchPreview: FetchPreview;
}

type Post = Extract<OutgoingBody, { kind: "status" }>;

/** The result of a preparation: the message can leave, or the attempt already has this outcome. */
export type Ready = Prepared | Unanswered;

/**
 * Prepares a message. Resolves to null if the message has to be read again. Aborting `unwanted` ends the preparation;
 * the preparation aborts it itself if the connection does not answer. Never rejects.
 */
export type Prepare = (message: Message, connection: Connection, unwanted: AbortController) => Promise<Ready | null>;

export function makePrepare(
  { kv, runtime, recorder, files, fetchAttachment, fetchPreview }: PrepareDeps,
  lineId: string,
): Prepare {
  /** Fetches the message's remote file, if it has one. Null if the message ended, or is still without its file. */
  async function withFile(message: Message, signal: AbortSignal): Promise<Message | null> {
    if (!remoteFile(message.content)) return message;
    await fetchAttachment(message, signal);
    const { value } = await kv.get(messageKeys.message(message.id));
    return value?.status === "queued" && !remoteFile(value.content) ? value : null;
  }

  /**
   * Counts, in the store, the runs for this message that the process did not survive. Fails the
   * message if there were too many.
   */
  async function counted(message: Message, run: () => Promise<Ready>): Promise<Ready | null> {
    const row = lineKeys.preparing(lineId);
    const { value: before } = await kv.get(row);
    const begun = before?.messageId === message.id ? before.begun + 1 : 1;
    if (begun > MAX_CRASHES) {
      await recorder.drop(message.id, UNPREPARED);
      return null;
    }
    await kv.commit(new Change().set(row, { messageId: message.id, begun }));
    const ready = await run();
    await kv.commit(new Change().delete(row));
    return ready;
  }

  /**
   * Opens the file. Null if the message ended because it is gone; trouble with the place of files burns no attempt.
   * Throws StoreError, and the signal's reason.
   */
  async function opened(message: Message, { fileId }: StoredFile, signal: AbortSignal) {
    using limit = timeLimit(runtime.clock, limitOf(message), signal);
    try {
      return await files.onDisk(fileId, limit.signal);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      await recorder.drop(message.id, { code: "file_unavailable", message: error.message });
      return null;
    }
  }

  /** `path` is that of the message's file, if it has one. */
  async function ask(
    message: Message,
    path: string,
    { connection, unwanted }: { connection: Connection; unwanted: AbortController },
  ): Promise<Ready> {
    const { signal } = unwanted;
    const ready = await askNetwork(
      async () => await connection.prepare(await outgoingOf(message, path, signal), signal),
      { messageId: message.id, limitMs: limitOf(message), signal },
      runtime,
    );
    if (ready.kind === "unknown") unwanted.abort();
    return ready;
  }

  /** Builds what is handed to the connection. `path` is that of the message's file, if it has one. */
  async function outgoingOf(
    message: Message,
    path: string,
    signal: AbortSignal,
  ): Promise<Outgoing> {
    const [{ networkId, to, content, manner, accountId }] = await filled(kv, [message]) as [Message];
    const posted = bodyOf(content, () => path);
    const body = posted.kind === "status" ? await withoutOptedOut(posted, accountId) : posted;
    const said = body.kind === "status" ? body.of : body;
    const isShown = said.kind === "text" && manner?.linkPreview !== false;
    const preview = isShown ? await fetchPreview(said.text, signal) : null;
    if (!manner && !preview) return { networkId, to, body };
    return { networkId, to, body, manner: { ...manner, ...(preview ? { preview } : {}) } };
  }

  /** Removes recipients who have opted out since the status was accepted. */
  async function withoutOptedOut(post: Post, accountId: string): Promise<Post> {
    const out = await optedOutAmong(kv, accountId, post.audience);
    return { ...post, audience: post.audience.filter((number) => !out.has(number)) };
  }

  return async (message, connection, unwanted) => {
    const { signal } = unwanted;
    if (signal.aborted) return null;
    try {
      const whole = await withFile(message, signal);
      if (!whole) return null;
      const file = storedFile(whole.content);
      if (!file) return await ask(whole, "", { connection, unwanted });
      await using local = await opened(whole, file, signal);
      if (!local) return null;
      return await counted(whole, () => ask(whole, local.path, { connection, unwanted }));
    } catch (error) {
      if (signal.aborted) return null;
      runtime.log.warn({ lineId, error: String(error) }, "the next message of a line could not be prepared yet");
      await sleep(runtime.clock, TROUBLE_PAUSE_MS, signal);
      return null;
    }
  };
}

function limitOf({ content }: Message): number {
  return PREPARE_DEADLINE_MS + (storedFile(content)?.size ?? 0) / SLOWEST_BYTES_PER_MS;
}

type Unanswered = Extract<SendOutcome, { kind: "unknown" }>;

interface Question {
  messageId: string;
  /** How long the connection may take, milliseconds. */
  limitMs: number;
  /** Ends the wait for the answer when aborted. */
  signal?: AbortSignal;
}

/**
 * Returns the connection's answer to `ask`, or `unknown` if there is none within the limit or `ask` throws, so that
 * every attempt has an outcome (promise 4). Never rejects.
 */
export async function askNetwork<Answer>(
  ask: () => Promise<Answer>,
  { messageId, limitMs, signal }: Question,
  { clock, log }: Pick<Runtime, "clock" | "log">,
): Promise<Answer | Unanswered> {
  try {
    const answer = await within(clock, limitMs, ask(), signal);
    return answer === "late" ? { kind: "unknown", detail: "the connection did not answer" } : answer;
  } catch (error) {
    log.error({ messageId, error: String(error) }, "a connection threw an error over a message");
    return { kind: "unknown", detail: "the connection failed" };
  }
}
