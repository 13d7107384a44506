/** What messages wait for apart from their turn, and when they will probably leave. */
import type { Callers } from "../account/callers.ts";
import { type OpenHours, openHours } from "../account/hours.ts";
import { chatOf, isProposed, type Message } from "../message/message.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { newAmong } from "./chats.ts";
import { type NewChats, newChatsOf, nextDeparture } from "./runner/pacing.ts";
import { lineKeys } from "./rows.ts";

/** What may hold a message back: a person who must approve it, its time, a paused queue, a line without a connection, the plan's hours, new chats. */
export const HOLDS = ["approval", "schedule", "paused", "line", "hours", "new_chats"] as const;

/** `until` is in Unix ms; null if the end is unknown: an approval, a paused queue, a line that is not connected, a restriction without a known end. */
export interface WaitsFor {
  kind: (typeof HOLDS)[number];
  until: number | null;
}

export interface HoldsDeps {
  kv: Kv;
  clock: Clock;
  callers: Pick<Callers, "of">;
}

/** What holds back a line's queue at the moment `now`. */
export type Holds = NonNullable<Awaited<ReturnType<typeof holdsOf>>>;

/** Reads what holds back the line's queue. Null if the account is gone. */
export async function holdsOf({ kv, clock, callers }: HoldsDeps, { accountId, id }: { accountId: string; id: string }) {
  const [caller, { value: line }, pausedRow, { value: pacing }] = await Promise.all([
    callers.of(accountId),
    kv.get(lineKeys.line(id)),
    kv.get(lineKeys.queuePaused(id)),
    kv.get(lineKeys.pacing(id)),
  ]);
  if (!caller) return null;
  const { plan } = caller;
  const now = clock.now();
  const paused = pausedRow.value !== null;
  const newChats = newChatsOf(plan, pacing, now);
  const restriction = line?.restriction;
  const restrictedUntil = restriction ? restriction.until ?? Infinity : 0;

  function ofAll(): WaitsFor | null {
    if (paused) return { kind: "paused", until: null };
    if (line?.status !== "connected") return { kind: "line", until: null };
    const opensAt = plan.hours && openHours(plan.hours, now).opensAt;
    return opensAt !== null && opensAt > now ? { kind: "hours", until: opensAt } : null;
  }

  async function freshAmong(chats: readonly string[]): Promise<Set<string>> {
    const isLimited = newChats !== null || restrictedUntil > now;
    return isLimited ? await newAmong(kv, id, chats) : new Set();
  }

  return {
    /** Null if it is gone. */
    line,
    plan,
    pacing,
    newChats,
    paused,
    /** Until when the network forbids the account to start new chats, Unix ms; Infinity if unknown, 0 for none. */
    restrictedUntil,
    now,

    /** Returns what holds back all of the line's messages, also those to known chats; null for nothing. */
    ofAll,

    /** Returns which of the chats are new, if the plan or the network limits new chats now; else an empty set. */
    freshAmong,

    /** Returns what each message waits for apart from its turn, by id; omits those that only wait for their turn. */
    async of(
      messages: readonly Pick<Message, "id" | "to" | "sendAt" | "status" | "proposal">[],
    ): Promise<Map<string, WaitsFor>> {
      const all = ofAll();
      const until = Math.max(newChats && newChats.used >= newChats.limit ? newChats.resetsAt : 0, restrictedUntil);
      const fresh = until > now ? await freshAmong(messages.map(({ to }) => chatOf(to))) : new Set();
      const chats: WaitsFor = { kind: "new_chats", until: until === Infinity ? null : until };
      const found = new Map<string, WaitsFor>();
      for (const message of messages) {
        const { id, to, sendAt } = message;
        const scheduled: WaitsFor | null = sendAt !== null && sendAt > now ? { kind: "schedule", until: sendAt } : null;
        const held = (all?.kind === "paused" ? all : scheduled ?? all) ?? (fresh.has(chatOf(to)) ? chats : null);
        const waitsFor: WaitsFor | null = isProposed(message) ? { kind: "approval", until: null } : held;
        if (waitsFor) found.set(id, waitsFor);
      }
      return found;
    },
  };
}

/**
 * Estimates when messages of a line will leave, from the mean pause, the plan's hours and its limit of new chats.
 * Ask in the order of departure.
 */
export class Estimate {
  readonly #holds: Holds;
  readonly #pauseMs: number;
  #nextAt: number;
  #newChats: NewChats | null;
  /** Earliest time of the next new chat, Unix ms: the start of the day of `#newChats`, or the end of a restriction. */
  #chatsFrom: number;
  #hours: OpenHours = { opensAt: 0, closesAt: 0 };

  constructor(holds: Holds) {
    this.#holds = holds;
    this.#pauseMs = (holds.plan.delayMinMs + holds.plan.delayMaxMs) / 2;
    this.#nextAt = Math.max(holds.now, nextDeparture(holds.pacing, holds.now, holds.plan));
    this.#newChats = holds.newChats && { ...holds.newChats };
    this.#chatsFrom = holds.restrictedUntil;
  }

  /** Returns when the next message will probably leave, Unix ms; null if never by this plan, or if that is unknown. */
  next({ notBefore, startsChat }: { notBefore: number; startsChat: boolean }): number | null {
    const turn = this.#open(this.#nextAt);
    this.#nextAt = turn + this.#pauseMs;
    const at = startsChat ? this.#chatAt(Math.max(turn, notBefore)) : Math.max(turn, notBefore);
    return at === null ? null : Math.round(this.#open(at));
  }

  #open(at: number): number {
    const { hours } = this.#holds.plan;
    if (hours === null) return at;
    if (at >= this.#hours.closesAt || at < this.#hours.opensAt) this.#hours = openHours(hours, at);
    return Math.max(at, this.#hours.opensAt);
  }

  #chatAt(at: number): number | null {
    const { plan, pacing } = this.#holds;
    at = Math.max(at, this.#chatsFrom);
    if (at === Infinity) return null;
    while (this.#newChats && (this.#newChats.used >= this.#newChats.limit || at >= this.#newChats.resetsAt)) {
      if (plan.newChatsDaily === 0) return null;
      this.#chatsFrom = this.#newChats.resetsAt;
      this.#newChats = newChatsOf(plan, pacing, this.#chatsFrom);
      at = Math.max(at, this.#chatsFrom);
    }
    if (this.#newChats) this.#newChats.used++;
    return at;
  }
}
