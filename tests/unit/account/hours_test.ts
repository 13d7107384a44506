import assert from "node:assert/strict";
import { dayAt, type Hours, hoursRefusal, openHours, parseHours, printHours } from "../../../src/account/hours.ts";

const iso = (time: number) => new Date(time).toISOString();
const window = (text: string, at: string) => {
  const { opensAt, closesAt } = openHours(parseHours(text)!, Date.parse(at));
  return [iso(opensAt), iso(closesAt)];
};

Deno.test("hours are read from a line of text, days as lists and ranges, and printed so that they are read again", () => {
  const read = (text: string) => parseHours(text)?.days.join(" ");
  assert.equal(read("mon-fri 09:00-18:00 Europe/Madrid"), "mon tue wed thu fri");
  assert.equal(read("Sat,MON 09:00-18:00 UTC"), "mon sat");
  assert.equal(read("fri-mon 00:00-24:00 Asia/Kathmandu"), "mon fri sat sun");
  for (const text of ["", "mon 9-18 UTC", "mon-fri-sun 09:00-18:00 UTC", "lun 09:00-18:00 UTC", "mon 09:00-18:00"]) {
    assert.equal(parseHours(text), null, text);
  }
  const hours = parseHours("mon,wed-fri 08:30-24:00 America/Sao_Paulo")!;
  assert.deepEqual(parseHours(printHours(hours)), hours);
});

Deno.test("hours that make no sense are refused with the reason", () => {
  const hours: Hours = { days: ["mon"], from: "09:00", to: "18:00", timeZone: "Europe/Madrid" };
  assert.equal(hoursRefusal(hours), null);
  assert.equal(hoursRefusal({ ...hours, to: "24:00" }), null);
  for (
    const [wrong, says] of [
      [{ days: [] }, /days/],
      [{ from: "18:00" }, /later/],
      [{ from: "9:00" }, /times/],
      [{ to: "24:01" }, /times/],
      [{ timeZone: "Europe/Atlantis" }, /time zone/],
      [{ timeZone: "+02:00" }, /time zone/],
    ] as const
  ) assert.match(hoursRefusal({ ...hours, ...wrong } as Hours)!, says);
});

Deno.test("hours follow the clock on the wall over both clock changes, and pass over days without any", () => {
  const madrid = "mon-fri 09:00-18:00 Europe/Madrid";
  assert.deepEqual(window(madrid, "2026-03-27T16:59:59.999Z"), [
    "2026-03-27T08:00:00.000Z",
    "2026-03-27T17:00:00.000Z",
  ]);
  // Friday evening to Monday: the clocks went forward on Sunday.
  assert.deepEqual(window(madrid, "2026-03-27T17:00:00Z"), ["2026-03-30T07:00:00.000Z", "2026-03-30T16:00:00.000Z"]);
  assert.deepEqual(window(madrid, "2026-10-23T20:00:00Z"), ["2026-10-26T08:00:00.000Z", "2026-10-26T17:00:00.000Z"]);
  assert.deepEqual(window("sun 00:00-24:00 Europe/Madrid", "2026-03-28T12:00:00Z"), [
    "2026-03-28T23:00:00.000Z",
    "2026-03-29T22:00:00.000Z",
  ]);
});

Deno.test("a time that a clock change leaves out or repeats shortens the hours: never is it outside of them", () => {
  // 02:00 becomes 03:00 on 29 March, and 03:00 becomes 02:00 on 25 October.
  const odd = "sun 02:30-12:00 Europe/Madrid";
  assert.deepEqual(window(odd, "2026-03-28T12:00:00Z")[0], "2026-03-29T01:30:00.000Z"); // 03:30 there
  assert.deepEqual(window(odd, "2026-10-24T12:00:00Z")[0], "2026-10-25T01:30:00.000Z"); // the second 02:30
  const early = "sun 01:00-02:30 Europe/Madrid";
  assert.deepEqual(window(early, "2026-03-28T12:00:00Z")[1], "2026-03-29T00:30:00.000Z"); // 01:30 there
  assert.deepEqual(window(early, "2026-10-24T12:00:00Z")[1], "2026-10-25T00:30:00.000Z"); // the first 02:30
  // Nothing is left of these minutes on that day: a week later there is.
  assert.equal(window("sun 02:15-02:45 Europe/Madrid", "2026-10-24T12:00:00Z")[0], "2026-11-01T01:15:00.000Z");
});

Deno.test("hours from midnight begin with the day, also where its first hour comes twice", () => {
  // 01:00 becomes 00:00.
  assert.deepEqual(window("mon-sun 00:00-24:00 Atlantic/Azores", "2026-10-25T00:30:00Z"), [
    "2026-10-25T00:00:00.000Z",
    "2026-10-26T01:00:00.000Z",
  ]);
  assert.deepEqual(window("sun 00:00-24:00 America/Havana", "2026-10-31T12:00:00Z"), [
    "2026-11-01T04:00:00.000Z",
    "2026-11-02T05:00:00.000Z",
  ]);
  // There is no midnight: the day begins at 01:00.
  assert.deepEqual(window("fri 00:00-24:00 Africa/Cairo", "2026-04-22T12:00:00Z")[0], "2026-04-23T22:00:00.000Z");
});

Deno.test("a day ends at the midnight of its place, after 23 or 25 hours too", () => {
  const day = (zone: string, at: string) => {
    const { day, endsAt } = dayAt(zone, Date.parse(at));
    return [day, iso(endsAt)];
  };
  assert.deepEqual(day("UTC", "2026-03-29T12:00:00Z"), ["2026-03-29", "2026-03-30T00:00:00.000Z"]);
  assert.deepEqual(day("America/New_York", "2026-03-08T04:59:59Z"), ["2026-03-07", "2026-03-08T05:00:00.000Z"]);
  assert.deepEqual(day("America/New_York", "2026-03-08T05:00:00Z"), ["2026-03-08", "2026-03-09T04:00:00.000Z"]);
  assert.deepEqual(day("America/New_York", "2026-11-01T12:00:00Z"), ["2026-11-01", "2026-11-02T05:00:00.000Z"]);
});
