import assert from "node:assert/strict";
import {
  type BinaryNode,
  decodeMediaRetryNode,
  decryptMediaRetryData,
  encryptMediaRetryRequest,
  proto,
} from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { decryptStanza } from "../../../../src/sandbox/phone/receiver.ts";
import type { Device } from "../../../../src/sandbox/world/uplink.ts";
import type { PhoneMessage } from "../../../../src/sandbox/phone/compose.ts";
import { type MediaHost, startMedia } from "../../../../src/sandbox/media/host.ts";
import { makeKeys, refill } from "../../../../src/sandbox/phone/keys.ts";
import { SenderKeys, SignalSessions } from "../../../../src/sandbox/phone/signal.ts";
import { systemClock } from "../../../../src/runtime.ts";
import { SmallNetwork } from "./small_network.ts";

async function withNetwork(run: (network: SmallNetwork, media: MediaHost) => Promise<void>): Promise<void> {
  const runtime = { ...new SmallNetwork().runtime, clock: systemClock };
  const media = await startMedia({ runtime });
  try {
    await run(new SmallNetwork(media), media);
  } finally {
    await media.close();
  }
}

Deno.test("files of every kind arrive intact, with the right field, name and caption", async () => {
  await withNetwork(async (network) => {
    const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
    const sizes = { image: 1, video: 100_000, audio: 16, document: 999_999, sticker: 15 } as const;
    const files = Object.entries(sizes).map(([kind, size]) => ({
      kind: kind as keyof typeof sizes,
      body: randomBytes(size),
    }));
    for (const { kind, body } of files) {
      const message: PhoneMessage = { to: ben.number, file: body.toString("base64"), kind, caption: `a ${kind}` };
      if (kind === "document") message.filename = "Rechnung März.pdf";
      await ana.sendMessage(message);
    }
    await network.idle();
    const got = ben.inbox();
    assert.deepEqual(got.map((item) => item.type), files.map(({ kind }) => `${kind}Message`));
    assert.deepEqual(got.map((item) => item.mediaError), files.map(() => null));
    const hashes = files.map(({ body }) => createHash("sha256").update(body).digest("hex"));
    assert.deepEqual(got.map((item) => item.sha256), hashes);
    assert.deepEqual(got.map((item) => item.size), files.map(({ body }) => body.length));
    assert.deepEqual(got.map((item) => item.filename), [null, null, null, "Rechnung März.pdf", null]);
    assert.deepEqual(got.map((item) => item.caption), ["a image", "a video", null, "a document", null]);
    assert.deepEqual(got.map((item) => item.text), files.map(() => null));
  });
});

Deno.test("a file that is missing, different from its message, or elsewhere is reported with the message", async () => {
  await withNetwork(async (network, media) => {
    const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
    const held: { device: Device; stanza: BinaryNode }[] = [];
    const deliver = ben.deliver.bind(ben);
    ben.deliver = (stanza) => void held.push({ device: ben, stanza });
    await ana.sendMessage({ to: ben.number, file: randomBytes(5000).toString("base64"), filename: "a.bin" });
    for (const path of media.paths()) await media.remove(path);
    await network.idle();
    for (const { stanza } of held.splice(0)) deliver(stanza);
    await network.idle();
    ben.deliver = deliver;
    await ana.sendMessage({ to: ben.number, file: randomBytes(5000).toString("base64"), filename: "b.bin" });
    const [path] = media.paths();
    const hash = Buffer.alloc(32);
    const document = { mediaKey: hash, fileSha256: hash, fileEncSha256: hash, fileLength: 5, mimetype: "x/y" };
    await ana.sendMessage({
      to: ben.number,
      message: { documentMessage: { ...document, directPath: "//elsewhere/x" } },
    });
    await ana.sendMessage({ to: ben.number, message: { documentMessage: { ...document, directPath: path } } });
    await network.idle();
    assert.deepEqual(ben.inbox().map((item) => [item.size, item.mediaError]), [
      [null, "The media host answered 404"],
      [5000, null],
      [null, "The file is not on the media host"],
      [null, "The encrypted file has a different hash"],
    ]);
  });
});

Deno.test("a message that does not say where its file is says so in the inbox", async () => {
  await withNetwork(async (network) => {
    const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
    const hash = Buffer.alloc(32);
    const document = { mediaKey: hash, fileSha256: hash, fileEncSha256: hash, fileLength: 5, mimetype: "x/y" };
    for (const directPath of ["http://[", "https://elsewhere.example/x", ""]) {
      await ana.sendMessage({ to: ben.number, message: { documentMessage: { ...document, directPath } } });
    }
    await network.idle();
    assert.deepEqual(ben.inbox().map((item) => [item.size, item.mediaError]), [
      [null, "The message does not say where its file is"],
      [null, "The file is not on the media host"],
      [null, "The message does not say where its file is"],
    ]);
  });
});

Deno.test("an empty file, or one that is not base64, is refused before anything is uploaded", async () => {
  await withNetwork(async (network, media) => {
    const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
    const refused = { code: "validation_failed" };
    for (const file of ["", "not base64!"]) {
      await assert.rejects(ana.sendMessage({ to: ben.number, file, filename: "a" }), refused);
    }
    assert.deepEqual(media.paths(), []);
  });
});

Deno.test("a phone uploads a file again for its companion whose download failed", async () => {
  await withNetwork(async (network, media) => {
    const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
    const companion = joinCompanion(network, "15550002:7");
    const body = randomBytes(5000);
    const { id } = await ana.sendMessage({ to: ben.number, file: body.toString("base64"), filename: "a.bin" });
    await network.idle();
    const [path] = media.paths();
    assert.ok(path && await media.remove(path));

    const message = await companion.decrypt(companion.received.find(({ tag }) => tag === "message")!);
    const { mediaKey } = message.documentMessage!;
    const request = encryptMediaRetryRequest({ id, remoteJid: ana.jid, fromMe: false }, mediaKey!, ben.jid);
    network.send(companion.device, { ...request, attrs: { ...request.attrs, from: companion.device.jid } });
    await network.idle();
    const answer = companion.received.find(({ attrs }) => attrs.type === "mediaretry");
    const { key, media: encrypted } = decodeMediaRetryNode(answer!);
    assert.deepEqual(key, { id, remoteJid: ana.jid, fromMe: false, participant: undefined });
    const { result, directPath } = decryptMediaRetryData(encrypted!, mediaKey!, id);
    assert.equal(result, proto.MediaRetryNotification.ResultType.SUCCESS);
    assert.deepEqual(media.paths(), [directPath]);

    const unknown = encryptMediaRetryRequest({ id: "UNKNOWN", remoteJid: ana.jid }, mediaKey!, ben.jid);
    network.send(companion.device, { ...unknown, attrs: { ...unknown.attrs, from: companion.device.jid } });
    await network.idle();
    const refusal = companion.received.find(({ attrs }) => attrs.type === "mediaretry" && attrs.id === "UNKNOWN");
    assert.equal(decodeMediaRetryNode(refusal!).error?.output.statusCode, 404);
  });
});

/** A linked device with Signal keys of its own. */
function joinCompanion(network: SmallNetwork, user: string) {
  const keys = makeKeys(network.runtime.random);
  const received: BinaryNode[] = [];
  const device: Device = {
    jid: `${user}@s.whatsapp.net`,
    lid: `9${user}@lid`,
    deliver: (stanza) => void received.push(stanza),
    welcome() {},
    shareSalt() {},
  };
  network.join(device, refill(keys)!);
  const sessions = new SignalSessions(keys);
  const { runtime, media } = network;
  const ways = { runtime, uplink: network, media };
  const context = { ...ways, self: device, name: "", keys, sessions, senderKeys: new SenderKeys() };
  const decrypt = async (stanza: BinaryNode): Promise<proto.IMessage> => {
    const decrypted = await decryptStanza(context, stanza);
    assert.equal(decrypted.kind, "message");
    return decrypted.kind === "message" ? decrypted.message : {};
  };
  return { device, received, decrypt };
}

Deno.test("a message sent from the phone reaches the companion as the owner's own", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  const companion = joinCompanion(network, "15550001:3");
  await ana.sendMessage({ to: ben.number, text: "from my phone" });
  await network.idle();
  const [stanza] = companion.received;
  assert.equal((await companion.decrypt(stanza!)).conversation, "from my phone");
  assert.equal(ben.inbox()[0]?.text, "from my phone");
  assert.deepEqual(ana.inbox(), []);
});

Deno.test("a phone with a companion cannot write to a number that is not on the network either", async () => {
  const network = new SmallNetwork();
  const ana = network.phone("15550001");
  const companion = joinCompanion(network, "15550001:3");
  await assert.rejects(ana.sendMessage({ to: "15550009", text: "anybody?" }), { code: "validation_failed" });
  await network.idle();
  assert.deepEqual(companion.received, []);
  await ana.sendMessage({ to: ana.number, text: "note to self" });
  await network.idle();
  assert.equal((await companion.decrypt(companion.received[0]!)).conversation, "note to self");
});
