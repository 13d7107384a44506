/** Phones against Baileys as it comes, over the whole simulated network: what one encrypts, the other must read. */
import assert from "node:assert/strict";
import {
  downloadMediaMessage,
  getBinaryNodeChildren,
  jidNormalizedUser,
  proto,
  type WAMessage,
} from "@whiskeysockets/baileys";
import type { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import type { InboxItem } from "../../../../src/sandbox/phone/inbox.ts";
import type { Phone } from "../../../../src/sandbox/phone/phone.ts";
import { startNetwork } from "../../../../src/sandbox/network.ts";
import { systemClock } from "../../../../src/runtime.ts";
import { type BareClient, bareClient, linkedClient, untilUpdate } from "../../../support/bare_baileys.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { until } from "../../../support/until.ts";

const LINE = "15550001";

interface Stage {
  network: Awaited<ReturnType<typeof startNetwork>>;
  /** The line's owner. */
  owner: Phone;
  ana: Phone;
  ben: Phone;
  client: BareClient;
  /** The first message at the line that fits. */
  arrival(fits: (message: WAMessage) => boolean): Promise<WAMessage>;
}

async function onStage(run: (stage: Stage) => Promise<void>): Promise<void> {
  const network = await startNetwork({ runtime: { ...testRuntime(), clock: systemClock }, refresh: false });
  const restore = trust(network.caPem);
  const owner = network.addPhone(LINE, { name: "Owner" });
  const [ana, ben] = [network.addPhone("15550002", { name: "Ana" }), network.addPhone("15550003", { name: "Ben" })];
  const client = await linkedClient(network, owner);
  const arrival = (fits: (message: WAMessage) => boolean) => until(() => client.received.find(fits));
  try {
    await run({ network, owner, ana, ben, client, arrival });
  } finally {
    await client.close();
    await network.close();
    restore();
  }
}

/** Lets `fetch`, by which Baileys up- and downloads on Deno, trust the network's authority. */
function trust(caPem: string): () => void {
  const original = globalThis.fetch;
  const client = Deno.createHttpClient({ caCerts: [caPem] });
  globalThis.fetch = (input, init) => original(input, { client, ...init } as RequestInit);
  return () => {
    globalThis.fetch = original;
    client.close();
  };
}

function arrivalAt(phone: Phone, fits: (item: InboxItem) => boolean): Promise<InboxItem> {
  return until(() => phone.inbox().find(fits));
}

Deno.test("texts pass both ways, and the owner's phone sees all messages of the line", async () => {
  await onStage(async ({ owner, ana, client, arrival }) => {
    const { id } = await ana.sendMessage({ to: LINE, text: "hello line" });
    const got = await arrival(({ key }) => key.id === id);
    assert.deepEqual([got.message?.conversation, got.pushName, got.key.fromMe], ["hello line", "Ana", false]);
    assert.equal((await arrivalAt(owner, (item) => item.id === id)).text, "hello line");

    const sent = await client.socket.sendMessage(ana.jid, { text: "hello Ana 🙂" });
    const item = await arrivalAt(ana, ({ id }) => id === sent?.key.id);
    assert.deepEqual([item.from, item.chat, item.text], [owner.jid, owner.jid, "hello Ana 🙂"]);
    const copy = await arrivalAt(owner, ({ id }) => id === sent?.key.id);
    assert.deepEqual([copy.fromMe, copy.chat, copy.text], [true, ana.jid, "hello Ana 🙂"]);

    const own = await owner.sendMessage({ to: ana.number, text: "from my phone" });
    const synced = await arrival(({ key }) => key.id === own.id);
    assert.deepEqual([synced.key.fromMe, synced.message?.conversation], [true, "from my phone"]);
  });
});

Deno.test("delivered and read receipts reach the line", async () => {
  await onStage(async ({ ana, client }) => {
    const statuses: (number | null | undefined)[] = [];
    client.socket.ev.on("messages.update", (updates) => statuses.push(...updates.map(({ update }) => update.status)));
    // A receipt that comes quickly is folded into the event that tells of the line's own message.
    client.socket.ev.on("messages.upsert", ({ messages }) => statuses.push(...messages.map(({ status }) => status)));
    const sent = await client.socket.sendMessage(ana.jid, { text: "read me" });
    await arrivalAt(ana, ({ id }) => id === sent?.key.id);
    await until(() => statuses.includes(proto.WebMessageInfo.Status.DELIVERY_ACK));
    ana.read(sent!.key.id!);
    await until(() => statuses.includes(proto.WebMessageInfo.Status.READ));
  });
});

Deno.test("files of a hundred kilobytes and of one byte pass both ways unchanged", async () => {
  await onStage(async ({ ana, client, arrival }) => {
    for (const [size, kind] of [[100_001, "document"], [1, "document"], [70_000, "image"], [3000, "audio"]] as const) {
      const body = randomBytes(size);
      const sha256 = createHash("sha256").update(body).digest("hex");
      const { id } = await ana.sendMessage({ to: LINE, file: body.toString("base64"), kind, filename: "f.bin" });
      const got = await arrival(({ key }) => key.id === id);
      const opened = await downloadMediaMessage(got, "buffer", {}) as Buffer;
      assert.equal(createHash("sha256").update(opened).digest("hex"), sha256);
    }
    const pdf = randomBytes(123_456);
    const sent = await client.socket.sendMessage(ana.jid, {
      document: pdf,
      mimetype: "application/pdf",
      fileName: "invoice.pdf",
      caption: "your invoice",
    });
    const item = await arrivalAt(ana, ({ id }) => id === sent?.key.id);
    assert.deepEqual(
      [item.type, item.filename, item.mimetype, item.caption, item.size, item.sha256, item.mediaError],
      [
        "documentMessage",
        "invoice.pdf",
        "application/pdf",
        "your invoice",
        pdf.length,
        createHash("sha256").update(pdf).digest("hex"),
        null,
      ],
    );
  });
});

for (const addressing of ["lid", "pn"] as const) {
  Deno.test(`messages pass both ways in a group that is addressed by ${addressing}`, async () => {
    await onStage(async ({ network, owner, ana, ben, client, arrival }) => {
      const { directory, groups } = network.switchboard;
      const participants = [owner, ana, ben].map(({ number }) => directory.account(number)!);
      const { jid } = groups.create({ subject: "Friends", participants, addressing }, testRuntime());
      const { id } = await ana.sendMessage({ to: jid, text: "to all" });
      const got = await arrival(({ key }) => key.id === id);
      assert.deepEqual([got.message?.conversation, got.key.remoteJid], ["to all", jid]);
      const again = await ana.sendMessage({ to: jid, text: "to all again", hideNumber: true });
      assert.equal((await arrival(({ key }) => key.id === again.id)).message?.conversation, "to all again");

      for (const text of ["one", "two", "three"]) {
        const sent = await client.socket.sendMessage(jid, { text });
        for (const phone of [ana, ben]) {
          const item = await arrivalAt(phone, ({ id }) => id === sent?.key.id);
          assert.deepEqual([item.chat, item.from, item.text], [jid, owner.jid, text]);
        }
      }
      assert.deepEqual(ben.inbox().map(({ text }) => text), ["to all", "to all again", "one", "two", "three"]);
    });
  });
}

Deno.test("a message from an @lid can be read, and a reply to that @lid arrives", async () => {
  await onStage(async ({ owner, ana, client, arrival }) => {
    const { id } = await ana.sendMessage({ to: LINE, text: "guess who", hideNumber: true });
    const got = await arrival(({ key }) => key.id === id);
    assert.equal(got.key.remoteJid, ana.lid);
    assert.equal(got.key.remoteJidAlt, undefined);
    const sent = await client.socket.sendMessage(ana.lid, { text: "somebody" });
    const item = await arrivalAt(ana, ({ id }) => id === sent?.key.id);
    assert.deepEqual([item.text, item.from], ["somebody", owner.jid]);
  });
});

Deno.test("a line that lost its session asks the phone for a retry, and reads the message", async () => {
  await onStage(async ({ ana, client, arrival }) => {
    const first = await ana.sendMessage({ to: LINE, text: "first" });
    await arrival(({ key }) => key.id === first.id);
    const sent = await client.socket.sendMessage(ana.jid, { text: "settles the session" });
    await arrivalAt(ana, ({ id }) => id === sent?.key.id);
    const [lidUser] = jidNormalizedUser(ana.lid).split("@");
    const address = `${lidUser}_1.0`;
    assert.ok((await client.auth.keys.get("session", [address]))[address], "there was a session to lose");
    await client.auth.keys.set({ session: { [address]: null } });
    const second = await ana.sendMessage({ to: LINE, text: "second" });
    await arrival(({ key, message }) => key.id === second.id && message?.conversation === "second");
  });
});

Deno.test("a phone that cannot read a line's message asks for a retry, and reads it", async () => {
  await onStage(async ({ ana, client }) => {
    const deliver = ana.deliver.bind(ana);
    let damaged = 0;
    ana.deliver = (stanza) => {
      const [enc] = getBinaryNodeChildren(stanza, "enc");
      if (stanza.tag !== "message" || !enc || damaged++ > 0) return deliver(stanza);
      deliver({ ...stanza, content: [{ ...enc, content: randomBytes(100) }] });
    };
    const sent = await client.socket.sendMessage(ana.jid, { text: "say it again" });
    const item = await arrivalAt(ana, ({ id }) => id === sent?.key.id);
    assert.deepEqual([item.text, item.copies, damaged], ["say it again", 1, 2]);
  });
});

Deno.test("Baileys is linked by a code that the owner types on the phone", async () => {
  const network = await startNetwork({ runtime: { ...testRuntime(), clock: systemClock }, refresh: false });
  const owner = network.addPhone(LINE);
  const client = bareClient(network);
  try {
    await untilUpdate(client.socket, ({ qr }) => !!qr);
    const code = await client.socket.requestPairingCode(LINE);
    const linked = untilUpdate(client.socket, ({ isNewLogin }) => !!isNewLogin);
    // Baileys hands out the code before the network has heard of it.
    await until(async () => (await owner.enterCode(code)).kind !== "no_request");
    await linked;
    assert.equal(jidNormalizedUser(client.auth.creds.me?.id), owner.jid);
  } finally {
    await client.close();
    await network.close();
  }
});

Deno.test("the owner's phone uploads a file again for the line when the network has lost it", async () => {
  await onStage(async ({ network, owner, ana, client, arrival }) => {
    const body = randomBytes(20_000);
    const { id } = await ana.sendMessage({ to: LINE, file: body.toString("base64"), filename: "a.bin" });
    const got = await arrival(({ key }) => key.id === id);
    await arrivalAt(owner, (item) => item.id === id);
    for (const path of network.media.paths()) await network.media.remove(path);
    await assert.rejects(downloadMediaMessage(got, "buffer", {}));
    const updated = await client.socket.updateMediaMessage(got);
    // Baileys builds the address on the host that media_conn named last, or the real one; the path is what counts.
    const document = updated.message!.documentMessage!;
    document.url = network.mediaUrl + document.directPath;
    document.directPath = undefined;
    assert.deepEqual(await downloadMediaMessage(updated, "buffer", {}), body);
  });
});
