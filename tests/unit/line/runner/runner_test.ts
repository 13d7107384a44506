import assert from "node:assert/strict";
import { Change, StoreError } from "../../../../src/store/kv.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import type { FileContent } from "../../../../src/message/kinds/file.ts";
import { ringQueue } from "../../../../src/message/queue/place.ts";
import type { SendOutcome } from "../../../../src/whatsapp/outgoing.ts";
import { connectedWorld, World } from "../../../support/line_world.ts";
import { until } from "../../../support/until.ts";

Deno.test("an idle line sends at once, and `sent` comes with its event", async () => {
  const world = await connectedWorld({ delays: { minMs: 5_000, maxMs: 15_000 } });
  const { id, networkId, jobId } = await world.accept();
  await world.clock.advance(0);
  const message = await world.message(id);
  assert.equal(message.status, "sent");
  assert.equal(message.sentAt, world.clock.now());
  assert.equal(message.attempts, 1);
  assert.equal(await world.queueLength(), 0);
  const [sent] = await world.events("message.sent");
  assert.deepEqual(sent!.data, {
    messageId: id,
    networkId,
    jobId,
    to: "34600000002",
    sentAt: new Date(world.clock.now()).toISOString(),
  });
  assert.equal(sent!.sessionName, "line ses_1");
  await world.supervisor.stop();
});

Deno.test("a plan without pauses sends as fast as answers come, in order, one at a time", async () => {
  const world = await connectedWorld();
  let onTheirWay = 0;
  let most = 0;
  world.network.outcome = () => {
    most = Math.max(most, ++onTheirWay);
    return null;
  };
  const messages = [];
  for (let i = 0; i < 20; i++) messages.push(await world.accept());
  for (let i = 0; i < 20; i++) {
    await world.clock.advance(0);
    onTheirWay--;
    world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  }
  await world.clock.advance(0);
  assert.equal(most, 1);
  assert.deepEqual(world.network.departures.map((d) => d.networkId), messages.map((m) => m.networkId));
  assert.equal((await world.events("message.sent")).length, 20);
  await world.supervisor.stop();
});

Deno.test("a message is `processing` from the moment it is handed over until the answer", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const { id } = await world.accept();
  await world.clock.advance(0);
  assert.equal((await world.message(id)).status, "processing");
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await world.clock.advance(0);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a final refusal fails the message at its first attempt, and the next one goes", async () => {
  const world = await connectedWorld();
  const answers: SendOutcome[] = [{ kind: "refused", code: "number_not_registered", detail: "nobody there" }];
  world.network.outcome = () => answers.shift() ?? { kind: "sent", chat: "x" };
  const first = await world.accept();
  const second = await world.accept();
  await world.clock.advance(0);
  assert.equal((await world.message(first.id)).status, "failed");
  assert.deepEqual((await world.message(first.id)).error, { code: "number_not_registered", message: "nobody there" });
  assert.equal((await world.message(second.id)).status, "sent");
  const [failed] = await world.events("message.failed");
  assert.deepEqual((failed!.data as { error: unknown }).error, {
    code: "number_not_registered",
    message: "nobody there",
  });
  assert.equal(world.network.departures.length, 2);
  await world.supervisor.stop();
});

Deno.test("the log says what came of each attempt, and neither the text nor the number", async () => {
  const world = await connectedWorld();
  const answers: SendOutcome[] = [
    { kind: "refused", code: "number_not_registered", detail: "34600000002 is not on WhatsApp." },
    { kind: "retry", detail: "The file could not be uploaded." },
  ];
  world.network.outcome = () => answers.shift() ?? { kind: "sent", chat: "x" };
  const refused = await world.accept();
  const retried = await world.accept();
  await world.clock.advance(5_000);
  const attempts = world.runtime.lines.filter((line) => "outcome" in line);
  assert.deepEqual(attempts.map((l) => [l.level, l.messageId, l.attempts, l.outcome, l.code ?? l.reason]), [
    [40, refused.id, 1, "refused", "number_not_registered"],
    [40, retried.id, 1, "retry", "The file could not be uploaded."],
    [20, retried.id, 2, "sent", undefined],
  ]);
  assert.ok(!JSON.stringify(world.runtime.lines).includes("34600000002"));
  await world.supervisor.stop();
});

Deno.test("passing trouble is tried three times with growing pauses, then fails", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => ({ kind: "retry", detail: "upload failed" });
  const { id } = await world.accept();
  await world.clock.advance(30_000);
  const message = await world.message(id);
  assert.equal(message.status, "failed");
  assert.equal(message.error?.code, "send_failed");
  assert.equal(message.attempts, 3);
  const [a, b, c] = world.network.departures.map((d) => d.at);
  assert.deepEqual([b! - a!, c! - b!], [2_000, 8_000]);
  await world.supervisor.stop();
});

Deno.test("a message whose trouble passes keeps its place before the next", async () => {
  const world = await connectedWorld();
  const answers: SendOutcome[] = [{ kind: "retry", detail: "busy" }];
  world.network.outcome = () => answers.shift() ?? { kind: "sent", chat: "x" };
  const first = await world.accept();
  const second = await world.accept();
  await world.clock.advance(5_000);
  assert.deepEqual(world.network.departures.map((d) => d.networkId), [
    first.networkId,
    first.networkId,
    second.networkId,
  ]);
  await world.supervisor.stop();
});

Deno.test("a lost answer sends the same id again after a reconnect", async () => {
  const world = await connectedWorld();
  const answers: SendOutcome[] = [{ kind: "unknown", detail: "no ack" }];
  world.network.outcome = () => answers.shift() ?? { kind: "sent", chat: "x" };
  const { id, networkId } = await world.accept();
  await world.clock.advance(5_000);
  assert.equal((await world.message(id)).status, "sent");
  assert.deepEqual(world.network.departures.map((d) => d.networkId), [networkId, networkId]);
  // The second attempt went over a new connection: the first may have been dead without knowing it.
  assert.equal(world.network.connections.length, 2);
  assert.ok(world.network.connections[0]!.isClosed);
  await world.supervisor.stop();
});

Deno.test("three lost answers fail the message as unacknowledged", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => ({ kind: "unknown", detail: "no ack" });
  const { id } = await world.accept();
  await world.clock.advance(60_000);
  const message = await world.message(id);
  assert.equal(message.status, "failed");
  assert.equal(message.error?.code, "unacknowledged");
  assert.equal(world.network.departures.length, 3);
  await world.supervisor.stop();
});

Deno.test("a held message burns no attempt and goes when the line can", async () => {
  const world = await connectedWorld();
  let held = 5;
  world.network.outcome = () => held-- > 0 ? { kind: "hold", detail: "not now" } : { kind: "sent", chat: "x" };
  const { id } = await world.accept();
  await world.clock.advance(10_000);
  const message = await world.message(id);
  assert.equal(message.status, "sent");
  assert.equal(message.attempts, 1);
  await world.supervisor.stop();
});

Deno.test("an offline line keeps its messages without an attempt and sends them in order when it is back", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  const messages = [await world.accept(), await world.accept(), await world.accept()];
  await world.clock.advance(3_600_000);
  assert.equal(world.network.departures.length, 0);
  for (const { id } of messages) assert.equal((await world.message(id)).attempts, 0);
  world.network.of("ses_1").opens();
  await world.clock.advance(0);
  assert.deepEqual(world.network.departures.map((d) => d.networkId), messages.map((m) => m.networkId));
  await world.supervisor.stop();
});

Deno.test("a connection that never answers does not hold the line for ever", async () => {
  const world = await connectedWorld();
  let silent = true;
  world.network.outcome = () => silent ? null : { kind: "sent", chat: "x" };
  const { id } = await world.accept();
  await world.clock.advance(60_000);
  assert.equal((await world.message(id)).status, "processing");
  silent = false;
  await world.clock.advance(70_000);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a connection that throws is a lost answer, and the line goes on", async () => {
  const world = await connectedWorld();
  const connection = world.network.of("ses_1");
  connection.prepare = () => Promise.reject(new TypeError("broken"));
  const { id } = await world.accept();
  await world.clock.advance(5_000);
  assert.equal((await world.message(id)).status, "sent");
  assert.equal((await world.message(id)).attempts, 2);
  await world.supervisor.stop();
});

Deno.test("an expired message fails in its second, also while the line is offline and others wait before it", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  const now = world.clock.now();
  const long = await world.accept();
  const short = await world.accept("ses_1", { expiresAt: now + 10_000 });
  await world.clock.advance(9_000);
  assert.equal((await world.message(short.id)).status, "queued");
  await world.clock.advance(4_000);
  assert.equal((await world.message(short.id)).error?.code, "expired");
  assert.equal((await world.message(long.id)).status, "queued");
  assert.equal((await world.events("message.failed")).length, 1);
  assert.equal(await world.queueLength(), 1);
  await world.supervisor.stop();
});

Deno.test("a message whose time is over by an unconfirmed clock leaves when the line is back", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  const waiting = await world.accept("ses_1", { expiresAt: world.clock.now() + 24 * 3_600_000 });
  world.clock.jump(26 * 3_600_000);
  world.network.opensByItself = true;
  await world.clock.advance(120_000);
  assert.equal((await world.message(waiting.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a thousand messages whose time is over end in one sweep", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  const expiresAt = world.clock.now() + 1_000;
  for (let i = 0; i < 1_000; i++) await world.accept("ses_1", { expiresAt });
  const last = await world.accept();
  await world.clock.advance(3_000);
  assert.equal((await world.events("message.failed")).length, 1_000);
  assert.equal((await world.message(last.id)).status, "queued");
  await world.supervisor.stop();
});

Deno.test("a message past its time does not leave, even when the line comes back at that moment", async () => {
  const world = new World();
  await world.addLine();
  const { id } = await world.accept("ses_1", { expiresAt: world.clock.now() });
  await world.boot();
  await world.clock.advance(1_000);
  assert.equal((await world.message(id)).error?.code, "expired");
  assert.equal(world.network.departures.length, 0);
  await world.supervisor.stop();
});

Deno.test("an outcome waits for a store in trouble, and the message does not go out again", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const { id } = await world.accept();
  await world.clock.advance(0);
  world.kv.trouble = new StoreError("full", "no space");
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await world.clock.advance(30_000);
  assert.equal((await world.message(id)).status, "processing");
  world.kv.trouble = null;
  await world.clock.advance(2_000);
  assert.equal((await world.message(id)).status, "sent");
  assert.equal(world.network.departures.length, 1);
  await world.supervisor.stop();
});

Deno.test("a departure that was written though the store said otherwise does not stop the line", async () => {
  const world = await connectedWorld();
  const { commit } = world.kv;
  let failures = 0;
  world.kv.commit = async (change) => {
    const version = await commit.call(world.kv, change);
    const departs = change.mutations.some((mutation) =>
      mutation.kind === "set" && (mutation.value as { status?: string }).status === "processing"
    );
    if (departs && failures++ === 0) throw new StoreError("unavailable", "disk I/O error");
    return version;
  };
  const [first, second] = [await world.accept(), await world.accept()];
  await world.clock.advance(10_000);
  assert.deepEqual([(await world.message(first.id)).status, (await world.message(second.id)).status], ["sent", "sent"]);
  assert.deepEqual(world.network.departures.map(({ networkId }) => networkId), [first.networkId, second.networkId]);
  await world.supervisor.stop();
});

Deno.test("a receipt counts more than three lost answers", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const { id, networkId } = await world.accept();
  const lost = { kind: "unknown", detail: "no ack" } as const;
  for (let attempt = 1; attempt <= 2; attempt++) {
    await until(async () => (await world.message(id)).attempts === attempt, `attempt ${attempt}`);
    world.network.of("ses_1").answers(lost);
    for (let i = 0; i < 300 && (await world.message(id)).attempts === attempt; i++) await world.clock.advance(20);
  }
  const { events } = world.network.of("ses_1");
  const receipt = { networkId, chat: "x", participant: null, status: "delivered", at: world.clock.now() } as const;
  await events.receipt(receipt);
  world.network.of("ses_1").answers(lost);
  await world.clock.advance(1_000);
  const { status, error } = await world.message(id);
  assert.deepEqual([status, error], ["sent", null]);
  const emitted = (await world.events()).map(({ event }) => event).filter((event) => event.startsWith("message."));
  assert.deepEqual(emitted, ["message.sent", "message.status"]);
  await world.supervisor.stop();
});

Deno.test("a lost ring delays a departure by a sweep at most", async () => {
  const world = await connectedWorld({ delays: { minMs: 5_000, maxMs: 6_000 } });
  await world.accept();
  const { id } = await world.accept();
  world.bell.deaf = true;
  await world.clock.advance(17_000);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a plan without pauses sets no ring", async () => {
  const world = await connectedWorld();
  for (let i = 0; i < 5; i++) await world.accept();
  await world.clock.advance(100);
  assert.equal((await world.events("message.sent")).length, 5);
  assert.deepEqual(world.bell.topics, []);
  await world.supervisor.stop();
});

Deno.test("the rows of a bulk that is not complete do not go out, and do not stop what is behind them", async () => {
  const world = await connectedWorld();
  const bulk = await world.accept("ses_1", { bulkId: "blk_1" });
  const single = await world.accept();
  await world.clock.advance(0);
  assert.equal((await world.message(single.id)).status, "sent");
  assert.equal((await world.message(bulk.id)).status, "queued");
  const row = { accountId: "acc_1", sessionId: "ses_1", total: 1, createdAt: 0 };
  await world.kv.commit(new Change().set(messageKeys.bulk("blk_1"), row));
  ringQueue(world.bell, "ses_1");
  await world.clock.advance(0);
  assert.equal((await world.message(bulk.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("stopping lets the message on its way come to its end and begins no other", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const first = await world.accept();
  const second = await world.accept();
  await world.clock.advance(0);
  const stopped = world.supervisor.stop();
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await world.clock.advance(10_000);
  await stopped;
  assert.equal((await world.message(first.id)).status, "sent");
  assert.equal((await world.message(second.id)).status, "queued");
  await world.supervisor.stop();
});

Deno.test("a file goes out by its path and is gone when the message has ended", async () => {
  const world = await connectedWorld();
  const bodies: unknown[] = [];
  world.network.outcome = ({ body }) => {
    bodies.push(body);
    return { kind: "sent", chat: "x" };
  };
  const file = { fileId: "med_1", size: 3, sha256: "00" };
  await world.accept("ses_1", {
    content: { kind: "document", file, filename: "a.pdf", mimetype: "application/pdf", caption: null },
  });
  await world.clock.advance(0);
  assert.deepEqual(bodies, [{
    kind: "document",
    filename: "a.pdf",
    mimetype: "application/pdf",
    caption: null,
    path: "/files/med_1",
    size: 3,
  }]);
  assert.deepEqual(world.removedFiles, ["med_1"]);
  await world.supervisor.stop();
});

Deno.test("a file that is named by URL is fetched during the pause, and its message leaves in its turn", async () => {
  const world = await connectedWorld({ delays: { minMs: 5_000, maxMs: 5_000 } });
  const fetched: number[] = [];
  world.fetchAttachment = async ({ id }) => {
    await new Promise<void>((resolve) => world.clock.after(2_000, resolve));
    fetched.push(world.clock.now());
    const message = await world.message(id);
    const file = { fileId: "med_1", size: 3, sha256: "00" };
    const content = { ...message.content as FileContent, file };
    await world.kv.commit(new Change().set(messageKeys.message(id), { ...message, content }));
  };
  await world.accept();
  await world.clock.advance(0);
  const remote: FileContent = {
    kind: "document",
    file: { url: "https://example.com/a.pdf" },
    filename: "a.pdf",
    mimetype: "application/pdf",
    caption: null,
  };
  await world.accept("ses_1", { content: remote });
  const last = await world.accept();
  await world.clock.advance(30_000);
  const [first, second, third] = world.network.departures.map(({ at }) => at);
  assert.deepEqual(fetched, [first! + 2_000]);
  assert.deepEqual([second! - first!, third! - second!], [5_000, 5_000]);
  assert.equal((await world.message(last.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("one line's silence never delays another", async () => {
  const world = new World();
  await world.addLine("ses_1");
  await world.addLine("ses_2");
  await world.boot();
  await world.clock.advance(100);
  world.network.outcome = (_, { options }) => options.lineId === "ses_1" ? null : { kind: "sent", chat: "x" };
  await world.accept("ses_1");
  const other = await world.accept("ses_2");
  await world.clock.advance(0);
  assert.equal((await world.message(other.id)).status, "sent");
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await world.supervisor.stop();
});

Deno.test("what was chosen while a message was on its way is held back with it when the account turns out restricted", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  for (let i = 0; i < 2; i++) await world.accept();
  await world.clock.advance(0);
  const connection = world.network.of("ses_1");
  connection.allows = () => Promise.resolve(false);
  connection.answers({ kind: "restricted", detail: "no new chats" });
  await world.clock.advance(0);
  assert.equal(world.network.departures.length, 1);
  assert.equal(await world.queueLength(), 2);
  await world.supervisor.stop();
});
