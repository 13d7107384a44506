/** A plan's sending hours: days of the week and times of day in a time zone. */
import type { Temporal as TemporalApi } from "temporal-polyfill";
import { unlessMalformed } from "../base/retry.ts";

/** The runtime's own, which Deno 2.6 lacks. */
const Temporal: typeof TemporalApi = Reflect.get(globalThis, "Temporal") ??
  (await import("temporal-polyfill")).Temporal;

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
type Weekday = (typeof WEEKDAYS)[number];

export interface Hours {
  /** At least one, in weekday order. */
  days: Weekday[];
  /** `HH:MM`; `to` is exclusive, later than `from`, and at most `24:00`. */
  from: string;
  to: string;
  /** IANA name, such as `Europe/Madrid`. */
  timeZone: string;
}

/** A period of sending hours, Unix ms; `closesAt` is exclusive. */
export interface OpenHours {
  opensAt: number;
  closesAt: number;
}

const FORM = /^(\S+) +(\d\d:\d\d)-(\d\d:\d\d) +(\S+)$/;
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/;

/**
 * Parses `mon-fri 09:00-18:00 Europe/Madrid`; days are ranges or separated by commas. Null if the text has another
 * form.
 */
export function parseHours(text: string): Hours | null {
  const [, days, from, to, timeZone] = FORM.exec(text.trim()) ?? [];
  const named = days?.toLowerCase().split(",").map(daysOf);
  if (!named || named.some((some) => some === null)) return null;
  return {
    days: WEEKDAYS.filter((day) => named.some((some) => some!.includes(day))),
    from: from!,
    to: to!,
    timeZone: timeZone!,
  };
}

/** Parses `fri` or `fri-mon`; null if it is neither. */
function daysOf(range: string): Weekday[] | null {
  const ends = range.split("-").map((name) => WEEKDAYS.findIndex((day) => day === name));
  const [first = -1, last = first] = ends;
  if (ends.length > 2 || first < 0 || last < 0) return null;
  return Array.from({ length: (last - first + 7) % 7 + 1 }, (_, i) => WEEKDAYS[(first + i) % 7]!);
}

/** Formats hours as `parseHours` reads them. */
export function printHours({ days, from, to, timeZone }: Hours): string {
  return `${days.join(",")} ${from}-${to} ${timeZone}`;
}

/** Returns what is wrong with the hours, phrased to follow the field's name; null if they are valid. */
export function hoursRefusal({ days, from, to, timeZone }: Hours): string | null {
  if (days.length === 0 || days.some((day) => !WEEKDAYS.includes(day))) return "must name days from mon to sun";
  if (!TIME.test(from) || !(TIME.test(to) || to === "24:00")) return "must name times like 09:00";
  if (from >= to) return "must end later on the day than they begin";
  if (!isTimeZone(timeZone)) return "must name a time zone like Europe/Madrid";
  return null;
}

function isTimeZone(name: string): boolean {
  // "+02:00" has no daylight saving time.
  return /^[A-Za-z]/.test(name) &&
    unlessMalformed(() => new Intl.DateTimeFormat("en", { timeZone: name }), null) !== null;
}

/**
 * Returns the current period, or the next one. If a clock change skips or repeats the first or last minute, the period
 * is shortened, so that it never contains a time that local clocks show as outside the hours.
 */
export function openHours({ days, from, to, timeZone }: Hours, at: number): OpenHours {
  for (let day = dateAt(timeZone, at);; day = day.add({ days: 1 })) {
    if (!days.includes(WEEKDAYS[day.dayOfWeek - 1]!)) continue;
    const opensAt = from === "00:00"
      ? startOf(day, timeZone)
      : timeOf(day, { timeZone, time: from, disambiguation: "later" });
    const closesAt = to === "24:00"
      ? startOf(day.add({ days: 1 }), timeZone)
      : timeOf(day, { timeZone, time: to, disambiguation: "earlier" });
    if (closesAt > at && closesAt > opensAt) return { opensAt, closesAt };
  }
}

/** Returns the calendar day in the time zone, `YYYY-MM-DD`, and when the next day begins, Unix ms. */
export function dayAt(timeZone: string, at: number): { day: string; endsAt: number } {
  const day = dateAt(timeZone, at);
  return { day: day.toString(), endsAt: startOf(day.add({ days: 1 }), timeZone) };
}

function dateAt(timeZone: string, at: number): TemporalApi.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(Math.floor(at)).toZonedDateTimeISO(timeZone).toPlainDate();
}

function startOf(day: TemporalApi.PlainDate, timeZone: string): number {
  return day.toZonedDateTime(timeZone).epochMilliseconds;
}

function timeOf(
  day: TemporalApi.PlainDate,
  { timeZone, time, disambiguation }: { timeZone: string; time: string; disambiguation: "earlier" | "later" },
): number {
  return day.toPlainDateTime(Temporal.PlainTime.from(time)).toZonedDateTime(timeZone, { disambiguation })
    .epochMilliseconds;
}
