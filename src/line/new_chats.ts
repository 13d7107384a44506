/**
 * How many new chats a line may start in a day: what its plan says, and fewer in its first weeks where the plan warms
 * lines up. A chat is new while neither side has written; it counts when its first message departs, whatever comes of that.
 */
import type { Plan } from "../account/plan.ts";
import { dayAt } from "../account/hours.ts";
import type { Pacing } from "./pacing.ts";

const WEEK_MS = 7 * 24 * 3_600_000;
/** New chats a day in the first, second, third and fourth week after a line's first departure. */
const WARM_UP = [10, 20, 40, 80];

export interface NewChats {
  used: number;
  limit: number;
  /** When the next day begins, Unix ms. */
  resetsAt: number;
}

/** Null: the plan sets no limit, now. */
export function newChatsOf(plan: Plan, pacing: Pacing | null, now: number): NewChats | null {
  const limit = Math.min(
    plan.newChatsDaily ?? Infinity,
    plan.warmUp ? rampAt(pacing?.firstDepartureAt ?? now, now) : Infinity,
  );
  if (limit === Infinity) return null;
  const { day, endsAt } = dayAt(plan.hours?.timeZone ?? "UTC", now);
  return { used: pacing?.newChats?.day === day ? pacing.newChats.started : 0, limit, resetsAt: endsAt };
}

/** The count with one more, for the row of the line's pacing. */
export function oneMoreChat(plan: Plan, pacing: Pacing | null, now: number): NonNullable<Pacing["newChats"]> {
  const { day } = dayAt(plan.hours?.timeZone ?? "UTC", now);
  return { day, started: (pacing?.newChats?.day === day ? pacing.newChats.started : 0) + 1 };
}

function rampAt(firstDepartureAt: number, now: number): number {
  return WARM_UP[Math.max(0, Math.floor((now - firstDepartureAt) / WEEK_MS))] ?? Infinity;
}
