/** Who sent a message, in which chat, and which number is behind a `@lid`. */
import assert from "node:assert/strict";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import type { Incoming, IncomingMedia } from "../../../../src/whatsapp/incoming.ts";
import { decode, type DecodeContext, decodeUndecryptable } from "../../../../src/whatsapp/baileys/incoming/decode.ts";

const ME = { id: "5511900000001:3@s.whatsapp.net", lid: "900@lid" };
const media: IncomingMedia = { mimetype: "image/png", filename: null, size: 1, download: () => Promise.reject() };

/** A context whose mapping store knows one phone number. */
const context: DecodeContext = {
  me: ME,
  clock: { now: () => 1_750_000_000_500 },
  phoneOf: (lid) => Promise.resolve(lid.startsWith("777") ? "5511977777777:0@s.whatsapp.net" : null),
  media: () => media,
  history: () => Promise.resolve(),
  findOriginal: () => Promise.resolve(null),
  isLost: () => Promise.resolve(true),
  timer: () => Promise.resolve(),
  isAdmin: (group, addresses) => Promise.resolve(group === "1@g.us" && addresses.includes("222@lid")),
};

function part(attrs: Record<string, string>, message: proto.IMessage = { conversation: "hi" }) {
  return {
    attrs: { id: "M1", t: "1700000000", ...attrs },
    plaintext: encodeWAMessage(proto.Message.fromObject(message)),
  };
}

async function one(attrs: Record<string, string>, message?: proto.IMessage) {
  const [incoming, ...more] = await decode(part(attrs, message), context);
  assert.deepEqual(more, []);
  return incoming!;
}

const FROM_FRIEND = { from: "5511900000002:4@s.whatsapp.net", notify: "Frida" };
const WHO: [title: string, attrs: Record<string, string>, expected: Record<string, unknown>][] = [
  ["a sender by number", FROM_FRIEND, {
    chat: "5511900000002@s.whatsapp.net",
    number: "5511900000002",
    participant: null,
    fromMe: false,
  }],
  ["a sender by @lid whose number stands beside it", { from: "222@lid", sender_pn: "5511922222222@s.whatsapp.net" }, {
    chat: "222@lid",
    number: "5511922222222",
  }],
  ["a sender by @lid whose number was learned before", { from: "777@lid" }, {
    chat: "777@lid",
    number: "5511977777777",
  }],
  ["a sender by @lid whose number was never revealed", { from: "333@lid" }, { chat: "333@lid", number: null }],
  ["a member of a group", { from: "1@g.us", participant: "5511900000002:4@s.whatsapp.net" }, {
    chat: "1@g.us",
    participant: "5511900000002@s.whatsapp.net",
    number: "5511900000002",
  }],
  ["a member of a group by @lid", {
    from: "1@g.us",
    participant: "222:1@lid",
    participant_pn: "5511922222222@s.whatsapp.net",
  }, {
    chat: "1@g.us",
    participant: "222@lid",
    number: "5511922222222",
  }],
  ["a broadcast list's sender", { from: "99@broadcast", participant: "5511900000002@s.whatsapp.net" }, {
    chat: "5511900000002@s.whatsapp.net",
    participant: null,
    number: "5511900000002",
  }],
  ["the owner's broadcast list by @lid", { from: "99@broadcast", participant: "900:0@lid" }, {
    chat: "900@lid",
    fromMe: true,
    number: "5511900000001",
  }],
  ["the owner's phone in a group", { from: "1@g.us", participant: "900:0@lid" }, {
    fromMe: true,
    number: "5511900000001",
  }],
];

for (const [title, attrs, expected] of WHO) {
  Deno.test(`${title} is reported as chat and number`, async () => {
    const incoming = await one(attrs) as unknown as Record<string, unknown>;
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, incoming[name]])), expected);
  });
}

Deno.test("what the owner sends from the phone is in the other's chat, out of its envelope", async () => {
  const incoming = await one(
    { from: "5511900000001@s.whatsapp.net", recipient: "5511900000002@s.whatsapp.net" },
    { deviceSentMessage: { destinationJid: "5511900000002@s.whatsapp.net", message: { conversation: "from me" } } },
  );
  assert.equal(incoming.fromMe, true);
  assert.equal(incoming.chat, "5511900000002@s.whatsapp.net");
  assert.equal(incoming.number, "5511900000001");
  assert.equal(incoming.text, "from me");
});

Deno.test("time, id and name come from the stanza", async () => {
  const incoming = await one(FROM_FRIEND);
  assert.equal(incoming.timestamp, 1_700_000_000);
  for (const t of ["", "soon", "-5", "99999999999999"]) {
    assert.equal((await one({ ...FROM_FRIEND, t })).timestamp, 1_750_000_000, `what is no time is now: "${t}"`);
  }
  assert.equal(incoming.networkId, "M1");
  assert.equal(incoming.pushName, "Frida");
  assert.equal(incoming.undecryptable, false);
});

Deno.test("a username is the sender's, without an @; what cannot be one is none, and the owner needs none", async () => {
  const usernameOf = async (attrs: Record<string, string>) => (await one({ ...FROM_FRIEND, ...attrs })).username;
  assert.equal(await usernameOf({ username: "@frida.k" }), "frida.k");
  const inGroup = { from: "1@g.us", participant: "222:1@lid", participant_username: "frida_k" };
  assert.equal(await usernameOf(inGroup), "frida_k");
  for (const none of ["", "@", "fr", "frida k", "x".repeat(36)]) {
    assert.equal(await usernameOf({ username: none }), undefined);
  }
  const own = { from: "5511900000001@s.whatsapp.net", recipient: "222@lid", peer_recipient_username: "frida_k" };
  assert.equal(await usernameOf(own), undefined);
});

Deno.test("a file brings its media, a text none", async () => {
  assert.equal((await one(FROM_FRIEND, { imageMessage: {} })).media, media);
  assert.equal((await one(FROM_FRIEND)).media, null);
});

Deno.test("a reaction's target is reported from the line's side", async () => {
  const key = { id: "X", remoteJid: "5511900000001@s.whatsapp.net", fromMe: false };
  const incoming = await one(FROM_FRIEND, { reactionMessage: { key, text: "❤️" } });
  assert.deepEqual(incoming.details?.target, { messageId: "X", fromMe: true });
});

const ABOUT: [title: string, attrs: Record<string, string>, info: proto.IContextInfo, expected: Partial<Incoming>][] = [
  ["an answer to the line", FROM_FRIEND, {
    stanzaId: "Q",
    participant: "900:3@lid",
    quotedMessage: { conversation: "Coffee?" },
  }, { quoted: { messageId: "Q", fromMe: true, participant: "5511900000001@s.whatsapp.net", text: "Coffee?" } }],
  ["an answer to somebody else", { from: "1@g.us", participant: "222:1@lid" }, {
    stanzaId: "Q",
    participant: "333@lid",
  }, {
    quoted: { messageId: "Q", fromMe: false, participant: "333@lid", text: null },
  }],
  ["a mention of the line", { from: "1@g.us", participant: "222:1@lid" }, { mentionedJid: ["900@lid", "333@lid"] }, {
    mentions: ["5511900000001@s.whatsapp.net", "333@lid"],
  }],
];

for (const [title, attrs, contextInfo, expected] of ABOUT) {
  Deno.test("so is whatever else is about a message, in any envelope", async () => {
    const key = { id: "X", fromMe: false, remoteJid: ME.lid };
    const about: proto.IMessage[] = [
      { declinePaymentRequestMessage: { key } },
      { commentMessage: { targetMessageKey: key, message: { conversation: "hm" } } },
      { statusQuotedMessage: { originalStatusId: key, text: "hm" } },
      { sendPaymentMessage: { requestMessageKey: key } },
      { groupMentionedMessage: { message: { reactionMessage: { key, text: "👍" } } } },
    ];
    for (const message of about) {
      const field = Object.keys(message).join();
      assert.deepEqual((await one(FROM_FRIEND, message)).details?.target, { messageId: "X", fromMe: true }, field);
      const own = JSON.parse(JSON.stringify(message).replace('"fromMe":false', '"fromMe":true'));
      assert.deepEqual((await one(FROM_FRIEND, own)).details?.target, { messageId: "X", fromMe: false }, field);
    }
  });

  Deno.test(`${title} is reported from the line's side`, async () => {
    const incoming = await one(attrs, { extendedTextMessage: { text: "x", contextInfo } });
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, incoming[name as "ad"]])), expected);
  });
}

Deno.test("an edit of what the owner wrote is the owner's", async () => {
  const edit = {
    type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
    key: { id: "X", remoteJid: "222@lid", fromMe: true },
    editedMessage: { conversation: "better" },
  };
  const incoming = await one({ from: "900@lid", recipient: "222@lid" }, { protocolMessage: edit });
  assert.equal(incoming.fromMe, true);
  assert.deepEqual(incoming.change, { kind: "edited", target: "X", text: "better" });
});

const DELETIONS: [title: string, attrs: Record<string, string>, byAdmin: boolean][] = [
  ["an admin of the group", { from: "1@g.us", participant: "222@lid" }, true],
  ["another member", { from: "1@g.us", participant: "333@lid" }, false],
  ["an admin of the group in a chat of two", { from: "222@lid" }, false],
];

for (const [title, attrs, byAdmin] of DELETIONS) {
  Deno.test(`${title} deletes ${byAdmin ? "as one" : "as anybody"}`, async () => {
    const revocation = { type: proto.Message.ProtocolMessage.Type.REVOKE, key: { id: "X", participant: "222@lid" } };
    const incoming = await one(attrs, { protocolMessage: revocation });
    assert.deepEqual(incoming.change, { kind: "deleted", target: "X", byAdmin });
  });
}

Deno.test("a part that holds nothing for people gives no message", async () => {
  const share = { senderKeyDistributionMessage: { groupId: "1@g.us" } };
  assert.deepEqual(await decode(part(FROM_FRIEND, share), context), []);
});

/** The answer of the owner's phone that contains a message once more. */
function resent(info: proto.IWebMessageInfo): proto.IMessage {
  const webMessageInfoBytes = proto.WebMessageInfo.encode(info).finish();
  return {
    protocolMessage: {
      type: proto.Message.ProtocolMessage.Type.PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE,
      peerDataOperationRequestResponseMessage: {
        peerDataOperationResult: [{ placeholderMessageResendResponse: { webMessageInfoBytes } }],
      },
    },
  };
}

Deno.test("messages that the owner's phone sends once more are read as what they were", async () => {
  const answer = resent({
    key: { id: "LOST", remoteJid: "5511900000002@s.whatsapp.net", fromMe: false },
    message: { conversation: "here again" },
    messageTimestamp: 1_600_000_000,
  });
  const incoming = await one({ from: "5511900000001@s.whatsapp.net", category: "peer" }, answer);
  assert.equal(incoming.networkId, "LOST");
  assert.equal(incoming.text, "here again");
  assert.deepEqual(await decode(part(FROM_FRIEND, answer), context), [], "nobody else may put words into a chat");
});

Deno.test("a group's message that the owner's phone sends once more is its author's, who may stand beside the key", async () => {
  const key = { id: "LOST", remoteJid: "1@g.us", fromMe: false };
  const message = { conversation: "here again" };
  for (const info of [{ key, participant: "777@lid" }, { key: { ...key, participant: "777@lid" } }]) {
    const incoming = await one({ from: ME.id, category: "peer" }, resent({ ...info, message }));
    assert.equal(incoming.participant, "777@lid");
    assert.equal(incoming.number, "5511977777777");
  }
});

Deno.test("bytes that are no message, and stanzas without a sender, are errors and not messages", async () => {
  await assert.rejects(
    decode({ attrs: { id: "M1", from: "5@s.whatsapp.net" }, plaintext: Uint8Array.of(255, 255, 1) }, context),
  );
  await assert.rejects(decode(part({}), context));
});

Deno.test("a message that could not be read is reported with what its stanza says", async () => {
  const incoming = await decodeUndecryptable({ attrs: { id: "M9", t: "1700000000", ...FROM_FRIEND } }, context);
  assert.equal(incoming.undecryptable, true);
  assert.equal(incoming.type, "unknown");
  assert.equal(incoming.networkId, "M9");
  assert.equal(incoming.number, "5511900000002");
});

for (
  const [from, chat, number] of [
    ["5511900000002:99@hosted", "5511900000002@s.whatsapp.net", "5511900000002"],
    ["777:99@hosted.lid", "777@lid", "5511977777777"],
  ]
) {
  Deno.test(`the chat of ${from} is that of the person, whether or not the message could be read`, async () => {
    for (
      const incoming of [
        await one({ from: from! }),
        await decodeUndecryptable({ attrs: { id: "M9", from: from! } }, context),
      ]
    ) {
      assert.equal(incoming.chat, chat);
      assert.equal(incoming.number, number);
    }
  });
}

Deno.test("a history is taken from the owner's phone alone, and is nothing for people", async () => {
  const taken: unknown[] = [];
  const listening = { ...context, history: (part: unknown) => Promise.resolve(void taken.push(part)) };
  const type = proto.Message.ProtocolMessage.Type.HISTORY_SYNC_NOTIFICATION;
  const message = { protocolMessage: { type, historySyncNotification: { directPath: "/history" } } };
  assert.deepEqual(await decode(part({ from: "5511977777777@s.whatsapp.net" }, message), listening), []);
  assert.equal(taken.length, 0);
  assert.deepEqual(await decode(part({ from: ME.id, category: "peer" }, message), listening), []);
  assert.equal(taken.length, 1);
});

Deno.test("a reaction that does not say to what it belongs is a message, and a vote is nothing", async () => {
  const reaction = await one(FROM_FRIEND, { reactionMessage: { text: "👍" } });
  assert.equal(reaction.type, "reactionMessage");
  assert.equal(reaction.text, "👍");
  assert.deepEqual(await decode(part(FROM_FRIEND, { pollUpdateMessage: {} }), context), []);
  const [pollCreationMessageKey, vote] = [{ id: "a".repeat(70_000) }, { encPayload: Uint8Array.of(1) }];
  const unfit: DecodeContext = { ...context, findOriginal: () => assert.fail("no poll can have this id") };
  assert.deepEqual(await decode(part(FROM_FRIEND, { pollUpdateMessage: { pollCreationMessageKey, vote } }), unfit), []);
});

Deno.test("what the network withholds is told at once, and why", async () => {
  const attrs = { id: "M9", t: "1700000000", ...FROM_FRIEND };
  const once = await decodeUndecryptable({ attrs, withheld: "view_once" }, context);
  assert.deepEqual([once.viewOnce, once.details, once.undecryptable], [true, { withheld: "view_once" }, false]);
  const bot = await decodeUndecryptable({ attrs, withheld: "bot" }, context);
  assert.deepEqual([bot.viewOnce, bot.details], [false, { withheld: "bot" }]);
});

Deno.test("a message with more members than any app sends is reported without its content, and one of an own device is dropped", async () => {
  const contacts = new Array(30_000).fill({});
  const many: Record<string, proto.IMessage> = {
    contacts: { contactsArrayMessage: { contacts } },
    mentions: { extendedTextMessage: { text: "see", contextInfo: { mentionedJid: new Array(30_000).fill("") } } },
    envelopes: { ephemeralMessage: { message: { contactsArrayMessage: { contacts } } } },
  };
  for (const [what, message] of Object.entries(many)) {
    const { type, undecryptable } = await one(FROM_FRIEND, message);
    assert.deepEqual([type, undecryptable], ["unknown", true], what);
    assert.deepEqual(await decode(part({ from: ME.id, category: "peer" }, message), context), []);
  }
  const [long] = await decode({ ...part(FROM_FRIEND, {}), isTooLong: true }, context);
  assert.deepEqual([long?.type, long?.undecryptable], ["unknown", true], "and a longer one");
  const contact = await one(FROM_FRIEND, { contactsArrayMessage: { contacts: contacts.slice(0, 1_000) } });
  assert.equal(contact.undecryptable, false);
});
