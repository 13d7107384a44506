/**
 * The limit of new chats that a line may start per day: the plan's limit, and less in the line's first weeks if the
 * plan has a warm-up. A chat is new while neither side has written in it. It counts when its first message departs,
 * whatever the outcome.
 */
import type { Plan } from "../account/plan.ts";
import { dayAt } from "../account/hours.ts";
import type { Pacing } from "./pacing.ts";

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
  const { day, endsAt } = dayAt(plan.hours?.timeZone ?? "UTC", now);
  return { used: pacing?.newChats?.day === day ? pacing.newChats.started : 0, limit, resetsAt: endsAt };
}

/** Returns the day's count plus one, for the line's pacing row. */
export function oneMoreChat(plan: Plan, pacing: Pacing | null, now: number): NonNullable<Pacing["newChats"]> {
  const { day } = dayAt(plan.hours?.timeZone ?? "UTC", now);
  return { day, started: (pacing?.newChats?.day === day ? pacing.newChats.started : 0) + 1 };
}

function rampAt(firstDepartureAt: number, now: number): number {
  return WARM_UP[Math.max(0, Math.floor((now - firstDepartureAt) / WEEK_MS))] ?? Infinity;
}
