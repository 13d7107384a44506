/** The hours of a plan: on which days of the week, and from when until when, by the clock of a place. */
import type { Temporal as TemporalApi } from "temporal-polyfill";

/** The runtime's own; Deno 2.6 has none. */
const Temporal: typeof TemporalApi = Reflect.get(globalThis, "Temporal") ??
  (await import("temporal-polyfill")).Temporal;

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
type Weekday = (typeof WEEKDAYS)[number];

export interface Hours {
  /** At least one, in the order of the week. */
  days: Weekday[];
  /** `HH:MM`; `to` is not included, and later than `from`: `24:00` at most. */
  from: string;
  to: string;
  /** IANA name, such as `Europe/Madrid`. */
  timeZone: string;
}

/** Unix ms; `closesAt` is not included. */
export interface OpenHours {
  opensAt: number;
  closesAt: number;
}

const FORM = /^(\S+) +(\d\d:\d\d)-(\d\d:\d\d) +(\S+)$/;
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/;

/** Of `mon-fri 09:00-18:00 Europe/Madrid`, days separated by commas or as ranges; null when the text is not of that form. */
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

/** Days of `fri` or `fri-mon`. */
function daysOf(range: string): Weekday[] | null {
  const ends = range.split("-").map((name) => WEEKDAYS.findIndex((day) => day === name));
  const [first = -1, last = first] = ends;
  if (ends.length > 2 || first < 0 || last < 0) return null;
  return Array.from({ length: (last - first + 7) % 7 + 1 }, (_, i) => WEEKDAYS[(first + i) % 7]!);
}

/** What `parseHours` reads. */
export function printHours({ days, from, to, timeZone }: Hours): string {
  return `${days.join(",")} ${from}-${to} ${timeZone}`;
}

/** What is wrong with the hours, as a sentence goes on after the field's name; null when nothing is. */
export function hoursRefusal({ days, from, to, timeZone }: Hours): string | null {
  if (days.length === 0 || days.some((day) => !WEEKDAYS.includes(day))) return "must name days from mon to sun";
  if (!TIME.test(from) || !(TIME.test(to) || to === "24:00")) return "must name times like 09:00";
  if (from >= to) return "must end later on the day than they begin";
  if (!isTimeZone(timeZone)) return "must name a time zone like Europe/Madrid";
  return null;
}

function isTimeZone(name: string): boolean {
  // "+02:00" knows of no daylight saving time.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * The hours that run at this time, or begin next. A change of the clock that leaves out or repeats their first or last
 * minute shortens them: by no reading of the clock on the wall is it outside of them.
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

/** The calendar day there at this time, `YYYY-MM-DD`, and when the next begins, Unix ms. */
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
