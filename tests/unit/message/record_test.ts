import assert from "node:assert/strict";
import { EndedStretches, StatusReader } from "../../../src/message/history/status_index.ts";
import { type Message, MESSAGE_STATUSES, NEXT_STATUS } from "../../../src/message/message.ts";
import { makeQueued } from "../../../src/message/queue_changes.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { ACCOUNT, connectedWorld } from "../../support/line_world.ts";
import { settle } from "../../support/runtime.ts";

Deno.test("the table of message states holds exactly the moves that are meant, and `sent` and `failed` are ends", () => {
  const moves = MESSAGE_STATUSES.flatMap((from) => NEXT_STATUS[from].map((to) => `${from} ${to}`));
  assert.deepEqual(moves.sort(), [
    "processing failed",
    "processing queued",
    "processing sent",
    "queued failed",
    "queued processing",
    "queued sent",
  ]);
});

Deno.test("the history index follows every move, whatever becomes of the messages", async () => {
  const world = await connectedWorld();
  const kinds = ["sent", "refused", "retry", "sent", "hold", "unknown", "sent"] as const;
  let next = 0;
  world.network.outcome = () => {
    const kind = kinds[next++] ?? "sent";
    return kind === "sent" ? { kind, chat: "x" } : { kind, detail: "as scripted", code: "refused" };
  };
  const messages = [];
  for (let i = 0; i < 6; i++) messages.push(await world.accept());
  messages.push(await world.accept("ses_1", { expiresAt: world.clock.now() }));
  await world.clock.advance(30_000);
  const ended = await Promise.all(messages.map(({ id }) => world.message(id)));
  const source = { kv: world.kv, ended: new EndedStretches() };
  for (const status of MESSAGE_STATUSES) {
    const reader: StatusReader = new StatusReader(source, { accountId: ACCOUNT, status, messages: messages.length });
    const numbers = ended.filter((message) => message.status === status).map(({ historyNumber }) => historyNumber);
    assert.deepEqual(await reader.select(1, messages.length), numbers, status);
    assert.equal(numbers.length > 0, status === "sent" || status === "failed", status);
  }
  await world.supervisor.stop();
});

Deno.test("an end takes queue row and file row with it", async () => {
  const world = await connectedWorld();
  const file = { fileId: "med_1", size: 3, sha256: "00" };
  await world.accept("ses_1", {
    content: { kind: "image", file, filename: "a.png", mimetype: "image/png", caption: null },
  });
  await world.clock.advance(0);
  const left = [...world.disk.rows.values()].map(({ key }) => key[0]).filter((name) =>
    ["queue", "file"].includes(String(name))
  );
  assert.deepEqual(left, []);
  await world.supervisor.stop();
});

Deno.test("without pauses a message is recorded in the commit by which the next one departs", async () => {
  const world = await connectedWorld();
  const status: string[][] = [];
  const ids: string[] = [];
  world.kv.committed = () => {
    status.push(ids.map((id) => (world.disk.rows.get(JSON.stringify(["message", id]))?.value as Message)?.status));
  };
  world.network.outcome = () => null;
  for (let i = 0; i < 3; i++) ids.push((await world.accept()).id);
  await world.clock.advance(0);
  for (let i = 0; i < 3; i++) {
    world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
    await settle();
  }
  assert.deepEqual(status.map((all) => all.join(" ")), [
    "processing queued queued",
    "sent processing queued",
    "sent sent processing",
    "sent sent sent",
  ]);
  await world.supervisor.stop();
});

Deno.test("a message is recorded by itself when the next one was changed at that moment, and that one goes as it is", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const [first, second] = [await world.accept(), await world.accept()];
  await world.clock.advance(0);
  const key = messageKeys.message(second.id);
  // Another process changed it, and its ring was lost.
  await world.kv.commit(new Change().set(key, { ...second, revision: 1, content: { kind: "text", text: "changed" } }));
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await settle();
  assert.deepEqual([(await world.message(first.id)).status, (await world.message(second.id)).revision], ["sent", 1]);
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await settle();
  assert.deepEqual(world.network.departures.map(({ networkId }) => networkId), [first.networkId, second.networkId]);
  assert.equal((await world.message(second.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a message that is moved to a later time at the moment of its departure does not leave", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const [first, second] = [await world.accept(), await world.accept()];
  await world.clock.advance(0);
  // Another process moves it, and its ring is lost.
  const none = () => Promise.resolve([]);
  const recorder = { cancel: none, withdraw: none };
  const elsewhere = makeQueued({
    kv: world.kv,
    clock: world.clock,
    recorder,
    laneOf: () => Promise.resolve("cold"),
    bell: { ring() {} },
  });
  const sendAt = world.clock.now() + 3_600_000;
  await elsewhere.reschedule(ACCOUNT, second.id, { sendAt });
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await settle();
  assert.deepEqual(world.network.departures.map(({ networkId }) => networkId), [first.networkId]);
  assert.equal((await world.message(second.id)).status, "queued");
  world.network.outcome = () => ({ kind: "sent", chat: "x" });
  await world.clock.advance(3_600_000);
  assert.equal((await world.message(second.id)).sentAt, sendAt);
  await world.supervisor.stop();
});
