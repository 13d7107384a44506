/** What came while the line was away: everything, once, in order, whatever else lies in between. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { openData } from "../../src/engines.ts";
import { systemRandom } from "../../src/runtime.ts";
import { type BinaryNode, element } from "../../src/sandbox/world/stanza.ts";
import { eraseKeys } from "../../src/whatsapp/baileys/erase.ts";
import { type Person, Traces } from "../../src/whatsapp/person.ts";
import { startGatewayHere } from "../support/gateway_here.ts";
import type { RunningGateway } from "../support/gateway_process.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { type LinkedLine, onStage, openStageWith, type Stage, withStage } from "../support/stage.ts";
import { subscribe } from "../support/subscriber.ts";
import { dataConfigOf } from "../support/test_store.ts";
import { until } from "../support/until.ts";
import { silentRuntime } from "../support/runtime.ts";

const LINE = "4915200000004";
const ANA = "4917000000001";
const BEN = "4917000000002";
const CAM = "4917000000003";
const PHONES = [ANA, BEN, CAM];

interface Written {
  chat: string;
  number: string;
  text: string;
  id: string;
}

async function setTheScene(stage: Stage): Promise<{ line: LinkedLine; group: string }> {
  for (const number of PHONES) await stage.addPhone(number);
  const line = await stage.linkLine(LINE);
  const { id } = await stage.control.call("POST", "/groups", { subject: "All", participants: [...PHONES, LINE] });
  return { line, group: id };
}

/** Messages of three phones, every fourth to the group. */
async function write(
  { control }: Stage,
  group: string,
  { from, to }: { from: number; to: number },
): Promise<Written[]> {
  const written: Written[] = [];
  for (let i = from; i < to; i++) {
    const number = PHONES[i % 3]!;
    const inGroup = i % 4 === 3;
    const text = `missed message ${i}`;
    const { id } = await control.call("POST", `/phones/${number}/messages`, { to: inGroup ? group : LINE, text });
    written.push({ chat: inGroup ? group : `${number}@s.whatsapp.net`, number, text, id });
  }
  return written;
}

function checkEachOnce(written: Written[], events: { data: Json }[]): void {
  const read = events.map(({ data }): Written => {
    return { chat: data.from, number: data.number, text: data.text, id: data.messageId };
  });
  assert.equal(read.length, written.length);
  const byChat = (all: Written[]) => Object.fromEntries(Map.groupBy(all, ({ chat }) => chat));
  assert.deepEqual(byChat(read), byChat(written), "each once, in the order of its chat");
}

async function feed({ api }: Stage): Promise<Json[]> {
  return (await api.call("GET", "/events?types=message.received&limit=1000")).data;
}

onStage("300 messages that came while the gateway was down are 300 events, each once", async (stage) => {
  const { group } = await setTheScene(stage);
  const client = await subscribe(stage, { events: ["message.received"] });
  const before = await write(stage, group, { from: 0, to: 8 });
  await client.count(8);
  await stage.gateway.kill();
  const missed = await write(stage, group, { from: 8, to: 300 });
  await stage.gateway.start();
  checkEachOnce([...before, ...missed], await client.count(300));
  checkEachOnce([...before, ...missed], await feed(stage));
  await client.end();
});

onStage("300 messages around a dropped line are 300 events, each once", async (stage) => {
  const { line, group } = await setTheScene(stage);
  const client = await subscribe(stage, { events: ["message.received"] });
  const written: Written[] = [];
  // Before it is gone, while it is gone, and while it comes back.
  for (let i = 0; i < 3; i++) {
    await stage.control.call("POST", "/faults", { line: LINE, kind: "drop" });
    written.push(...await write(stage, group, { from: 100 * i, to: 100 * (i + 1) }));
    await stage.sessionStatus(line, "connected");
  }
  checkEachOnce(written, await client.count(300));
  checkEachOnce(written, await feed(stage));
  await client.end();
});

onStage("a peer whose keys are gone holds nobody up, and all that he wrote arrives", async (stage) => {
  const { line, group } = await setTheScene(stage);
  const client = await subscribe(stage, { events: ["message.received"] });
  await write(stage, group, { from: 0, to: 4 });
  await client.count(4);
  await stage.sendText(line, ANA, "so that both sides have a session");
  await stage.arrival(ANA, ({ text }) => text === "so that both sides have a session");
  assert.equal(await stage.gateway.stop(), 0);
  await loseKeys(stage, line, { number: ANA, lids: [await lidOf(stage, ANA)] });
  const said = await Promise.all([1, 2, 3].map((i) => writes(stage, ANA, `hard to read ${i}`)));
  const bens = await writes(stage, BEN, "easy to read");
  await stage.gateway.start();

  const delivered = await client.count(8);
  for (const id of [...said, bens]) {
    const copies = delivered.filter(({ data }) => data.messageId === id);
    assert.equal(copies.length, 1);
    assert.equal(copies[0]!.data.details, undefined, "it was read after all");
    assert.match(copies[0]!.data.text, /to read/);
  }
  // And the session holds from here on.
  const next = await writes(stage, ANA, "better now");
  await client.event("the next", ({ data }) => data.messageId === next);
  await client.end();
});

Deno.test("what can never be read is reported once, and neither that nor poison harms the line", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env, { clock })), async (stage) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number, `Phone of ${number}`);
    const line = await stage.linkLine(LINE);
    const lost = throwIn(stage, { id: "LOST1" }, [enc({ type: "msg" }, systemRandom.bytes(120))]);
    for (const poison of POISON) throwIn(stage, ...poison);
    let deep: Json = { conversation: "deep" };
    for (let i = 0; i < 90; i++) deep = { ephemeralMessage: { message: deep } };
    await stage.control.call("POST", `/phones/${BEN}/messages`, { to: LINE, message: deep });
    const after = await writes(stage, ANA, "after all that");

    const received = () => feed(stage as Stage);
    await eventOf(received, after);
    await passMinute(stage, { clock, line });
    const { data } = await eventOf(received, lost);
    const { timestamp: _, ...reported } = data;
    assert.deepEqual(reported, {
      from: `${ANA}@s.whatsapp.net`,
      chat: `${ANA}@s.whatsapp.net`,
      number: ANA,
      pushName: `Phone of ${ANA}`,
      messageId: "LOST1",
      type: "unknown",
      text: null,
      isForwarded: false,
      details: { undecryptable: true },
    });
    assert.equal((await stage.session(line)).status, "connected");
    const names = (await stage.events(line)).map(({ event }) => event);
    assert.equal(names.includes("session.disconnected"), false);
    await passMinute(stage, { clock, line });
    const last = await writes(stage, ANA, "and the last");
    await eventOf(received, last);
    assert.equal((await received()).filter(({ data }) => data.messageId === "LOST1").length, 1);
  });
});

/** Stanzas that make no sense, each in a way of its own. */
const POISON: [attrs: Record<string, string>, content: BinaryNode[] | undefined][] = [
  [{ id: "P1" }, [enc({ type: "pkmsg" }, systemRandom.bytes(200))]],
  [{ id: "P2" }, [enc({ type: "skmsg" }, systemRandom.bytes(200))]],
  [{ id: "P3" }, [enc({ type: "strange" }, systemRandom.bytes(20))]],
  [{ id: "P4" }, [enc({ type: "msg" }, new Uint8Array(0))]],
  [{ id: "P5" }, undefined],
  [{ id: "P6", type: "media" }, [element("unavailable", { type: "view_once" })]],
  [{ id: "P7", from: "not a jid" }, [enc({ type: "msg" }, systemRandom.bytes(20))]],
  [{ id: "P8", from: "120363000000000001@g.us" }, [enc({ type: "skmsg" }, systemRandom.bytes(20))]],
  [{ id: "P9", from: "status@broadcast", participant: `${ANA}@s.whatsapp.net` }, [
    enc({ type: "skmsg" }, new Uint8Array(9)),
  ]],
  [{ id: "P10", from: "1@newsletter" }, [element("plaintext", {}, systemRandom.bytes(30))]],
  [{ id: "P11", recipient: `${BEN}@s.whatsapp.net` }, [enc({ type: "msg" }, systemRandom.bytes(30))]],
  [{ id: "P12", t: "not a time" }, [enc({ type: "msg" }, systemRandom.bytes(30))]],
];

function enc(attrs: Record<string, string>, content: Uint8Array): BinaryNode {
  return element("enc", { v: "2", ...attrs }, content);
}

/** Puts a stanza into the line's mailbox, as the network would for one from Ana. Returns its id. */
function throwIn(stage: Stage<RunningGateway>, attrs: Record<string, string>, content?: BinaryNode[]): string {
  const { directory } = stage.network.switchboard;
  const { companions } = directory.account(LINE)!;
  const { jid, lid, name } = directory.account(ANA)!;
  const t = String(Math.floor(Date.now() / 1000));
  const stanza = element("message", { from: jid, sender_lid: lid, notify: name, type: "text", t, ...attrs }, content);
  for (const { mailbox } of companions.values()) mailbox.put(stanza);
  return attrs.id!;
}

/** A good minute, in steps in which the line hears from the network: more at once would be a silence. */
async function passMinute(
  { api }: Stage<RunningGateway>,
  { clock, line }: { clock: LeapClock; line: LinkedLine },
): Promise<void> {
  for (let i = 0; i < 3; i++) {
    clock.leap(21_000);
    await api.call("POST", `/sessions/${line.sessionId}/check-number`, { number: BEN });
  }
}

function eventOf(events: () => Promise<Json[]>, messageId: string): Promise<Json> {
  return until(
    async () => (await events()).find(({ data }) => data.messageId === messageId),
    `the event of ${messageId}`,
  );
}

async function writes({ control }: Stage<RunningGateway>, number: string, text: string): Promise<string> {
  return (await control.call("POST", `/phones/${number}/messages`, { to: LINE, text })).id;
}

async function lidOf({ control }: Stage, number: string): Promise<string> {
  return (await control.call("GET", `/phones/${number}`)).lid;
}

/** As after a year of silence: the line has no keys for the peer. */
async function loseKeys({ dataDir }: Stage, { sessionId }: LinkedLine, person: Person): Promise<void> {
  const data = await openData(dataConfigOf(dataDir), silentRuntime());
  assert.ok(await eraseKeys(data.kv, sessionId, new Traces(person)) > 0, "there was a session to lose");
  data.close();
}
