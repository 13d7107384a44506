/** What the network does today: each point as a fault or stage of the simulated one, and a line that lives with it. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { endpointsOf, jidOf, participantHash } from "../../src/sandbox/world/directory.ts";
import { child, childrenOf } from "../../src/sandbox/world/stanza.ts";
import { type LinkedLine, onSharedStage, onStage, type Stage, WITH_REFRESH } from "../support/stage.ts";
import { until } from "../support/until.ts";

const onToday = onSharedStage("the network today");

const fault = (stage: Stage, line: string, kind: string, more: Json = {}) =>
  stage.control.call("POST", "/faults", { line, kind, ...more });

/** A message to the line and one from it arrive. */
async function talks(stage: Stage, line: LinkedLine, other: string): Promise<void> {
  const text = `hello ${Math.random()}`;
  const message = await stage.control.call("POST", `/phones/${other}/messages`, { to: line.number, text });
  await stage.event(line, ({ event, data }) => event === "message.received" && data.messageId === message.id);
  await stage.status(await stage.sendText(line, other, text), "sent");
}

/** The code that the owner is to type. */
const pairingCode = (stage: Stage, { sessionId }: LinkedLine): Promise<string> =>
  until(async () => (await stage.api.call("GET", `/sessions/${sessionId}/qr`)).pairingCode, "a code");

/** How often a login of the line was refused so far. */
const refusals = async (stage: Stage, line: LinkedLine) =>
  (await stage.logOf(line)).filter(({ kind }) => kind === "refused").length;

const metrics = async (stage: Stage) => await (await fetch(new URL("/metrics", stage.gateway.baseUrl))).text();
const disconnects = async (stage: Stage, line: LinkedLine) =>
  (await stage.events(line)).filter(({ event }) => event === "session.disconnected").length;

onToday(
  "status stanzas and posts that can't be read are acknowledged, counted, and hold nothing back",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    for (const form of ["stanza", "undecryptable"]) {
      await fault(stage, LINE, "status_post", { form, count: 3 });
      await talks(stage, line, ANA);
      const [companion] = stage.network.switchboard.directory.account(LINE)!.companions.values();
      await until(() => companion!.mailbox.size === 0, "acks of the posts");
    }
    assert.equal(await disconnects(stage, line), 0);
    assert.match(await metrics(stage), /paloma_network_stanzas_unhandled_total\{tag="status",type="[^"]*"\} 3/);
    const named = (await stage.logOf(line)).filter(({ msg }) => /kind of stanza/.test(msg));
    assert.ok(named.length <= 1);
  },
);

onToday("a device without keys is left out: the person's others get the message", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  await stage.link(ANA);
  const { devices } = await stage.control.call("GET", `/phones/${ANA}`);
  await stage.control.call("POST", "/faults", { line: ANA, kind: "no_keys", device: devices.at(-1).id });
  await stage.status(await stage.sendText(line, ANA, "to the phone alone"), "sent");
  await stage.arrival(ANA, ({ text }) => text === "to the phone alone");
});

onToday("a code that the network refuses is not shown, and the session says why", async (stage, [LINE, , BEN]) => {
  for (const [error, number] of [[400, LINE], [429, BEN]] as const) {
    await stage.addPhone(number);
    await fault(stage, number, "refuse_code", { error });
    const { data } = await stage.api.call("POST", "/sessions", { name: "By code", pairingPhone: number });
    const line = { sessionId: data._id, number };
    const { reason } = await stage.sessionStatus(line, "disconnected");
    assert.match(reason, new RegExp(`error ${error}`));
    // Looking for a code asks for none: a page that is open would ask a network that has refused again and again.
    const shown = await stage.api.call("GET", `/sessions/${line.sessionId}/qr`);
    assert.deepEqual(shown, { status: "disconnected", qr: null, pairingCode: null });
    // The owner asks again, and gets one.
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    const code = await pairingCode(stage, line);
    assert.equal((await stage.control.call("POST", `/phones/${number}/enter-code`, { code })).status, "linked");
    await stage.sessionStatus(line, "connected");
  }
});

onStage("a line is not connected before its link is complete", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  await stage.addPhone(LINE);
  await fault(stage, LINE, "early_success");
  const line = await stage.link(LINE);
  assert.equal((await stage.session(line)).phone, LINE);
  const connected = (await stage.events(line)).filter(({ event }) => event === "session.connected");
  assert.deepEqual(connected.map(({ data }) => data.phone), [LINE]);
  await talks(stage, line, ANA);
}, WITH_REFRESH);

onToday("each refusal of a login has its own reason, and is not tried on and on", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  let refused = 0;
  for (
    const [error, reason, tries] of [
      [402, /banned this number for a while/, 1],
      [405, /version/, 2],
      [406, /banned this account/, 1],
      [409, /kind of client/, 1],
      [516, /linked again/, 1],
    ] as const
  ) {
    refused += tries;
    // A version that is refused is asked for anew, and tried once more.
    await fault(stage, LINE, "refuse_login", { error, count: tries });
    await fault(stage, LINE, "drop");
    const seen = await until(async () => {
      const session = await stage.session(line);
      return refused === await refusals(stage, line) && reason.test(session.reason ?? "") ? session : null;
    }, `the reason of ${error}`);
    assert.equal(seen.status, "disconnected");
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    await stage.sessionStatus(line, "connected");
    await talks(stage, line, ANA);
  }
  assert.equal(await refusals(stage, line), refused);
});

onToday(
  "a line may write to the chats of before its link, and to others by a token that it makes",
  async (stage, [LINE, ANA, BEN, CLEO]) => {
    for (const number of [LINE, ANA, BEN, CLEO]) await stage.addPhone(number);
    // Whoever writes lets the other side write, and the phone keeps the token.
    await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "before the link" });
    const line = await stage.link(LINE);
    const isTaken = async () => (await stage.logOf(line)).some(({ salt, tokens }) => salt === true && tokens === 1);
    await until(isTaken, "the history");
    await fault(stage, LINE, "demand_token", { count: 2 });
    for (const to of [ANA, BEN]) await stage.status(await stage.sendText(line, to, `wanted by ${to}`), "sent");
    await fault(stage, LINE, "restrict", { until: Date.now() + 3_600_000 });
    await stage.status(await stage.sendText(line, ANA, "by the token that she gave"), "sent");
    await fault(stage, LINE, "restrict", { until: 0 });

    await fault(stage, LINE, "new_salt");
    const isRenewed = async () =>
      (await stage.logOf(line)).some(({ msg }) => msg === "the salt of an account's settings was taken");
    await until(isRenewed, "the new salt");
    await fault(stage, LINE, "demand_token");
    await stage.status(await stage.sendText(line, CLEO, "by a token of the new salt"), "sent");
  },
);

onToday(
  "a restricted account goes on with its chats and holds new ones until the end of it",
  async (stage, [LINE, ANA, BEN]) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    await talks(stage, line, ANA);
    const until_ = Date.now() + 3_600_000;
    await fault(stage, LINE, "restrict", { until: until_, announced: false });
    const bulk = await stage.api.call("POST", "/messages/send/bulk", {
      sessionId: line.sessionId,
      messages: ["one", "two", "three", "four"].map((text) => ({ to: BEN, text })),
    });
    const restricted = await until(async () => (await stage.session(line)).restriction, "a restriction");
    assert.equal(Math.abs(Date.parse(restricted.until) - until_) < 1_000, true);
    await stage.status(await stage.sendText(line, ANA, "a reply goes on"), "sent");
    assert.equal((await stage.queue(line)).length, 4);
    const wire: Json[] = await stage.control.call("GET", `/wire?line=${LINE}`);
    const ben = stage.network.switchboard.directory.account(BEN)!;
    assert.equal(wire.filter(({ to }) => to === ben.lid).length, 1, "the one that was refused");
    const { data: health } = await stage.api.call("GET", `/sessions/${line.sessionId}/health`);
    assert.equal(health.queue.waiting, 4);
    assert.equal(health.restriction.until, restricted.until);

    await fault(stage, LINE, "restrict", { until: 0 });
    for (const { messageId } of bulk.messages) await stage.status(messageId, "sent");
    assert.equal((await stage.session(line)).restriction, null);
    const events = (await stage.events(line)).filter(({ event }) => event === "session.restricted");
    assert.deepEqual(events.map(({ data }) => data.active), [true, false]);
  },
);

onToday(
  "a restriction that ended while the line was away ends here too, and what it held leaves",
  async (stage, [LINE, , BEN]) => {
    await stage.addPhone(BEN);
    const line = await stage.linkLine(LINE);
    await fault(stage, LINE, "restrict", { until: Date.now() + 7 * 86_400_000 });
    await until(async () => (await stage.session(line)).restriction, "a restriction");
    const messageId = await stage.sendText(line, BEN, "held back");
    await stage.api.call("POST", `/sessions/${line.sessionId}/disconnect`);
    await fault(stage, LINE, "restrict", { until: 0, announced: false });
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    await stage.status(messageId, "sent");
    assert.equal((await stage.session(line)).restriction, null);
  },
);

onToday("the network's limit of new chats stands in the line's health", async (stage, [LINE, , BEN]) => {
  await stage.addPhone(BEN);
  const line = await stage.linkLine(LINE);
  await fault(stage, LINE, "cap_new_chats", { limit: 5, until: Date.now() + 3_600_000 });
  await stage.status(await stage.sendText(line, BEN, "hello"), "sent");
  const data = await until(async () => {
    const { data } = await stage.api.call("GET", `/sessions/${line.sessionId}/health`);
    return data.newChats?.used === 1 && data;
  }, "the chat that was begun");
  assert.equal(data.newChats.limit, 5);
  for (const field of ["connectedSince", "lastFrameAt", "lastSentAt"]) assert.ok(Date.parse(data[field]), field);
  assert.ok(data.pingMs >= 0 && data.webVersion.startsWith("2."), JSON.stringify(data));
});

onToday(
  "a line counts its logins, is named as browsers are, and lets the owner's phone ring",
  async (stage, [LINE]) => {
    await stage.addPhone(LINE);
    const { data: { _id: sessionId } } = await stage.api.call("POST", "/sessions", {
      name: "By code",
      pairingPhone: LINE,
    });
    // The network gives no code to a companion whose name it does not like.
    const line = { sessionId, number: LINE };
    await stage.control.call("POST", `/phones/${LINE}/enter-code`, { code: await pairingCode(stage, line) });
    await stage.sessionStatus(line, "connected");
    const [companion] = stage.network.switchboard.directory.account(LINE)!.companions.values();
    await until(() => !companion!.available, "a line that is away");
    assert.equal(companion!.logins, 1);
    await fault(stage, LINE, "drop");
    await until(() => companion!.logins === 2, "the second login");
  },
);

onToday("people are written to at their LID, on every device, be it told of or not", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  const ana = stage.network.switchboard.directory.account(ANA)!;
  const arrives = async (device: LinkedLine, text: string) =>
    (await stage.events(device)).some(({ data }) => data.text === text) || null;
  const send = async (text: string) => await stage.status(await stage.sendText(line, ANA, text), "sent");
  await send("to the phone");

  const announced = await stage.link(ANA);
  const [companion] = stage.network.switchboard.directory.account(LINE)!.companions.values();
  await until(() => companion!.mailbox.size === 0, "the line to hear of the device");
  await send("to a device that was told of");
  await until(() => arrives(announced, "to a device that was told of"), "the message at the new device");

  ana.watchers.clear();
  const untold = await stage.link(ANA);
  await send("short of a device: the network says so");
  await send("to all devices");
  await until(() => arrives(untold, "to all devices"), "the message at every device");
  assert.equal(await arrives(untold, "short of a device: the network says so"), null);
  const wire: Json[] = await stage.control.call("GET", `/wire?line=${LINE}`);
  assert.deepEqual([...new Set(wire.map(({ to }) => to))], [ana.lid]);
});

onToday(
  "a message to a group says for which devices it is, and the next one is for those that were missing",
  async (stage, [LINE, ANA, BEN]) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    for (const addressingMode of ["lid", "pn"]) {
      const asked = { subject: addressingMode, participants: [LINE, ANA, BEN], addressingMode };
      const { id: group } = await stage.control.call("POST", "/groups", asked);
      const send = async (text: string) => await stage.status(await stage.sendText(line, group, text), "sent");
      await send("to all devices");
      const ana = stage.network.switchboard.directory.account(ANA)!;
      ana.watchers.clear();
      const untold = await stage.link(ANA);
      await send("short of a device: the network says so");
      const wanted = `to all again, by ${addressingMode}`;
      await send(wanted);
      await stage.event(untold, ({ data }) => data.text === wanted);
      const { attrs } = stage.network.switchboard.wire.entries(LINE).at(-1)!.shape;
      const members = [LINE, ANA, BEN].map((number) => stage.network.switchboard.directory.account(number)!);
      const form = addressingMode === "lid" ? "lid" : "pn";
      assert.equal(attrs.phash, participantHash(members.flatMap(endpointsOf).map((device) => jidOf(device, form))));
    }
  },
);

onToday(
  "the key of a group is not for the line itself, and is a new one when somebody was removed",
  async (stage, [LINE, ANA, BEN]) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    const { relay, directory } = stage.network.switchboard;
    const given: string[][] = [];
    const submit = relay.submit.bind(relay);
    relay.submit = (sender, message, options) => {
      const named = childrenOf(child(message, "participants"), "to");
      if (message.attrs.to?.endsWith("@g.us")) given.push(named.map(({ attrs }) => attrs.jid!));
      return submit(sender, message, options);
    };
    const participants = [LINE, ANA, BEN];
    const { id: group } = await stage.control.call("POST", "/groups", {
      subject: "Boats",
      participants,
      addressingMode: "lid",
    });
    const send = async (text: string) => await stage.status(await stage.sendText(line, group, text), "sent");
    await send("for both");
    await send("for both again");
    const removed = { action: "remove", participants: [BEN] };
    await stage.api.call("POST", `/sessions/${line.sessionId}/groups/${group}/participants`, removed);
    await send("for Ana alone");
    relay.submit = submit;
    const [own, ana, ben] = participants.map((number) => directory.account(number)!.lid);
    assert.deepEqual(given.map((jids) => jids.toSorted()), [[own, ana, ben].toSorted(), [], [own, ana].toSorted()]);
  },
);

onStage(
  "a restricted account answers who wrote within days, once without a token, and the record says why it waits",
  async (stage, [LINE, ANA, BEN, CLEO]) => {
    for (const number of [ANA, BEN, CLEO]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    // Ana's and Ben's tokens get lost, as on a line that was linked anew.
    stage.network.switchboard.trust.issue = () => {};
    for (const from of [ANA, BEN]) {
      const { id } = await stage.control.call("POST", `/phones/${from}/messages`, { to: LINE, text: `from ${from}` });
      await stage.event(line, ({ data }) => data.messageId === id);
    }
    await fault(stage, LINE, "restrict", { until: Date.now() + 3_600_000 });
    await until(async () => (await stage.session(line)).restriction, "a restriction");
    const cold = await stage.sendText(line, CLEO, "to a stranger");
    const answer = await stage.sendText(line, ANA, "an answer");
    const record = async (id: string) => (await stage.api.call("GET", `/messages/${id}`)).data;
    const { status, error } = await until(async () => {
      const now = await record(answer);
      return now.error && now;
    }, "why the answer waits");
    assert.equal(status, "queued");
    assert.deepEqual([error.code, /error 463/.test(error.message)], ["account_restricted", true]);
    const second = await stage.sendText(line, ANA, "another answer");

    // The network lets the account write again, and has told nobody: an answer finds out.
    await fault(stage, LINE, "restrict", { until: 0, announced: false });
    await stage.status(await stage.sendText(line, BEN, "an answer to Ben"), "sent");
    assert.deepEqual([(await record(cold)).error, (await record(second)).error], [null, null]);
    const wire: Json[] = await stage.control.call("GET", `/wire?line=${LINE}`);
    const triesTo = (number: string) =>
      wire.filter(({ to }) => to === stage.network.switchboard.directory.account(number)!.lid).length;
    assert.deepEqual([ANA, BEN, CLEO].map(triesTo), [1, 1, 0]);

    await stage.gateway.kill();
    await stage.gateway.start();
    for (const id of [answer, second, cold]) await stage.status(id, "sent");
    assert.equal((await record(answer)).error, null);
  },
);
