import assert from "node:assert/strict";
import type { Incoming } from "../../../src/whatsapp/incoming.ts";
import { sweepVerifications } from "../../../src/verification/ends.ts";
import { verificationKeys } from "../../../src/verification/rows.ts";
import { makeVerifications } from "../../../src/verification/verifications.ts";
import { removeAccounts } from "../../../src/erasure/account_removal.ts";
import { accountKeys } from "../../../src/account/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { plainIncoming } from "../../support/incoming.ts";
import { ACCOUNT, connectedWorld, type World } from "../../support/line_world.ts";
import { testEvents } from "../../support/bell.ts";

const NUMBER = "34600000009";
const TTL_MS = 600_000;
let made = 0;

function verificationsOf({ kv, runtime }: World, most = 10) {
  const verifications = makeVerifications({ kv, runtime });
  const caller = { account: { id: ACCOUNT }, plan: { verifications: most } };
  return {
    open: (asked: string | null = null, purpose: string | null = null) =>
      verifications.open(caller, { sessionId: "ses_1", phone: "49", purpose, asked, ttlMs: TTL_MS }),
    get: (id: string) => verifications.get(ACCOUNT, id),
  };
}

function says(world: World, text: string, fields: Partial<Incoming> = {}): Promise<unknown> {
  return world.network.of("ses_1").receive(plainIncoming({
    networkId: `IN${++made}`,
    chat: `${NUMBER}@s.whatsapp.net`,
    number: NUMBER,
    timestamp: Math.floor(world.clock.now() / 1000),
    text,
    ...fields,
  }));
}

async function told(world: World): Promise<unknown[]> {
  const names = ["verification.passed", "verification.failed"] as const;
  return (await Promise.all(names.map((name) => world.events(name)))).flat().map(({ data }) => data);
}

async function sweep(world: World, now = world.clock.now()): Promise<number> {
  const { kv, runtime } = world;
  const deps = { kv, events: testEvents(kv, runtime), sessionName: () => Promise.resolve("line ses_1") };
  return await sweepVerifications(deps, now, new AbortController().signal);
}

/** Keys of all rows of verifications but the record itself. */
async function rowsBeside({ kv }: World): Promise<unknown[]> {
  const families = ["verification_code", "verification_due"];
  const rows = await Promise.all(families.map((family) => Array.fromAsync(kv.list({ prefix: [family] }))));
  return rows.flat().map(({ key }) => key[0]);
}

async function openOnes({ kv }: World): Promise<bigint | null> {
  return (await kv.get<bigint>(verificationKeys.open(ACCOUNT))).value;
}

Deno.test("the code passes once, with the number and the chat, whoever sends it again", async () => {
  const world = await connectedWorld();
  const { open, get } = verificationsOf(world);
  const { id, code } = await open();
  await says(world, code.toLowerCase());
  await says(world, code, { number: "34600000001", chat: "34600000001@s.whatsapp.net" });
  const chat = `${NUMBER}@s.whatsapp.net`;
  assert.deepEqual(await told(world), [{ id, number: NUMBER, chat }]);
  assert.deepEqual([(await get(id)).status, (await get(id)).from], ["passed", { number: NUMBER, chat }]);
  assert.deepEqual([await rowsBeside(world), await openOnes(world)], [["verification_due"], 0n]);
  assert.equal((await world.events("message.received")).length, 2, "they are messages as well");
  await world.supervisor.stop();
});

Deno.test("two messages with one code at once pass it once", async () => {
  const world = await connectedWorld();
  const { open } = verificationsOf(world);
  const { code } = await open();
  const people = ["34600000001", "34600000002", "34600000003", "34600000004"];
  await Promise.all(people.map((number) => says(world, code, { number, chat: `${number}@s.whatsapp.net` })));
  assert.equal((await told(world)).length, 1);
  assert.equal((await world.events("message.received")).length, people.length);
  await world.supervisor.stop();
});

const OTHERS: [name: string, fields: Partial<Incoming>][] = [
  ["a group", { chat: "1-2@g.us", participant: "3@lid" }],
  ["the owner's phone", { fromMe: true }],
  ["a message that could not be decrypted", { undecryptable: true, type: "unknown" }],
  ["an edit", { change: { kind: "edited", target: "3A", text: "x" } }],
  ["a reaction", { type: "reactionMessage" }],
];
for (const [name, fields] of OTHERS) {
  Deno.test(`${name} does not answer a verification`, async () => {
    const world = await connectedWorld();
    const { open, get } = verificationsOf(world);
    const { id, code } = await open();
    await says(world, code, fields);
    assert.deepEqual([(await get(id)).status, await told(world)], ["pending", []]);
    await world.supervisor.stop();
  });
}

const NUMBERS: [asked: string, number: string | null, reason: string | null][] = [
  [NUMBER, NUMBER, null],
  ["5511987654321", "551187654321", null],
  ["525512345678", "5215512345678", null],
  ["34600000001", NUMBER, "other_number"],
  [NUMBER, null, "number_hidden"],
];
for (const [asked, number, reason] of NUMBERS) {
  Deno.test(`${number ?? "a hidden number"} ${reason ? "fails" : "passes"} where ${asked} is asked for`, async () => {
    const world = await connectedWorld();
    const { open, get } = verificationsOf(world);
    const { id, code } = await open(asked);
    await says(world, code, { number, chat: "123456@lid" });
    assert.deepEqual(await told(world), [reason ? { id, reason } : { id, number, chat: "123456@lid" }]);
    assert.deepEqual([(await get(id)).status, (await get(id)).reason], [reason ? "failed" : "passed", reason]);
    await says(world, code, { number: asked });
    assert.equal((await told(world)).length, 1, "it has ended");
    await world.supervisor.stop();
  });
}

Deno.test("its time ends it: for a code at once, for the event with the sweep, and once", async () => {
  const world = await connectedWorld();
  const { open, get } = verificationsOf(world);
  const [late, silent] = [await open(), await open()];
  await world.clock.advance(TTL_MS - 1);
  assert.equal(await sweep(world), 0);
  await world.clock.advance(1);
  assert.equal((await get(late.id)).status, "expired");
  await says(world, late.code);
  assert.deepEqual(await told(world), [{ id: late.id, reason: "expired" }]);
  await sweep(world);
  assert.equal(await sweep(world), 0);
  assert.deepEqual(await told(world), [late, silent].map(({ id }) => ({ id, reason: "expired" })));
  assert.equal(await openOnes(world), 0n);
  await world.supervisor.stop();
});

Deno.test("what ended a day ago is gone", async () => {
  const world = await connectedWorld();
  const { open, get } = verificationsOf(world);
  const { id, code } = await open();
  await says(world, code);
  const over = world.clock.now() + 24 * 3_600_000;
  await sweep(world, over - 1);
  assert.equal((await get(id)).status, "passed");
  await sweep(world, over);
  await assert.rejects(get(id), { code: "not_found" });
  assert.deepEqual(await rowsBeside(world), []);
  await world.supervisor.stop();
});

Deno.test("no more than the plan allows are open, also when they come at once", async () => {
  const world = await connectedWorld();
  const { open } = verificationsOf(world, 3);
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => open()));
  const opened = all.flatMap((one) => one.status === "fulfilled" ? [one.value] : []);
  assert.equal(opened.length, 3);
  for (const one of all) if (one.status === "rejected") assert.equal(one.reason.code, "limit_reached");
  await says(world, opened[0]!.code);
  await open();
  await assert.rejects(open(), { code: "limit_reached" });
  await world.supervisor.stop();
});

Deno.test("a removed account leaves none behind", async () => {
  const world = await connectedWorld();
  const { open } = verificationsOf(world);
  const { code } = await open();
  await open();
  await says(world, code);
  await world.supervisor.stop();
  const { kv, runtime } = world;
  await kv.commit(new Change().set(accountKeys.removal(ACCOUNT), true).delete(["line", "ses_1"]));
  const removed = await removeAccounts({
    kv,
    runtime,
    media: { remove: () => Promise.resolve() },
    removeAbove: () => Promise.resolve(),
  });
  assert.equal(removed, 1);
  const left = Array.fromAsync(kv.list({ prefix: [] })).then((rows) =>
    rows.filter(({ key }) => /^verif/.test(`${key[0]}`))
  );
  const keys = (await left).map(({ key }) => key);
  assert.deepEqual(keys.filter((key) => key[0] !== "verification_due"), []);
  await sweep(world, world.clock.now() + 48 * 3_600_000);
  assert.deepEqual(await rowsBeside(world), []);
});
