/** Messages get ready while the pause before them runs: their departures keep the plan's bounds (promise 2). */
import assert from "node:assert/strict";
import { notFound } from "../../../../src/errors.ts";
import type { Message } from "../../../../src/message/message.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import type { FileContent } from "../../../../src/message/kinds/file.ts";
import { StoreError } from "../../../../src/store/kv.ts";
import type { Unsent } from "../../../../src/whatsapp/outgoing.ts";
import { connectedWorld, World } from "../../../support/line_world.ts";

const DELAYS = { minMs: 5_000, maxMs: 15_000 };

const PDF: FileContent = {
  kind: "document",
  file: { fileId: "med_1", size: 3, sha256: "00" },
  filename: "a.pdf",
  mimetype: "application/pdf",
  caption: null,
};

/** Gaps between neighbouring departures of the line. */
function gaps({ network }: World): number[] {
  const at = network.departures.map((departure) => departure.at);
  return at.slice(1).map((time, i) => time - at[i]!);
}

function assertPaced(world: World): void {
  for (const gap of gaps(world)) {
    assert.ok(gap >= DELAYS.minMs && gap <= DELAYS.maxMs, `a gap of ${gap} ms among ${gaps(world)}`);
  }
}

/** A world whose first message has just left; then what comes next takes `prepareMs` to get ready. */
async function pausedWorld(prepareMs: number): Promise<World> {
  const world = await connectedWorld({ delays: DELAYS });
  await world.accept();
  await world.clock.advance(0);
  assert.equal(world.network.departures.length, 1);
  world.network.prepareMs = () => prepareMs;
  return world;
}

for (const seed of [1, 2, 3]) {
  Deno.test(`gaps stay within the plan whatever uploads take, as long as a pause lasts (seed ${seed})`, async () => {
    const world = new World({ delays: DELAYS, seed });
    const { random } = world.runtime;
    world.network.prepareMs = () => random.between(0, DELAYS.minMs);
    world.network.encodeMs = () => random.between(0, 300);
    world.network.answerMs = () => random.between(0, 500);
    await world.addLine();
    await world.boot();
    for (let i = 0; i < 40; i++) await world.accept("ses_1", i % 2 ? { content: PDF } : {});
    await world.clock.advance(40 * 16_000);
    assert.equal(world.network.departures.length, 40);
    assertPaced(world);
    await world.supervisor.stop();
  });

  Deno.test(`gaps stay within the plan when messages are cancelled while they get ready (seed ${seed})`, async () => {
    const world = new World({ delays: DELAYS, seed });
    const { random } = world.runtime;
    world.network.prepareMs = () => 2_000;
    await world.addLine();
    await world.boot();
    const messages = [];
    for (let i = 0; i < 40; i++) messages.push(await world.accept("ses_1", { content: PDF }));
    for (let i = 0; i < 15; i++) {
      // Early in the pause: another file cannot get ready in no time.
      const left = world.network.departures.length;
      while (world.network.departures.length === left) await world.clock.advance(100);
      await world.clock.advance(random.between(0, 2_800));
      const head = messages.find(({ networkId }) => world.network.preparations.at(-1)!.networkId === networkId)!;
      await world.queued.cancel("acc_1", head.id);
    }
    await world.clock.advance(40 * 16_000);
    assert.equal(world.network.departures.length, 40 - 15);
    assertPaced(world);
    await world.supervisor.stop();
  });
}

Deno.test("what takes longer than the pause leaves as soon as it is ready", async () => {
  const world = await pausedWorld(40_000);
  await world.accept();
  await world.clock.advance(60_000);
  assert.deepEqual(gaps(world), [40_000]);
  await world.supervisor.stop();
});

Deno.test("on an idle line a message gets ready and leaves at once, and is `queued` until it does", async () => {
  const world = await connectedWorld({ delays: DELAYS });
  world.network.prepareMs = () => 3_000;
  world.network.answerMs = () => 1_000;
  const begun = world.clock.now();
  const { id } = await world.accept("ses_1", { content: PDF });
  await world.clock.advance(2_900);
  assert.deepEqual([(await world.message(id)).status, (await world.message(id)).attempts], ["queued", 0]);
  await world.clock.advance(200);
  assert.equal((await world.message(id)).status, "processing");
  assert.deepEqual(world.network.departures.map(({ at }) => at - begun), [3_000]);
  await world.clock.advance(1_000);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("one message is prepared ahead, at the beginning of its pause, and once", async () => {
  const world = await pausedWorld(1_000);
  const begun = world.clock.now();
  const [second] = [await world.accept(), await world.accept(), await world.accept()];
  await world.clock.advance(4_900);
  const { preparations } = world.network;
  assert.deepEqual(preparations.slice(1).map(({ networkId, at }) => [networkId, at]), [[second.networkId, begun]]);
  await world.clock.advance(60_000);
  assert.equal(preparations.length, 4);
  assert.deepEqual(preparations.map(({ networkId }) => networkId), world.network.departures.map((d) => d.networkId));
  await world.supervisor.stop();
});

Deno.test("a message that is cancelled while it gets ready is given up at once, and the next gets ready", async () => {
  const world = await pausedWorld(2_000);
  const second = await world.accept("ses_1", { content: PDF });
  const third = await world.accept();
  await world.clock.advance(1_000);
  await world.queued.cancel("acc_1", second.id);
  await world.clock.advance(0);
  const [, given, taken] = world.network.preparations;
  assert.ok(given!.signal.aborted && !taken!.signal.aborted);
  assert.equal(taken!.networkId, third.networkId);
  await world.clock.advance(15_000);
  assert.deepEqual(world.network.departures.slice(1).map(({ networkId }) => networkId), [third.networkId]);
  assert.equal((await world.message(second.id)).error?.code, "cancelled");
  assertPaced(world);
  await world.supervisor.stop();
});

Deno.test("a message that is cancelled or expires when it is ready never leaves", async () => {
  const world = await pausedWorld(1_000);
  const cancelled = await world.accept();
  await world.clock.advance(2_000);
  await world.queued.cancel("acc_1", cancelled.id);
  const expired = await world.accept("ses_1", { expiresAt: world.clock.now() + 1_500 });
  const last = await world.accept();
  await world.clock.advance(20_000);
  assert.equal((await world.message(expired.id)).error?.code, "expired");
  assert.deepEqual(world.network.departures.slice(1).map(({ networkId }) => networkId), [last.networkId]);
  assert.equal(world.network.preparations.length, 4);
  assertPaced(world);
  await world.supervisor.stop();
});

Deno.test("over a new connection the message is prepared again, and leaves once", async () => {
  const world = await pausedWorld(1_000);
  const { networkId } = await world.accept();
  await world.clock.advance(500);
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  assert.ok(world.network.preparations.at(-1)!.signal.aborted);
  await world.clock.advance(20_000);
  assert.deepEqual(world.network.preparations.slice(1).map((p) => p.networkId), [networkId, networkId]);
  assert.deepEqual(world.network.departures.slice(1).map((d) => d.networkId), [networkId]);
  assertPaced(world);
  await world.supervisor.stop();
});

Deno.test("nothing is prepared on a line that is offline", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.accept();
  await world.clock.advance(60_000);
  assert.equal(world.network.preparations.length, 0);
  await world.supervisor.stop();
});

Deno.test("a refusal while it gets ready ends the message in its turn, and counts as a departure", async () => {
  const world = await pausedWorld(0);
  const unknown = await world.accept();
  const next = await world.accept();
  world.network.preparing = ({ networkId }) =>
    networkId === unknown.networkId ? { kind: "refused", code: "number_not_registered", detail: "nobody there" } : null;
  await world.clock.advance(4_900);
  assert.equal((await world.message(unknown.id)).status, "queued");
  await world.clock.advance(30_000);
  const { status, attempts, error } = await world.message(unknown.id);
  assert.deepEqual([status, attempts, error?.code], ["failed", 1, "number_not_registered"]);
  assert.equal((await world.message(next.id)).status, "sent");
  const [gap] = gaps(world);
  assert.ok(gap! >= 2 * DELAYS.minMs && gap! <= 2 * DELAYS.maxMs, `it left ${gap} ms later`);
  await world.supervisor.stop();
});

Deno.test("passing trouble while it gets ready is tried three times, with growing pauses before each", async () => {
  const world = await connectedWorld();
  const begun = world.clock.now();
  world.network.preparing = () => ({ kind: "retry", detail: "The file could not be uploaded." });
  const { id } = await world.accept("ses_1", { content: PDF });
  await world.clock.advance(30_000);
  const { status, attempts, error } = await world.message(id);
  assert.deepEqual([status, attempts, error?.code], ["failed", 3, "send_failed"]);
  assert.deepEqual(world.network.preparations.map(({ at }) => at - begun), [0, 2_000, 10_000]);
  await world.supervisor.stop();
});

Deno.test("a connection that is away while it is asked to prepare burns no attempt", async () => {
  const world = await connectedWorld();
  const answers: Unsent[] = [{ kind: "hold", detail: "away" }, { kind: "hold", detail: "away" }];
  world.network.preparing = () => answers.shift() ?? null;
  const { id } = await world.accept();
  const statuses: string[] = [];
  world.kv.committed = () => {
    const [row] = world.disk.below({ prefix: messageKeys.messages() });
    const { status } = row!.value as Message;
    if (status !== statuses.at(-1)) statuses.push(status);
  };
  await world.clock.advance(5_000);
  assert.equal((await world.message(id)).attempts, 1);
  assert.deepEqual(statuses, ["processing", "sent"]);
  await world.supervisor.stop();
});

Deno.test("a connection that never says that a message is ready is replaced, and the message leaves over the next", async () => {
  const world = await connectedWorld();
  world.network.prepareMs = () => world.network.connections.length === 1 ? Infinity : 0;
  const { id } = await world.accept();
  await world.clock.advance(119_000);
  assert.equal(world.network.connections.length, 1);
  await world.clock.advance(10_000);
  assert.equal((await world.message(id)).status, "sent");
  assert.ok(world.network.preparations[0]!.signal.aborted);
  await world.supervisor.stop();
});

Deno.test("trouble with the store delays what gets ready, and burns no attempt", async () => {
  const world = await connectedWorld();
  let failures = 2;
  world.fetchAttachment = async ({ id }) => {
    if (failures-- > 0) throw new Error("no space");
    await world.replaceContent(id, PDF);
  };
  const { id } = await world.accept("ses_1", { content: { ...PDF, file: { url: "https://example.com/a.pdf" } } });
  await world.clock.advance(3_000);
  const { status, attempts } = await world.message(id);
  assert.deepEqual([status, attempts], ["sent", 1]);
  await world.supervisor.stop();
});

Deno.test("a place of files that is away for long delays what gets ready, and burns neither attempt nor connection", async () => {
  const world = await connectedWorld();
  const { onDisk } = world;
  let asked = 0;
  world.onDisk = () => {
    asked++;
    return Promise.reject(new StoreError("unavailable", "the bucket cannot be used"));
  };
  const { id } = await world.accept("ses_1", { content: PDF });
  await world.clock.advance(10 * 60_000);
  assert.equal((await world.message(id)).status, "queued");
  assert.ok(asked > 10);
  world.onDisk = onDisk;
  await world.clock.advance(5_000);
  const { status, attempts } = await world.message(id);
  assert.deepEqual([status, attempts, world.network.connections.length], ["sent", 1, 1]);
  await world.supervisor.stop();
});

Deno.test("a file whose place does not answer is asked for again, and the next message does not wait for ever", async () => {
  const world = await connectedWorld();
  const { onDisk } = world;
  world.onDisk = (_, signal) =>
    new Promise((_, reject) => {
      world.onDisk = onDisk;
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const { id } = await world.accept("ses_1", { content: PDF });
  await world.clock.advance(3 * 60_000);
  const { status, attempts } = await world.message(id);
  assert.deepEqual([status, attempts, world.network.connections.length], ["sent", 1, 1]);
  await world.supervisor.stop();
});

Deno.test("a message whose file is gone fails and says so, and the connection stays", async () => {
  const world = await connectedWorld();
  const { onDisk } = world;
  world.onDisk = () => {
    world.onDisk = onDisk;
    return Promise.reject(notFound("file"));
  };
  const { id } = await world.accept("ses_1", { content: PDF });
  const next = await world.accept("ses_1", { content: PDF });
  await world.clock.advance(1_000);
  const { status, error } = await world.message(id);
  assert.deepEqual([status, error?.code], ["failed", "file_unavailable"]);
  assert.equal((await world.message(next.id)).status, "sent");
  assert.equal(world.network.connections.length, 1);
  await world.supervisor.stop();
});

Deno.test("a file whose address is slow is fetched and gets ready within one pause", async () => {
  const world = await pausedWorld(2_000);
  world.fetchAttachment = async ({ id }) => {
    await new Promise<void>((resolve) => world.clock.after(2_500, resolve));
    await world.replaceContent(id, PDF);
  };
  const { id } = await world.accept("ses_1", { content: { ...PDF, file: { url: "https://example.com/a.pdf" } } });
  await world.clock.advance(15_000);
  assert.equal((await world.message(id)).status, "sent");
  assertPaced(world);
  await world.supervisor.stop();
});

Deno.test("stopping gives up what gets ready, and the next process prepares it again", async () => {
  const world = await pausedWorld(60_000);
  const { id } = await world.accept("ses_1", { content: PDF });
  await world.clock.advance(1_000);
  await world.supervisor.stop();
  assert.ok(world.network.preparations.at(-1)!.signal.aborted);
  assert.equal((await world.message(id)).status, "queued");
  world.network.prepareMs = () => 100;
  await world.boot();
  await world.clock.advance(20_000);
  assert.equal((await world.message(id)).status, "sent");
  assertPaced(world);
  await world.supervisor.stop();
});

Deno.test("a file over which the process dies again and again is given up, and the next message goes", async () => {
  const world = new World();
  await world.addLine();
  const poison = await world.accept("ses_1", { content: PDF });
  const next = await world.accept("ses_1", { content: PDF });
  world.network.preparing = ({ networkId }) => {
    if (networkId === poison.networkId) world.crash();
    return null;
  };
  let boots = 0;
  while ((await world.message(poison.id)).status === "queued" && ++boots < 20) {
    await world.boot();
    await world.clock.advance(1_000);
  }
  assert.equal(boots, 11);
  assert.equal((await world.message(poison.id)).error?.code, "send_failed");
  assert.equal((await world.message(next.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("restarts and new connections while a file gets ready are not held against it", async () => {
  const world = await connectedWorld();
  world.network.prepareMs = () => 60_000;
  const { id } = await world.accept("ses_1", { content: PDF });
  for (let i = 0; i < 15; i++) {
    await world.clock.advance(1_000);
    if (i % 2) await world.supervisor.stop().then(() => world.boot());
    else world.network.of("ses_1").ends("restart", 515);
  }
  world.network.prepareMs = () => 0;
  await world.supervisor.stop();
  await world.boot();
  await world.clock.advance(20_000);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

for (
  const [pause, typingMs, what] of [[5_000, 2_000, "inside the pause"], [
    5_000,
    20_000,
    "for longer than the pause",
  ]] as const
) {
  Deno.test(`typing is shown right before the departure, ${what}`, async () => {
    const world = await pausedWorld(100);
    await world.accept("ses_1", { manner: { typingMs } });
    await world.clock.advance(40_000);
    const { network } = world;
    const [first, second] = network.departures;
    const [typed, ...more] = network.typed;
    assert.deepEqual([typed?.networkId, more], [second!.networkId, []]);
    assert.equal(second!.at - typed!.at, typingMs);
    const gap = second!.at - first!.at;
    assert.ok(gap >= pause);
    if (typingMs <= pause) assertPaced(world);
    await world.supervisor.stop();
  });
}
