/**
 * The pace of a line: the pauses between its departures, and the new chats that it may start per day (promise 2).
 *
 * The gap on the wire between two departures lies within the plan's [min, max], also across restarts. The gateway
 * cannot see the moment at which a message departs, only two moments around it: when it handed the message over, and
 * when the server's answer arrived. The pause counts from the answer, so `min` holds by construction. It is drawn short
 * of `max` by a slack that leaves room for the answer, a late timer and the encryption of a text. Longer work, above
 * all an upload, is done during the pause (`preparation.ts`); it stretches the gap past `max` only if it takes longer
 * than the pause. A failed attempt counts as a departure too: lines that ask the network for non-existent numbers
 * without a pause get blocked.
 *
 * New chats have the plan's limit per day, and a lower one in the line's first weeks if the plan has a warm-up. A chat
 * is new while neither side has written in it. It counts when its first message departs, whatever the outcome.
 */
import { dayAt } from "../../account/hours.ts";
import type { Plan } from "../../account/plan.ts";
import type { Random } from "../../runtime.ts";

/** Bounds of the pause. */
type Delays = Pick<Plan, "delayMinMs" | "delayMaxMs">;

/** What a restart must know to keep the gap. Written in the commits that begin and end an attempt. */
export interface Pacing {
  /** When the last message departed, by the time of its ack, Unix ms. */
  lastDepartureAt: number;
  /** Earliest time of the next departure, Unix ms. */
  nextDepartureAt: number;
  /** The id of the message that is on its way, or that may have left and is sent again before any other. */
  departing?: string;
  /** How many messages have departed, including failed ones. Retries do not count. */
  departures?: number;
  /** When the line's first message departed, Unix ms. */
  firstDepartureAt?: number;
  /** How many new chats were started on the last day with any, `YYYY-MM-DD`. */
  newChats?: { day: string; started: number };
}

/** The pacing of a line from which nothing has departed yet. */
export const NO_DEPARTURE: Readonly<Pacing> = { lastDepartureAt: 0, nextDepartureAt: 0 };

/**
 * Room for answer, timer and encryption: measured at about 50 ms in total on a busy machine, more on a slow network.
 */
const MAX_SLACK_MS = 1_000;

function slackMs(plan: Delays): number {
  return Math.min(MAX_SLACK_MS, Math.floor((plan.delayMaxMs - plan.delayMinMs) / 2));
}

/** Returns the pacing after an attempt that was handed over at `handedOverAt` and answered at `answeredAt`, Unix ms. */
export function afterDeparture(
  handedOverAt: number,
  answeredAt: number,
  { plan, random }: { plan: Delays; random: Random },
): Pacing {
  const slack = slackMs(plan);
  const drawn = answeredAt + random.between(plan.delayMinMs, plan.delayMaxMs - slack);
  const latest = handedOverAt + plan.delayMaxMs - slack;
  return {
    lastDepartureAt: answeredAt,
    nextDepartureAt: Math.max(answeredAt + plan.delayMinMs, Math.min(drawn, latest)),
  };
}

/**
 * Returns the pacing for a message that is handed over at `now`; it applies if the process dies before the answer.
 * Longer by the slack, because the message may depart that much later.
 */
export function whileDeparting(now: number, { plan, random }: { plan: Delays; random: Random }): Pacing {
  const slack = slackMs(plan);
  return {
    lastDepartureAt: now,
    nextDepartureAt: now + slack + random.between(plan.delayMinMs, plan.delayMaxMs - slack),
  };
}

/**
 * Returns the pacing for a line that starts at `now`. If the clock was set back in the meantime, so that the last
 * departure lies in the future, the pause begins again.
 */
export function atStart(pacing: Pacing, now: number): Pacing {
  const ahead = pacing.lastDepartureAt - now;
  if (ahead <= 0) return pacing;
  return { ...pacing, lastDepartureAt: now, nextDepartureAt: pacing.nextDepartureAt - ahead };
}

/**
 * Returns when the next message may depart, Unix ms; if that is not in the future, at once. A plan that changes during
 * the pause takes effect, and a system clock that is set back does not stop the line.
 */
export function nextDeparture(pacing: Pacing | null, now: number, { delayMinMs, delayMaxMs }: Delays): number {
  if (pacing === null) return now;
  const { lastDepartureAt, nextDepartureAt } = pacing;
  const within = Math.max(lastDepartureAt + delayMinMs, Math.min(nextDepartureAt, lastDepartureAt + delayMaxMs));
  return Math.min(within, now + delayMaxMs);
}

const WEEK_MS = 7 * 24 * 3_600_000;
/** New chats per day in the first, second, third and fourth week after a line's first departure. */
const WARM_UP = [10, 20, 40, 80];

export interface NewChats {
  used: number;
  limit: number;
  /** When the next day begins, Unix ms. */
  resetsAt: number;
}

/** Returns the day's use and limit; null if the plan sets no limit at the moment. */
export function newChatsOf(plan: Plan, pacing: Pacing | null, now: number): NewChats | null {
  const limit = Math.min(
    plan.newChatsDaily ?? Infinity,
    plan.warmUp ? rampAt(pacing?.firstDepartureAt ?? now, now) : Infinity,
  );
  if (limit === Infinity) return null;
  const { started, endsAt } = todayOf(plan, pacing, now);
  return { used: started, limit, resetsAt: endsAt };
}

/** Returns what the line's pacing counts once the message has departed. `startsChat`: to a chat that counts as new. */
export function countsOf(
  before: Pacing | null,
  { messageId, plan, startsChat, now }: { messageId: string; plan: Plan; startsChat: boolean; now: number },
): Pick<Pacing, "departures" | "firstDepartureAt" | "newChats"> {
  const { departures = 0, departing, firstDepartureAt = now, newChats } = before ?? {};
  // A retry does not count: it would use up the turn that belongs to the oldest message (`next_up.ts`).
  const counts = { departures: departures + (departing === messageId ? 0 : 1), firstDepartureAt };
  if (!startsChat) return newChats ? { ...counts, newChats } : counts;
  const { day, started } = todayOf(plan, before, now);
  return { ...counts, newChats: { day, started: started + 1 } };
}

/** Returns the plan's day, when it ends, and the new chats started on it. */
function todayOf({ hours }: Plan, pacing: Pacing | null, now: number) {
  const today = dayAt(hours?.timeZone ?? "UTC", now);
  return { ...today, started: pacing?.newChats?.day === today.day ? pacing.newChats.started : 0 };
}

function rampAt(firstDepartureAt: number, now: number): number {
  return WARM_UP[Math.max(0, Math.floor((now - firstDepartureAt) / WEEK_MS))] ?? Infinity;
}
