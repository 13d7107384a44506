/**
 * Hands decrypted messages over, in order within a chat, and crosses them off the journal (promise 4).
 *
 * While the store is in trouble, what comes later in the chat waits: passing over a message would change the order. One
 * whose receiver fails otherwise is offered again; after some failures it is left in the journal for the next login, so
 * that it holds up its chat no longer. One that makes no sense is dropped: poison never kills the line.
 */
import { KeyedQueue } from "../../../base/keyed_queue.ts";
import { detached, errorName } from "../../../base/detached.ts";
import type { Runtime } from "../../../runtime.ts";
import { sleep } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import { untilStored } from "../../../store/retry.ts";
import type { ConnectionEvents, Settle } from "../../connection.ts";
import type { Incoming } from "../../incoming.ts";
import { withoutDevice } from "../../person.ts";
import { decode, type DecodeContext, decodeUndecryptable } from "./decode.ts";
import type { Journal, JournalEntry, UndecryptedEntry } from "./journal.ts";

/** The sender's device answers a retry within seconds when it is online, and the owner's phone is asked too. */
const RETRY_ANSWER_MS = 60_000;
const OFFERS = 5;
const FIRST_PAUSE_MS = 500;

/** For a message that the journal is not done with. */
const NOTHING: Settle = () => {};

interface InboxOptions {
  journal: Pick<Journal, "originalOf" | "settle" | "done" | "doneUndecrypted">;
  context: DecodeContext;
  receive: ConnectionEvents["message"];
  runtime: Pick<Runtime, "clock" | "log">;
}

export type Inbox = ReturnType<typeof makeInbox>;

export function makeInbox({ journal, context, receive, runtime }: InboxOptions) {
  const { clock, log } = runtime;
  const ended = new AbortController();
  const opened = Promise.withResolvers<void>();
  const chats = new KeyedQueue();
  const unread = new Map<string, { entry: UndecryptedEntry; cancel: () => void }>();

  /** Runs `work` after everything before it in the chat, anew while the store is in trouble: its receiver drops what it has. */
  function inOrder(chat: string, work: () => Promise<void>): void {
    const turn = chats.add(chat, async () => {
      await opened.promise;
      await untilStored(work, { clock, signal: ended.signal, onRetry });
    });
    void detached(turn, (failure) => log.error(failure, "an incoming message stays in the journal"));
  }

  function onRetry(error: unknown): void {
    log.warn({ error: errorName(error) }, "an incoming message waits for the store");
  }

  /** Whether the receiver has it, and settled it in its commit. */
  async function offer(message: Incoming, settle: Settle): Promise<{ taken: boolean; settled: boolean }> {
    for (let attempt = 0, pauseMs = FIRST_PAUSE_MS; attempt < OFFERS; attempt++, pauseMs *= 2) {
      if (ended.signal.aborted) break;
      try {
        return { taken: true, settled: await receive(message, settle) };
      } catch (error) {
        if (error instanceof StoreError) throw error;
        log.warn({ networkId: message.networkId, error: errorName(error) }, "an incoming message could not be kept");
        await sleep(clock, pauseMs, ended.signal);
      }
    }
    return { taken: false, settled: false };
  }

  /** What it holds; null where that makes no sense. */
  async function read<T>({ attrs }: JournalEntry | UndecryptedEntry, reading: Promise<T>): Promise<T | null> {
    try {
      return await reading;
    } catch (error) {
      if (error instanceof StoreError) throw error;
      log.warn({ networkId: attrs.id, error: errorName(error) }, "an incoming message makes no sense");
      return null;
    }
  }

  async function handOver(entry: JournalEntry): Promise<void> {
    if (ended.signal.aborted) return;
    const messages = await read(entry, decode(entry, context)) ?? [];
    const last = messages.at(-1);
    const original = await journal.originalOf(entry, messages);
    let isSettled = false;
    for (const message of messages) {
      const settle: Settle = message === last ? (change) => journal.settle(change, entry, original) : NOTHING;
      const { taken, settled } = await offer(message, settle);
      if (!taken) return;
      isSettled = message === last && settled;
    }
    if (messages.length > 0) await settleUnread(entry.stanza);
    for (const message of messages) if (message.networkId !== entry.attrs.id) await settleResent(message);
    if (!isSettled) await journal.done(entry);
  }

  /** The phone answers in a stanza of its own, and may name the chat by number where the lost one named it by `@lid`. */
  async function settleResent({ networkId }: Incoming): Promise<void> {
    const stanzas = [...unread.values()].map(({ entry }) => entry).filter(({ attrs }) => attrs.id === networkId);
    for (const { stanza } of stanzas) await settleUnread(stanza);
  }

  /** The message came after all, or its loss was reported. */
  async function settleUnread(stanza: string): Promise<void> {
    const waiting = unread.get(stanza);
    if (!waiting) return;
    waiting.cancel();
    await journal.doneUndecrypted(waiting.entry);
    unread.delete(stanza);
  }

  async function report(entry: UndecryptedEntry): Promise<void> {
    if (!unread.has(entry.stanza) || ended.signal.aborted) return;
    // What the owner's phone tells its devices is not for people: nobody misses it.
    const isPeer = entry.attrs.category === "peer";
    const report = isPeer ? null : await read(entry, decodeUndecryptable(entry.attrs, context));
    if (report && !(await offer(report, NOTHING)).taken) return;
    await settleUnread(entry.stanza);
  }

  return {
    decrypted(entry: JournalEntry): void {
      inOrder(chatOf(entry), () => handOver(entry));
    },

    undecrypted(entry: UndecryptedEntry): void {
      if (unread.has(entry.stanza)) return;
      const leftMs = entry.since + RETRY_ANSWER_MS - clock.now();
      const cancel = clock.after(leftMs, () => inOrder(chatOf(entry), () => report(entry)));
      unread.set(entry.stanza, { entry, cancel });
    },

    /** The line is logged in: what has come in so far is handed over from now on. */
    open: () => opened.resolve(),

    /** Nothing more is handed over; the journal keeps it. Resolves when what was under way is crossed off, or failed. */
    async close(): Promise<void> {
      ended.abort();
      for (const { cancel } of unread.values()) cancel();
      unread.clear();
      // Those that wait for a login that never came find that it is over.
      opened.resolve();
      await chats.onIdle();
    },
  };
}

function chatOf({ attrs }: { attrs: Record<string, string> }): string {
  return withoutDevice(attrs.recipient ?? attrs.from ?? "");
}
