/**
 * Hands decrypted messages to the receiver, in order within a chat, and removes them from the journal (promise 4).
 *
 * While the store is in trouble, later messages of the chat wait, because skipping one would change the order. If the
 * receiver fails for another reason, the message is offered again. After several failures it stays in the journal until
 * the next login, so that it no longer blocks its chat. A malformed message is dropped, and one during which the
 * process ended twice is set aside, so that a poison message never stops the line.
 */
import PQueue from "p-queue";
import { within } from "../../../base/within.ts";
import { isJidGroup } from "@whiskeysockets/baileys";
import { KeyedQueue } from "../../../base/keyed_queue.ts";
import { detached, errorName } from "../../../base/retry.ts";
import { type Runtime, sleep } from "../../../runtime.ts";
import { StoreError, untilStored } from "../../../store/kv.ts";
import type { ConnectionEvents, Settle } from "../../connection.ts";
import type { Incoming } from "../../incoming.ts";
import { mayBeSame } from "../jids.ts";
import { decode, type DecodeContext, decodeUndecryptable } from "./decode.ts";
import { chatOf, type Journal, type JournalEntry, MOST_ATTEMPTS, type UndecryptedEntry } from "./journal.ts";

/** The sender's device, if online, answers a retry within seconds. The owner's phone is asked as well. */
const RETRY_ANSWER_MS = 60_000;
const OFFERS = 5;
const FIRST_PAUSE_MS = 500;

/** For a message that does not complete its journal entry. */
const NOTHING: Settle = () => {};

interface InboxOptions {
  journal: Pick<
    Journal,
    "settling" | "done" | "doneUndecrypted" | "count" | "setAside" | "doneAside"
  >;
  /** Runs what may have ended the process before, one at a time over all lines, so that no other entry is blamed. */
  alone: Alone;
  /** Counts an entry that is set aside. */
  setAside(): void;
  context: DecodeContext;
  receive: ConnectionEvents["message"];
  runtime: Pick<Runtime, "clock" | "log">;
}

export type Alone = (work: () => Promise<void>) => Promise<void>;

/** Makes the turns that all lines of a process share. A file that downloads slowly holds up nothing longer than this. */
const ALONE_MS = 5_000;

export function makeAlone(clock: Runtime["clock"]): Alone {
  const turns = new PQueue({ concurrency: 1 });
  return async (work) => {
    let running: Promise<void> | undefined;
    await turns.add(async () => void await within(clock, ALONE_MS, (running = work()).catch(() => {})));
    await running;
  };
}

/** A text is shorter. What is longer is counted before it is handed over for the first time. */
const LONG_BYTES = 256 * 1024;

export type Inbox = ReturnType<typeof makeInbox>;

export function makeInbox({ journal, context, receive, alone, setAside, runtime }: InboxOptions) {
  const { clock, log } = runtime;
  const ended = new AbortController();
  const opened = Promise.withResolvers<void>();
  const chats = new KeyedQueue();
  const unread = new Map<string, { entry: UndecryptedEntry; cancel: () => void }>();

  /**
   * Runs `work` after all earlier work of the chat, and retries it while the store is in trouble. The receiver drops
   * duplicates.
   */
  function inOrder(chat: string, work: () => Promise<void>): void {
    const turn = chats.add(chat, async () => {
      await opened.promise;
      await untilStored(work, { clock, signal: ended.signal, onRetry });
    });
    void detached(turn, (failure) => {
      // At the end of the connection that is what the journal is for.
      log[ended.signal.aborted ? "debug" : "error"](failure, "an incoming message stays in the journal");
    });
  }

  function onRetry(error: unknown): void {
    log.warn({ error: errorName(error) }, "an incoming message waits for the store");
  }

  /**
   * Offers the message to the receiver. Resolves to whether the receiver took it, and whether its commit included
   * `settle`.
   */
  async function offer(message: Incoming, settle: Settle): Promise<{ taken: boolean; settled: boolean }> {
    for (let attempt = 0, pauseMs = FIRST_PAUSE_MS; attempt < OFFERS; attempt++, pauseMs *= 2) {
      if (ended.signal.aborted) break;
      try {
        return { taken: true, settled: await receive(message, settle) };
      } catch (error) {
        if (error instanceof StoreError) throw error;
        if (ended.signal.aborted) break; // the journal has it, for the next connection
        log.warn({ networkId: message.networkId, error: errorName(error) }, "an incoming message could not be kept");
        await sleep(clock, pauseMs, ended.signal);
      }
    }
    return { taken: false, settled: false };
  }

  /** Resolves to the content; null if it is malformed. */
  async function read<T>({ attrs }: JournalEntry | UndecryptedEntry, reading: Promise<T>): Promise<T | null> {
    try {
      return await reading;
    } catch (error) {
      if (error instanceof StoreError) throw error;
      log.warn({ networkId: attrs.id, error: errorName(error) }, "an incoming message makes no sense");
      return null;
    }
  }

  /**
   * Whether it bears the id of someone else's earlier message in the same chat, whose second attempt may still arrive.
   * To be asked when it arrives: others see the id, so a later message with it must not cost this one.
   */
  function isImpostor(entry: JournalEntry): boolean {
    const first = unread.values().find(({ entry: lost }) =>
      lost.attrs.id === entry.attrs.id && mayBeSame(chatOf(lost), chatOf(entry))
    );
    return first !== undefined && !mayBeSame(authorOf(first.entry), authorOf(entry));
  }

  async function drop(entry: JournalEntry): Promise<void> {
    if (ended.signal.aborted) return;
    log.warn({ networkId: entry.attrs.id }, "a message with the id of another person's message was dropped");
    await journal.done(entry);
  }

  /**
   * Hands over what may end the process: what earlier processes left, messages of the account's own devices (which may
   * carry anything), and long ones. Such an attempt is counted on disk before, and taken back if it only failed.
   */
  async function handOverCounted(entry: JournalEntry): Promise<void> {
    if (ended.signal.aborted) return;
    const before = entry.attempts ?? 0;
    if (before >= MOST_ATTEMPTS) return await putAside(entry);
    const attempt = async () => {
      if (ended.signal.aborted) return;
      await journal.count(entry, before + 1);
      let isDone = false;
      try {
        isDone = await handOver(entry);
      } finally {
        if (!isDone) await journal.count(entry, before);
      }
    };
    await (before > 0 ? alone(attempt) : attempt());
  }

  /** Gives up an entry during which the process ended: reports it as unreadable, and keeps it for a report. */
  async function putAside(entry: JournalEntry): Promise<void> {
    log.error(
      { networkId: entry.attrs.id, bytes: entry.plaintext.length },
      "a message that ended the process was set aside",
    );
    setAside();
    const isPeer = entry.attrs.category === "peer";
    const report = isPeer ? null : await read(entry, decodeUndecryptable(entry, context));
    const { taken, settled } = report
      ? await offer(report, (change) => journal.setAside(change, entry))
      : { taken: true, settled: false };
    if (taken && !settled) await journal.doneAside(entry);
  }

  /** Resolves to whether the journal is done with the entry. */
  async function handOver(entry: JournalEntry): Promise<boolean> {
    if (ended.signal.aborted) return false;
    const messages = await read(entry, decode(entry, context)) ?? [];
    const last = messages.at(-1);
    let isSettled = false;
    for (const message of messages) {
      const settle = message === last ? journal.settling(entry, messages) : NOTHING;
      const { taken, settled } = await offer(message, settle);
      if (!taken) return false;
      isSettled = message === last && settled;
    }
    if (messages.length > 0) await settleUnread(entry.stanza);
    for (const message of messages) if (message.networkId !== entry.attrs.id) await settleResent(message);
    if (!isSettled) await journal.done(entry);
    return true;
  }

  /**
   * The phone resends in a stanza of its own, which may name the chat by number where the lost stanza used the `@lid`.
   */
  async function settleResent(message: Incoming): Promise<void> {
    const lost = [...unread.values()].map(({ entry }) => entry).filter((entry) => mayBeOf(entry, message));
    for (const { stanza } of lost) await settleUnread(stanza);
  }

  /** Ends the wait for a stanza: its message arrived after all, or its loss was reported. */
  async function settleUnread(stanza: string): Promise<void> {
    const waiting = unread.get(stanza);
    if (!waiting) return;
    waiting.cancel();
    await journal.doneUndecrypted(waiting.entry);
    unread.delete(stanza);
  }

  async function report(entry: UndecryptedEntry): Promise<void> {
    if (!unread.has(entry.stanza) || ended.signal.aborted) return;
    // Sync messages from the owner's phone to its devices are not for people: no report is needed.
    const isPeer = entry.attrs.category === "peer";
    const report = isPeer ? null : await read(entry, decodeUndecryptable(entry, context));
    if (report && !(await offer(report, NOTHING)).taken) return;
    await settleUnread(entry.stanza);
  }

  function take(entry: JournalEntry, handing: (entry: JournalEntry) => Promise<unknown>): void {
    const work = isImpostor(entry) ? drop : handing;
    inOrder(chatOf(entry), async () => void await work(entry));
  }

  return {
    decrypted(entry: JournalEntry): void {
      const mayHarm = entry.attrs.category === "peer" || entry.plaintext.length > LONG_BYTES;
      take(entry, mayHarm ? handOverCounted : handOver);
    },

    /** An entry of an earlier connection. */
    leftOver(entry: JournalEntry): void {
      take(entry, handOverCounted);
    },

    /** Whether a stanza with this id did not decrypt and is still waited for. */
    waitsFor(networkId: string): boolean {
      return unread.values().some(({ entry }) => entry.attrs.id === networkId);
    },

    undecrypted(entry: UndecryptedEntry): void {
      if (unread.has(entry.stanza)) return;
      // What is withheld does not come again.
      const leftMs = entry.withheld ? 0 : entry.since + RETRY_ANSWER_MS - clock.now();
      const cancel = clock.after(leftMs, () => inOrder(chatOf(entry), () => report(entry)));
      unread.set(entry.stanza, { entry, cancel });
    },

    /** The line is logged in: hands over what has arrived so far, and from now on. */
    open: () => opened.resolve(),

    /**
     * Stops handing over; the journal keeps the rest. Resolves once work in progress has left the journal or failed.
     */
    async close(): Promise<void> {
      ended.abort();
      for (const { cancel } of unread.values()) cancel();
      unread.clear();
      // Work that waits for a login then finds that the connection has ended.
      opened.resolve();
      await chats.onIdle();
    },
  };
}

type Stanza = Pick<UndecryptedEntry, "attrs">;

function authorOf({ attrs }: Stanza): string {
  return attrs.participant ?? attrs.from ?? "";
}

/** Whether the message may be the one that was lost with the stanza. */
export function mayBeOf(lost: Stanza, { networkId, chat, participant }: Incoming): boolean {
  if (lost.attrs.id !== networkId) return false;
  // For its recipients, a message to a broadcast list is one of its author's chat.
  return isJidGroup(chatOf(lost)) || lost.attrs.participant === undefined
    ? mayBeSame(chatOf(lost), chat) && (participant === null || mayBeSame(authorOf(lost), participant))
    : mayBeSame(authorOf(lost), chat);
}
