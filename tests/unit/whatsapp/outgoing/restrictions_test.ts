/** What the network says of an account's restrictions, and what is made of it. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { makeRestrictions } from "../../../../src/whatsapp/baileys/outgoing/restrictions.ts";
import type { Restriction } from "../../../../src/whatsapp/connection.ts";
import { ManualClock } from "../../../support/runtime.ts";

Deno.test("a restriction whose end is no time has an unknown end: it would block the line that writes it down", () => {
  const ev = new EventEmitter();
  const changes: (Restriction | null)[] = [];
  const restrictions = makeRestrictions({
    // deno-lint-ignore no-explicit-any -- nothing else of the socket is asked here
    socket: { ev } as any,
    clock: new ManualClock(),
    saltOf: () => Promise.resolve(null),
    restriction: null,
    changed: (restriction) => changes.push(restriction),
  });
  const reachoutTimeLock = { isActive: true, timeEnforcementEnds: new Date(NaN), enforcementType: "DEFAULT" };
  ev.emit("connection.update", { reachoutTimeLock });
  assert.deepEqual(changes, [{ kind: "DEFAULT", until: null }]);
  restrictions.end();
});

Deno.test("the end of a restriction that was announced to nobody is found: at the next login, and within an hour", async () => {
  for (const until of [null, Date.UTC(2026, 0, 20)]) {
    for (const isMissedOffline of [true, false]) {
      const ev = new EventEmitter();
      const clock = new ManualClock();
      const changes: (Restriction | null)[] = [];
      const answer = { isActive: true, timeEnforcementEnds: until === null ? undefined : new Date(until) };
      const restrictions = makeRestrictions({
        socket: {
          ev,
          fetchAccountReachoutTimelock() {
            const reachoutTimeLock = { ...answer, enforcementType: "DEFAULT" };
            ev.emit("connection.update", { reachoutTimeLock });
            return Promise.resolve(reachoutTimeLock);
          },
          // deno-lint-ignore no-explicit-any -- nothing else of the socket is asked here
        } as any,
        clock,
        saltOf: () => Promise.resolve(null),
        restriction: { kind: "DEFAULT", until },
        changed: (restriction) => changes.push(restriction),
      });
      answer.isActive = !isMissedOffline;
      await restrictions.loggedIn();
      assert.deepEqual(changes, isMissedOffline ? [null] : []);
      answer.isActive = false;
      await clock.advance(3_600_000);
      assert.deepEqual(changes, [null]);
      restrictions.end();
    }
  }
});

Deno.test("the network is asked for the limit of new chats at most hourly; what it announces counts at once", async () => {
  const ev = new EventEmitter();
  const clock = new ManualClock();
  const asked: unknown[] = [];
  const restrictions = makeRestrictions({
    socket: {
      ev,
      generateMessageTag: () => "tag",
      query({ content: [query] }: { content: { attrs: object; content: Uint8Array }[] }) {
        asked.push([query!.attrs, JSON.parse(new TextDecoder().decode(query!.content))]);
        const data = { xwa2_message_capping_info: { total_quota: 5, used_quota: asked.length } };
        const content = [{ tag: "result", attrs: {}, content: JSON.stringify({ data }) }];
        return Promise.resolve({ tag: "iq", attrs: {}, content });
      },
      // deno-lint-ignore no-explicit-any -- nothing else of the socket is asked here
    } as any,
    clock,
    saltOf: () => Promise.resolve(null),
    restriction: null,
    changed: () => {},
  });
  const usedOf = async () => (await restrictions.newChats())?.used;
  assert.deepEqual([await usedOf(), await usedOf()], [1, 1]);
  assert.deepEqual(asked, [[
    { query_id: "27910975521856601" },
    { variables: { input: { type: "INDIVIDUAL_NEW_CHAT_THREAD" } } },
  ]]);
  ev.emit("message-capping.update", { total_quota: 5, used_quota: 4, cycle_end_timestamp: "1800000000" });
  assert.deepEqual(await restrictions.newChats(), { used: 4, limit: 5, resetsAt: 1_800_000_000_000 });
  await clock.advance(3_600_000);
  assert.equal(await usedOf(), 2);
  ev.emit("message-capping.update", { total_quota: 0 });
  assert.equal(await restrictions.newChats(), null);
  restrictions.end();
});
