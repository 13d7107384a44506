/** Every kind and envelope of the protobuf has a row, and what people read in it is not lost. */
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

/** Fields of text that nobody reads: references, keys, addresses of files, what apps note for themselves. */
const NOT_READ = new RegExp(
  "(Id|Jid|Key|Sha256|Path|Url|Hash|Json|Mimetype|FileName|Data|Payload|Label|Lg|Lc|Type|Code|Iso4217|From|Source)$|" +
    "^(url|namespace|mimetype|fileName|matchedText|vcard|token|surface|background|id)$|inviteLinkParentGroupSubject",
);

Deno.test("what a person reads in any kind is in its text or its details", () => {
  const lost: string[] = [];
  for (const field of FIELDS) {
    const row = ROWS[field as keyof typeof ROWS];
    if (!("read" in row) || field === "conversation") continue;
    const probe = proto.Message.fromObject({ [field]: {} })[field as keyof proto.IMessage] as object;
    const texts = Object.keys(Object.getPrototypeOf(probe)).filter((name) => {
      try {
        const { [field as "imageMessage"]: body } = received({ [field]: { [name]: "words" } });
        return (body as unknown as Record<string, unknown>)?.[name] === "words";
      } catch {
        return false;
      }
    });
    for (const name of texts.filter((name) => !NOT_READ.test(name))) {
      const content = contentOf(received({ [field]: { [name]: "words" } }));
      if (!JSON.stringify([content?.text, content?.details]).includes("words")) lost.push(`${field}.${name}`);
    }
  }
  assert.deepEqual(lost, []);
});
