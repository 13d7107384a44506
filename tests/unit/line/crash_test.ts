/** The process dies between any two commits: nothing accepted is lost, ids and order stay (promises 1 to 4). */
import assert from "node:assert/strict";
import type { SendOutcome } from "../../../src/whatsapp/outgoing.ts";
import { World, type WorldOptions } from "../../support/line_world.ts";

const SCRIPT: readonly SendOutcome["kind"][] = ["sent", "refused", "unknown", "sent", "retry", "sent", "hold", "sent"];

type Manner = "before the commit" | "after it";

/** Runs six messages through every kind of outcome; with a crash at the given commit, in the given manner. */
async function run(
  crashAt: number,
  { manner, delays }: { manner: Manner; delays: NonNullable<WorldOptions["delays"]> },
): Promise<number> {
  const world = new World({ delays, seed: crashAt + 1 });
  let next = 0;
  world.network.outcome = () => {
    const kind = SCRIPT[next++] ?? "sent";
    return kind === "sent" ? { kind, chat: "x" } : { kind, detail: "as scripted", code: "refused" };
  };
  await world.addLine();
  const messages = [];
  for (let i = 0; i < 6; i++) messages.push(await world.accept());
  const before = world.disk.commits;
  await world.boot();
  if (manner === "before the commit") world.kv.commitsLeft = crashAt - (world.disk.commits - before);
  else world.kv.committed = () => world.disk.commits - before >= crashAt && world.crash();
  await world.clock.advance(40_000);
  const commits = world.disk.commits - before;
  world.crash();
  await world.boot();
  await world.clock.advance(60_000);

  const where = `crash ${manner} ${crashAt}`;
  for (const { id } of messages) {
    const { status } = await world.message(id);
    assert.ok(status === "sent" || status === "failed", `${where}: ${id} ended as ${status}`);
  }
  assert.equal(await world.queueLength(), 0, where);
  // Every message has exactly one end, and one event that says so.
  const ends = (await world.events("message.sent", "message.failed")).map(({ data }) =>
    (data as { messageId: string }).messageId
  );
  assert.deepEqual([...ends].sort(), messages.map(({ id }) => id).sort(), where);
  // Under the ids that accept chose, in the order of acceptance.
  const ids = world.network.departures.map(({ networkId }) => networkId).filter((id, i, all) => id !== all[i - 1]);
  assert.deepEqual(ids, messages.map(({ networkId }) => networkId), where);
  await world.supervisor.stop();
  return commits;
}

for (const manner of ["before the commit", "after it"] as const) {
  // Without pauses a message is recorded in the commit by which the next one departs.
  for (const delays of [{ minMs: 100, maxMs: 300 }, { minMs: 0, maxMs: 0 }]) {
    const pauses = delays.maxMs > 0 ? "with" : "without";
    Deno.test(`a crash ${manner}, at each commit of a run ${pauses} pauses, loses and doubles no message`, async () => {
      const commits = await run(1_000, { manner, delays });
      assert.ok(commits > 12, `only ${commits} commits to crash at`);
      for (let at = 1; at <= commits; at++) await run(at, { manner, delays });
    });
  }
}

Deno.test("a message that was on its way goes again within 2 s of the next boot, under its id", async () => {
  const world = new World();
  await world.addLine();
  await world.boot();
  await world.clock.advance(100);
  world.network.outcome = () => null;
  const { id, networkId } = await world.accept();
  await world.clock.advance(0);
  assert.equal((await world.message(id)).status, "processing");
  world.crash();
  world.network.outcome = () => ({ kind: "sent", chat: "x" });
  await world.boot();
  await world.clock.advance(2_000);
  assert.equal((await world.message(id)).status, "sent");
  assert.deepEqual(world.network.departures.map((d) => d.networkId), [networkId, networkId]);
  await world.supervisor.stop();
});

Deno.test("a message in whose company the process dies over and over is given up, and the next one goes", async () => {
  const world = new World();
  await world.addLine();
  const poison = await world.accept();
  const next = await world.accept();
  for (let i = 0; i < 12; i++) {
    world.network.outcome = ({ networkId }) => {
      if (networkId !== poison.networkId) return { kind: "sent", chat: "x" };
      world.crash();
      return null;
    };
    await world.boot();
    await world.clock.advance(1_000);
    if ((await world.message(poison.id)).status === "failed") break;
  }
  assert.equal((await world.message(poison.id)).error?.code, "unacknowledged");
  assert.equal((await world.message(next.id)).status, "sent");
  await world.supervisor.stop();
});
