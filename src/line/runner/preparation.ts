/**
 * Prepares the next message of a line (`prepare.ts`) during the pause before it, so that only the stanza is left to
 * send at its departure and the gap stays within the plan's bounds (promise 2).
 *
 * One message at a time, in memory only: after a crash, or on a new connection, it is prepared again. The message stays
 * `queued` until it departs. If it is cancelled or expires, its preparation is dropped.
 */
import PQueue from "p-queue";
import type { OutgoingContent } from "../../message/content.ts";
import type { Message } from "../../message/message.ts";
import type { Connection } from "../../whatsapp/connection.ts";
import type { Prepare, Ready } from "./prepare.ts";

/** Kinds for which "typing" is never shown. */
const NEVER_TYPED: readonly OutgoingContent["kind"][] = ["reaction", "status"];

interface PreparationListener {
  /** The message is ready to leave. */
  ready(): void;
  /** The message could not be prepared as it was: it changed, ended, or failed to be prepared. Read the queue again. */
  again(): void;
}

interface Work {
  messageId: string;
  revision: number | undefined;
  connection: Connection;
  unwanted: AbortController;
  /** The result; null while preparation is under way. */
  ready: Ready | null;
  /** Since when "typing" is shown, Unix ms; null if it is not. */
  typingSince: number | null;
  /** Whether the message leaves as soon as it is ready, without a pause. */
  leavesNext: boolean;
}

export class Preparation {
  readonly #prepare: Prepare;
  readonly #listener: PreparationListener;
  #work: Work | null = null;
  /** Runs one preparation at a time: an aborted one releases its file before the next begins. */
  readonly #queue = new PQueue({ concurrency: 1 });

  constructor(prepare: Prepare, listener: PreparationListener) {
    this.#prepare = prepare;
    this.#listener = listener;
  }

  /**
   * Returns the message, prepared for this connection; null while preparation runs, which
   * this call begins if necessary.
   */
  of(message: Message, connection: Connection): Ready | null {
    const { messageId, revision, connection: of } = this.#work ?? {};
    if (messageId !== message.id || revision !== message.revision || of !== connection) {
      this.drop();
      this.#begin(message, connection);
    }
    return this.#work!.ready;
  }

  /** Notes that the message last given to `of` leaves next, without a pause. */
  leavesNext(): void {
    const work = this.#work;
    if (!work) return;
    work.leavesNext = true;
    if (work.ready?.kind === "ready") void work.ready.leavesNext();
  }

  /**
   * Returns the milliseconds until the next step of the message last given to `of`: until "typing" has to be shown,
   * which this method then starts, or until it has been shown long enough. "Typing" is shown at the end of the pause,
   * and extends a pause that is shorter. `typingMs` applies to messages that do not set their own.
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

  /** Discards the prepared message, and aborts a preparation that is under way. */
  drop(): void {
    if (this.#work?.ready === null) this.#work.unwanted.abort();
    this.#work = null;
  }

  /** Drops the preparation; resolves once none is under way, and so no row or file is in use. */
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
