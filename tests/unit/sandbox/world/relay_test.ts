import assert from "node:assert/strict";
import {
  type Account,
  Directory,
  type Endpoint,
  jidOf,
  participantHash,
} from "../../../../src/sandbox/world/directory.ts";
import { type Group, Groups } from "../../../../src/sandbox/world/groups.ts";
import { cappingJson, timelockJson } from "../../../../src/sandbox/world/notices.ts";
import { Relay } from "../../../../src/sandbox/world/relay.ts";
import { relayReceipt } from "../../../../src/sandbox/world/receipts.ts";
import { Trust } from "../../../../src/sandbox/world/trust.ts";
import { type BinaryNode, childrenOf, element } from "../../../../src/sandbox/world/stanza.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { testCompanion } from "../companion.ts";

/** Accounts whose devices write down what reaches them. */
function scene() {
  const runtime = testRuntime();
  const directory = new Directory();
  const groups = new Groups();
  const trust = new Trust(runtime, { onToken: () => {}, onRestriction: () => {} });
  const relay = new Relay({ directory, groups, trust, clock: runtime.clock });
  const arrived: { at: string; stanza: BinaryNode }[] = [];

  const open = (number: string) => {
    const account = directory.open(number, { name: `Name ${number}`, random: runtime.random });
    account.phone = {
      jid: account.jid,
      lid: account.lid,
      deliver: (stanza) => arrived.push({ at: number, stanza }),
      welcome() {},
      shareSalt() {},
    };
    return account;
  };
  const link = (account: Account): Endpoint => {
    const device = account.nextDeviceId++;
    const endpoint = { account, device };
    const companion = testCompanion(endpoint);
    account.companions.set(device, companion);
    companion.mailbox.attach((stanza) =>
      stanza.tag !== "ib" && arrived.push({ at: `${account.number}:${device}`, stanza })
    );
    return endpoint;
  };
  const line = open("4915100000001");
  const ana = open("4915100000002");
  const ben = open("4915100000003");
  const routes = { directory, groups, relay, runtime };
  return { runtime, groups, relay, trust, routes, line, ana, ben, companion: link(line), link, arrived };
}

const enc = (text: string) => element("enc", { v: "2", type: "msg" }, new TextEncoder().encode(text));
const to = (jid: string) => element("to", { jid }, [enc(`for ${jid}`)]);
const write = (id: string, chat: string, jids: string[], extra: BinaryNode[] = []) =>
  element("message", { id, to: chat, type: "text" }, [element("participants", {}, jids.map(to)), ...extra]);

Deno.test("a message reaches the devices that it was encrypted for, and each sees its sender", () => {
  const { relay, line, ana, companion, arrived } = scene();
  assert.deepEqual(relay.submit(companion, write("a", ana.jid, [ana.jid, line.jid])), {});
  assert.deepEqual(arrived.map(({ at }) => at), [ana.number, line.number]);
  const [theirs, own] = arrived.map(({ stanza }) => stanza.attrs);
  assert.equal(theirs!.from, `${line.number}:1@s.whatsapp.net`);
  assert.equal(theirs!.sender_lid, line.lid);
  assert.equal(theirs!.recipient, undefined);
  assert.deepEqual([own!.from, own!.recipient, own!.peer_recipient_lid], [theirs!.from, ana.jid, ana.lid]);
});

Deno.test("a repeated id is acknowledged, and relayed only to a device that asked for a retry", () => {
  const { relay, routes, line, ana, companion, arrived } = scene();
  const message = write("a", ana.jid, [ana.jid, line.jid]);
  relay.submit(companion, message);
  assert.deepEqual(relay.submit(companion, message), {});
  assert.equal(arrived.length, 2);
  const retry = element("receipt", { id: "a", to: `${line.number}:1@s.whatsapp.net`, type: "retry" });
  relayReceipt({ account: ana, device: 0 }, retry, routes);
  assert.deepEqual(arrived.slice(2).map(({ at, stanza }) => [at, stanza.tag]), [[`${line.number}:1`, "receipt"]]);
  relay.submit(companion, message);
  assert.deepEqual(arrived.slice(3).map(({ at }) => at), [ana.number]);
});

Deno.test("another sender may use the same id", () => {
  const { relay, line, ana, ben, arrived } = scene();
  for (const account of [ana, ben]) relay.submit({ account, device: 0 }, write("a", line.jid, [line.jid]));
  assert.equal(arrived.length, 2);
});

Deno.test("a message without a receiver, without an id, or to a group of others is refused", () => {
  const { relay, groups, runtime, line, ana, ben, companion, arrived } = scene();
  const group = groups.create({ subject: "Others", participants: [ana, ben], addressing: "lid" }, runtime);
  const refused = [
    write("a", "4915199999999@s.whatsapp.net", [line.jid]),
    write("b", "1234@g.us", [ana.jid]),
    write("c", group.jid, [ana.jid], [enc("all")]),
    element("message", { to: ana.jid }, [enc("no id")]),
  ].map((message) => relay.submit(companion, message).error);
  assert.deepEqual(refused, ["404", "404", "403", "400"]);
  assert.equal(arrived.length, 0);
});

Deno.test("a message that addresses devices in another form than its chat is refused", () => {
  const { relay, groups, runtime, line, ana, companion, arrived } = scene();
  const create = (addressing: Group["addressing"]) =>
    groups.create({ subject: "Team", participants: [ana, line], addressing }, runtime).jid;
  const codes = (chat: string, extra: BinaryNode[] = []) => {
    const lists = { pn: [ana.jid, line.jid], lid: [ana.lid, line.lid], both: [ana.lid, line.jid] };
    const submitted = Object.entries(lists).map(([form, jids]) =>
      relay.submit(companion, write(`${chat} ${form}`, chat, jids, extra))
    );
    return submitted.map(({ error }) => error ?? "relayed");
  };
  assert.deepEqual(codes(ana.jid), ["relayed", "400", "400"]);
  assert.deepEqual(codes(ana.lid), ["400", "relayed", "400"]);
  assert.deepEqual(codes(create("lid"), [enc("all")]), ["421", "relayed", "421"]);
  assert.deepEqual(codes(create("pn"), [enc("all")]), ["relayed", "421", "421"]);
  assert.deepEqual(codes("status@broadcast", [enc("all")]), ["479", "relayed", "479"]);
  assert.equal(arrived.length, 10);
});

Deno.test("a device outside the chat gets nothing, even if the message names it", () => {
  const { relay, ana, ben, companion, arrived } = scene();
  relay.submit(companion, write("a", ana.jid, [ana.jid, ben.jid, `${ana.number}:7@s.whatsapp.net`]));
  assert.deepEqual(arrived.map(({ at }) => at), [ana.number]);
});

for (const addressing of ["lid", "pn"] as Group["addressing"][]) {
  Deno.test(`in a group addressed by ${addressing} all devices get the ciphertext, and those it was encrypted for the key`, () => {
    const { relay, groups, runtime, line, ana, ben, companion, arrived } = scene();
    const group = groups.create({ subject: "Team", participants: [ana, line, ben], addressing }, runtime);
    relay.submit(companion, write("a", group.jid, [addressing === "lid" ? ana.lid : ana.jid], [enc("all")]));
    assert.deepEqual(arrived.map(({ at, stanza }) => [at, childrenOf(stanza, "enc").length]), [
      [ana.number, 2],
      [line.number, 1],
      [ben.number, 1],
    ]);
    const { attrs } = arrived[0]!.stanza;
    const [form, other] = addressing === "lid" ? ["lid", "participant_pn"] : ["pn", "participant_lid"];
    assert.equal(attrs.participant, jidOf(companion, form as "lid" | "pn"));
    assert.equal(attrs[other!], addressing === "lid" ? line.jid : line.lid);
    assert.equal(attrs.addressing_mode, addressing);
  });
}

Deno.test("a sender's hidden number appears nowhere in the message", () => {
  const { relay, groups, runtime, line, ana, arrived } = scene();
  const group = groups.create({ subject: "Team", participants: [ana, line], addressing: "pn" }, runtime);
  const sender = { account: ana, device: 0 };
  relay.submit(sender, write("a", line.jid, [`${line.number}:1@s.whatsapp.net`]), { hideNumber: true });
  relay.submit(sender, write("b", group.jid, [], [enc("all")]), { hideNumber: true });
  assert.equal(arrived.length, 3);
  for (const { stanza } of arrived) {
    const values = Object.entries(stanza.attrs).filter(([name]) => name !== "notify").map(([, value]) => value);
    assert.ok(values.some((value) => value === ana.lid));
    assert.ok(!values.some((value) => value?.includes(ana.number)));
  }
});

Deno.test("delivered and read receipts go to all devices of the sender, a retry only to the one that sent", () => {
  const { routes, line, ana, companion, link, arrived } = scene();
  link(line);
  const sender = jidOf(companion, "pn");
  const from = { account: ana, device: 0 };
  relayReceipt(from, element("receipt", { id: "a", to: sender }), routes);
  relayReceipt(from, element("receipt", { id: "a", to: sender, type: "retry" }), routes);
  const all = [line.number, `${line.number}:1`, `${line.number}:2`];
  assert.deepEqual(arrived.map(({ at }) => at), [...all, `${line.number}:1`]);
  assert.ok(arrived.every(({ stanza }) => stanza.attrs.from === ana.jid));
});

Deno.test("receipts for a status post name their sender inside; a retry is the receipt of one participant", () => {
  const { routes, line, ana, companion, arrived } = scene();
  const sender = jidOf(companion, "lid");
  const receipt = (type?: string) => element("receipt", { id: "a", to: "status@broadcast", participant: sender, type });
  for (const type of [undefined, "read"]) {
    relayReceipt({ account: ana, device: 0 }, receipt(type), routes);
    assert.deepEqual(arrived.map(({ at }) => at), [line.number, `${line.number}:1`]);
    const [{ attrs, content }] = arrived.splice(0).map(({ stanza }) => stanza) as [BinaryNode];
    assert.deepEqual([attrs.class, attrs.from, attrs.participant, attrs.type, attrs.id === "a"], [
      "status",
      "status@broadcast",
      undefined,
      undefined,
      false,
    ]);
    const user = { jid: ana.lid, t: attrs.t, type: type ?? "delivery" };
    assert.deepEqual(content, [element("participants", { message_id: "a" }, [element("user", user)])]);
  }
  relayReceipt({ account: ana, device: 0 }, receipt("retry"), routes);
  const [{ at, stanza: { attrs } }] = arrived as [typeof arrived[number]];
  assert.deepEqual([at, attrs.id, attrs.from, attrs.participant], [
    `${line.number}:1`,
    "a",
    "status@broadcast",
    ana.lid,
  ]);
});

Deno.test("a stated hash of receivers is compared with the network's list", () => {
  const { relay, line, ana, companion } = scene();
  const state = (phash: string) => {
    const message = write(phash, ana.jid, [ana.jid, line.jid]);
    return relay.submit(companion, { ...message, attrs: { ...message.attrs, phash } });
  };
  const right = participantHash([ana.jid, line.jid, `${line.number}:1@s.whatsapp.net`]);
  assert.deepEqual(state(right), {});
  assert.deepEqual(state("2:old"), { phash: right });
  assert.deepEqual(relay.submit(companion, write("unstated", ana.jid, [ana.jid, line.jid])), {});
  assert.deepEqual(relay.submit(companion, write("one left out", ana.jid, [ana.jid])), { phash: right });
});

Deno.test("devices are hashed as clients do: six bytes over the sorted addresses, the phone's as device 0", () => {
  const devices = ["4915100000001@s.whatsapp.net", "4915100000001:12@s.whatsapp.net", "491510000000:3@s.whatsapp.net"];
  assert.equal(participantHash(devices), "2:ktsK6U6k");
  assert.equal(participantHash(devices.reverse()), "2:ktsK6U6k");
});

Deno.test("a restricted account can start no chat, but writes on where it shows a valid token", () => {
  const { relay, trust, line, ana, companion, runtime } = scene();
  let given: Uint8Array = new Uint8Array(0);
  const write = (id: string, token?: Uint8Array) =>
    relay.submit(
      companion,
      element("message", { id, to: ana.jid, type: "text" }, [
        ...(token ? [element("tctoken", { t: "1" }, token)] : []),
        element("participants", {}, []),
      ]),
    );
  assert.deepEqual(write("before"), {});
  trust.restrict(line, runtime.clock.now() + 60_000);
  assert.deepEqual(write("cold"), { error: "463" });
  trust.issue(ana, line);
  given = trust.tokensFor(line)[0]!.token;
  assert.deepEqual(write("without"), { error: "463" });
  assert.deepEqual(write("wrong", Uint8Array.of(1)), { error: "463" });
  assert.deepEqual(write("with", given), {});
  trust.restrict(line, 0);
  assert.deepEqual(write("after"), {});
});

Deno.test("a cap counts the chats that an account starts, and no others", () => {
  const { relay, trust, line, ana, companion, runtime, ben } = scene();
  const write = (id: string, to: Account) =>
    relay.submit(companion, element("message", { id, to: to.jid, type: "text" }, [element("participants", {}, [])]));
  trust.issue(ben, line);
  trust.capNewChats(line, { limit: 1, until: runtime.clock.now() + 60_000 });
  assert.deepEqual(write("known", ben), {});
  assert.equal(trust.restrictions(line).started, 0);
  assert.deepEqual(write("first", ana), {});
  assert.deepEqual(write("again", ana), {});
  assert.equal(trust.restrictions(line).started, 1);
  trust.capNewChats(line, { limit: 0, until: runtime.clock.now() + 60_000 });
  assert.deepEqual(write("over", ana), { error: "463" });
});

Deno.test("a restriction and a cap end at the second that is announced, not before what was asked for", () => {
  const { trust, line, runtime } = scene();
  const until = Math.ceil(runtime.clock.now() / 1000) * 1000 + 8_001;
  trust.restrict(line, until);
  trust.capNewChats(line, { limit: 1, until });
  const restrictions = trust.restrictions(line);
  assert.deepEqual([restrictions.restrictedUntil, restrictions.cap?.until], [until + 999, until + 999]);
  assert.equal(timelockJson(restrictions).time_enforcement_ends, `${(until + 999) / 1000}`);
  assert.equal(cappingJson(restrictions).cycle_end_timestamp, `${(until + 999) / 1000}`);
});

Deno.test("a blocked sender's messages are accepted and dropped", () => {
  const { relay, trust, line, ana, companion, link, arrived } = scene();
  const [sender, own] = [{ account: ana, device: 0 }, link(ana)];
  const devices = [line.jid, jidOf(companion, "pn"), jidOf(own, "pn")];
  line.blocked.add(ana);
  assert.deepEqual(relay.submit(sender, write("a", line.jid, devices)), {});
  assert.deepEqual(
    relay.submit(sender, element("message", { id: "b", to: line.jid, type: "text" }, [enc("again")])),
    {},
  );
  const post = element("message", { id: "c", to: "status@broadcast", type: "text" }, [
    element("participants", {}, [to(line.lid)]),
    enc("today"),
  ]);
  assert.deepEqual(relay.submit(sender, post), {});
  trust.issue(ana, line);
  assert.equal(trust.tokensFor(line).length, 0);
  assert.deepEqual(arrived.splice(0).map(({ at }) => at), [`${ana.number}:1`]);
  line.blocked.delete(ana);
  assert.deepEqual(relay.submit(sender, write("d", line.jid, devices)), {});
  assert.deepEqual(arrived.map(({ at }) => at), [line.number, `${line.number}:1`, `${ana.number}:1`]);
});

Deno.test("a group message reaches a member who has blocked its sender", () => {
  const { relay, groups, runtime, line, ana, ben, arrived } = scene();
  const group = groups.create({ subject: "Team", participants: [ana, line, ben], addressing: "lid" }, runtime);
  line.blocked.add(ana);
  relay.submit({ account: ana, device: 0 }, write("a", group.jid, [], [enc("all")]));
  assert.deepEqual(arrived.map(({ at }) => at), [line.number, `${line.number}:1`, ben.number]);
});
