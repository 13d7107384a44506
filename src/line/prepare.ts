/**
 * Preparing a message on its line's connection: its file is fetched and uploaded, its link's preview made, its recipient
 * looked up. A file that ends the process time and again ends its message.
 */
import { within } from "../base/within.ts";
import type { MediaStore } from "../media/store.ts";
import { attachmentOf, bodyOf, remoteFile, storedFile } from "../message/content.ts";
import type { FetchAttachment } from "../message/fetch_attachment.ts";
import type { FetchPreview } from "../message/link_preview.ts";
import type { Message, MessageError } from "../message/message.ts";
import { optedOutAmong } from "../message/opt_outs.ts";
import type { Recorder } from "../message/record.ts";
import { messageKeys } from "../message/rows.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { Outgoing, OutgoingBody, Prepared, SendOutcome } from "../whatsapp/outgoing.ts";
import { TROUBLE_PAUSE_MS } from "./attempts.ts";
import { lineKeys } from "./rows.ts";

/** How long a connection may take over one message, and the slowest upload that is still waited for. */
const PREPARE_DEADLINE_MS = 120_000;
const SLOWEST_UPLOAD_BYTES_PER_MS = 50;
/** A file in whose company the process died this often is given up, or its line would never move again. */
const MAX_CRASHES = 10;

const UNPREPARED: MessageError = {
  code: "send_failed",
  message: "The gateway ended again and again while it was preparing the file.",
};

export interface PrepareDeps {
  kv: Kv;
  runtime: Runtime;
  recorder: Pick<Recorder, "dropped">;
  files: Pick<MediaStore, "onDisk">;
  fetchAttachment: FetchAttachment;
  fetchPreview: FetchPreview;
}

type Post = Extract<OutgoingBody, { kind: "status" }>;

/** What a message comes to its departure with: it can leave, or the attempt has this outcome already. */
export type Ready = Prepared | Unanswered;

/**
 * Null when the message is to be looked at again. `unwanted` ends it, and is aborted when the connection does not answer.
 * Never rejects.
 */
export type Prepare = (message: Message, connection: Connection, unwanted: AbortController) => Promise<Ready | null>;

export function makePrepare(
  { kv, runtime, recorder, files, fetchAttachment, fetchPreview }: PrepareDeps,
  lineId: string,
): Prepare {
  /** The message once its file lies here; null when it ended over that. */
  async function withFile(message: Message, signal: AbortSignal): Promise<Message | null> {
    if (!remoteFile(message.content)) return message;
    await fetchAttachment(message, signal);
    const { value } = await kv.get(messageKeys.message(message.id));
    return value?.status === "queued" && !remoteFile(value.content) ? value : null;
  }

  /** A count in the store while `run` is under way; a file that was begun too often, each time the last, ends its message. */
  async function counted(message: Message, run: () => Promise<Ready>): Promise<Ready | null> {
    const row = lineKeys.preparing(lineId);
    const { value: before } = await kv.get(row);
    const begun = before?.messageId === message.id ? before.begun + 1 : 1;
    if (begun > MAX_CRASHES) {
      await recorder.dropped(message.id, UNPREPARED);
      return null;
    }
    await kv.commit(new Change().set(row, { messageId: message.id, begun }));
    const ready = await run();
    await kv.commit(new Change().delete(row));
    return ready;
  }

  async function ask(message: Message, connection: Connection, unwanted: AbortController): Promise<Ready> {
    const { signal } = unwanted;
    const file = storedFile(message.content);
    const limitMs = PREPARE_DEADLINE_MS + (file?.size ?? 0) / SLOWEST_UPLOAD_BYTES_PER_MS;
    const ready = await askNetwork(
      async () => {
        await using local = file && await files.onDisk(file.fileId);
        return await connection.prepare(await outgoingOf(message, local?.path ?? "", signal), signal);
      },
      { messageId: message.id, limitMs, signal },
      runtime,
    );
    if (ready.kind === "unknown") unwanted.abort();
    return ready;
  }

  /** `path` is where the message's file lies, of one that has any. */
  async function outgoingOf(
    { networkId, to, content, manner, accountId }: Message,
    path: string,
    signal: AbortSignal,
  ): Promise<Outgoing> {
    const posted = bodyOf(content, () => path);
    const body = posted.kind === "status" ? await withoutOptedOut(posted, accountId) : posted;
    const said = body.kind === "status" ? body.of : body;
    const isShown = said.kind === "text" && manner?.linkPreview !== false;
    const preview = isShown ? await fetchPreview(said.text, signal) : null;
    if (!manner && !preview) return { networkId, to, body };
    return { networkId, to, body, manner: { ...manner, ...(preview ? { preview } : {}) } };
  }

  /** Somebody may have opted out since the post was accepted. */
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
      if (!attachmentOf(whole.content)) return await ask(whole, connection, unwanted);
      return await counted(whole, () => ask(whole, connection, unwanted));
    } catch (error) {
      runtime.log.warn({ lineId, error: String(error) }, "the next message of a line could not be prepared yet");
      await sleep(runtime.clock, TROUBLE_PAUSE_MS, signal);
      return null;
    }
  };
}

type Unanswered = Extract<SendOutcome, { kind: "unknown" }>;

interface Question {
  messageId: string;
  /** How long the connection may take, milliseconds. */
  limitMs: number;
  /** Nobody waits for the answer any more once it is aborted. */
  signal?: AbortSignal;
}

/**
 * The connection's answer to `ask`, or `unknown` when there is none within the limit: silence and an exception are
 * answers too (promise 4). Never rejects.
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
    log.error({ messageId, error: String(error) }, "a connection threw over a message");
    return { kind: "unknown", detail: "the connection failed" };
  }
}
