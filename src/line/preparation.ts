/**
 * Getting the next message of a line ready while the pause before it runs: its file is fetched and uploaded and its
 * recipient looked up, so that the departure is the stanza alone and the gap stays within the plan's bounds (promise 2).
 *
 * One message at a time, and in memory only: after a crash, or over a new connection, it is prepared again. The message
 * stays `queued` meanwhile; when it is cancelled or expires, what was prepared for it is dropped.
 */
import PQueue from "p-queue";
import { within } from "../base/within.ts";
import type { MediaStore } from "../media/store.ts";
import { attachmentOf, bodyOf, type OutgoingContent, remoteFile, storedFile } from "../message/content.ts";
import type { FetchPreview } from "../message/link_preview.ts";
import type { FetchAttachment } from "../message/fetch_attachment.ts";
import type { Message, MessageError } from "../message/message.ts";
import type { Recorder } from "../message/record.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { lineKeys } from "./rows.ts";
import { messageKeys } from "../message/rows.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { Outgoing, Prepared, SendOutcome } from "../whatsapp/outgoing.ts";

/** How long a connection may take over one message, and the slowest upload that is still waited for. */
const PREPARE_DEADLINE_MS = 120_000;
const SLOWEST_UPLOAD_BYTES_PER_MS = 50;
/** A file in whose company the process died this often is given up, or its line would never move again. */
const MAX_CRASHES = 10;
/** What nobody types. */
const NEVER_TYPED: readonly OutgoingContent["kind"][] = ["reaction", "status"];
/** After trouble with the store. */
const TROUBLE_PAUSE_MS = 1_000;

export interface PreparationDeps {
  kv: Kv;
  runtime: Runtime;
  recorder: Pick<Recorder, "dropped">;
  files: Pick<MediaStore, "onDisk">;
  fetchAttachment: FetchAttachment;
  fetchPreview: FetchPreview;
}

/** What a message comes to its departure with: it can leave, or the attempt has this outcome already. */
export type Ready = Prepared | Unanswered;

interface PreparationListener {
  /** The message is ready to leave. */
  ready(): void;
  /** It is not what it was, or is over: the queue has to be looked at again. */
  again(): void;
}

interface Work {
  messageId: string;
  revision: number | undefined;
  connection: Connection;
  unwanted: AbortController;
  /** Null while it is under way. */
  ready: Ready | null;
  /** Since when "typing" is shown, Unix ms; null when it is not. */
  typingSince: number | null;
  /** No pause follows: it leaves as soon as it may. */
  leavesNext: boolean;
}

export class Preparation {
  readonly #deps: PreparationDeps;
  readonly #lineId: string;
  readonly #listener: PreparationListener;
  #work: Work | null = null;
  /** One after another: what is not wanted any more lets go of its file before the next begins. */
  readonly #queue = new PQueue({ concurrency: 1 });

  constructor(deps: PreparationDeps, lineId: string, listener: PreparationListener) {
    this.#deps = deps;
    this.#lineId = lineId;
    this.#listener = listener;
  }

  /** The message, ready for this connection; null while it is prepared, which begins now if it had not. */
  of(message: Message, connection: Connection): Ready | null {
    const { messageId, revision, connection: of } = this.#work ?? {};
    if (messageId !== message.id || revision !== message.revision || of !== connection) {
      this.drop();
      this.#begin(message, connection);
    }
    return this.#work!.ready;
  }

  /** The message that was given to `of` leaves in a moment, without a pause. */
  leavesNext(): void {
    const work = this.#work;
    if (!work) return;
    work.leavesNext = true;
    if (work.ready?.kind === "ready") work.ready.leavesNext();
  }

  /**
   * How long nothing is to be done about the message, which was given to `of`: until "typing" is to be shown, which begins
   * here, or until that was shown long enough. It is shown at the end of the pause, and stretches one that is shorter.
   * `typingMs`: how long it is shown for a message that does not say so.
   */
  untilTyped(
    { manner, content }: Message,
    { now, pauseMs, ...plan }: { now: number; pauseMs: number; typingMs: number },
  ): number {
    const work = this.#work!;
    const typingMs = manner?.typingMs ?? (NEVER_TYPED.includes(content.kind) ? 0 : plan.typingMs);
    if (typingMs === 0 || work.ready?.kind !== "ready") return pauseMs;
    if (work.typingSince === null) {
      if (pauseMs > typingMs) return pauseMs - typingMs;
      work.ready.type();
      work.typingSince = now;
    }
    return Math.max(pauseMs, work.typingSince + typingMs - now);
  }

  /** Forgets what was prepared, and ends what is under way. */
  drop(): void {
    if (this.#work?.ready === null) this.#work.unwanted.abort();
    this.#work = null;
  }

  /** Drops it, and resolves when nothing is under way any more: neither rows nor files are touched then. */
  async end(): Promise<void> {
    this.drop();
    await this.#queue.onIdle();
  }

  #begin(message: Message, connection: Connection): void {
    const work: Work = {
      messageId: message.id,
      revision: message.revision,
      connection,
      unwanted: new AbortController(),
      ready: null,
      typingSince: null,
      leavesNext: false,
    };
    this.#work = work;
    void this.#queue.add(async () => {
      const ready = await this.#prepare(message, work);
      if (this.#work !== work) return;
      if (ready) {
        work.ready = ready;
        if (work.leavesNext) this.leavesNext();
        this.#listener.ready();
      } else {
        this.#work = null;
        this.#listener.again();
      }
    });
  }

  /** Null when the message is to be looked at again. Never rejects. */
  async #prepare(message: Message, work: Work): Promise<Ready | null> {
    const { signal } = work.unwanted;
    if (signal.aborted) return null;
    try {
      const whole = await this.#withFile(message, signal);
      if (!whole) return null;
      if (!attachmentOf(whole.content)) return await this.#ask(whole, work);
      return await this.#counted(whole, () => this.#ask(whole, work));
    } catch (error) {
      const { log, clock } = this.#deps.runtime;
      log.warn({ lineId: this.#lineId, error: String(error) }, "the next message of a line could not be prepared yet");
      await sleep(clock, TROUBLE_PAUSE_MS, signal);
      return null;
    }
  }

  /** The message once its file lies here; null when it ended over that. */
  async #withFile(message: Message, signal: AbortSignal): Promise<Message | null> {
    if (!remoteFile(message.content)) return message;
    await this.#deps.fetchAttachment(message, signal);
    const { value } = await this.#deps.kv.get(messageKeys.message(message.id));
    return value?.status === "queued" && !remoteFile(value.content) ? value : null;
  }

  /** A count in the store while `run` is under way; a file that was begun too often, each time the last, ends its message. */
  async #counted(message: Message, run: () => Promise<Ready>): Promise<Ready | null> {
    const { kv, recorder } = this.#deps;
    const row = lineKeys.preparing(this.#lineId);
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

  async #ask(message: Message, { connection, unwanted }: Work): Promise<Ready> {
    const size = storedFile(message.content)?.size ?? 0;
    const limitMs = PREPARE_DEADLINE_MS + size / SLOWEST_UPLOAD_BYTES_PER_MS;
    const ready = await askNetwork(
      async () => {
        const file = storedFile(message.content);
        await using local = file && await this.#deps.files.onDisk(file.fileId);
        const outgoing = await this.#outgoing(message, local?.path ?? "", unwanted.signal);
        return await connection.prepare(outgoing, unwanted.signal);
      },
      { messageId: message.id, limitMs, signal: unwanted.signal },
      this.#deps.runtime,
    );
    if (ready.kind === "unknown") unwanted.abort();
    return ready;
  }

  /** `path` is where the message's file lies, of one that has any. */
  async #outgoing({ networkId, to, content, manner }: Message, path: string, signal: AbortSignal): Promise<Outgoing> {
    const body = bodyOf(content, () => path);
    const said = body.kind === "status" ? body.of : body;
    const isShown = said.kind === "text" && manner?.linkPreview !== false;
    const preview = isShown ? await this.#deps.fetchPreview(said.text, signal) : null;
    if (!manner && !preview) return { networkId, to, body };
    return { networkId, to, body, manner: { ...manner, ...(preview ? { preview } : {}) } };
  }
}

const UNPREPARED: MessageError = {
  code: "send_failed",
  message: "The gateway ended again and again while it was preparing the file.",
};

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
