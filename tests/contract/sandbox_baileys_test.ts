/** The simulated network against Baileys as it comes: what the real network does, this one has to do. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { buildPairingQRData, proto } from "@whiskeysockets/baileys";
import { type SandboxNetwork, startNetwork } from "../../src/sandbox/network.ts";
import { type BareClient, bareClient, linkedClient, untilClosed, untilUpdate } from "../support/bare_baileys.ts";
import { until } from "../support/until.ts";
import { silentRuntime } from "../support/runtime.ts";

const LINE = "4915100000001";
const ANA = "4915100000002";
const BEN = "4915100000003";
const { DELIVERY_ACK, READ } = proto.WebMessageInfo.Status;

/** Baileys leaves timers of its own behind, so leaks are not looked for here. */
function onNetwork(
  name: string,
  test: (network: SandboxNetwork, clients: BareClient[]) => Promise<void>,
  options: Partial<Parameters<typeof startNetwork>[0]> = {},
): void {
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const runtime = silentRuntime();
      const network = await startNetwork({ runtime, refresh: false, ...options });
      const clients: BareClient[] = [];
      try {
        await test(network, clients);
      } finally {
        for (const client of clients) await client.close();
        await network.close();
      }
    },
  });
}

onNetwork("a client links by QR, is told to restart, and logs in under number and LID", async (network, clients) => {
  const phone = network.addPhone(LINE, { name: "Shop" });
  const client = bareClient(network);
  clients.push(client);
  const { qr } = await untilUpdate(client.socket, ({ qr }) => qr !== undefined);
  const closed = untilClosed(client.socket);
  assert.deepEqual(await phone.scan(qr!), { kind: "linked", deviceJid: `${LINE}:1@s.whatsapp.net` });
  assert.equal(await closed, 515);
  await client.reconnect();
  assert.equal(client.auth.creds.me?.id, `${LINE}:1@s.whatsapp.net`);
  assert.equal(client.auth.creds.me?.lid, phone.lid.replace("@", ":1@"));
  assert.deepEqual([...network.switchboard.directory.account(LINE)!.companions.keys()], [1]);
});

onNetwork("a client begins its next connection with the routing information of its login", async (network, clients) => {
  const client = await linkedClient(network, network.addPhone(LINE));
  clients.push(client);
  await until(() => client.auth.creds.routingInfo !== undefined);
  await client.close();
  await client.reconnect();
});

onNetwork("with the refresh stage a client that does not handle it is not linked", async (network, clients) => {
  const phone = network.addPhone(LINE);
  const client = bareClient(network);
  clients.push(client);
  const { qr } = await untilUpdate(client.socket, ({ qr }) => qr !== undefined);
  const asked = new Promise((resolve) => client.socket.ws.once("CB:notification,type:companion_reg_refresh", resolve));
  assert.deepEqual(await phone.scan(qr!), { kind: "refresh" });
  await asked;
  assert.deepEqual(await phone.scan(qr!), { kind: "refresh" });
  assert.equal(network.switchboard.directory.account(LINE)!.companions.size, 0);
}, { refresh: true });

onNetwork(
  "with the refresh stage a client links once it acknowledged and shows a new secret",
  async (network, clients) => {
    const phone = network.addPhone(LINE);
    const client = bareClient(network);
    clients.push(client);
    const { creds } = client.auth;
    const { qr } = await untilUpdate(client.socket, ({ qr }) => qr !== undefined);
    const [ref] = qr!.split("#")[1]!.split(",");
    const shown = () =>
      buildPairingQRData(
        ref!,
        Buffer.from(creds.noiseKey.public).toString("base64"),
        Buffer.from(creds.signedIdentityKey.public).toString("base64"),
        creds.advSecretKey,
        ["Mac OS", "Chrome", "1"],
      );
    const notified = new Promise<{ attrs: Record<string, string> }>((resolve) =>
      client.socket.ws.once("CB:notification,type:companion_reg_refresh", resolve)
    );
    assert.deepEqual(await phone.scan(qr!), { kind: "refresh" });
    const { id, type, from } = (await notified).attrs;
    creds.advSecretKey = randomBytes(32).toString("base64");
    // Shown anew, but not acknowledged: the network goes on waiting.
    assert.deepEqual(await phone.scan(shown()), { kind: "refresh" });
    creds.advSecretKey = randomBytes(32).toString("base64");
    await client.socket.sendNode({ tag: "ack", attrs: { id: id!, type: type!, to: from!, class: "notification" } });
    await client.socket.query({ tag: "iq", attrs: { to: from!, type: "get", xmlns: "w:p" } });
    // Acknowledged, but with a secret that was offered before.
    assert.deepEqual(await phone.scan(qr!), { kind: "refresh" });
    const closed = untilClosed(client.socket);
    assert.equal((await phone.scan(shown())).kind, "linked");
    assert.equal(await closed, 515);
    await client.reconnect();
  },
  { refresh: true },
);

onNetwork("a client links by a code that is typed on the phone; a wrong one is refused", async (network, clients) => {
  const phone = network.addPhone(LINE);
  const client = bareClient(network);
  clients.push(client);
  await untilUpdate(client.socket, ({ qr }) => qr !== undefined);
  assert.deepEqual(await phone.enterCode("AAAA-AAAA"), { kind: "no_request" });
  const code = await client.socket.requestPairingCode(LINE);
  await until(() =>
    network.switchboard.directory.account(LINE) && phone.enterCode("AAAA-AAAA").then((a) => a.kind === "wrong_code")
  );
  const closed = untilClosed(client.socket);
  assert.equal((await phone.enterCode(code)).kind, "linked");
  assert.equal(await closed, 515);
  await client.reconnect();
});

onNetwork("a code that ran out is taken back and the client is told to make another", async (network, clients) => {
  const phone = network.addPhone(LINE);
  const client = bareClient(network);
  clients.push(client);
  await untilUpdate(client.socket, ({ qr }) => qr !== undefined);
  const refused = new Promise<string>((resolve) => {
    client.socket.ws.on("CB:notification,type:link_code_companion_reg", (node) => resolve(node.content[0].attrs.stage));
  });
  const code = await client.socket.requestPairingCode(LINE);
  assert.equal(await refused, "refresh_code");
  assert.deepEqual(await phone.enterCode(code), { kind: "no_request" });
}, { codeLifetimeMs: 50 });

onNetwork("texts go both ways with delivered and read receipts", async (network, clients) => {
  const [phone, ana] = [network.addPhone(LINE), network.addPhone(ANA, { name: "Ana" })];
  const client = await linkedClient(network, phone);
  clients.push(client);

  await ana.sendMessage({ to: LINE, text: "Moin" });
  const incoming = await until(() => client.received.find((message) => message.message?.conversation === "Moin"));
  assert.equal(incoming.key.remoteJid, `${ANA}@s.whatsapp.net`);
  assert.equal(incoming.key.remoteJidAlt, ana.lid);
  assert.equal(incoming.pushName, "Ana");
  assert.equal(incoming.upsert, "notify");

  const statuses: number[] = [];
  client.socket.ev.on("messages.update", (updates) => {
    for (const { update } of updates) if (update.status) statuses.push(update.status);
  });
  const sent = await client.socket.sendMessage(`${ANA}@s.whatsapp.net`, { text: "Hallo Ana" });
  const arrived = await until(() => ana.inbox().find(({ id }) => id === sent!.key.id));
  assert.equal(arrived.text, "Hallo Ana");
  // The library may fold the update into the message that it reports as sent.
  const status = () => Math.max(0, ...statuses, client.received.find(({ key }) => key.id === arrived.id)?.status ?? 0);
  await until(() => status() === DELIVERY_ACK);
  ana.read(arrived.id);
  await until(() => status() === READ);
  const own = await until(() => phone.inbox().find(({ id }) => id === sent!.key.id));
  assert.equal(own.fromMe, true);
  const [seen] = network.switchboard.wire.entries(LINE);
  const { time: _, shape, ...rest } = seen!;
  assert.deepEqual(rest, { line: LINE, id: arrived.id, to: `${ANA}@s.whatsapp.net` });
  assert.equal(shape.attrs.type, "text");
  assert.deepEqual(shape.encs.map(({ type }) => type), ["pkmsg", "pkmsg"]);
});

onNetwork("what the owner writes on the phone reaches the client as from itself", async (network, clients) => {
  const phone = network.addPhone(LINE);
  network.addPhone(ANA);
  const client = await linkedClient(network, phone);
  clients.push(client);
  await phone.sendMessage({ to: ANA, text: "from my phone" });
  const copy = await until(() => client.received.find(({ message }) => message?.conversation === "from my phone"));
  assert.equal(copy.key.fromMe, true);
  assert.equal(copy.key.remoteJid, `${ANA}@s.whatsapp.net`);
});

onNetwork(
  "a sender who hides the number is known by the LID alone, and a reply to it arrives",
  async (network, clients) => {
    const [phone, ana] = [network.addPhone(LINE), network.addPhone(ANA)];
    const client = await linkedClient(network, phone);
    clients.push(client);
    await ana.sendMessage({ to: LINE, text: "who am I", hideNumber: true });
    const incoming = await until(() => client.received.find(({ message }) => message?.conversation === "who am I"));
    assert.equal(incoming.key.remoteJid, ana.lid);
    assert.equal(incoming.key.remoteJidAlt, undefined);
    await client.socket.sendMessage(ana.lid, { text: "you are nobody" });
    await until(() => ana.inbox().find(({ text }) => text === "you are nobody"));
  },
);

for (const addressing of ["lid", "pn"] as const) {
  onNetwork(`a group that is addressed by ${addressing} carries messages both ways`, async (network, clients) => {
    const phones = [LINE, ANA, BEN].map((number) => network.addPhone(number));
    const [phone, ana, ben] = phones as [typeof phones[0], typeof phones[0], typeof phones[0]];
    const client = await linkedClient(network, phone);
    clients.push(client);
    const participants = [ana, phone, ben].map(({ number }) => network.switchboard.directory.account(number)!);
    const group = network.switchboard.groupChanges.create({ subject: "Team", participants, addressing });

    const [listed] = Object.values(await client.socket.groupFetchAllParticipating());
    assert.equal(listed?.subject, "Team");
    assert.equal(listed?.size, 3);
    assert.deepEqual(listed?.participants.map(({ admin }) => admin), ["superadmin", null, null]);

    const sent = await client.socket.sendMessage(group.jid, { text: "Hallo Team" });
    for (const member of [ana, ben, phone]) {
      const arrived = await until(() => member.inbox().find(({ id }) => id === sent!.key.id));
      assert.deepEqual([arrived.text, arrived.chat, arrived.copies], ["Hallo Team", group.jid, 1]);
    }
    for (const text of ["first", "second"]) {
      await ben.sendMessage({ to: group.jid, text });
      const incoming = await until(() => client.received.find(({ message }) => message?.conversation === text));
      assert.equal(incoming.key.remoteJid, group.jid);
      assert.deepEqual(new Set([incoming.key.participant, incoming.key.participantAlt]), new Set([ben.jid, ben.lid]));
    }
    await client.socket.sendMessage(group.jid, { text: "again" });
    await until(() => ana.inbox().find(({ text }) => text === "again"));
  });
}

onNetwork("what came while a client was away waits for it, in order, and comes once", async (network, clients) => {
  const [phone, ana] = [network.addPhone(LINE), network.addPhone(ANA)];
  const client = await linkedClient(network, phone);
  clients.push(client);
  await client.close();
  const texts = Array.from({ length: 30 }, (_, i) => `waiting ${i}`);
  for (const text of texts) await ana.sendMessage({ to: LINE, text });
  await client.reconnect();
  const heard = () => client.received.filter(({ key }) => !key.fromMe).map(({ message }) => message?.conversation);
  await until(() => heard().length >= texts.length);
  assert.deepEqual(heard(), texts);
  assert.ok(client.received.every(({ upsert }) => upsert === "append"));
  const { mailbox } = network.switchboard.directory.account(LINE)!.companions.get(1)!;
  await until(() => mailbox.size === 0);
  await client.close();
  await client.reconnect();
  await ana.sendMessage({ to: LINE, text: "live again" });
  await until(() => heard().includes("live again"));
  assert.deepEqual(heard(), [...texts, "live again"]);
});

onNetwork("files arrive as they were, both ways", async (network, clients) => {
  const [phone, ana] = [network.addPhone(LINE), network.addPhone(ANA)];
  const client = await linkedClient(network, phone);
  clients.push(client);
  const file = randomBytes(200_000);
  const sha256 = createHash("sha256").update(file).digest("hex");
  const document = { document: file, mimetype: "application/pdf", fileName: "offer.pdf" };
  await trusting(network.caPem, () => client.socket.sendMessage(ana.jid, document));
  const arrived = await until(() => ana.inbox()[0]);
  assert.deepEqual([arrived.filename, arrived.mimetype, arrived.sha256], ["offer.pdf", "application/pdf", sha256]);
  await ana.sendMessage({ to: LINE, file: file.toString("base64"), kind: "document", filename: "order.pdf" });
  const incoming = await until(() => client.received.find(({ message }) => message?.documentMessage));
  const { fileSha256, directPath } = incoming.message!.documentMessage!;
  assert.equal(Buffer.from(fileSha256!).toString("hex"), sha256);
  assert.ok(network.media.paths().includes(directPath!));
});

onNetwork("a file that the media host lost is uploaded again by the line's own phone", async (network, clients) => {
  const [phone, ana] = [network.addPhone(LINE), network.addPhone(ANA)];
  const client = await linkedClient(network, phone);
  clients.push(client);
  await ana.sendMessage({
    to: LINE,
    file: randomBytes(5_000).toString("base64"),
    kind: "image",
    mimetype: "image/jpeg",
  });
  const incoming = await until(() => client.received.find(({ message }) => message?.imageMessage));
  const { directPath } = incoming.message!.imageMessage!;
  await until(() => phone.inbox().length === 1);
  await network.media.remove(directPath!);
  const updated = await client.socket.updateMediaMessage(incoming);
  const found = updated.message!.imageMessage!.directPath!;
  assert.notEqual(found, directPath);
  assert.ok(network.media.paths().includes(found));
});

onNetwork("a client that lost its sessions asks again and gets the message", async (network, clients) => {
  const [phone, ana] = [network.addPhone(LINE), network.addPhone(ANA)];
  const client = await linkedClient(network, phone);
  clients.push(client);
  await ana.sendMessage({ to: LINE, text: "one" });
  await until(() => client.received.some(({ message }) => message?.conversation === "one"));
  await client.socket.sendMessage(ana.jid, { text: "so that the session is confirmed" });
  await until(() => ana.inbox().length === 1);
  client.forgetSessions();
  await ana.sendMessage({ to: LINE, text: "two" });
  await until(() => client.received.some(({ message }) => message?.conversation === "two"));
});

onNetwork("a phone that cannot read a message asks again and gets it, once", async (network, clients) => {
  const [phone, ana] = [network.addPhone(LINE), network.addPhone(ANA)];
  const client = await linkedClient(network, phone);
  clients.push(client);
  await client.socket.sendMessage(ana.jid, { text: "one" });
  await ana.sendMessage({ to: LINE, text: "so that the session is confirmed" });
  await until(() => client.received.some(({ message }) => message?.conversation));
  await until(() => ana.inbox().length === 1);
  client.spoilSessions();
  const sent = await client.socket.sendMessage(ana.jid, { text: "two" });
  const arrived = await until(() => ana.inbox().find(({ text }) => text === "two"));
  assert.deepEqual([arrived.id, arrived.copies], [sent!.key.id, 1]);
  assert.ok(network.switchboard.wire.entries(LINE).filter(({ id }) => id === arrived.id).length > 1);
});

onNetwork("only numbers with a phone have an account", async (network, clients) => {
  const client = await linkedClient(network, network.addPhone(LINE));
  clients.push(client);
  network.addPhone(ANA);
  // The library leaves out what does not exist.
  const found = await client.socket.onWhatsApp(ANA, "4915199999999");
  assert.deepEqual(found, [{ jid: `${ANA}@s.whatsapp.net`, exists: true }]);
});

onNetwork("two lines write to each other, and a companion linked later is not left out", async (network, clients) => {
  const [phone, other] = [network.addPhone(LINE), network.addPhone(ANA)];
  const first = await linkedClient(network, phone);
  const second = await linkedClient(network, other);
  clients.push(first, second);
  await first.socket.sendMessage(other.jid, { text: "one" });
  await until(() => second.received.find(({ message }) => message?.extendedTextMessage?.text === "one"));
  const third = await linkedClient(network, other);
  clients.push(third);
  await first.socket.sendMessage(other.jid, { text: "two" });
  for (const client of [second, third]) {
    await until(() => client.received.find(({ message }) => message?.extendedTextMessage?.text === "two"));
  }
  await second.socket.sendMessage(phone.jid, { text: "three" });
  await until(() => first.received.find(({ message }) => message?.extendedTextMessage?.text === "three"));
});

onNetwork("logging out unlinks the device, and its login is refused from then on", async (network, clients) => {
  const phone = network.addPhone(LINE);
  const client = await linkedClient(network, phone);
  clients.push(client);
  await client.socket.logout();
  await until(() => network.switchboard.directory.account(LINE)!.companions.size === 0);
  void client.reconnect();
  assert.equal(await untilClosed(client.socket), 401);
});

/** On Deno the library uploads with the global `fetch`, which takes no certificate authority from its options. */
async function trusting<T>(caPem: string, run: () => Promise<T>): Promise<T> {
  const { fetch } = globalThis;
  const client = Deno.createHttpClient({ caCerts: [caPem] });
  globalThis.fetch = (input, init) => fetch(input, { client, ...init });
  try {
    return await run();
  } finally {
    globalThis.fetch = fetch;
    client.close();
  }
}
