/** Quotas: messages accepted per UTC day and month, counted in the commit that accepts them. */
import { Problem } from "../errors.ts";
import type { Plan } from "./plan.ts";

/** An account's usage, stored in its ledger row. */
export interface Usage {
  /** UTC day of the count, `YYYY-MM-DD`. Does not go back when the clock is set back by less than a day. */
  day: string;
  daily: number;
  /** UTC month of the count, `YYYY-MM`. */
  month: string;
  monthly: number;
}

/** What is left of each quota; null if the plan sets no limit. */
export interface QuotaLeft {
  daily: number | null;
  monthly: number | null;
}

export const NO_USAGE: Usage = { day: "", daily: 0, month: "", monthly: 0 };

const DAY_MS = 24 * 60 * 60 * 1000;
/** Caches the last result, which is nearly always today. */
let lastDay = { number: NaN, name: "" };

/** Returns the UTC day of a time, `YYYY-MM-DD`. */
export function utcDay(time: number): string {
  const number = Math.floor(time / DAY_MS);
  if (number !== lastDay.number) lastDay = { number, name: new Date(time).toISOString().slice(0, 10) };
  return lastDay.name;
}

/**
 * Returns the usage with the counts of past days and months reset. A day in the future is reset too, if it is so far
 * ahead that the clock must have been wrong: its quota would otherwise stay used up until that day.
 */
export function usageAt(usage: Usage, now: number): Usage {
  const today = utcDay(now);
  if (today <= usage.day && Date.parse(usage.day) <= now + DAY_MS) return usage;
  const month = today.slice(0, 7);
  return { day: today, daily: 0, month, monthly: month === usage.month ? usage.monthly : 0 };
}

/** What the plan leaves; an account that was moved to a smaller plan has 0 left, not less. */
export function quotaLeft(plan: Plan, usage: Usage): QuotaLeft {
  const left = (limit: number | null, used: number) => limit === null ? null : Math.max(0, limit - used);
  return { daily: left(plan.daily, usage.daily), monthly: left(plan.monthly, usage.monthly) };
}

/** Of the answer to a send, whether it was accepted or there was too little left. */
export function quotaHeadersOf({ daily, monthly }: QuotaLeft): Record<string, string> {
  return {
    ...(daily === null ? {} : { "x-quota-daily-remaining": String(daily) }),
    ...(monthly === null ? {} : { "x-quota-monthly-remaining": String(monthly) }),
  };
}

/**
 * The usage after `count` more messages, all or none of them.
 * Throws Problem quota_exceeded with `remaining`, and `Retry-After` set to the next UTC day or month.
 */
export function charge(usage: Usage, count: number, options: { plan: Plan; now: number }): Usage {
  const { plan, now } = options;
  const current = usageAt(usage, now);
  const remaining = quotaLeft(plan, current);
  const dayIsFull = remaining.daily !== null && count > remaining.daily;
  const monthIsFull = remaining.monthly !== null && count > remaining.monthly;
  if (dayIsFull || monthIsFull) {
    const period = monthIsFull ? "month" : "day";
    const left = monthIsFull ? remaining.monthly : remaining.daily;
    throw new Problem("quota_exceeded", `${count} asked for, ${left} left this UTC ${period} on plan ${plan.name}.`, {
      retryAfterSeconds: secondsUntil(monthIsFull ? nextMonth(current.month) : nextDay(current.day), now),
      headers: quotaHeadersOf(remaining),
      members: { remaining },
    });
  }
  return { ...current, daily: current.daily + count, monthly: current.monthly + count };
}

function nextDay(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) + DAY_MS;
}

function nextMonth(month: string): number {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return Date.UTC(year, number, 1);
}

function secondsUntil(time: number, now: number): number {
  return Math.max(1, Math.ceil((time - now) / 1000));
}
