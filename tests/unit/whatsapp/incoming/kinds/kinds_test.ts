/** Every kind and envelope of the protobuf has a row, and what is read of each. */
import assert from "node:assert/strict";
import { proto } from "@whiskeysockets/baileys";
import { contentOf } from "../../../../../src/whatsapp/baileys/incoming/content.ts";
import { rowsOf } from "../../../../../src/whatsapp/baileys/incoming/kinds/kinds.ts";

const ROWS = rowsOf(() => null);
/** The fields of the protobuf: static code defines a default for each on the prototype. */
const FIELDS = Object.keys(proto.Message.prototype).filter((name) => name !== "constructor" && name !== "toJSON");

const received = (message: proto.IMessage) =>
  proto.Message.decode(proto.Message.encode(proto.Message.fromObject(message)).finish());

Deno.test("every field of the protobuf has a row, and no row is of none", () => {
  assert.ok(FIELDS.length > 90, `only ${FIELDS.length} fields were found`);
  const opened = ["eventResponse"];
  assert.deepEqual(Object.keys(ROWS).filter((name) => !opened.includes(name)).sort(), FIELDS.toSorted());
});

Deno.test("every kind that is read has a row in the guide to events", async () => {
  const guide = await Deno.readTextFile(new URL("../../../../../docs/events.md", import.meta.url));
  const rows = guide.split("\n").filter((line) => line.startsWith("| `")).map((line) => line.split("|")[1]!);
  for (const field of FIELDS) {
    if (!("read" in ROWS[field as keyof typeof ROWS]) || field === "conversation") continue;
    const type = contentOf(received({ [field]: {} }))!.type;
    const kind = type === "unknown" ? field : type;
    assert.ok(rows.some((row) => row.includes(`\`${kind}\``)), `${kind} has no row`);
  }
});

Deno.test("whatever wraps another message is an envelope", () => {
  for (const field of FIELDS) {
    const wrapping = proto.Message.fromObject({ [field]: { message: { conversation: "inside" } } });
    const body = wrapping[field as keyof proto.IMessage];
    if (!(body instanceof proto.Message.FutureProofMessage)) continue;
    assert.ok("envelope" in ROWS[field as keyof typeof ROWS], `${field} is no envelope`);
    assert.equal(contentOf(received({ [field]: { message: { conversation: "inside" } } }))?.text, "inside", field);
  }
});

const PDF = { url: "https://mmg.whatsapp.net/x", mimetype: "application/pdf", fileName: "invoice.pdf" };
const URL_BUTTON = { name: "cta_url", buttonParamsJson: '{"display_text":"Pay","url":"https://pay.example/7"}' };
const BUTTONS = [
  URL_BUTTON,
  { name: "quick_reply", buttonParamsJson: '{"display_text":"Yes","id":"yes"}' },
  { name: "cta_call", buttonParamsJson: '{"display_text":"Call","phone_number":"+447700900123"}' },
  { name: "cta_copy", buttonParamsJson: '{"display_text":"Copy code","copy_code":"123456"}' },
  {
    name: "single_select",
    buttonParamsJson:
      '{"title":"Menu","sections":[{"title":"Tea","rows":[{"id":"t1","title":"Green","description":"hot"}]}]}',
  },
  { name: "cta_url", buttonParamsJson: "not JSON" },
];

const SAID: [what: string, message: proto.IMessage, text: string | null, details: unknown, media?: string][] = [
  [
    "an invoice in the header of a company's message",
    {
      interactiveMessage: {
        header: { hasMediaAttachment: true, documentMessage: PDF },
        body: { text: "Your invoice" },
        footer: { text: "Acme" },
        nativeFlowMessage: { buttons: [URL_BUTTON] },
      },
    },
    "Your invoice",
    { footer: "Acme", buttons: [{ text: "Pay", url: "https://pay.example/7" }] },
    "document",
  ],
  [
    "buttons of every flow",
    {
      viewOnceMessage: {
        message: { interactiveMessage: { body: { text: "?" }, nativeFlowMessage: { buttons: BUTTONS } } },
      },
    },
    "?",
    {
      buttons: [
        { text: "Pay", url: "https://pay.example/7" },
        { id: "yes", text: "Yes" },
        { text: "Call", phone: "+447700900123" },
        { text: "Copy code", copy: "123456" },
        { text: "Menu" },
        { id: "t1", text: "Green", description: "hot", section: "Tea" },
        { text: "cta_url" },
      ],
    },
  ],
  [
    "an order to be reviewed",
    {
      interactiveMessage: {
        nativeFlowMessage: {
          buttons: [{
            name: "review_and_pay",
            buttonParamsJson: '{"reference_id":"R7","currency":"EUR","total_amount":{"value":1250,"offset":100}}',
          }],
        },
      },
    },
    null,
    { order: { id: "R7", total: 12.5, currency: "EUR" } },
  ],
  [
    "cards of a carousel",
    {
      interactiveMessage: {
        body: { text: "Look" },
        carouselMessage: { cards: [{ header: { title: "One" }, body: { text: "First" } }] },
      },
    },
    "Look",
    { cards: [{ text: "First", kind: undefined, header: "One" }] },
  ],
  [
    "a template",
    {
      templateMessage: {
        hydratedTemplate: {
          hydratedContentText: "Your code is 123",
          hydratedTitleText: "Acme",
          hydratedFooterText: "Do not share",
          hydratedButtons: [
            { quickReplyButton: { id: "ok", displayText: "OK" } },
            { urlButton: { displayText: "Open", url: "https://acme.example" } },
            { callButton: { displayText: "Call", phoneNumber: "+447700900123" } },
          ],
        },
      },
    },
    "Your code is 123",
    {
      header: "Acme",
      footer: "Do not share",
      buttons: [
        { id: "ok", text: "OK" },
        { text: "Open", url: "https://acme.example" },
        { text: "Call", phone: "+447700900123" },
      ],
    },
  ],
  [
    "a template of today's form",
    { templateMessage: { interactiveMessageTemplate: { body: { text: "hi" }, footer: { text: "Acme" } } } },
    "hi",
    { footer: "Acme" },
  ],
  [
    "a template that the recipient's app fills in",
    {
      templateMessage: {
        fourRowTemplate: {
          content: { params: ["hi"] },
          buttons: [
            { quickReplyButton: { id: "ok", displayText: { params: ["OK"] } } },
            { urlButton: { displayText: { params: ["Open"] }, url: { params: ["https://acme.example"] } } },
          ],
        },
      },
    },
    "hi",
    { buttons: [{ id: "ok", text: "OK" }, { text: "Open", url: "https://acme.example" }] },
  ],
  [
    "an offer beside the buttons",
    {
      interactiveMessage: {
        body: { text: "Sale" },
        nativeFlowMessage: {
          messageParamsJson:
            '{"limited_time_offer":{"text":"till noon","url":"https://acme.example","copy_code":"TEN"}}',
        },
      },
    },
    "Sale",
    { offer: { text: "till noon", url: "https://acme.example", copy: "TEN" } },
  ],
  [
    "an assistant's answer",
    {
      richResponseMessage: {
        submessages: [
          { messageText: "Look:" },
          { tableMetadata: { title: "Prices", rows: [{ items: ["tea", "2"] }] } },
          { codeMetadata: { codeBlocks: [{ codeContent: "let " }, { codeContent: "x" }] } },
        ],
      },
    },
    "Look:\nPrices\ntea | 2\nlet x",
    {},
  ],
  ["a structured message", { highlyStructuredMessage: { elementName: "otp", params: ["123", "456"] } }, "123 456", {
    template: "otp",
  }],
  [
    "buttons with a picture",
    {
      buttonsMessage: {
        contentText: "Pick",
        footerText: "Acme",
        imageMessage: { url: "x", caption: "menu" },
        buttons: [{ buttonId: "a", buttonText: { displayText: "A" } }],
      },
    },
    "Pick",
    { header: "menu", footer: "Acme", buttons: [{ id: "a", text: "A" }] },
    "image",
  ],
  [
    "a list",
    {
      listMessage: {
        title: "Menu",
        description: "Choose",
        buttonText: "Open",
        footerText: "Acme",
        sections: [{ title: "Tea", rows: [{ rowId: "t1", title: "Green", description: "hot" }] }],
      },
    },
    "Choose",
    {
      header: "Menu",
      footer: "Acme",
      button: "Open",
      buttons: [{ id: "t1", text: "Green", description: "hot", section: "Tea" }],
    },
  ],
  [
    "an order",
    {
      orderMessage: {
        orderId: "1",
        token: "T",
        itemCount: 2,
        totalAmount1000: 12_500,
        totalCurrencyCode: "EUR",
        message: "please",
        orderTitle: "Shop",
        sellerJid: "447700900123:3@s.whatsapp.net",
      },
    },
    "please",
    {
      order: {
        id: "1",
        token: "T",
        itemCount: 2,
        total: 12.5,
        currency: "EUR",
        title: "Shop",
        seller: "447700900123@s.whatsapp.net",
      },
    },
  ],
  [
    "a question about a product",
    {
      productMessage: {
        body: "Is it there?",
        product: {
          productId: "P",
          retailerId: "R",
          title: "Kettle",
          priceAmount1000: 19_990,
          currencyCode: "EUR",
          productImage: { url: "x" },
        },
      },
    },
    "Is it there?",
    { product: { id: "P", retailerId: "R", title: "Kettle", price: 19.99, currency: "EUR" } },
    "image",
  ],
  [
    "a form that was filled in",
    {
      interactiveResponseMessage: {
        body: { text: "Sent" },
        nativeFlowResponseMessage: { name: "flow", paramsJson: '{"name":"Ana","when":"10:00"}' },
      },
    },
    "Sent",
    { flow: "flow", form: { name: "Ana", when: "10:00" } },
  ],
  [
    "a tapped button",
    {
      interactiveResponseMessage: {
        body: { text: "Yes" },
        nativeFlowResponseMessage: { name: "quick_reply", paramsJson: '{"id":"yes"}' },
      },
    },
    "Yes",
    { selectedId: "yes", flow: "quick_reply" },
  ],
  [
    "a tapped button of a template",
    { templateButtonReplyMessage: { selectedId: "ok", selectedDisplayText: "OK" } },
    "OK",
    {
      selectedId: "ok",
    },
  ],
  [
    "an event",
    {
      eventMessage: {
        name: "Fair",
        description: "Hall 3",
        startTime: 1_768_478_400,
        location: { degreesLatitude: 1, degreesLongitude: 2, name: "Hall" },
      },
    },
    "Fair",
    {
      event: {
        name: "Fair",
        description: "Hall 3",
        startsAt: "2026-01-15T12:00:00.000Z",
        location: { latitude: 1, longitude: 2, name: "Hall" },
      },
    },
  ],
  [
    "an invitation to a channel",
    { newsletterAdminInviteMessage: { newsletterJid: "1@newsletter", newsletterName: "News" } },
    "News",
    {
      channel: { id: "1@newsletter", name: "News" },
    },
  ],
  [
    "a payment that is asked for",
    {
      requestPaymentMessage: { noteMessage: { conversation: "lunch" }, amount1000: 9_000, currencyCodeIso4217: "BRL" },
    },
    "lunch",
    { payment: { amount: 9, currency: "BRL" } },
  ],
  [
    "an invoice",
    { invoiceMessage: { note: "March", token: "T", attachmentType: 1, attachmentDirectPath: "/x" } },
    "March",
    {
      invoice: { token: "T" },
    },
    "document",
  ],
  ["a pack of stickers", { stickerPackMessage: { stickerPackId: "S", name: "Cats", publisher: "Ana" } }, "Cats", {
    stickerPack: { id: "S", name: "Cats", publisher: "Ana" },
  }],
  [
    "the result of a poll",
    {
      pollResultSnapshotMessage: { name: "Tea?", pollVotes: [{ optionName: "Yes", optionVoteCount: 3 }] },
    },
    "Tea?",
    { votes: [{ name: "Yes", votes: 3 }] },
  ],
  [
    "a call that is planned",
    { scheduledCallCreationMessage: { title: "Demo", scheduledTimestampMs: 1_768_478_400_000, callType: 2 } },
    "Demo",
    {
      call: { startsAt: "2026-01-15T12:00:00.000Z", video: true },
    },
  ],
  ["a comment", { commentMessage: { message: { conversation: "nice" }, targetMessageKey: { id: "P" } } }, "nice", {
    target: { messageId: "P", fromMe: false },
  }],
];

for (const [what, message, text, details, media] of SAID) {
  Deno.test(`${what} is read whole`, () => {
    const content = contentOf(received(message));
    assert.equal(content?.type, "unknown");
    assert.equal(content.text, text);
    const { kind, ...rest } = content.details ?? {};
    assert.ok(typeof kind === "string" && FIELDS.includes(kind), String(kind));
    const plain = JSON.parse(JSON.stringify(rest));
    assert.deepEqual(plain, JSON.parse(JSON.stringify(details)));
    assert.equal(content.media?.kind, media);
  });
}

const SILENT: proto.IMessage[] = [
  { albumMessage: { expectedImageCount: 3 } },
  { pinInChatMessage: { key: { id: "P" } } },
  { keepInChatMessage: { key: { id: "P" } } },
  { callLogMesssage: { isVideo: true } },
  { senderKeyDistributionMessage: { groupId: "1@g.us" } },
  { secretEncryptedMessage: { encIv: new Uint8Array(12) } },
];

for (const message of SILENT) {
  Deno.test(`${Object.keys(message)[0]} is no message by itself`, () =>
    assert.equal(contentOf(received(message)), null));
}

Deno.test("pictures of an album name it, and a message tells for how long it stays", () => {
  const messageContextInfo = { messageAssociation: { associationType: 1, parentMessageKey: { id: "ALBUM" } } };
  assert.deepEqual(contentOf(received({ imageMessage: {}, messageContextInfo }))?.details, { album: "ALBUM" });
  const inEnvelope = { associatedChildMessage: { message: { imageMessage: {}, messageContextInfo } } };
  assert.deepEqual(contentOf(received(inEnvelope))?.details, { album: "ALBUM" });
  const stays = { extendedTextMessage: { text: "hi", contextInfo: { expiration: 86_400 } } };
  assert.deepEqual(contentOf(received(stays))?.details, { disappearing: 86_400 });
});

Deno.test("an answer to a status post says so", () => {
  const contextInfo = { stanzaId: "S", participant: "551@s.whatsapp.net", remoteJid: "status@broadcast" };
  assert.equal(contentOf(received({ extendedTextMessage: { text: "hi", contextInfo } }))?.quoted?.status, true);
});

Deno.test("what stands around a message is read: where it comes from, a preview, a button, the groups it names", () => {
  const contextInfo = {
    forwardedNewsletterMessageInfo: { newsletterJid: "1@newsletter", newsletterName: "News" },
    externalAdReply: { title: "A page", body: "of ours" },
    actionLink: { url: "https://acme.example", buttonTitle: "Open" },
    groupMentions: [{ groupJid: "1@g.us", groupSubject: "Team" }],
    memberLabel: { label: "Coach" },
  };
  assert.deepEqual(contentOf(received({ extendedTextMessage: { text: "hi", contextInfo } }))?.details, {
    forwardedFrom: { id: "1@newsletter", name: "News" },
    memberLabel: "Coach",
    preview: { title: "A page", text: "of ours" },
    action: { text: "Open", url: "https://acme.example" },
    groups: [{ id: "1@g.us", name: "Team" }],
  });
});

const MANY = 12_000;
const empty = (count = MANY) => Array.from({ length: count }, () => ({}));
const LONG_LISTS: [
  what: string,
  message: proto.IMessage,
  list: (details: Record<string, unknown>) => unknown,
  number,
][] = [
  ["contacts", { contactsArrayMessage: { contacts: empty() } }, ({ contacts }) => contacts, 1_000],
  ["options", { pollCreationMessage: { options: empty() } }, ({ options }) => options, 1_000],
  ["votes", { pollResultSnapshotMessage: { pollVotes: empty() } }, ({ votes }) => votes, 1_000],
  [
    "buttons",
    { buttonsMessage: { buttons: Array.from({ length: MANY }, () => ({ buttonId: "a" })) } },
    ({ buttons }) => buttons,
    100,
  ],
  [
    "rows in sections",
    {
      listMessage: { sections: Array.from({ length: 120 }, () => ({ rows: empty(120).map(() => ({ rowId: "a" })) })) },
    },
    ({ buttons }) => buttons,
    1_000,
  ],
  [
    "products",
    {
      listMessage: {
        productListInfo: { productSections: [{ products: empty().map(() => ({ productId: "a" })) }] },
      },
    },
    ({ products }) => products,
    1_000,
  ],
  [
    "cards",
    { interactiveMessage: { carouselMessage: { cards: empty().map(() => ({ body: { text: "a" } })) } } },
    ({ cards }) => cards,
    20,
  ],
  ["groups", { imageMessage: { contextInfo: { groupMentions: empty() } } }, ({ groups }) => groups, 1_000],
];

for (const [what, message, listOf, most] of LONG_LISTS) {
  Deno.test(`of a list of ${what} as long as no app makes it the first ones are read`, () => {
    assert.equal((listOf(contentOf(received(message))?.details ?? {}) as unknown[]).length, most);
  });
}
