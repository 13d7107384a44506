/** Messages of every kind through `kill -9` (promise 1): each arrives once, in order, as it was accepted. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Json } from "../../src/cli/client.ts";
import { accepted, post } from "../support/api_calls.ts";
import { sampleFile, voiceNote } from "../support/sample_files.ts";
import { openStage, withStage } from "../support/stage.ts";

const LINE = "4915563000001";
const CUSTOMER = "4917563000001";

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

Deno.test("what was accepted of every kind arrives once and in order through two kills", () =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const first = await stage.sendText(line, CUSTOMER, "what to react to");
    await stage.status(first, "sent");
    const seen = await stage.arrival(CUSTOMER, ({ text }) => text === "what to react to");
    await stage.api.call("POST", `/sessions/${line.sessionId}/disconnect`);

    const to = CUSTOMER;
    const sends: [kind: string, json: Json, arrives: string][] = [
      ["text", { to, text: "a reply", replyTo: first, typing: 100 }, "extendedTextMessage"],
      ["location", { to, latitude: 1.5, longitude: 2.5 }, "locationMessage"],
      ["contact", { to, contacts: [{ name: "Anna", phone: "34600111223" }] }, "contactMessage"],
      ["poll", { to, question: "When?", options: ["Now", "Later"] }, "pollCreationMessageV3"],
      ["reaction", { messageId: first, emoji: "🎉" }, "reaction"],
      ["sticker", { to, file: base64(sampleFile("webp")) }, "stickerMessage"],
      ["voice", { to, file: base64(voiceNote(1)) }, "audioMessage"],
      ["document", { to, file: base64(sampleFile("png")), filename: "a.png", viewOnce: true }, "imageMessage"],
      ["document", { to, file: base64(sampleFile("pdf")), filename: "a.pdf" }, "documentMessage"],
      ["forward", { to, messageId: first }, "extendedTextMessage"],
      ["status", { text: "open", audience: [to] }, "extendedTextMessage"],
      ["text", { to, text: "@all", mentions: [to], linkPreview: false, ttl: 3_600 }, "extendedTextMessage"],
    ];
    const ids: string[] = [];
    for (const [kind, json] of sends) {
      ids.push(
        (await accepted(post(stage, `/messages/send/${kind}`, { json: { sessionId: line.sessionId, ...json } })))
          .messageId,
      );
    }
    await stage.gateway.kill();
    await stage.gateway.start();
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    // While some have left and others have not.
    await stage.status(ids[4]!, "sent");
    await stage.gateway.kill();
    await stage.gateway.start();
    for (const id of ids) await stage.status(id, "sent");

    await stage.arrival(CUSTOMER, ({ text }) => text === "@all");
    const inbox = (await stage.inbox(CUSTOMER)).slice(1);
    assert.deepEqual(inbox.map(({ type }) => type), sends.map(([, , arrives]) => arrives));
    assert.deepEqual(inbox.filter(({ mediaError }) => mediaError !== null), []);
    const hashes = [sampleFile("webp"), voiceNote(1), sampleFile("png"), sampleFile("pdf")]
      .map((bytes) => createHash("sha256").update(bytes).digest("hex"));
    assert.deepEqual(inbox.slice(5, 9).map(({ sha256 }) => sha256), hashes);
    assert.equal(inbox[11]!.mentions.length, 1);
    assert.deepEqual([inbox[0]!.quoted.id, inbox[4]!.reaction.id, inbox[7]!.viewOnce, inbox[9]!.forwarded], [
      seen.id,
      seen.id,
      true,
      true,
    ]);
  }));
