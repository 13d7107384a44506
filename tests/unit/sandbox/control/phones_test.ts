/** A phone's messages and signals: which get somewhere, and what the control API answers to the others. */
import assert from "node:assert/strict";
import { controlApp } from "../../../../src/sandbox/control/app.ts";
import { type SandboxNetwork, startNetwork } from "../../../../src/sandbox/network.ts";
import type { Group } from "../../../../src/sandbox/world/groups.ts";
import { type BinaryNode, childrenOf } from "../../../../src/sandbox/world/stanza.ts";
import { type TestRuntime, testRuntime } from "../../../support/runtime.ts";
import { testCompanion } from "../companion.ts";
import { SmallNetwork } from "../phone/small_network.ts";

const [ADMIN, ANA, BEN] = ["4917000000001", "4917000000002", "4917000000003"] as const;

interface Scene {
  runtime: TestRuntime;
  network: SandboxNetwork;
  /** A group of `ADMIN` and `ANA`. */
  group: Group;
  ask(method: string, path: string, asked?: unknown): Promise<{ status: number; detail: string }>;
  /** What the phone read, once everything that was sent is with everybody. */
  texts(number: string): Promise<(string | null)[]>;
}

function onPhones(name: string, test: (scene: Scene) => Promise<void>): void {
  Deno.test(name, async () => {
    const runtime = testRuntime();
    const network = await startNetwork({ runtime });
    const app = controlApp(network);
    const phones = [ADMIN, ANA, BEN].map((number) => network.addPhone(number));
    const { directory, groups } = network.switchboard;
    const participants = [ADMIN, ANA].map((number) => directory.account(number)!);
    const group = groups.create({ subject: "Team", participants, addressing: "lid" }, runtime);
    try {
      await test({
        runtime,
        network,
        group,
        async ask(method, path, asked) {
          const response = await app.request(`http://127.0.0.1:8081${path}`, { method, body: JSON.stringify(asked) });
          return { status: response.status, detail: (await response.json()).detail };
        },
        async texts(number) {
          for (const phone of phones) await phone.idle();
          return network.phone(number)!.inbox().map(({ text }) => text);
        },
      });
    } finally {
      await network.close();
    }
  });
}

onPhones("a restricted phone cannot start a chat", async ({ runtime, ask, texts }) => {
  const write = () => ask("POST", `/phones/${ANA}/messages`, { to: BEN, text: "Hello" });
  await ask("POST", "/faults", { line: ANA, kind: "restrict", until: runtime.clock.now() + 60_000 });
  assert.deepEqual(await write(), {
    status: 400,
    detail: "to: is refused by the network (463): the account may start no chat now",
  });
  assert.deepEqual(await texts(BEN), []);
  await ask("DELETE", `/faults/${ANA}`);
  assert.equal((await write()).status, 201);
  assert.deepEqual(await texts(BEN), ["Hello"]);
});

onPhones(
  "the phone of a restricted account goes on in chats that others write in, by number and by LID",
  async (scene) => {
    const { runtime, network, texts } = scene;
    const [ana, ben] = [network.phone(ANA)!, network.phone(BEN)!];
    await ben.sendMessage({ to: ANA, text: "Is my order ready?" });
    const { directory, trust } = network.switchboard;
    trust.restrict(directory.account(ANA)!, runtime.clock.now() + 60_000);
    await ana.sendMessage({ to: BEN, text: "It is" });
    const { id } = await ana.sendMessage({ to: ben.lid, text: "Come at noon" });
    await ana.edit(id, { text: "Come at one", plain: false });
    assert.deepEqual(await texts(BEN), ["It is", "Come at one"]);
  },
);

onPhones("a message to a group where only admins may write is refused, and a later one can be read", async (scene) => {
  const { runtime, group, ask, texts } = scene;
  const write = (text: string) => ask("POST", `/phones/${ANA}/messages`, { to: group.jid, text });
  group.announce = true;
  assert.deepEqual(await write("Too early"), {
    status: 400,
    detail: "to: is refused by the network (403): the phone may not write in this group now",
  });
  group.announce = false;
  assert.equal((await write("In time")).status, 201);
  assert.deepEqual(await texts(ADMIN), ["In time"]);
  const unread = runtime.lines.filter(({ msg }) => msg === "a phone could not decrypt a message");
  assert.deepEqual(unread, [], "it had the sender's key at once");
});

onPhones("a member who left cannot read later messages, even if the network refused one in between", async (scene) => {
  const { network, group, ask, texts } = scene;
  const ben = network.switchboard.directory.account(BEN)!;
  const write = (text: string) => ask("POST", `/phones/${ANA}/messages`, { to: group.jid, text });
  group.participants = [...group.participants, ben];
  await write("Ben reads this");
  group.announce = true;
  assert.equal((await write("Refused")).status, 400);
  group.announce = false;
  group.participants = group.participants.filter((account) => account !== ben);
  const admin = network.phone(ADMIN)!;
  const deliver = admin.deliver.bind(admin);
  admin.deliver = (stanza) => {
    // What is for everybody in the group, as somebody who left might still come by it.
    const common = childrenOf(stanza, "enc").filter(({ attrs }) => attrs.type === "skmsg");
    network.phone(BEN)!.deliver({ ...stanza, content: common });
    deliver(stanza);
  };
  await write("Ben does not");
  assert.deepEqual(await texts(ADMIN), ["Ben reads this", "Ben does not"]);
  assert.deepEqual(await texts(BEN), ["Ben reads this"]);
});

onPhones("a reaction that the network refuses is refused too", async ({ group, ask, network, texts }) => {
  await ask("POST", `/phones/${ADMIN}/messages`, { to: group.jid, text: "Read this" });
  await texts(ANA);
  const [message] = network.phone(ANA)!.inbox();
  group.announce = true;
  const { status, detail } = await ask("POST", `/phones/${ANA}/react`, { id: message!.id, emoji: "👍" });
  assert.equal(status, 400);
  assert.match(detail, /refused by the network \(403\)/);
});

for (
  const [whom, to, why] of [
    ["a number without a phone", "4917000000009", "has no device on this network"],
    ["a LID that nobody has", "99999@lid", "has no device on this network"],
    ["the phone itself", BEN, "is the phone's own number"],
    ["a group that there is not", "120363000000000009@g.us", "is not a group that this phone is in"],
    ["a group that it is not in", "", "is not a group that this phone is in"],
  ] as const
) {
  onPhones(`typing that would reach nobody is refused: to ${whom}`, async ({ ask, group }) => {
    const answer = await ask("POST", `/phones/${BEN}/typing`, { to: to || group.jid });
    assert.deepEqual(answer, { status: 400, detail: `to: ${why}` });
  });
}

for (
  const [whom, to, why] of [
    ["a number without a phone", "4917000000009", "has no device on this network"],
    ["the phone itself", ANA, "is the phone's own number"],
    ["a group, though it is in it", "", "is a group, and calls are to one person"],
  ] as const
) {
  onPhones(`a call that would reach nobody is refused: to ${whom}`, async ({ ask, group }) => {
    const answer = await ask("POST", `/phones/${ANA}/call`, { to: to || group.jid });
    assert.deepEqual(answer, { status: 400, detail: `to: ${why}` });
  });
}

onPhones("typing reaches the other members of a group, and a call the other phone", async ({ ask, group, network }) => {
  assert.equal((await ask("POST", `/phones/${ANA}/typing`, { to: group.jid })).status, 201);
  assert.equal((await ask("POST", `/phones/${ANA}/call`, { to: BEN })).status, 201);
  const admin = network.phone(ADMIN)!;
  await admin.idle();
  assert.deepEqual(admin.chatStates().map(({ chat, state }) => [chat, state]), [[group.jid, "typing"]]);
});

for (const addressing of ["lid", "pn"] as const) {
  onPhones(
    `typing and calls of a phone that hid its number do not name it: members known by ${addressing}`,
    async (scene) => {
      const { runtime, network, ask } = scene;
      const { directory, groups } = network.switchboard;
      const participants = [ANA, BEN].map((number) => directory.account(number)!);
      const { jid } = groups.create({ subject: "Team", participants, addressing }, runtime);
      const ben = network.phone(BEN)!;
      const delivered: BinaryNode[] = [];
      const deliver = ben.deliver.bind(ben);
      ben.deliver = (stanza) => {
        delivered.push(stanza);
        deliver(stanza);
      };
      for (const hideNumber of [true, false]) {
        for (const to of [BEN, jid]) {
          await ask("POST", `/phones/${ANA}/messages`, { to, text: "Guess who", hideNumber });
          await ask("POST", `/phones/${ANA}/typing`, { to });
        }
        await ask("POST", `/phones/${ANA}/call`, { to: BEN });
        await ben.idle();
        const named = delivered.splice(0).filter((stanza) => JSON.stringify(stanza).includes(ANA));
        assert.deepEqual(
          named.map(({ tag }) => tag),
          hideNumber ? [] : ["message", "chatstate", "message", "chatstate", "call"],
        );
      }
      const { lid, jid: number } = network.phone(ANA)!;
      assert.deepEqual(ben.chatStates().map(({ from, chat }) => [from, chat]), [
        [lid, lid],
        [lid, jid],
        [number, number],
        [number, jid],
      ]);
    },
  );
}

onPhones(
  "the token of a phone that hid its number does not name it either, until it writes by number",
  async (scene) => {
    const { network: { switchboard }, ask } = scene;
    const ben = switchboard.directory.account(BEN)!;
    const companion = testCompanion({ account: ben, device: 1 });
    ben.companions.set(1, companion);
    ben.keyless.add(1);
    const sent: BinaryNode[] = [];
    companion.mailbox.attach((stanza) => sent.push(stanza));
    const told = () => switchboard.trust.tokensFor(ben).map(({ hidden }) => hidden);
    await ask("POST", `/phones/${ANA}/messages`, { to: BEN, text: "Guess who", hideNumber: true });
    const [token] = sent.filter(({ attrs }) => attrs.type === "privacy_token");
    assert.equal(token?.attrs.from, switchboard.directory.account(ANA)!.lid);
    assert.doesNotMatch(JSON.stringify(sent), new RegExp(ANA));
    assert.deepEqual(told(), [true]);
    await ask("POST", `/phones/${ANA}/messages`, { to: BEN, text: "It is me" });
    assert.deepEqual(told(), [false]);
  },
);

Deno.test("a file that cannot be uploaded is answered with network_error", async () => {
  const network = await startNetwork({ runtime: testRuntime() });
  // Its phones have no media host.
  const cutOff = new SmallNetwork();
  const app = controlApp({ ...network, phone: (number) => cutOff.phone(number) });
  const body = JSON.stringify({ to: ANA, file: "AAAA" });
  try {
    const response = await app.request(`http://127.0.0.1:8081/phones/${ANA}/messages`, { method: "POST", body });
    assert.equal(response.status, 502);
    const { code, detail } = await response.json();
    assert.deepEqual([code, detail], ["network_error", "The media host could not be reached."]);
  } finally {
    await network.close();
  }
});
