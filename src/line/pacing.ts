/**
 * Pauses between departures (promise 2): the gap on the wire between two departures of a line lies in its plan's
 * [min, max], restarts included.
 *
 * The gateway does not see the moment at which a message departs, only two that enclose it: when it handed the message
 * over, and when the server's answer was there. The pause counts from the answer, so `min` holds by construction; it is
 * drawn short of `max` by a slack, in which the answer, a late timer and the encryption of a text find room. What takes
 * longer, above all an upload, is done while the pause runs (`preparation.ts`); it stretches the gap past `max` only
 * when it takes longer than the pause.
 * An attempt that failed counts as a departure too: asking the network in a row, without a pause, for numbers that do
 * not exist is what gets a line blocked.
 */
import type { Plan } from "../account/plan.ts";
import type { Random } from "../runtime.ts";

/** Bounds of the pause, milliseconds. */
interface Delays {
  minMs: number;
  maxMs: number;
}

/** The pauses that a plan asks for. */
export function delaysOf(plan: Pick<Plan, "delayMinMs" | "delayMaxMs">): Delays {
  return { minMs: plan.delayMinMs, maxMs: plan.delayMaxMs };
}

/** What a restart must know to keep the gap; written in the commits that begin and end an attempt. */
export interface Pacing {
  /** When the last message departed, as far as we can tell from its ack; Unix ms. */
  lastDepartureAt: number;
  /** Before this nothing departs, Unix ms. */
  nextDepartureAt: number;
  /** The message that is on its way, or may have left and goes again: before any other. */
  departing?: string;
  /** How many messages have departed, failed ones too; further attempts of one do not count. */
  departures?: number;
  /** When the line's first message departed, Unix ms. */
  firstDepartureAt?: number;
  /** How many new chats were started on the last day on which any was, `YYYY-MM-DD` (`new_chats.ts`). */
  newChats?: { day: string; started: number };
}

/** Of a line from which nothing has departed yet. */
export const NO_DEPARTURE: Readonly<Pacing> = { lastDepartureAt: 0, nextDepartureAt: 0 };

/** Room for answer, timer and encoding: measured at some 50 ms together on a busy machine, more on a far network. */
const MAX_SLACK_MS = 1_000;

function slackMs(delays: Delays): number {
  return Math.min(MAX_SLACK_MS, Math.floor((delays.maxMs - delays.minMs) / 2));
}

/** The pacing after an attempt that was handed over at `handedOverAt` and answered at `answeredAt`. */
export function afterDeparture(
  handedOverAt: number,
  answeredAt: number,
  { delays, random }: { delays: Delays; random: Random },
): Pacing {
  const slack = slackMs(delays);
  const drawn = answeredAt + random.between(delays.minMs, delays.maxMs - slack);
  const latest = handedOverAt + delays.maxMs - slack;
  return {
    lastDepartureAt: answeredAt,
    nextDepartureAt: Math.max(answeredAt + delays.minMs, Math.min(drawn, latest)),
  };
}

/**
 * The pacing while a message is on its way since `now`: what holds if the process dies before the answer. Later by the
 * slack, because the message may have departed that much later.
 */
export function whileDeparting(now: number, { delays, random }: { delays: Delays; random: Random }): Pacing {
  const slack = slackMs(delays);
  return {
    lastDepartureAt: now,
    nextDepartureAt: now + slack + random.between(delays.minMs, delays.maxMs - slack),
  };
}

/**
 * The pacing of a line that begins at `now`, by a clock that was set back while nothing ran: the last departure cannot
 * lie ahead, and the pause begins anew.
 */
export function atStart(pacing: Pacing, now: number): Pacing {
  const ahead = pacing.lastDepartureAt - now;
  if (ahead <= 0) return pacing;
  return { ...pacing, lastDepartureAt: now, nextDepartureAt: pacing.nextDepartureAt - ahead };
}

/**
 * When the next message may depart, Unix ms; in the past or now: at once. Follows a plan that changed during the pause,
 * and a system clock that was set back does not stop the line.
 */
export function nextDeparture(pacing: Pacing | null, now: number, delays: Delays): number {
  if (pacing === null) return now;
  const { lastDepartureAt, nextDepartureAt } = pacing;
  const within = Math.max(lastDepartureAt + delays.minMs, Math.min(nextDepartureAt, lastDepartureAt + delays.maxMs));
  return Math.min(within, now + delays.maxMs);
}
