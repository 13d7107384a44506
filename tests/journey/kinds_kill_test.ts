/** Messages of every kind through `kill -9` (promise 1): each arrives once, in order, as it was accepted. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Json } from "../../src/cli/client.ts";
import { accepted, answerOf, type ApiAnswer, post } from "../support/api_calls.ts";
import { sampleFile, voiceNote } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

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
    const sends: [kind: string, fields: Json, arrives: string, content?: Uint8Array][] = [
      ["text", { to, text: "a reply", replyTo: first, typing: 100 }, "extendedTextMessage"],
      ["location", { to, latitude: 1.5, longitude: 2.5 }, "locationMessage"],
      ["contact", { to, contacts: [{ name: "Anna", phone: "34600111223" }] }, "contactMessage"],
      ["poll", { to, question: "When?", options: ["Now", "Later"] }, "pollCreationMessageV3"],
      ["reaction", { messageId: first, emoji: "🎉" }, "reaction"],
      ["sticker", { to }, "stickerMessage", sampleFile("webp")],
      ["voice", { to }, "audioMessage", voiceNote(1)],
      ["document", { to, filename: "a.png", viewOnce: true }, "imageMessage", sampleFile("png")],
      ["document", { to, filename: "a.pdf" }, "documentMessage", sampleFile("pdf")],
      ["forward", { to, messageId: first }, "extendedTextMessage"],
      ["status", { text: "open", audience: [to] }, "extendedTextMessage"],
      ["text", { to, text: "@all", mentions: [to], linkPreview: false, ttl: 3_600 }, "extendedTextMessage"],
      ["document", { to, filename: "a.mp4" }, "videoMessage", sampleFile("mp4")],
      ["document", { to, filename: "a.mp3" }, "audioMessage", sampleFile("mp3")],
      ["file", { to, filename: "b.mp4" }, "videoMessage", sampleFile("mp4")],
      ["file", { to, filename: "b.csv" }, "documentMessage", sampleFile("csv")],
    ];
    const ids: string[] = [];
    for (const [kind, fields, , content] of sends) {
      const { sessionId } = line;
      const answer = kind === "file"
        ? upload(stage, { sessionId, to, file: new File([Uint8Array.from(content!)], fields.filename) })
        : post(stage, `/messages/send/${kind}`, {
          json: { sessionId, ...fields, ...(content && { file: base64(content) }) },
        });
      ids.push((await accepted(answer)).messageId);
    }
    await stage.gateway.kill();
    await stage.gateway.start();
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    // While some have left and others have not.
    await stage.status(ids[4]!, "sent");
    await stage.gateway.kill();
    await stage.gateway.start();
    for (const id of ids) await stage.status(id, "sent");

    await stage.arrival(CUSTOMER, ({ filename }) => filename === "b.csv");
    const inbox = (await stage.inbox(CUSTOMER)).slice(1);
    assert.deepEqual(inbox.map(({ type }) => type), sends.map(([, , arrives]) => arrives));
    assert.deepEqual(inbox.filter(({ mediaError }) => mediaError !== null), []);
    const hashes = sends.map(([, , , content]) => content && createHash("sha256").update(content).digest("hex"));
    assert.deepEqual(inbox.map(({ sha256 }, i) => hashes[i] && sha256), hashes);
    assert.equal(inbox[11]!.mentions.length, 1);
    assert.deepEqual([inbox[0]!.quoted.id, inbox[4]!.reaction.id, inbox[7]!.viewOnce, inbox[9]!.forwarded], [
      seen.id,
      seen.id,
      true,
      true,
    ]);
  }));

function upload(stage: Stage, fields: Record<string, string | File>): Promise<ApiAnswer> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return answerOf(stage.request("POST", "/messages/send/file", { body: form }));
}
