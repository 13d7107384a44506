/** What each type of message says: type, text, file and details. */
import assert from "node:assert/strict";
import { proto } from "@whiskeysockets/baileys";
import { contentOf } from "../../../../src/whatsapp/baileys/incoming/content.ts";

/** A message as it comes out of the wire: encoded and decoded, so that unset fields are unset. */
function received(message: proto.IMessage): proto.Message {
  return proto.Message.decode(proto.Message.encode(proto.Message.fromObject(message)).finish());
}

const target = { id: "3EB0", remoteJid: "551@s.whatsapp.net", fromMe: true };
const named = { messageId: "3EB0", fromMe: true };

const VCARD = [
  "BEGIN:VCARD",
  "N:;Ana;;;",
  "TEL;type=CELL;waid=447700900123:+44 7700 900123",
  "item1.TEL;type=WORK:+44 7700 900124",
  "END:VCARD",
].join("\n");

const TABLE: [
  title: string,
  message: proto.IMessage,
  expected:
    & { type: string; text: string | null; details?: unknown; kind?: string }
    & Partial<NonNullable<ReturnType<typeof contentOf>>>,
][] = [
  ["a plain text", { conversation: "hi 👋" }, { type: "conversation", text: "hi 👋" }],
  ["a formatted text with a link", {
    extendedTextMessage: { text: "see https://a.b", matchedText: "https://a.b", title: "A" },
  }, {
    type: "extendedTextMessage",
    text: "see https://a.b",
    details: { link: "https://a.b", linkTitle: "A" },
  }],
  ["an answer that mentions somebody", {
    extendedTextMessage: {
      text: "yes",
      contextInfo: { stanzaId: "Q1", participant: "552@lid", mentionedJid: ["553@lid"] },
    },
  }, {
    type: "extendedTextMessage",
    text: "yes",
    quoted: { messageId: "Q1", participant: "552@lid", text: null },
    mentions: ["553@lid"],
  }],
  ["an answer to an image, forwarded", {
    imageMessage: {
      contextInfo: {
        stanzaId: "Q1",
        quotedMessage: { ephemeralMessage: { message: { imageMessage: { caption: "menu" } } } },
        isForwarded: true,
      },
    },
  }, {
    type: "imageMessage",
    text: null,
    kind: "image",
    quoted: { messageId: "Q1", participant: null, text: "menu" },
    isForwarded: true,
  }],
  ["the first words of somebody who came by an ad", {
    extendedTextMessage: {
      text: "hi",
      contextInfo: {
        conversionSource: "FB_Ads",
        externalAdReply: {
          title: "Sale",
          sourceType: "ad",
          sourceId: "120",
          sourceUrl: "https://fb.me/x",
          ctwaClid: "c",
        },
      },
    },
  }, {
    type: "extendedTextMessage",
    text: "hi",
    ad: {
      title: "Sale",
      sourceType: "ad",
      sourceId: "120",
      sourceUrl: "https://fb.me/x",
      clickId: "c",
      conversionSource: "FB_Ads",
    },
  }],
  ["a preview of a link that names no source", {
    extendedTextMessage: { text: "hi", contextInfo: { externalAdReply: { title: "A page" } } },
  }, { type: "extendedTextMessage", text: "hi", details: { preview: { title: "A page" } } }],
  ["a view-once video as newer apps send it", { videoMessage: { viewOnce: true } }, {
    type: "videoMessage",
    text: null,
    kind: "video",
    viewOnce: true,
  }],
  ["an image with a caption", { imageMessage: { caption: "look" } }, {
    type: "imageMessage",
    text: "look",
    kind: "image",
  }],
  ["an image without one", { imageMessage: {} }, { type: "imageMessage", text: null, kind: "image" }],
  ["a video", { videoMessage: { caption: "c" } }, { type: "videoMessage", text: "c", kind: "video" }],
  ["a round video", { ptvMessage: {} }, { type: "videoMessage", text: null, kind: "video" }],
  ["a voice note", { audioMessage: { ptt: true, seconds: 3 } }, {
    type: "audioMessage",
    text: null,
    kind: "audio",
    details: { voice: true, seconds: 3 },
  }],
  ["a document", { documentMessage: { fileName: "a.pdf", title: "a", pageCount: 2 } }, {
    type: "documentMessage",
    text: null,
    kind: "document",
    details: { title: "a", pageCount: 2 },
  }],
  ["a document with a caption", { documentWithCaptionMessage: { message: { documentMessage: { caption: "due" } } } }, {
    type: "documentMessage",
    text: "due",
    kind: "document",
  }],
  ["a sticker", { stickerMessage: {} }, { type: "stickerMessage", text: null, kind: "sticker" }],
  ["a moving sticker", { lottieStickerMessage: { message: { stickerMessage: {} } } }, {
    type: "stickerMessage",
    text: null,
    kind: "sticker",
  }],
  ["a reaction", { reactionMessage: { key: target, text: "👍" } }, {
    type: "reactionMessage",
    text: "👍",
    details: { target: named },
  }],
  ["a reaction taken back", { reactionMessage: { key: target, text: "" } }, {
    type: "reactionMessage",
    text: null,
    details: { target: named, removed: true },
  }],
  ["a place", { locationMessage: { degreesLatitude: 1.5, degreesLongitude: -2, name: "Café", address: "Rua 1" } }, {
    type: "locationMessage",
    text: "Café",
    details: { latitude: 1.5, longitude: -2, name: "Café", address: "Rua 1" },
  }],
  ["a live location", { liveLocationMessage: { degreesLatitude: 1, degreesLongitude: 2, caption: "on my way" } }, {
    type: "liveLocationMessage",
    text: "on my way",
    details: { latitude: 1, longitude: 2 },
  }],
  ["a contact", { contactMessage: { displayName: "Ana", vcard: VCARD } }, {
    type: "contactMessage",
    text: "Ana",
    details: { contacts: [{ name: "Ana", vcard: VCARD, phones: ["447700900123", "447700900124"] }] },
  }],
  ["several contacts", {
    contactsArrayMessage: { displayName: "2 contacts", contacts: [{ displayName: "A", vcard: "x" }] },
  }, {
    type: "contactsArrayMessage",
    text: "2 contacts",
    details: { contacts: [{ name: "A", vcard: "x", phones: [] }] },
  }],
  ...(["pollCreationMessage", "pollCreationMessageV2", "pollCreationMessageV3"] as const).map((field) =>
    [`a poll (${field})`, { [field]: { name: "When?", options: [{ optionName: "now" }], selectableOptionsCount: 1 } }, {
      type: "pollCreationMessage",
      text: "When?",
      details: { options: ["now"], selectable: 1 },
    }] as (typeof TABLE)[number]
  ),
  ["a chosen button", { buttonsResponseMessage: { selectedButtonId: "b1", selectedDisplayText: "Yes" } }, {
    type: "buttonsResponseMessage",
    text: "Yes",
    details: { selectedId: "b1" },
  }],
  ["a chosen row", {
    listResponseMessage: { title: "Row", description: "d", singleSelectReply: { selectedRowId: "r1" } },
  }, {
    type: "listResponseMessage",
    text: "Row",
    details: { description: "d", selectedId: "r1" },
  }],
  ["a type of no name here", { groupInviteMessage: { groupJid: "1@g.us", caption: "join us" } }, {
    type: "unknown",
    text: "join us",
    details: { kind: "groupInviteMessage", invite: { groupId: "1@g.us" } },
  }],
  ["a disappearing text", { ephemeralMessage: { message: { conversation: "gone soon" } } }, {
    type: "conversation",
    text: "gone soon",
    details: { disappearing: true },
  }],
  ["a view-once image inside a disappearing chat", {
    ephemeralMessage: { message: { viewOnceMessageV2: { message: { imageMessage: { caption: "once" } } } } },
  }, { type: "imageMessage", text: "once", kind: "image", details: { disappearing: true }, viewOnce: true }],
  ["an edit", {
    editedMessage: {
      message: {
        protocolMessage: {
          type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
          key: target,
          editedMessage: { conversation: "corrected" },
        },
      },
    },
  }, { type: "unknown", text: "corrected", change: { kind: "edited", target: "3EB0", text: "corrected" } }],
  ["an edit of an image's caption", {
    protocolMessage: {
      type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
      key: target,
      editedMessage: { imageMessage: { caption: "a better caption", mimetype: "image/png" } },
    },
  }, {
    type: "unknown",
    text: "a better caption",
    change: { kind: "edited", target: "3EB0", text: "a better caption" },
  }],
  ["a deletion", { protocolMessage: { type: proto.Message.ProtocolMessage.Type.REVOKE, key: target } }, {
    type: "unknown",
    text: null,
    change: { kind: "deleted", target: "3EB0", byAdmin: false },
  }],
];

for (const [title, message, { kind, ...expected }] of TABLE) {
  Deno.test(`${title} reads as ${expected.type}`, () => {
    const { media, ...content } = contentOf(received(message))!;
    const usual = {
      details: null,
      quoted: null,
      mentions: [],
      isForwarded: false,
      ad: null,
      viewOnce: false,
      change: null,
    };
    assert.deepEqual(content, { ...usual, ...expected });
    assert.equal(media?.kind, kind);
  });
}

const NOTHING: [title: string, message: proto.IMessage][] = [
  ["an empty message", {}],
  ["a sender key alone", { senderKeyDistributionMessage: { groupId: "1@g.us" }, messageContextInfo: {} }],
  ["keys of the own devices", {
    protocolMessage: { type: proto.Message.ProtocolMessage.Type.APP_STATE_SYNC_KEY_SHARE },
  }],
  ["a deletion of a message whose id no app makes", {
    protocolMessage: { type: proto.Message.ProtocolMessage.Type.REVOKE, key: { id: "a".repeat(70_000) } },
  }],
  ["an edit of such a message", {
    protocolMessage: {
      type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
      key: { id: "a".repeat(70_000) },
      editedMessage: { conversation: "corrected" },
    },
  }],
  ["a chat's timer", { protocolMessage: { type: proto.Message.ProtocolMessage.Type.EPHEMERAL_SETTING } }],
];

for (const [title, message] of NOTHING) {
  Deno.test(`${title} is nothing for people`, () => assert.equal(contentOf(received(message)), null));
}

Deno.test("envelopes without end do not hang the reader", () => {
  let message: proto.IMessage = { conversation: "deep" };
  for (let i = 0; i < 50; i++) message = { ephemeralMessage: { message } };
  assert.equal(contentOf(received(message))?.type, "unknown");
});

Deno.test("of a message that mentions a million, as many are read as a group has members", () => {
  const mentionedJid = Array.from({ length: 1_000_000 }, (_, i) => `${i}@lid`);
  const content = contentOf({ extendedTextMessage: { text: "hey", contextInfo: { mentionedJid } } });
  assert.deepEqual(content?.mentions, mentionedJid.slice(0, 1_024));
});
