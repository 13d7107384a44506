/** What messages wait for apart from their turn, and when they will probably leave. */
import type { Accounts } from "../account/accounts.ts";
import { type OpenHours, openHours } from "../account/hours.ts";
import type { Plan } from "../account/plan.ts";
import { chatOf, type Message } from "../message/message.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { newAmong } from "./chats.ts";
import { delaysOf, type NewChats, newChatsOf, nextDeparture, type Pacing } from "./pacing.ts";
import { lineKeys } from "./rows.ts";

/** What may hold a message back: its scheduled time, a paused queue, the plan's hours, a limit of new chats. */
export const HOLDS = ["schedule", "paused", "hours", "new_chats"] as const;

/** `until` is in Unix ms; null if the end is unknown: a paused queue, or a restriction without a known end. */
export interface WaitsFor {
  kind: (typeof HOLDS)[number];
  until: number | null;
}

export interface HoldsDeps {
  kv: Kv;
  clock: Clock;
  accounts: Pick<Accounts, "caller">;
}

type Waiting = Pick<Message, "id" | "to" | "sendAt">;

/** What holds back a line's queue at the moment `now`. */
export class Holds {
  readonly plan: Plan;
  readonly pacing: Pacing | null;
  readonly newChats: NewChats | null;
  readonly paused: boolean;
  /**
   * Until when the network forbids the account to start new chats, Unix ms; Infinity if
   * unknown, 0 without a restriction.
   */
  readonly restrictedUntil: number;
  readonly now: number;
  readonly #kv: Kv;
  readonly #lineId: string;

  private constructor(
    deps: Pick<HoldsDeps, "kv">,
    lineId: string,
    found: Pick<Holds, "plan" | "pacing" | "paused" | "restrictedUntil" | "now">,
  ) {
    this.#kv = deps.kv;
    this.#lineId = lineId;
    this.plan = found.plan;
    this.pacing = found.pacing;
    this.paused = found.paused;
    this.restrictedUntil = found.restrictedUntil;
    this.now = found.now;
    this.newChats = newChatsOf(found.plan, found.pacing, found.now);
  }

  /** Reads what holds back the line's queue. Null if the account is gone. */
  static async of(
    { kv, clock, accounts }: HoldsDeps,
    line: { accountId: string; id: string },
  ): Promise<Holds | null> {
    const [caller, row, paused, pacing] = await Promise.all([
      accounts.caller(line.accountId),
      kv.get(lineKeys.line(line.id)),
      kv.get(lineKeys.queuePaused(line.id)),
      kv.get(lineKeys.pacing(line.id)),
    ]);
    if (!caller) return null;
    const restriction = row.value?.restriction;
    return new Holds({ kv }, line.id, {
      plan: caller.plan,
      pacing: pacing.value,
      paused: paused.value !== null,
      restrictedUntil: restriction ? restriction.until ?? Infinity : 0,
      now: clock.now(),
    });
  }

  /** Returns what holds back all of the line's messages, also those to known chats; null for nothing. */
  ofAll(): WaitsFor | null {
    if (this.paused) return { kind: "paused", until: null };
    const opensAt = this.plan.hours && openHours(this.plan.hours, this.now).opensAt;
    return opensAt !== null && opensAt > this.now ? { kind: "hours", until: opensAt } : null;
  }

  /** Returns what holds back messages to new chats; null for nothing. */
  ofNewChats(): WaitsFor | null {
    const { newChats, restrictedUntil, now } = this;
    const until = Math.max(newChats && newChats.used >= newChats.limit ? newChats.resetsAt : 0, restrictedUntil);
    return until > now ? { kind: "new_chats", until: until === Infinity ? null : until } : null;
  }

  /** Returns which of the chats are new, if the plan or the network limits new chats now; else an empty set. */
  async newAmong(chats: readonly string[]): Promise<Set<string>> {
    const isLimited = this.newChats !== null || this.restrictedUntil > this.now;
    return isLimited ? await newAmong(this.#kv, this.#lineId, chats) : new Set();
  }

  /**
   * Returns what each of the messages waits for apart from its turn, by id. Omits those that only wait for their turn.
   */
  async of(messages: readonly Waiting[]): Promise<Map<string, WaitsFor>> {
    const [all, newChats] = [this.ofAll(), this.ofNewChats()];
    const fresh = newChats ? await this.newAmong(messages.map(({ to }) => chatOf(to))) : new Set();
    const found = new Map<string, WaitsFor>();
    for (const { id, to, sendAt } of messages) {
      const scheduled = sendAt !== null && sendAt > this.now ? { kind: "schedule" as const, until: sendAt } : null;
      const waitsFor = (all?.kind === "paused" ? all : scheduled ?? all) ?? (fresh.has(chatOf(to)) ? newChats : null);
      if (waitsFor) found.set(id, waitsFor);
    }
    return found;
  }
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
  /** Earliest time of the next new chat, Unix ms: the begin of the day of `#newChats`, or the end of a restriction. */
  #chatsFrom: number;
  #hours: OpenHours = { opensAt: 0, closesAt: 0 };

  constructor(holds: Holds) {
    const delays = delaysOf(holds.plan);
    this.#holds = holds;
    this.#pauseMs = (delays.minMs + delays.maxMs) / 2;
    this.#nextAt = Math.max(holds.now, nextDeparture(holds.pacing, holds.now, delays));
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
