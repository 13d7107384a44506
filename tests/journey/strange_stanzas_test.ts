/** What the network may say that nobody here handles: acknowledged, and no end of the line. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { element } from "../../src/sandbox/world/stanza.ts";
import { seededRandom } from "../support/runtime.ts";
import { type LinkedLine, onSharedStage, type Stage } from "../support/stage.ts";
import { asksForAck, strangeStanzas } from "../support/strange_stanzas.ts";
import { until } from "../support/until.ts";

const onStrange = onSharedStage("a strange network");
const COUNT = 200;

onStrange(
  "200 stanzas of every type are acknowledged, end no line, and the other line never notices",
  async (stage, [LINE, OTHER, ANA]) => {
    await stage.addPhone(ANA);
    const [line, other] = [await stage.linkLine(LINE), await stage.linkLine(OTHER)];
    const { jid: group } = await stage.control.call("POST", "/groups", { subject: "G", participants: [LINE, ANA] });
    const { switchboard: { directory } } = stage.network;
    const account = directory.account(LINE)!;
    const [companion] = account.companions.values();
    const changes = async (one: LinkedLine) =>
      (await stage.logOf(one)).filter(({ msg }) => msg === "a line changed").length;
    const before = [await changes(line), await changes(other)];

    const cast = { line: account.jid, peer: `${ANA}@s.whatsapp.net`, group, random: seededRandom(9) };
    // Whoever writes or rings chooses the id.
    const endless = { id: "A".repeat(3_000), from: cast.peer, t: "1790000000" };
    const ringing = element("offer", { "call-id": endless.id, "call-creator": cast.peer });
    const thrown = [
      element("message", { ...endless, type: "text" }, [element("enc", { v: "2", type: "msg" }, new Uint8Array(40))]),
      element("call", { ...endless, id: "A" }, [ringing]),
      ...strangeStanzas(cast).take(COUNT),
    ];
    for (const stanza of thrown) {
      if (asksForAck(stanza)) companion!.mailbox.put(stanza);
      else companion!.session!.send(stanza);
    }
    const waiting = () => thrown.filter((stanza) => asksForAck(stanza) && companion!.mailbox.holds(stanza));
    await until(() => waiting().length === 0, "200 acks")
      .catch((error) => assert.deepEqual(waiting(), [], error.message));

    for (const one of [line, other]) {
      await stage.status(await stage.sendText(one, ANA, `still there: ${one.number}`), "sent");
    }
    assert.deepEqual([await changes(line), await changes(other)], before, "a line noticed");
    const metrics = await (await fetch(stage.gateway.baseUrl.replace("/v1", "/metrics"))).text();
    assert.match(metrics, /^paloma_network_stanzas_unhandled_total\{tag="notification",type="psa"\} \d+$/m);
  },
);

/**
 * Has the line asked for a message once more, as by whoever could not read it; resolves to how often it was sent then,
 * which is waited for to be as often as that.
 */
async function askedAgain(
  stage: Stage,
  line: LinkedLine,
  receipt: { id: string; from: string; participant?: string },
  atLeast = 0,
): Promise<number> {
  const sent = async () => {
    const wire: Json[] = await stage.control.call("GET", "/wire");
    return wire.filter((sent) => sent.line === line.number && sent.id === receipt.id).length;
  };
  const before = await sent();
  const [companion] = stage.network.switchboard.directory.account(line.number)!.companions.values();
  const t = "1790000000";
  const retry = element("retry", { count: "1", id: receipt.id, t, v: "1" });
  const stanza = element("receipt", { ...receipt, type: "retry", t }, [retry]);
  companion!.mailbox.put(stanza);
  await until(() => !companion!.mailbox.holds(stanza), "the ack of the receipt");
  await until(async () => await sent() - before >= atLeast, "the message to be sent again");
  return await sent() - before;
}

onStrange(
  "what somebody wrote is not sent back in the line's name when they ask for it again",
  async (stage, [LINE, , ANA]) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "G", participants: [ANA, LINE] });
    for (const to of [LINE, group]) {
      const text = `The line owes me a million: ${to}`;
      await stage.control.call("POST", `/phones/${ANA}/messages`, { to, text });
      const { data: { messageId: id, from, participant } } = await stage.event(line, ({ data }) => data.text === text);
      assert.equal(await askedAgain(stage, line, { id, from, participant }), 0);
    }
  },
);

onStrange(
  "what the line wrote is sent again to those it went to, and in no other chat",
  async (stage, [LINE, , ANA, BEN]) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "G", participants: [LINE, ANA, BEN] });
    const [ana, ben] = [ANA, BEN].map((number) => stage.network.switchboard.directory.account(number)!);
    await stage.sendText(line, ANA, "yes");
    await stage.sendText(line, group, "no");
    const { id: yes } = await stage.arrival(ANA, ({ text }) => text === "yes");
    const { id: no } = await stage.arrival(ANA, ({ text }) => text === "no");
    for (const from of [ana!.jid, ana!.lid]) await askedAgain(stage, line, { id: yes, from }, 1);
    await askedAgain(stage, line, { id: no, from: group, participant: ana!.lid }, 1);
    for (
      const receipt of [
        { id: yes, from: group, participant: ana!.lid },
        { id: yes, from: ben!.jid },
        { id: yes, from: ben!.lid },
        { id: no, from: ana!.jid },
      ]
    ) assert.equal(await askedAgain(stage, line, receipt), 0, JSON.stringify(receipt));

    const removal = { action: "remove", participants: [ANA] };
    await stage.api.call("POST", `/sessions/${line.sessionId}/groups/${group}/participants`, removal);
    const receipt = { id: no, from: group, participant: ana!.lid };
    assert.equal(await askedAgain(stage, line, receipt), 0, "she would get the group's present key with it");
  },
);

/** Puts stanzas into the mailbox of a line that nobody can decrypt, and waits until they are acknowledged. */
async function throwGarbage(
  stage: Stage,
  line: LinkedLine,
  { from, ids }: { from: string; ids: readonly string[] },
): Promise<void> {
  const [companion] = stage.network.switchboard.directory.account(line.number)!.companions.values();
  const garbage = ids.map((id) =>
    element("message", { id, from, type: "text", t: "1790000000" }, [
      element("enc", { v: "2", type: "msg" }, new Uint8Array(40).fill(51)),
    ])
  );
  for (const stanza of garbage) companion!.mailbox.put(stanza);
  await until(() => garbage.every((stanza) => !companion!.mailbox.holds(stanza)), "the acks of the garbage");
}

onStrange(
  "the phone of a sender whose message was unreadable twice still gets what the line sends",
  async (stage, [LINE, OTHER]) => {
    const [line, other] = [await stage.linkLine(LINE), await stage.linkLine(OTHER)];
    const { lid } = stage.network.switchboard.directory.account(OTHER)!;
    await stage.sendText(line, OTHER, "before");
    await stage.arrival(OTHER, ({ text }) => text === "before");
    for (const id of ["GARBAGE", "GARBAGE"]) await throwGarbage(stage, line, { from: lid, ids: [id] });
    await stage.sendText(line, OTHER, "after");
    await stage.arrival(OTHER, ({ text }) => text === "after");
    await stage.event(other, ({ data }) => data.text === "after");
  },
);

onStrange("600 unreadable messages do not hold up the next one", async (stage, [LINE, , ANA, BEN]) => {
  await stage.addPhone(ANA);
  await stage.addPhone(BEN);
  const line = await stage.linkLine(LINE);
  const { lid } = stage.network.switchboard.directory.account(ANA)!;
  await Promise.all([
    throwGarbage(stage, line, { from: lid, ids: Array.from({ length: 600 }, (_, i) => `GARBAGE${i}`) }),
    stage.control.call("POST", `/phones/${BEN}/messages`, { to: LINE, text: "hello" }),
    stage.event(line, ({ data }) => data.text === "hello"),
  ]);
});

onStrange(
  "whoever asks for a message once more gets it alone, and nobody is sent it as a chat of their own",
  async (stage, [LINE, , ANA, BEN]) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "G", participants: [ANA, BEN, LINE] });
    const { lid } = stage.network.switchboard.directory.account(ANA)!;
    await stage.sendText(line, group, "to all");
    const { id } = await stage.arrival(BEN, ({ text }) => text === "to all");
    const resent = async () => {
      const wire: Json[] = await stage.control.call("GET", "/wire");
      return wire.filter((sent) => sent.line === LINE && sent.id === id).slice(1);
    };
    // Receipts of one message share its id, so an ack may be that of the one before: what was sent is waited for.
    for (let times = 1; times <= 5; times++) {
      await askedAgain(stage, line, { id, from: group, participant: lid });
      await until(async () => (await resent()).length >= times, `resend ${times}`);
    }
    assert.equal(await askedAgain(stage, line, { id, from: group, participant: lid }), 0);
    await stage.sendText(line, group, "next");
    await stage.arrival(BEN, ({ text }) => text === "next");
    assert.deepEqual((await resent()).map(({ retry }) => retry), Array(5).fill(true));
    assert.deepEqual((await resent()).map(({ shape }) => shape.encs.length), Array(5).fill(1));
    assert.equal((await stage.inbox(BEN)).find((item) => item.id === id).copies, 1);

    await stage.api.call("POST", "/messages/send/status", { sessionId: line.sessionId, text: "news", audience: [ANA] });
    const { id: post } = await stage.arrival(ANA, ({ text }) => text === "news");
    assert.equal(await askedAgain(stage, line, { id: post, from: "status@broadcast", participant: lid }), 0);
  },
);

onStrange(
  "a key for a group of an endless name ends no line, and loses nothing that came with it",
  async (stage, [LINE, , ANA]) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const made = [0x33, 0x08, 1, 0x10, 0, 0x1a, 32, ...new Uint8Array(32), 0x22, 33, 5, ...new Uint8Array(32)];
    const key = { groupId: "1".repeat(3_000), axolotlSenderKeyDistributionMessage: Uint8Array.from(made).toBase64() };
    const message = { conversation: "hello", senderKeyDistributionMessage: key };
    await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, message });
    await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "are you there?" });
    await stage.event(line, ({ data }) => data.text === "are you there?");
    assert.equal((await stage.events(line)).filter(({ data }) => data.text === "hello").length, 1);
    const ended = (await stage.logOf(line)).filter(({ reason }) => /storage/i.test(reason ?? ""));
    assert.deepEqual(ended, []);
  },
);
