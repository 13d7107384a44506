/** Until when, and what, may be changed and deleted after it was sent; what the network says counts. */
import assert from "node:assert/strict";
import { makeAmendments } from "../../../src/line/amendments.ts";
import type { Referred } from "../../../src/line/references.ts";
import type { Message } from "../../../src/message/message.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import type { OutgoingBody } from "../../../src/whatsapp/outgoing.ts";
import { ACCOUNT, connectedWorld, type World } from "../../support/line_world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NOTHING_WAITS = { cancel: () => Promise.resolve([]), withdraw: () => Promise.resolve([]) };

/** A line that has sent a message, and what it lets leave from then on. */
async function scene(fields: Partial<Message> = {}) {
  const world = await connectedWorld();
  const { id, networkId } = await world.accept("ses_1", fields);
  await world.clock.advance(0);
  const bodies: OutgoingBody[] = [];
  const { outcome } = world.network;
  world.network.outcome = (message, connection) => (bodies.push(message.body), outcome(message, connection));
  const { kv, runtime, supervisor: live } = world;
  const amendments = makeAmendments({ kv, runtime, recorder: NOTHING_WAITS, live, bell: { ring() {} } });
  return { world, id, networkId, bodies, amendments };
}

/** As if it had been sent so long ago. */
async function sentAgo(world: World, id: string, ms: number): Promise<void> {
  const message = await world.message(id);
  await world.kv.commit(new Change().set(messageKeys.message(id), { ...message, sentAt: world.clock.now() - ms }));
}

async function unchanged(world: World, id: string): Promise<void> {
  const { content, editedAt, revokedAt } = await world.message(id);
  assert.deepEqual([content, editedAt, revokedAt], [{ kind: "text", text: "hello" }, undefined, undefined]);
  await world.supervisor.stop();
}

Deno.test("a text is changed for 15 minutes and deleted for 60 hours, to the millisecond", async () => {
  const { world, id, networkId, bodies, amendments } = await scene();
  await world.clock.advance(15 * MINUTE_MS);
  assert.deepEqual((await amendments.edit(ACCOUNT, id, "better")).content, { kind: "text", text: "better" });
  await world.clock.advance(1);
  await assert.rejects(amendments.edit(ACCOUNT, id, "late"), { code: "not_editable" });
  await sentAgo(world, id, 60 * HOUR_MS);
  assert.equal((await amendments.revoke(ACCOUNT, id)).revokedAt, world.clock.now());
  await assert.rejects(amendments.edit(ACCOUNT, id, "gone"), { code: "not_editable" });
  await assert.rejects(amendments.revoke(ACCOUNT, id), { code: "not_revocable" });
  assert.deepEqual(bodies, [
    { kind: "edit", target: networkId, text: "better" },
    { kind: "revoke", target: { networkId, participant: null, fromMe: true } },
  ]);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("after 60 hours nothing is deleted any more", async () => {
  const { world, id, bodies, amendments } = await scene();
  await sentAgo(world, id, 60 * HOUR_MS + 1);
  await assert.rejects(amendments.revoke(ACCOUNT, id), { code: "not_revocable" });
  assert.deepEqual(bodies, []);
  await unchanged(world, id);
});

Deno.test("what a number sent is not changed from another number that the session is linked to since", async () => {
  const { world, id, bodies, amendments } = await scene();
  world.network.linked.delete("ses_1");
  world.network.of("ses_1").ends("logged_out", 401);
  await world.clock.advance(1_000);
  const asked = world.lines.want(ACCOUNT, "ses_1", "connected");
  await world.clock.advance(10);
  world.network.owner = { ...world.network.owner, phone: "34600000009" };
  world.network.of("ses_1").links();
  await world.clock.advance(10_000);
  assert.equal((await asked).phone, "34600000009");
  await assert.rejects(amendments.edit(ACCOUNT, id, "better"), { code: "not_editable" });
  await assert.rejects(amendments.revoke(ACCOUNT, id), { code: "not_revocable" });
  assert.deepEqual(bodies, []);
  await unchanged(world, id);
});

for (
  const [outcome, name] of [
    [{ kind: "refused", code: "refused", detail: "no" }, "NetworkRefusal"],
    [{ kind: "unknown", detail: "no ack" }, "NetworkTimeout"],
  ] as const
) {
  Deno.test(`a change that ends as ${outcome.kind} is reported as that, and nothing is recorded`, async () => {
    const { world, id, amendments } = await scene();
    world.network.outcome = () => outcome;
    await assert.rejects(amendments.edit(ACCOUNT, id, "better"), { name });
    await assert.rejects(amendments.revoke(ACCOUNT, id), { name });
    await unchanged(world, id);
  });
}

Deno.test("a message that retention removes during its change is not found", async () => {
  const { world: { kv, runtime, supervisor }, id, bodies } = await scene();
  const live = {
    connection: () => null,
    async deliver(...sent: Parameters<typeof supervisor.deliver>) {
      await kv.commit(new Change().delete(messageKeys.message(id)));
      return await supervisor.deliver(...sent);
    },
  };
  const amendments = makeAmendments({ kv, runtime, recorder: NOTHING_WAITS, live, bell: { ring() {} } });
  await assert.rejects(amendments.edit(ACCOUNT, id, "better"), { code: "not_found" });
  assert.equal(bodies.length, 1);
  await supervisor.stop();
});

Deno.test("another account's message is not found; what is no text is not changed; some kinds are not deleted", async () => {
  const { world, id, bodies, amendments } = await scene();
  await assert.rejects(amendments.edit("acc_2", id, "mine"), { code: "not_found" });
  await assert.rejects(amendments.revoke("acc_2", id), { code: "not_found" });
  const target = { networkId: "3A", participant: null, fromMe: false };
  const place = { latitude: 1, longitude: 2, name: null, address: null };
  for (const content of [{ kind: "reaction", emoji: "👍", target }, { kind: "location", ...place }] as const) {
    const other = await world.accept("ses_1", { content });
    await world.clock.advance(0);
    bodies.length = 0;
    await assert.rejects(amendments.edit(ACCOUNT, other.id, "x"), { code: "not_editable" });
    if (content.kind === "reaction") {
      await assert.rejects(amendments.revoke(ACCOUNT, other.id), { code: "not_revocable" });
    }
    assert.deepEqual(bodies, []);
  }
  await unchanged(world, id);
});

Deno.test("what somebody else wrote is deleted by an admin alone, and only in its group", async () => {
  const { world, bodies, amendments } = await scene();
  const { groups } = world.supervisor.connection("ses_1")!;
  const { group: { id: gid } } = await groups.create("Team", ["34600000009"]);
  const key = { networkId: "3A", participant: "9@lid", fromMe: false };
  const preview = { text: "spam", caption: null, filename: null };
  const referred: Referred = {
    lineId: "ses_1",
    key,
    chat: gid,
    number: null,
    kind: "text",
    preview,
    message: null,
    isOfOtherNumber: false,
  };
  const elsewhere = { ...referred, chat: "1-2@g.us" };
  await assert.rejects(amendments.revokeInGroup({ lineId: "ses_1", gid }, elsewhere), { code: "not_found" });
  await amendments.revokeInGroup({ lineId: "ses_1", gid }, referred);
  Object.assign(await groups.get(gid), { isAdmin: false });
  await assert.rejects(amendments.revokeInGroup({ lineId: "ses_1", gid }, referred), { code: "not_revocable" });
  const own = { ...referred, key: { ...key, participant: null, fromMe: true } };
  await amendments.revokeInGroup({ lineId: "ses_1", gid }, own);
  assert.deepEqual(bodies, [{ kind: "revoke", target: key }, { kind: "revoke", target: own.key }]);
  await world.supervisor.stop();
});
