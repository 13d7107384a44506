import assert from "node:assert/strict";
import { LINE_STATUSES, LINE_TRANSITIONS, LINE_TRIGGERS, newLine } from "../../../src/line/line.ts";

/** The table as prose would have it: from, on what, to. What is not listed must not change the line. */
const EXPECTED = `
initializing booted initializing | initializing linking initializing | initializing qr qr | initializing code pairing
initializing linked initializing | initializing opened connected | initializing dropped disconnected
initializing reopening initializing | initializing replaced disconnected | initializing link_expired disconnected
initializing paused disconnected | initializing logged_out logged_out
qr booted initializing | qr linking initializing | qr qr qr | qr linked initializing | qr opened connected
qr reopening initializing | qr link_expired disconnected | qr paused disconnected | qr logged_out logged_out
pairing booted initializing | pairing linking initializing | pairing code pairing | pairing linked initializing
pairing opened connected | pairing reopening initializing | pairing link_expired disconnected
pairing paused disconnected | pairing logged_out logged_out
connected booted initializing | connected dropped disconnected | connected reopening disconnected
connected replaced disconnected | connected paused disconnected | connected logged_out logged_out
disconnected booted disconnected | disconnected linking initializing | disconnected linked disconnected
disconnected opened connected | disconnected dropped disconnected | disconnected reopening disconnected
disconnected replaced disconnected | disconnected paused disconnected | disconnected logged_out logged_out
logged_out booted logged_out | logged_out linking initializing | logged_out paused logged_out
logged_out logged_out logged_out
initializing noted initializing | qr noted qr | pairing noted pairing | connected noted connected
disconnected noted disconnected | logged_out noted logged_out
initializing passkey initializing | qr passkey initializing | pairing passkey initializing
initializing refused disconnected | qr refused disconnected | pairing refused disconnected
connected refused disconnected | disconnected refused disconnected`;

Deno.test("the table of line states holds exactly the transitions that are meant", () => {
  const actual = LINE_STATUSES.flatMap((from) =>
    LINE_TRIGGERS.flatMap((on) => LINE_TRANSITIONS[from][on] ? [`${from} ${on} ${LINE_TRANSITIONS[from][on]}`] : [])
  );
  const expected = EXPECTED.split(/[|\n]/).map((entry) => entry.trim()).filter(Boolean);
  assert.deepEqual(actual.sort(), expected.sort());
});

Deno.test("every state can be reached from a new line, and every state can be left", () => {
  const start = newLine({ id: "ses_1", accountId: "acc_1", name: "a", pairingPhone: null, createdAt: 0 });
  const reached = new Set([start.status]);
  for (const from of reached) for (const to of Object.values(LINE_TRANSITIONS[from])) reached.add(to);
  assert.deepEqual([...reached].sort(), [...LINE_STATUSES].sort());
  for (const from of LINE_STATUSES) {
    assert.ok(Object.values(LINE_TRANSITIONS[from]).some((to) => to !== from), `${from} is a dead end`);
  }
});

Deno.test("nothing but a new link leads away from a log-out", () => {
  const ways = Object.entries(LINE_TRANSITIONS.logged_out).filter(([, to]) => to !== "logged_out");
  assert.deepEqual(ways, [["linking", "initializing"]]);
});
