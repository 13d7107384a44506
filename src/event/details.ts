/**
 * The content of received messages for which events have no field of their own: a schema for each type, and for each kind
 * of `unknown`. `whatsapp/baileys/incoming/kinds` reads what is described here.
 */
import { z } from "zod";
import type { INCOMING_TYPES } from "../whatsapp/incoming.ts";

const Time = z.iso.datetime().optional().describe("ISO 8601, UTC.");
const text = z.string().optional();
const number = z.number().optional();
const count = z.number().int().optional();
const yes = z.literal(true).optional();
const Jid = z.string().optional().describe("A JID.");

const Target = z.object({ messageId: z.string().describe("WhatsApp's id."), fromMe: z.boolean(), participant: Jid })
  .meta({ id: "MessageTarget", description: "The message that it is about, from the session's point of view." })
  .optional();
const place = { latitude: number, longitude: number, name: text, address: text, url: text, comment: text };
const Place = z.object(place).meta({ id: "ReceivedPlace" }).optional();
const Contact = z.object({
  name: z.string().nullable(),
  vcard: z.string().nullable().optional(),
  phones: z.array(z.string()).describe("Digits."),
  organization: z.string().nullable().optional().describe("Of a contact that was sent."),
}).meta({ id: "ReceivedContact" });
const Button = z.object({
  id: text,
  text,
  url: text,
  phone: text,
  copy: text.describe("The code that it copies."),
  description: text,
  section: text.describe("Title of the part of the list."),
}).meta({ id: "ReceivedButton" });
const Order = z.object({
  id: text,
  token: text,
  itemCount: count,
  total: number,
  currency: text,
  title: text,
  seller: Jid,
}).meta({ id: "ReceivedOrder" }).optional();
const product = {
  product: z.object({
    id: text,
    retailerId: text,
    title: text,
    description: text,
    price: number,
    currency: text,
    url: text,
    seller: Jid,
  }).meta({ id: "ReceivedProduct" }).optional(),
  catalog: z.object({ title: text, description: text }).meta({ id: "ReceivedCatalog" }).optional(),
};
const body = {
  header: text,
  footer: text,
  buttons: z.array(Button).optional(),
  button: text.describe("What opens the list."),
  order: Order,
  offer: z.object({ text, url: text, copy: text }).meta({ id: "ReceivedOffer" }).optional(),
  location: Place,
  products: z.array(z.object({ id: text, section: text }).meta({ id: "ListedProduct" })).optional(),
  ...product,
  template: text.describe("Name of the template."),
  shop: text,
  collection: text,
};
const Card = z.object({ text, kind: text, ...body }).meta({ id: "ReceivedCard", description: "A card of a carousel." });

/** What any message may have. */
const anyway = {
  disappearing: z.unknown().optional().describe("Seconds after which it vanishes; true if the app does not say."),
  album: text.describe("The same for all pictures of an album."),
  forwardedFrom: z.object({ id: Jid, name: text })
    .meta({ id: "ForwardedFrom", description: "The channel or assistant that it comes from." }).optional(),
  preview: z.object({ title: text, text }).meta({ id: "MessagePreview", description: "A card above it." }).optional(),
  action: z.object({ text, url: text }).meta({ id: "MessageAction", description: "A button below it." }).optional(),
  groups: z.array(z.object({ id: Jid, name: text }).meta({ id: "MentionedGroup" })).optional().describe(
    "The groups that its text names.",
  ),
  memberLabel: text.describe("The sender's label in the group."),
};

function details<Shape extends z.ZodRawShape>(id: string, shape: Shape) {
  return z.object({ ...shape, ...anyway }).meta({ id: `${id}Details` });
}

const Text = details("Text", { link: text, linkTitle: text, linkDescription: text });
const File = details("File", {});
const Contacts = details("Contacts", { contacts: z.array(Contact).optional() });
const Chosen = details("Chosen", { selectedId: text, description: text });

/** The details of each type. */
export const DETAILS = {
  conversation: Text,
  extendedTextMessage: Text,
  imageMessage: File,
  videoMessage: File,
  audioMessage: details("Audio", { voice: yes, seconds: count }),
  documentMessage: details("Document", { title: text, pageCount: count }),
  stickerMessage: File,
  reactionMessage: details("Reaction", { target: Target, removed: yes }),
  locationMessage: details("Location", place),
  liveLocationMessage: details("LiveLocation", { latitude: number, longitude: number, accuracyMeters: count }),
  contactMessage: Contacts,
  contactsArrayMessage: Contacts,
  pollCreationMessage: details("Poll", {
    options: z.array(z.string()).readonly().optional(),
    selectable: z.number().int().nullable().optional().describe("How many may be chosen, if there is a limit."),
    correct: text.describe("The right answer of a quiz."),
  }),
  buttonsResponseMessage: Chosen,
  listResponseMessage: Chosen,
} satisfies Record<(typeof INCOMING_TYPES)[number], z.ZodObject>;

/** Details that say of which kind the message is. */
function ofKinds<Shape extends z.ZodRawShape>(id: string, kinds: [string, ...string[]], shape: Shape) {
  return details(id, { kind: z.enum(kinds).describe("Type of the message on the network."), ...shape });
}

/** The details of the kinds of `unknown`. */
export const DETAILS_OF_KINDS = [
  ofKinds("CompanyMessage", [
    "templateMessage",
    "interactiveMessage",
    "buttonsMessage",
    "listMessage",
    "highlyStructuredMessage",
  ], { ...body, cards: z.array(Card).optional() }),
  ofKinds("Order", ["orderMessage"], { order: Order }),
  ofKinds("Product", ["productMessage"], { ...product, footer: text }),
  ofKinds("Answer", ["interactiveResponseMessage", "templateButtonReplyMessage"], {
    selectedId: text,
    flow: text.describe("Name of the flow."),
    form: z.record(z.string(), z.unknown()).optional().describe("What was filled in."),
  }),
  ofKinds("Invoice", ["invoiceMessage"], {
    invoice: z.object({ token: text }).meta({ id: "ReceivedInvoice" }).optional(),
  }),
  ofKinds("Payment", ["sendPaymentMessage", "requestPaymentMessage"], {
    payment: z.object({ amount: number, currency: text, from: Jid, expiresAt: Time }).meta({ id: "ReceivedPayment" })
      .optional(),
    target: Target,
  }),
  ofKinds("Event", ["eventMessage"], {
    event: z.object({
      name: text,
      description: text,
      startsAt: Time,
      endsAt: Time,
      location: Place,
      link: text,
      canceled: yes,
    }).meta({ id: "ReceivedEvent" }).optional(),
  }),
  ofKinds("EventResponse", ["eventResponse"], {
    target: Target,
    response: z.enum(["going", "not_going", "maybe"]).optional(),
    guests: count,
  }),
  ofKinds("GroupInvite", ["groupInviteMessage"], {
    invite: z.object({ groupId: Jid, code: text, name: text, expiresAt: Time }).meta({ id: "GroupInvitation" })
      .optional(),
  }),
  ofKinds("ChannelInvite", ["newsletterAdminInviteMessage", "newsletterFollowerInviteMessageV2"], {
    channel: z.object({ id: Jid, name: text, expiresAt: Time }).meta({ id: "ChannelInvitation" }).optional(),
  }),
  ofKinds("About", [
    "commentMessage",
    "declinePaymentRequestMessage",
    "cancelPaymentRequestMessage",
    "scheduledCallEditMessage",
    "questionResponseMessage",
    "statusQuestionAnswerMessage",
    "statusQuotedMessage",
    "statusStickerInteractionMessage",
  ], { target: Target }),
  ofKinds("StickerPack", ["stickerPackMessage"], {
    stickerPack: z.object({ id: text, name: text, publisher: text, description: text }).meta({ id: "StickerPack" })
      .optional(),
  }),
  ofKinds("PollResult", ["pollResultSnapshotMessage", "pollResultSnapshotMessageV3"], {
    votes: z.array(z.object({ name: text, votes: z.number().int() }).meta({ id: "PollVotes" })).optional(),
  }),
  ofKinds("ScheduledCall", ["scheduledCallCreationMessage"], {
    call: z.object({ startsAt: Time, video: yes }).meta({ id: "ScheduledCall" }).optional(),
  }),
];

/** Of a message that could not be read, and of a kind that has nothing but its text. */
export const OtherDetails = details("Other", {
  kind: text.describe("Type of the message on the network."),
  withheld: z.enum(["view_once", "hosted", "bot"]).optional().describe("Why it is shown on phones only."),
  undecryptable: yes.describe("True if it could not be decrypted."),
});

/** The details of any message; inside the gateway they are a record. */
export const MessageDetails: z.ZodType<Record<string, unknown>> = z.union([
  ...DETAILS_OF_KINDS,
  ...new Set<z.ZodObject>(Object.values(DETAILS)),
  OtherDetails,
]).meta({ id: "MessageDetails", description: "Content that has no field of its own, by the type of the message." });
