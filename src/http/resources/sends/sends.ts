/**
 * Sending (spec, "Sending messages"). Kinds with a plain JSON body are rows of the tables here, at `POST
 * /v1/messages/send/<kind>`; those of the second refer to another message, or to a template. Uploads (`uploads.ts`),
 * status posts and bulks have their own files.
 */
import { z } from "@hono/zod-openapi";
import type { Caller } from "../../../account/account.ts";
import type { RepeatableRequest } from "../../../account/idempotency.ts";
import { validate } from "../../../base/validation.ts";
import { invalid } from "../../../errors.ts";
import type { MessageKind, OutgoingContent } from "../../../message/content.ts";
import type { ForwardContent, ReactionContent } from "../../../message/kinds/plain.ts";
import type { SendManner } from "../../../message/message.ts";
import type { Accepted } from "../../../message/send_command.ts";
import { type Api, type Route, route, routesOf } from "../../api/route.ts";
import { Addressee, PhoneNumber } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
import { bulk } from "./bulk.ts";
import {
  label,
  manner,
  type MannerFields,
  MessageReference,
  options,
  type SendOptions,
  sessionId,
  single,
  Text,
} from "./fields.ts";
import { assertSeen, type Item } from "./options.ts";
import { acknowledged, makeSender, type Outgoing, type Sender } from "./sender.ts";
import { choiceFields, choicesOf } from "./choices.ts";
import { statusPosts } from "./status_posts.ts";
import { makeContentOf, sendTemplate } from "./template.ts";
import { uploads } from "./uploads.ts";

interface KindRequest {
  kind: MessageKind;
  /** For the API reference. */
  summary: string;
  description?: string;
  fields: z.ZodRawShape;
  contentOf(values: Record<string, unknown>, to: string): OutgoingContent;
}

const MAX_CONTACTS = 50;

const Card = z.strictObject({
  name: label(200).meta({ example: "Anna Serra" }),
  phone: PhoneNumber,
  organization: label(200).nullish().meta({ example: "Acme" }),
}).meta({ id: "ContactCard" });

/** In the order of the reference. */
const KIND_REQUESTS: readonly KindRequest[] = [
  kindRequest({
    kind: "text",
    summary: "Send a text",
    fields: { text: Text.meta({ example: "Hello 👋" }) },
    contentOf: ({ text }) => ({ kind: "text", text }),
  }),
  kindRequest({
    kind: "location",
    summary: "Send a location",
    fields: {
      latitude: z.number().min(-90).max(90).meta({ description: "Degrees (WGS 84).", example: 41.3851 }),
      longitude: z.number().min(-180).max(180).meta({ description: "Degrees (WGS 84).", example: 2.1734 }),
      name: label(1_000).nullish().meta({ description: "Name of the place.", example: "Our shop" }),
      address: label(1_000).nullish().meta({ example: "Plaça de Catalunya 1, Barcelona" }),
    },
    contentOf: ({ latitude, longitude, name, address }) => ({
      kind: "location",
      latitude,
      longitude,
      name: name ?? null,
      address: address ?? null,
    }),
  }),
  kindRequest({
    kind: "contact",
    summary: "Send contact cards",
    fields: { contacts: z.array(Card).min(1).max(MAX_CONTACTS) },
    contentOf: ({ contacts }) => ({
      kind: "contact",
      contacts: contacts.map(({ name, phone, organization }) => ({ name, phone, organization: organization ?? null })),
    }),
  }),
  kindRequest({
    kind: "poll",
    summary: "Send a poll",
    fields: {
      question: label(255).meta({ example: "When may we deliver?" }),
      options: z.array(label(100)).min(2).max(12)
        .refine((options) => new Set(options).size === options.length, "must not name an option twice")
        .meta({ uniqueItems: true, example: ["Morning", "Afternoon"] }),
      multiple: z.boolean().nullish().meta({
        description: "Whether a voter may choose several options. Defaults to false.",
      }),
    },
    contentOf: ({ question, options, multiple }) => ({ kind: "poll", question, options, multiple: multiple ?? false }),
  }),
  kindRequest({
    kind: "choices",
    summary: "Ask with a choice of answers",
    description:
      "`numbers` is a text with numbered options, `poll` a poll. `auto` is numbers for a person and a poll " +
      "in a group. `buttons` and `list` are shown by phones only, and WhatsApp does not promise them to anybody but its " +
      "official API: they may stop working at any time. Each answer is an event `choice.made`.",
    fields: choiceFields,
    contentOf: choicesOf,
  }),
];

/** Returns the request, with the parameter type of `contentOf` inferred from the fields. */
function kindRequest<Fields extends z.ZodRawShape>(
  request: Omit<KindRequest, "fields" | "contentOf"> & {
    fields: Fields;
    contentOf(values: z.infer<z.ZodObject<Fields>>, to: string): OutgoingContent;
  },
): KindRequest {
  return request;
}

/** A send with a plain JSON body. */
interface JsonSend {
  route: Route<undefined, undefined, Body>;
  /** Returns the message, and the session that sends it if that is not the body's. Throws Problem. */
  messageOf(body: Body, asked: { caller: Caller; services: Services }): Message | Promise<Message>;
}

type Body = SendOptions & MannerFields;
type Message = Pick<Item, "to" | "content"> & { sessionId?: string | null };

/** Returns the send, with the parameter type of `messageOf` inferred from the route. */
function jsonSend<B extends Body>(
  route: Route<undefined, undefined, B>,
  messageOf: (body: B, asked: { caller: Caller; services: Services }) => Message | Promise<Message>,
): JsonSend {
  return { route, messageOf } as unknown as JsonSend;
}

const KIND_SENDS = Object.fromEntries(KIND_REQUESTS.map(({ kind, summary, description, fields, contentOf }) => {
  const name = kind[0]!.toUpperCase() + kind.slice(1);
  const declared = route("Messages", `send${name}`, {
    ...single,
    at: `POST /v1/messages/send/${kind}`,
    summary,
    ...(description ? { description } : {}),
    body: z.strictObject({ sessionId, to: Addressee, ...fields, ...manner, ...options }).openapi(`${name}Message`),
  });
  return [kind, jsonSend(declared, (body) => ({ to: body.to, content: contentOf(body, body.to) }))];
}));

/** No flags, so that the reference can show it. */
const EMOJI = /\p{Extended_Pictographic}|\p{Regional_Indicator}{2}|[0-9#*]\u{fe0f}?\u{20e3}/u;

/** One emoji, counted in graphemes, as people and apps do. The segmenter is made on use, because it loads a locale. */
const Emoji = z.string().max(64).refine(
  (text) => text === "" || (EMOJI.test(text) && [...new Intl.Segmenter().segment(text)].length === 1),
  "is not one emoji",
);

const { sendReaction, sendForward } = routesOf("Messages", {
  sendReaction: {
    at: "POST /v1/messages/send/reaction",
    ...single,
    summary: "React to a message",
    description: "Sent in the message's chat, by the message's session. If several sessions of the account received " +
      "the same event, `sessionId` chooses one; otherwise it is the oldest.",
    body: z.strictObject({
      sessionId,
      messageId: MessageReference,
      emoji: Emoji.meta({ description: "One emoji. An empty string removes the reaction.", example: "👍" }),
      ...manner,
      ...options,
    }).openapi("ReactionMessage"),
  },

  sendForward: {
    at: "POST /v1/messages/send/forward",
    ...single,
    summary: "Forward a message",
    description: "Forwards a text, file, location or contact card that a session of the account sent within the last " +
      "14 days or received within the last 30. The message's own session forwards it unless `sessionId` names " +
      "another. The `type` is that of the forwarded message, and a link keeps its preview.",
    body: z.strictObject({ sessionId, to: Addressee, messageId: MessageReference, ...manner, ...options }).openapi(
      "ForwardMessage",
    ),
  },
});

/** Sends that refer to something. */
const REFERRING = {
  reaction: jsonSend(sendReaction, async ({ sessionId, messageId, emoji }, { caller, services: { references } }) => {
    const referred = await references.find(caller.account.id, messageId, { sessionId: sessionId ?? null });
    if (sessionId && sessionId !== referred.lineId) throw invalid("sessionId", "is not the session of the message");
    assertSeen(referred, "messageId");
    const content: ReactionContent = { kind: "reaction", emoji, target: referred.key };
    return { to: referred.chat, content, sessionId: referred.lineId };
  }),
  forward: jsonSend(sendForward, async ({ sessionId, to, messageId }, { caller, services: { references } }) => {
    // The message may be forwarded on another line than its own.
    const referred = await references.find(caller.account.id, messageId, { sessionId: null });
    assertSeen(referred, "messageId");
    const { lineId, key: { networkId }, kind, preview } = referred;
    if (kind === null) throw invalid("messageId", "is a message that cannot be forwarded");
    const content: ForwardContent = { kind: "forward", of: kind, source: { lineId, networkId }, preview };
    return { to, content, sessionId: sessionId ?? lineId };
  }),
  template: jsonSend(sendTemplate, async (body, { caller, services: { templates } }) => {
    const contentOf = makeContentOf(templates, caller.account.id);
    return { to: body.to, content: await contentOf(body, { to: body.to, path: "" }) };
  }),
};

const JSON_SENDS: Readonly<Record<string, JsonSend>> = { ...KIND_SENDS, ...REFERRING };

interface Sends {
  routes: readonly Route[];
  add(api: Api, sender: Sender, services: Services): void;
}

/** Sends that do not fit the table. */
const OTHERS: readonly Sends[] = [uploads, statusPosts, bulk];

export const sendResource = {
  routes: [...Object.values(JSON_SENDS).map(({ route }) => route), ...OTHERS.flatMap(({ routes }) => routes)],
  add: addSends,
};

function addSends(api: Api, services: Services): void {
  const sender = makeSender(services);
  const accept = makeAcceptJson(sender, services);
  for (const send of Object.values(JSON_SENDS)) {
    api.on(send.route, async (request) => acknowledged(await accept(send, request)));
  }
  for (const { add } of OTHERS) add(api, sender, services);
}

interface Request<Given> {
  caller: Caller;
  body: Given;
  repeat: RepeatableRequest | null;
  cloud?: SendManner["cloud"] | undefined;
  checkLine?: Outgoing["checkLine"];
}

function makeAcceptJson(sender: Sender, services: Services) {
  return ({ messageOf }: JsonSend, { caller, body, cloud, ...outgoing }: Request<Body>): Promise<Accepted> =>
    sender.once(outgoing.repeat, async () => {
      const { sessionId, ...message } = await messageOf(body, { caller, services });
      const items = [{ ...message, manner: body, cloud }];
      return await sender.sendNew(caller, sessionId ? { ...body, sessionId } : body, { ...outgoing, items });
    });
}

/** The body of a message whose content is made already. */
const Addressed = z.strictObject({ sessionId, to: Addressee, ...manner, ...options });

/**
 * Makes what sends for another interface than `/v1`: a kind with the fields of its route's body, or a content that is
 * made already with those that all bodies have. Both resolve once the message is on disk, and throw Problem, StoreError.
 */
export function makeSends(services: Services) {
  const sender = makeSender(services);
  const accept = makeAcceptJson(sender, services);
  return {
    async json(kind: string, request: Request<unknown>): Promise<Accepted> {
      const send = JSON_SENDS[kind]!;
      return await accept(send, { ...request, body: validate(send.route.body!, request.body) });
    },
    async content(content: OutgoingContent, { caller, body: given, cloud, ...outgoing }: Request<unknown>) {
      const body = validate(Addressed, given);
      const items = [{ to: body.to, content, manner: body, cloud }];
      return await sender.send(caller, body, { ...outgoing, items });
    },
  };
}
