import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { isSigned } from "../../../integrations/chatwoot/chatwoot.ts";
import { asMarkdown, asMarks, wordsOf } from "../../../integrations/chatwoot/words.ts";
import { ChatwootDouble } from "../../support/chatwoot.ts";

const MARKS = [
  ["*bold* and _italic_", "**bold** and _italic_"],
  ["~gone~", "~~gone~~"],
  ["2 * 3 * 4", "2 * 3 * 4"],
  ["a*b*c", "a*b*c"],
  ["* one\n* two", "* one\n* two"],
] as const;

for (const [marks, markdown] of MARKS) {
  Deno.test(`WhatsApp's ${JSON.stringify(marks)} is Chatwoot's ${JSON.stringify(markdown)}, and back`, () => {
    assert.equal(asMarkdown(marks), markdown);
    assert.equal(asMarks(markdown), marks);
  });
}

Deno.test("an agent's Markdown loses what WhatsApp does not have", () => {
  assert.equal(asMarks("*slanted* **bold**\\\nnext"), "_slanted_ *bold*\nnext");
});

Deno.test("an agent reads every type of message", () => {
  const words = (type: string, text: string | null, details: Record<string, unknown> = {}) =>
    wordsOf({ type, text, details } as Parameters<typeof wordsOf>[0]);
  assert.equal(
    words("locationMessage", "The shop", { latitude: 1.5, longitude: -2 }),
    "The shop\nhttps://www.google.com/maps?q=1.5,-2",
  );
  assert.equal(
    words("contactMessage", "Ana", { contacts: [{ name: "Ana", phones: ["49", "34"] }] }),
    "Ana\nAna: +49, +34",
  );
  assert.equal(words("pollCreationMessage", "When?", { options: ["now", "later"] }), "When?\n- now\n- later");
  assert.equal(words("reactionMessage", null, { removed: true }), "[took the reaction back]");
  assert.equal(words("unknown", null, { kind: "eventMessage" }), "[eventMessage]");
  assert.equal(words("imageMessage", null, { withheld: "view_once" }), "[shown on the phone only]");
  const media = { url: null, mimetype: "image/png", size: 1, filename: "a.png", reason: "too large" };
  assert.equal(wordsOf({ type: "imageMessage", text: null, media }), "[a.png: too large]");
});

Deno.test("only Chatwoot's own signature of this body, made now, is one", async () => {
  const body = new TextEncoder().encode('{"event":"message_created"}');
  const headers = (secret: string, at = Math.floor(Date.now() / 1_000)) => {
    const hex = createHmac("sha256", secret).update(`${at}.`).update(body).digest("hex");
    return new Headers({ "x-chatwoot-timestamp": String(at), "x-chatwoot-signature": `sha256=${hex}` });
  };
  assert.ok(await isSigned(headers("s"), body, "s"));
  for (const wrong of [new Headers(), headers("other"), headers("s", Math.floor(Date.now() / 1_000) - 400)]) {
    assert.ok(!await isSigned(wrong, body, "s"));
  }
  assert.ok(!await isSigned(headers("s"), body.slice(1), "s"));
});

Deno.test("the double of Chatwoot refuses what the real one does not know", async () => {
  const double = ChatwootDouble.start();
  const call = async (path: string, body: object, token = double.token) => {
    const url = `${double.url}/api/v1/accounts/1${path}`;
    const response = await fetch(url, {
      method: "POST",
      headers: { api_access_token: token },
      body: JSON.stringify(body),
    });
    await response.body?.cancel();
    return response.status;
  };
  const inbox = { name: "Shop", channel: { type: "api", webhook_url: "http://127.0.0.1:1/" } };
  assert.equal(await call("/inboxes", inbox, "wrong"), 401);
  assert.equal(await call("/inboxes", inbox), 200);
  assert.equal(await call("/inboxes", { ...inbox, colour: "red" }), 422);
  assert.equal(await call("/contacts", { inbox_id: 101, name: "Ana", phone_number: "447700900123" }), 422);
  assert.equal(await call("/contacts", { inbox_id: 101, phone_number: "+447700900123" }), 200);
  assert.equal(await call("/contacts", { inbox_id: 101, phone_number: "+447700900123" }), 422);
  assert.equal(await call("/conversations/9/messages", { content: "hi" }), 404);
  assert.equal(double.violations.length, 3);
  await double.kill();
});
