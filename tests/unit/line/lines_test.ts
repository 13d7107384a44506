import assert from "node:assert/strict";
import { newLine } from "../../../src/line/line.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { makeSendingLine } from "../../../src/line/account_lines.ts";
import { Change } from "../../../src/store/kv.ts";
import { ACCOUNT, connectedWorld, World } from "../../support/line_world.ts";
import { settle } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";

Deno.test("a new line is initializing, named, and listed; the supervisor takes it up at once", async () => {
  const world = new World();
  await world.boot();
  const line = await world.lines.create(ACCOUNT, { name: "shop", pairingPhone: null });
  assert.deepEqual([line.name, line.status, line.phone], ["shop", "initializing", null]);
  assert.deepEqual((await world.lines.list(ACCOUNT)).map(({ id }) => id), [line.id]);
  await settle();
  assert.equal(world.network.of(line.id).options.pairingPhone, null);
  await world.supervisor.stop();
});

Deno.test("the plan's number of sessions holds against many creates at once, and a deleted one makes room", async () => {
  const world = new World({ sessions: 3 });
  await world.boot();
  const create = () => world.lines.create(ACCOUNT, { name: "x", pairingPhone: null });
  const made = await Promise.allSettled(Array.from({ length: 20 }, create));
  const fulfilled = made.filter(({ status }) => status === "fulfilled");
  assert.equal(fulfilled.length, 3);
  for (const result of made) {
    if (result.status === "rejected") assert.equal(result.reason.code, "session_limit_reached");
  }
  const [first] = await world.lines.list(ACCOUNT);
  void world.lines.want(ACCOUNT, first!.id, "deleted");
  await world.clock.advance(10);
  await create();
  await assert.rejects(create, { code: "session_limit_reached" });
  await world.supervisor.stop();
});

Deno.test("a hundred creates at once are all made, and a hundred deletes at once all make room", async () => {
  const world = new World({ sessions: 100 });
  await world.boot();
  const create = () => world.lines.create(ACCOUNT, { name: "x", pairingPhone: null });
  const made = await Promise.all(Array.from({ length: 100 }, create));
  await assert.rejects(create, { code: "session_limit_reached" });
  assert.deepEqual((await world.lines.list(ACCOUNT)).map(({ id }) => id), made.map(({ id }) => id));
  const gone = Promise.all(made.map(({ id }) => world.lines.want(ACCOUNT, id, "deleted")));
  await until(async () => (await world.lines.list(ACCOUNT)).length === 0, "every line to leave the list");
  await world.clock.advance(10_000);
  await gone;
  assert.equal((await world.kv.get(lineKeys.lineCount(ACCOUNT))).value, 0);
  await world.supervisor.stop();
});

Deno.test("of a hundred creates at once, as many as the plan allows are made, and the others are told so", async () => {
  const world = new World({ sessions: 60 });
  await world.boot();
  const create = () => world.lines.create(ACCOUNT, { name: "x", pairingPhone: null });
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, create));
  const refused = outcomes.flatMap((outcome) => outcome.status === "rejected" ? [outcome.reason.code] : []);
  assert.deepEqual(refused, new Array(40).fill("session_limit_reached"));
  assert.equal((await world.lines.list(ACCOUNT)).length, 60);
  await world.supervisor.stop();
});

Deno.test("a create that another process was faster than counts that one's line too", async () => {
  const world = new World({ sessions: 2 });
  await world.boot();
  const create = () => world.lines.create(ACCOUNT, { name: "x", pairingPhone: null });
  const { kv } = world;
  const count = lineKeys.lineCount(ACCOUNT);
  const commit = kv.commit.bind(kv);
  kv.commit = async (change) => {
    kv.commit = commit;
    await commit(new Change().set(count, 1));
    return await commit(change);
  };
  await create();
  assert.equal((await kv.get(count)).value, 2);
  await assert.rejects(create, { code: "session_limit_reached" });
  await world.supervisor.stop();
});

Deno.test("lines are listed oldest first", async () => {
  const world = new World({ sessions: 100 });
  await world.boot();
  const ids = [];
  for (let i = 0; i < 45; i++) {
    ids.push((await world.lines.create(ACCOUNT, { name: `${i}`, pairingPhone: null })).id);
    await world.clock.advance(1);
  }
  assert.deepEqual((await world.lines.list(ACCOUNT)).map(({ id }) => id), ids);
  await world.supervisor.stop();
});

Deno.test("another account's line is not found, whatever is asked of it", async () => {
  const world = await connectedWorld();
  const { lines } = world;
  const missing = { code: "not_found" };
  await assert.rejects(() => lines.get("acc_2", "ses_1"), missing);
  await assert.rejects(() => lines.linking("acc_2", "ses_1"), missing);
  await assert.rejects(() => lines.want("acc_2", "ses_1", "deleted"), missing);
  await assert.rejects(() => lines.forSending("acc_2", "ses_1"), missing);
  await assert.rejects(() => lines.connection("acc_2", "ses_1"), missing);
  await assert.rejects(() => lines.get(ACCOUNT, "ses_none"), missing);
  assert.equal((await world.line()).wanted, "connected");
  await world.supervisor.stop();
});

Deno.test("a send goes out on the oldest connected line, on a linked one that is offline for now, else nowhere", async () => {
  const world = new World();
  const none = { code: "no_connected_session" };
  /** As it is now, and not as it was at an earlier look. */
  const lineFor = async (sessionId: string | null) => {
    for (const id of ["ses_1", "ses_2", "ses_3"]) world.lines.changed(id);
    return (await world.lines.forSending(ACCOUNT, sessionId)).value.id;
  };
  await world.boot();
  await assert.rejects(() => lineFor(null), none);
  await world.addLine("ses_1", { linked: false, status: "qr" });
  await world.clock.advance(3_000);
  await assert.rejects(() => lineFor(null), none);
  await assert.rejects(() => lineFor("ses_1"), { code: "session_not_connected" });

  await world.addLine("ses_2");
  await world.clock.advance(1_000);
  await world.addLine("ses_3");
  await world.clock.advance(3_000);
  assert.equal(await lineFor(null), "ses_2");
  world.network.opensByItself = false;
  world.network.of("ses_2").ends("lost");
  await world.clock.advance(0);
  assert.equal(await lineFor(null), "ses_3");
  assert.equal(await lineFor("ses_2"), "ses_2");
  world.network.of("ses_3").ends("lost");
  await world.clock.advance(0);
  assert.equal(await lineFor(null), "ses_2");
  await world.clock.advance(1_000); // both try again
  world.network.of("ses_2").ends("logged_out", 401);
  world.network.of("ses_3").ends("replaced", 440);
  await world.clock.advance(0);
  await assert.rejects(() => lineFor(null), none);
  assert.equal(await lineFor("ses_3"), "ses_3");
  await assert.rejects(() => lineFor("ses_2"), { code: "session_not_connected" });
  await world.supervisor.stop();
});

Deno.test("the row of a line is remembered for sending until it is said to have changed, or something else is wanted of it", async () => {
  const world = await connectedWorld();
  const { lines } = world;
  const first = await lines.forSending(ACCOUNT, "ses_1");
  assert.equal(await lines.forSending(ACCOUNT, "ses_1"), first);
  await assert.rejects(() => lines.forSending("acc_2", "ses_1"), { code: "not_found" });
  world.network.of("ses_1").ends("logged_out", 401);
  await world.clock.advance(0);
  assert.equal(await lines.forSending(ACCOUNT, "ses_1"), first, "the commit that rests on it finds out");
  lines.changed("ses_1");
  await assert.rejects(() => lines.forSending(ACCOUNT, "ses_1"), { code: "session_not_connected" });

  await world.addLine("ses_2");
  await world.clock.advance(3_000);
  await lines.forSending(ACCOUNT, "ses_2");
  const deleted = lines.want(ACCOUNT, "ses_2", "deleted");
  await world.clock.advance(10_000);
  await deleted;
  await assert.rejects(() => lines.forSending(ACCOUNT, "ses_2"), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("a paused line takes a send that names it, but is not the default", async () => {
  const world = await connectedWorld();
  void world.lines.want(ACCOUNT, "ses_1", "paused");
  await world.clock.advance(10);
  assert.equal((await world.lines.forSending(ACCOUNT, "ses_1")).value.id, "ses_1");
  await assert.rejects(() => world.lines.forSending(ACCOUNT, null), { code: "no_connected_session" });
  await world.supervisor.stop();
});

Deno.test("the network is asked by the live connection, and by no other", async () => {
  const world = await connectedWorld();
  assert.equal(await world.lines.connection(ACCOUNT, "ses_1"), world.network.of("ses_1"));
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  const offline = { code: "session_not_connected" };
  await assert.rejects(() => world.lines.connection(ACCOUNT, "ses_1"), offline);
  await world.supervisor.stop();
});

Deno.test("what cannot be brought about is answered after five seconds with what is", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  const answer = world.lines.want(ACCOUNT, "ses_1", "connected");
  let answered = false;
  void answer.then(() => answered = true);
  await world.clock.advance(4_900);
  assert.equal(answered, false);
  await world.clock.advance(200);
  assert.equal((await answer).status, "disconnected");
  await world.supervisor.stop();
});

Deno.test("another name is answered at once, also while the line is away", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  const before = world.clock.now();
  const { name, status } = await world.lines.update(ACCOUNT, "ses_1", { name: "desk" });
  assert.deepEqual([name, status, world.clock.now()], ["desk", "disconnected", before]);
  await world.supervisor.stop();
});

Deno.test("a line comes up anew with another proxy, and stays as it is with the one that it has", async () => {
  const world = await connectedWorld();
  const proxy = "socks5://me:secret@192.0.2.1:1080";
  for (const [asked, connections] of [[null, 1], [proxy, 2], [proxy, 2], [null, 3]] as const) {
    await world.lines.update(ACCOUNT, "ses_1", { proxy: asked });
    await world.clock.advance(10);
    assert.equal(world.network.connections.length, connections, `${asked}`);
  }
  await world.supervisor.stop();
});

Deno.test("what is needed for linking is shown, and nothing of it once the line is connected", async () => {
  const world = new World();
  await world.boot();
  const { id } = await world.lines.create(ACCOUNT, { name: "shop", pairingPhone: null });
  await settle();
  assert.deepEqual(await world.lines.linking(ACCOUNT, id), { status: "initializing", qr: null, pairingCode: null });
  world.network.of(id).events.qr("ref,a,b,c,1");
  await until(async () => (await world.line(id)).status === "qr", "qr");
  assert.match((await world.lines.linking(ACCOUNT, id)).qr!, /^data:image\/png;base64,/);
  world.network.of(id).links();
  await world.clock.advance(10);
  assert.deepEqual(await world.lines.linking(ACCOUNT, id), { status: "connected", qr: null, pairingCode: null });
  await world.supervisor.stop();
});

Deno.test("the queue view tells places and when each will probably leave", async () => {
  const world = await connectedWorld({ delays: { minMs: 5_000, maxMs: 15_000 } });
  await world.accept();
  await world.clock.advance(0);
  const waiting = [await world.accept(), await world.accept(), await world.accept()];
  const shown = await world.forecast.queue(ACCOUNT, "ses_1", { limit: 2 });
  assert.deepEqual(shown.map(({ message, place }) => [message.id, place]), [[waiting[0]!.id, 1], [waiting[1]!.id, 2]]);
  const [first, second] = shown.map(({ estimatedDepartureAt }) => estimatedDepartureAt! - world.clock.now());
  assert.ok(first! >= 5_000 && first! <= 15_000);
  assert.equal(second! - first!, 10_000);
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  assert.equal((await world.forecast.queue(ACCOUNT, "ses_1", { limit: 1 }))[0]!.estimatedDepartureAt, null);
  await assert.rejects(() => world.forecast.queue("acc_2", "ses_1", { limit: 1 }), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("lines that nobody sends on any more are not remembered", async () => {
  const asked: string[] = [];
  const { forSending } = makeSendingLine({
    row(accountId, id) {
      asked.push(id);
      const line = newLine({ id, accountId, name: "", pairingPhone: null, createdAt: 0 });
      return Promise.resolve({ key: lineKeys.line(id), value: { ...line, linked: true }, version: "1" });
    },
    async *each() {},
  });
  await forSending(ACCOUNT, "ses_0");
  await forSending(ACCOUNT, "ses_0");
  assert.deepEqual(asked.splice(0), ["ses_0"]);
  for (let i = 1; i <= 10_000; i++) await forSending(ACCOUNT, `ses_${i}`);
  asked.splice(0);
  await forSending(ACCOUNT, "ses_0");
  assert.deepEqual(asked, ["ses_0"]);
});
