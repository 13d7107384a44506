/** Files of the kinds that have a path of their own, and the options of a send: a phone says what arrived. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { accepted, answerOf, post, refused } from "../support/api_calls.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { sampleFile, voiceNote } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915561000001";
const CUSTOMER = "4917561000001";
const FRIEND = "4917561000002";

/** Sends, and resolves to what the customer's phone shows of it. */
async function shown(stage: Stage, kind: string, json: Json, at = CUSTOMER): Promise<Json> {
  const { messageId } = await accepted(post(stage, `/messages/send/${kind}`, { json }));
  await stage.status(messageId, "sent");
  const { data } = await stage.api.call("GET", "/events?limit=1000");
  const { data: { networkId } } = data.findLast(({ event, data }: Json) =>
    event === "message.sent" && data.messageId === messageId
  );
  return await stage.arrival(at, ({ id }) => id === networkId);
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

const PAGE = '<html><head><meta property="og:title" content="Our shop"><meta property="og:image" content="a.png">' +
  '<meta property="og:description" content="All you need"></head></html>';

Deno.test("stickers, voice notes, status posts and options of every send", async (t) => {
  const site = createServer(({ url }, answer) => {
    const [type, body] = url === "/shop"
      ? ["text/html", PAGE] as const
      : url === "/a.pdf"
      ? ["application/pdf", sampleFile("pdf")] as const
      : url === "/a.webp"
      ? ["image/webp", sampleFile("webp")] as const
      : ["image/png", sampleFile("png")] as const;
    answer.writeHead(200, { "content-type": type }).end(body);
  });
  const base = `http://127.0.0.1:${await listenOn(site)}`;
  try {
    await withStage(openStage, async (stage) => {
      await stage.addPhone(CUSTOMER);
      await stage.addPhone(FRIEND);
      const line = await stage.linkLine(LINE);
      const to = CUSTOMER;
      const webp = sampleFile("webp");

      await t.step("a sticker, uploaded and fetched", async () => {
        for (const source of [{ file: base64(webp) }, { fileUrl: `${base}/a.webp` }]) {
          const { type, sha256: hash, mimetype } = await shown(stage, "sticker", { to, ...source });
          assert.deepEqual([type, hash, mimetype], ["stickerMessage", sha256(webp), "image/webp"]);
        }
      });

      await t.step("an address that gives no WebP ends as failed, with the reason", async () => {
        const { messageId } = await accepted(
          post(stage, "/messages/send/sticker", { json: { to, fileUrl: `${base}/a.png` } }),
        );
        await stage.status(messageId, "failed");
        const { data: [{ error }] } = await stage.api.call("GET", "/messages/history?limit=1");
        assert.equal(error.code, "file_unsuitable");
        assert.match(error.message, /must be a WebP image/);
      });

      await t.step("a voice note, with its length and its waveform; and one to be heard once", async () => {
        const note = voiceNote(3);
        const { type, voice, sha256: hash } = await shown(stage, "voice", { to, file: base64(note) });
        assert.deepEqual([type, voice.seconds, voice.waveform.length, hash], ["audioMessage", 3, 64, sha256(note)]);
        const once = await shown(stage, "voice", { to, file: base64(note), viewOnce: true });
        assert.deepEqual([once.viewOnce, once.voice.seconds, once.sha256], [true, 3, sha256(note)]);
      });

      await t.step(
        "a document by its address, named by the client or by its server; a picture to be seen once",
        async () => {
          const pdf = await shown(stage, "document", { to, fileUrl: `${base}/a.pdf`, filename: "Rechnung.pdf" });
          assert.deepEqual([pdf.filename, pdf.sha256], ["Rechnung.pdf", sha256(sampleFile("pdf"))]);
          assert.equal((await shown(stage, "document", { to, fileUrl: `${base}/a.pdf` })).filename, "a.pdf");
          const file = base64(sampleFile("png"));
          const once = await shown(stage, "document", { to, file, filename: "a.png", viewOnce: true });
          assert.deepEqual([once.type, once.viewOnce], ["imageMessage", true]);
        },
      );

      await t.step("a status reaches its audience, the owner's phone and nobody else", async () => {
        const audience = [CUSTOMER, "4917561999999"];
        const text = await shown(stage, "status", { text: "open today", audience });
        assert.deepEqual([text.text, text.chat], ["open today", "status@broadcast"]);
        const picture = await shown(stage, "status", { file: base64(sampleFile("png")), filename: "a.png", audience });
        assert.deepEqual([picture.type, picture.sha256], ["imageMessage", sha256(sampleFile("png"))]);
        const own = (await stage.inbox(LINE)).filter(({ chat }) => chat === "status@broadcast");
        assert.deepEqual(own.map(({ id, fromMe }) => [id, fromMe]), [[text.id, true], [picture.id, true]]);
        assert.deepEqual(await stage.inbox(FRIEND), []);
        await stage.control.call("POST", `/phones/${CUSTOMER}/read`, { id: text.id });
        const { lid } = await stage.control.call("GET", `/phones/${CUSTOMER}`);
        const { data: seen } = await stage.event(
          line,
          ({ event, data }) => event === "message.status" && data.networkId === text.id && data.status === "read",
        );
        assert.equal(seen.participant, lid);
        const { data: [{ type, to }] } = await stage.api.call("GET", "/messages/history?limit=1");
        assert.deepEqual([type, to], ["status", "status@broadcast"]);
      });

      await t.step("a status for nobody with an account fails", async () => {
        const json = { text: "hello?", audience: ["4917561999999"] };
        const { messageId } = await accepted(post(stage, "/messages/send/status", { json }));
        await stage.status(messageId, "failed");
      });

      await t.step("a link is shown with title, description and picture, unless that is not wanted", async () => {
        const text = `look: ${base}/shop!`;
        const { linkPreview, text: arrived, id } = await shown(stage, "text", { to, text });
        assert.equal(arrived, text);
        const preview = { url: `${base}/shop`, title: "Our shop", description: "All you need", hasPicture: true };
        assert.deepEqual(linkPreview, { ...preview, pictureSha256: sha256(sampleFile("png")) });
        const { shape } = stage.network.switchboard.wire.entries(LINE).find((sent) => sent.id === id)!;
        assert.deepEqual([shape.attrs.type, ...new Set(shape.encs.map((enc) => enc.mediatype))], ["media", "url"]);
        assert.equal((await shown(stage, "text", { to, text, linkPreview: false })).linkPreview, null);
      });

      await t.step("people are mentioned, and all of a group", async () => {
        const one = await shown(stage, "text", { to, text: `@${FRIEND} knows`, mentions: [FRIEND] });
        assert.deepEqual(one.mentions, [`${FRIEND}@s.whatsapp.net`]);
        const { lid } = await stage.control.call("GET", `/phones/${FRIEND}`);
        const participants = [LINE, CUSTOMER, FRIEND];
        // In a group that is addressed by LID, phones know the person by no other name, neither here nor in the text.
        for (const [addressingMode, jid] of [["lid", lid], ["pn", `${FRIEND}@s.whatsapp.net`]]) {
          const { id: to } = await stage.control.call("POST", "/groups", {
            subject: "F",
            participants,
            addressingMode,
          });
          const all = await shown(stage, "text", { to, text: "@all, hello", mentions: "all" }, FRIEND);
          assert.deepEqual([all.mentionsAll, all.mentions], [true, []]);
          const text = `@${FRIEND} and @${CUSTOMER}1`;
          const { mentions, text: arrived } = await shown(stage, "text", { to, text, mentions: [FRIEND] }, FRIEND);
          assert.deepEqual([mentions, arrived], [[jid], `@${jid.split("@")[0]} and @${CUSTOMER}1`]);
        }
      });

      await t.step("what else is sent takes them too: a PDF, a form, a forward, a reaction", async () => {
        const asked = await shown(stage, "text", { to, text: "which one?" });
        const sent = async (messageId: string) => {
          const { data } = await stage.api.call("GET", `/messages/${messageId}`);
          assert.deepEqual([data.priority, data.sendAt], ["high", null]);
          await stage.status(messageId, "sent");
        };
        const pdf = { number: to, file: base64(sampleFile("pdf")), message: `@${FRIEND}`, mentions: [FRIEND] };
        const json = { ...pdf, replyTo: asked.id, typing: 10, ttl: 60, priority: "high" };
        await sent((await accepted(post(stage, "/message/send/pdf", { json }))).messageId);
        const invoice = await stage.arrival(to, ({ filename }) => filename === "document.pdf");
        assert.deepEqual([invoice.quoted, invoice.mentions.length], [{ id: asked.id, text: "which one?" }, 1]);

        const form = new FormData();
        const fields = { to, caption: "this one", replyTo: asked.id, mentions: FRIEND, linkPreview: "false" };
        for (const [name, value] of Object.entries({ ...fields, priority: "high", ttl: "60" })) {
          form.append(name, value);
        }
        form.append("file", new Blob([new Uint8Array(sampleFile("png"))]), "a.png");
        await sent((await accepted(answerOf(stage.request("POST", "/messages/send/file", { body: form })))).messageId);
        const picture = await stage.arrival(to, ({ caption }) => caption === "this one");
        assert.deepEqual([picture.quoted.id, picture.mentions.length], [asked.id, 1]);

        const forward = { to, messageId: picture.id, replyTo: asked.id, mentions: [FRIEND], viewOnce: true };
        const on = await shown(stage, "forward", forward);
        assert.deepEqual([on.viewOnce, on.quoted?.id, on.mentions.length], [true, asked.id, 1]);

        const reaction = { messageId: asked.id, emoji: "👍", priority: "high", typing: 10, ttl: 60 };
        const { messageId } = await accepted(post(stage, "/messages/send/reaction", { json: reaction }));
        await sent(messageId);
        for (const senseless of [{ replyTo: asked.id }, { mentions: [FRIEND] }, { viewOnce: true }]) {
          const json = { ...reaction, ...senseless };
          await refused(post(stage, "/messages/send/reaction", { json }), 400, "validation_failed");
        }
      });

      await t.step("a bulk takes them item by item, and names a wrong one by its path", async () => {
        const messages = [
          { to, text: "first", mentions: [FRIEND] },
          { to, fileUrl: `${base}/a.png`, viewOnce: true },
        ];
        await stage.api.call("POST", "/messages/send/bulk", { messages });
        const { mentions } = await stage.arrival(CUSTOMER, (item) => item.text === "first");
        assert.equal(mentions.length, 1);
        const { body } = await post(stage, "/messages/send/bulk", {
          json: { messages: [messages[0], { to, text: "x", viewOnce: true }] },
        });
        assert.equal(body.errors[0].path, "messages.1.viewOnce");
      });

      await t.step("typing is shown for as long as it was asked for, and then the message is there", async () => {
        const item = await shown(stage, "text", { to, text: "thinking", typing: 1_500 });
        const states = await stage.control.call("GET", `/phones/${CUSTOMER}/chat-states`);
        const typed = states.findLast(({ state }: Json) => state === "typing");
        assert.ok(typed, JSON.stringify(states));
        const wire: Json[] = await stage.control.call("GET", `/wire?line=${LINE}`);
        const typedMs = wire.find(({ id }) => id === item.id)!.time - typed.timestamp;
        // The phone may have come to it late.
        assert.ok(typedMs >= 1_000, `${typedMs} ms`);
      });

      await noFileLeft(stage);
    });
  } finally {
    site.close();
  }
});
