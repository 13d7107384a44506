/**
 * The next message of a line, which is prepared (`prepare.ts`) while the pause before it runs, so that the departure is
 * the stanza alone and the gap stays within the plan's bounds (promise 2).
 *
 * One message at a time, and in memory only: after a crash, or over a new connection, it is prepared again. The message
 * stays `queued` meanwhile; when it is cancelled or expires, what was prepared for it is dropped.
 */
import PQueue from "p-queue";
import type { OutgoingContent } from "../message/content.ts";
import type { Message } from "../message/message.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { Prepare, Ready } from "./prepare.ts";

/** What nobody types. */
const NEVER_TYPED: readonly OutgoingContent["kind"][] = ["reaction", "status"];

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
  readonly #prepare: Prepare;
  readonly #listener: PreparationListener;
  #work: Work | null = null;
  /** One after another: what is not wanted any more lets go of its file before the next begins. */
  readonly #queue = new PQueue({ concurrency: 1 });

  constructor(prepare: Prepare, listener: PreparationListener) {
    this.#prepare = prepare;
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
      const ready = await this.#prepare(message, connection, work.unwanted);
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
}
