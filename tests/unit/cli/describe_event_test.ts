/** Events in one line for a person. */
import assert from "node:assert/strict";
import { describeEvent } from "../../../src/cli/describe_event.ts";
import { jsonLine } from "../../../src/cli/output.ts";

const received = { from: "49@s.whatsapp.net", number: "49", type: "conversation", text: "hi" };

const TABLE: [event: string, data: Record<string, unknown>, line: string][] = [
  ["message.received", received, "message.received     Front · from 49, conversation: hi"],
  ["message.received", { ...received, number: null, from: "1@lid" }, "from 1@lid, conversation: hi"],
  ["message.received", { ...received, from: "1@g.us" }, "from 49 in 1@g.us, conversation: hi"],
  ["message.received", {
    from: "49@s.whatsapp.net",
    number: "49",
    type: "unknown",
    text: "please",
    details: { kind: "orderMessage" },
  }, "from 49, orderMessage: please"],
  [
    "message.received",
    { ...received, type: "imageMessage", text: null, media: { filename: "a.png", size: 3 } },
    "from 49, imageMessage [a.png, 3 bytes]",
  ],
  ["message.echo", received, "to 49@s.whatsapp.net, conversation: hi"],
  ["message.sent", { messageId: "msg_1", to: "49" }, "message.sent         Front · msg_1 to 49"],
  ["message.status", { messageId: "msg_1", status: "read", participant: null }, "msg_1 read"],
  ["message.status", { messageId: "msg_1", status: "read", participant: "1@lid" }, "msg_1 read by 1@lid"],
  [
    "message.failed",
    { messageId: "msg_1", to: "49", error: { code: "expired", message: "Too late." } },
    "msg_1 to 49: expired, Too late.",
  ],
  ["message.edited", { messageId: "3A", chat: "49@lid", number: null, text: "x" }, "3A in 49@lid by somebody: x"],
  ["message.deleted", { messageId: "3A", chat: "1@g.us", number: "49" }, "3A in 1@g.us by 49"],
  ["poll.vote", { messageId: "msg_1", chat: "1@g.us", number: "49", options: ["a", "b"] }, "49 in 1@g.us, msg_1: a, b"],
  [
    "poll.vote",
    { messageId: null, networkId: "3A", chat: "1@g.us", number: "49", options: [] },
    "3A: nothing any more",
  ],
  ["call.received", { callId: "C", chat: "1@lid", number: null, video: true }, "video call from 1@lid"],
  ["recipient.opted_out", { number: "49", word: "STOP" }, "49 wrote STOP"],
  ["presence.updated", { chat: "49@lid", number: "49", state: "typing" }, "49 in 49@lid: typing"],
  ["group.updated", { group: { id: "1@g.us", name: "Team" } }, "1@g.us, Team"],
  [
    "group.participants",
    {
      group: { id: "1@g.us" },
      action: "add",
      participants: [{ id: "1@lid", number: null }, { id: "2@lid", number: "49" }],
    },
    "add in 1@g.us: 1@lid, 49",
  ],
  ["session.connected", { phone: "49" }, "as 49"],
  ["session.disconnected", { status: "logged_out", reason: "The link is gone." }, "logged_out: The link is gone."],
  ["session.qr", { qr: "data:image/png;base64,AA==" }, "a new QR to scan"],
  ["webhook.failing", { url: "https://a.b/", lastError: "410", active: false }, "https://a.b/: 410, switched off"],
  ["webhook.disabled", { webhookId: "whk_1", reason: "It was gone." }, "whk_1: It was gone."],
  ["webhook.test", { webhookId: "whk_1" }, '{"webhookId":"whk_1"}'],
];

for (const [event, data, line] of TABLE) {
  Deno.test(`${event} reads as "${line}"`, () => {
    const described = describeEvent({ event, sessionName: "Front", data });
    assert.ok(described.startsWith(event));
    assert.ok(described.endsWith(line), described);
  });
}

Deno.test("neither names nor texts of strangers break the line, steer the terminal or fill it", () => {
  const hostile = "a\r\nb\u001b[2Jc\u202ed\u2028e " + "x".repeat(1_000);
  const line = describeEvent({ event: "message.received", sessionName: hostile, data: { ...received, text: hostile } });
  assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  assert.ok(line.length < 500);
});

Deno.test("JSON of strangers' words does not steer the terminal either, and says the same", () => {
  const hostile = { text: "a\u001b[2Jc\u009b31m\u007f\u0085" };
  assert.doesNotMatch(jsonLine(hostile), /\p{Cc}/u);
  assert.deepEqual(JSON.parse(jsonLine(hostile)), hostile);
});
