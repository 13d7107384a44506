/** What is asked again is answered from memory, with its age; what is new is limited for each line. */
import assert from "node:assert/strict";
import { makeLookups } from "../../../src/line/lookups.ts";
import { relayedLookups } from "../../../src/roles/context.ts";
import { ManualClock } from "../../support/runtime.ts";

function stage() {
  const clock = new ManualClock();
  const lookups = makeLookups({ clock });
  let asked = 0;
  const question = (about: string, lineId = "ses_1") => ({
    lineId,
    about,
    maxAgeMs: 10_000,
    ask: () => Promise.resolve(`${about} ${++asked}`),
  });
  return { clock, lookups, question, asked: () => asked };
}

Deno.test("an answer is kept for its time, says its age, and is asked for anew after it", async () => {
  const { clock, lookups, question } = stage();
  assert.deepEqual(await lookups.answer(question("a")), { value: "a 1", ageSeconds: 0 });
  await clock.advance(9_999);
  assert.deepEqual(await lookups.answer(question("a")), { value: "a 1", ageSeconds: 9 });
  await clock.advance(1);
  assert.deepEqual(await lookups.answer(question("a")), { value: "a 2", ageSeconds: 0 });
});

Deno.test("those who ask at once share one question; a refusal is not kept", async () => {
  const { lookups, question, asked } = stage();
  const answers = await Promise.all([lookups.answer(question("a")), lookups.answer(question("a"))]);
  assert.deepEqual(answers.map(({ value }) => value), ["a 1", "a 1"]);
  await assert.rejects(lookups.answer({ ...question("b"), ask: () => Promise.reject(new Error("no")) }), /no/);
  assert.deepEqual((await lookups.answer(question("b"))).value, "b 2");
  assert.equal(asked(), 2);
});

Deno.test("what is forgotten is asked for anew, of that line alone, under way or not", async () => {
  const { lookups, question } = stage();
  for (const about of ["group 1", "group 1 invite", "group 2"]) await lookups.answer(question(about));
  await lookups.answer(question("group 1", "ses_2"));
  lookups.forget("ses_1", "group 1");
  assert.equal((await lookups.answer(question("group 1"))).value, "group 1 5");
  assert.equal((await lookups.answer(question("group 1 invite"))).value, "group 1 invite 6");
  assert.equal((await lookups.answer(question("group 2"))).value, "group 2 3");
  assert.equal((await lookups.answer(question("group 1", "ses_2"))).value, "group 1 4");
  const { promise, resolve } = Promise.withResolvers<string>();
  const old = lookups.answer({ ...question("x"), ask: () => promise });
  lookups.forget("ses_1", "x");
  resolve("old");
  await old;
  assert.equal((await lookups.answer(question("x"))).value, "x 7", "an answer from before is not kept");
});

Deno.test("a line asks sixty questions a minute, whatever another asks", async () => {
  const { clock, lookups, question } = stage();
  for (let i = 0; i < 60; i++) await lookups.answer(question(`n${i}`));
  await clock.advance(1_000);
  await assert.rejects(lookups.answer(question("n60")), (error: { code?: string; extras?: unknown }) => {
    assert.deepEqual(error.extras, { retryAfterSeconds: 59 });
    return error.code === "rate_limited";
  });
  assert.equal((await lookups.answer(question("n0"))).ageSeconds, 1, "what is kept costs nothing");
  await lookups.answer(question("n60", "ses_2"));
  await clock.advance(59_000);
  await lookups.answer(question("n60"));
});

Deno.test("of what another process has forgotten nothing is kept after rings may have been lost", async () => {
  const { lookups, question } = stage();
  const wakes: ((topic: string) => void)[] = [];
  const bell = { ring() {}, hear: (_: string, wake: (topic: string) => void) => (wakes.push(wake), () => {}) };
  const relayed = relayedLookups(lookups, bell);
  const ask = async () => (await relayed.answer(question("contact 1"))).value;
  assert.equal(await ask(), "contact 1 1");
  for (const wake of wakes) wake("forget/ses_1 contact 1");
  assert.equal(await ask(), "contact 1 2");
  // As a wire that was away wakes everybody: with the prefix that they hear.
  for (const wake of wakes) wake("forget/");
  assert.equal(await ask(), "contact 1 3");
});
