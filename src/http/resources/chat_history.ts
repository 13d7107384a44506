/** The chats of a session: the list, one chat, its messages, and the people in them. */
import { z } from "@hono/zod-openapi";
import { type ChatRecord, ME, type Said } from "../../chat/rows.ts";
import type { InLine } from "../../chat/chat_index.ts";
import { MessageDetails } from "../../event/details.ts";
import type { ChatEntry, Listed } from "../../line/chat_history.ts";
import { attachmentOf, detailsOf, type OutgoingContent, previewOf, typeOf } from "../../message/content.ts";
import type { Message } from "../../message/message.ts";
import { isGroup } from "../../whatsapp/chats.ts";
import { type Api, ok, routesOf } from "../api/route.ts";
import {
  data,
  idParams,
  isoTime,
  isoTimeOrNull,
  isoTimes,
  orNull,
  pageBy,
  queryInt,
  Recipient,
  Timestamp,
} from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { MessageError } from "./messages.ts";

const text = z.string().nullable();
const number = text.openapi({
  description: "Phone number, digits only; null if WhatsApp never revealed it, and for a group.",
  example: "447700900123",
});
const lid = text.openapi({ description: "The person's JID that hides the number.", example: "123456789012345@lid" });
const username = text.describe("The person's user name; null if WhatsApp did not report one.");
const name = text.describe("The public name of the person, or the name of the group, if known.");

const ChatMessage = z.object({
  messageId: z.string().describe(
    "The gateway's id (`msg_…`) of a message sent through the API, WhatsApp's id of any other.",
  ),
  networkId: z.string().describe("WhatsApp's id."),
  direction: z.enum(["in", "out"]).describe("`out`: sent through the API, or written on the owner's phone."),
  author: orNull(z.object({ number, name: text }).openapi("ChatAuthor")).describe("Who wrote it; null for `out`."),
  type: z.string().describe(
    "Of a message sent through the API, its type in the history (`text`, `image`, …); of any other, " +
      "its type in the event (`conversation`, `imageMessage`, …).",
  ),
  text: text.describe("The text or caption, as last edited; null for a deleted message."),
  media: orNull(
    z.object({
      url: text.describe("Download URL of a received file; null when it is no longer valid."),
      mimetype: z.string(),
      size: z.int(),
      filename: z.string(),
      reason: z.string().optional().describe("Why `url` is null."),
    }).openapi("ChatFile"),
  ),
  // A union within a union would be written out.
  details: orNull(z.lazy(() => MessageDetails)),
  quoted: orNull(
    z.object({ messageId: z.string(), fromMe: z.boolean(), participant: text, text }).openapi("ChatQuote"),
  ).describe("The message that this one replies to, by WhatsApp's id."),
  status: orNull(z.enum(["queued", "processing", "sent", "failed", "delivered", "read"]))
    .describe("Of a message sent through the API; null for any other."),
  error: orNull(MessageError),
  timestamp: Timestamp,
  editedAt: Timestamp.nullable(),
  deletedAt: Timestamp.nullable(),
  reactions: z.array(z.object({ number, emoji: z.string() }).openapi("ChatReaction")),
  tags: z.array(z.string()),
}).openapi("ChatMessage");

const Chat = z.object({
  chat: z.string().openapi({
    description: "Names the chat in paths and in `to`: a number, a group's JID, or a JID ending in `@lid`.",
    example: "447700900123",
  }),
  number,
  lid,
  username,
  name,
  isGroup: z.boolean(),
  unread: z.int().describe(
    "Messages received since the chat was last read, on the phone or through the API, or answered.",
  ),
  lastAt: Timestamp.describe("When the newest message was received or sent."),
  lastMessage: orNull(ChatMessage).describe("Null if it was erased, or is no longer kept."),
}).openapi("Chat");

const Person = z.object({ number, lid, username, name, chat: z.string() }).openapi("ChatContact");

const ofSession = { params: idParams("session", "ses") };
const ofChat = { params: ofSession.params.extend({ chat: Recipient }) };

const limit = queryInt({ minimum: 1, maximum: 100, fallback: 20 });
const cursor = (description: string) => z.string().min(1).max(128).optional().openapi({ description });
const q = z.string().min(1).max(100).optional().describe("Part of a name or number.");

const routes = routesOf("Chats", {
  listChats: {
    at: "GET /v1/sessions/{id}/chats",
    ...ofSession,
    summary: "List chats",
    description: "The chat with the newest message first. A person is one chat, whether messages name the number or " +
      "the `@lid`. A chat that gets a message between two pages moves to the top of the list.",
    query: z.object({
      limit,
      after: cursor("`next` of the page before."),
      q,
      unread: z.enum(["true", "false"]).optional().describe("`true`: only chats with unread messages."),
      wrote: z.enum(["true", "false"]).optional().describe("`true`: only chats in which the other side has written."),
    }),
    answers: { 200: pageBy("A page of chats", Chat) },
  },

  getChat: {
    at: "GET /v1/sessions/{id}/chats/{chat}",
    ...ofChat,
    summary: "Get a chat",
    answers: { 200: data("The chat; 404 if there is no message in it", Chat) },
  },

  listChatMessages: {
    at: "GET /v1/sessions/{id}/chats/{chat}/messages",
    ...ofChat,
    summary: "List the messages of a chat",
    description: "Newest first: what was received, sent through the API, and written on the owner's phone. A message " +
      "sent through the API is in its chat from when it first leaves the queue. A reaction is shown at its message. " +
      "`next` leads to older messages as `before`.",
    query: z.object({
      limit,
      before: cursor("Only older messages than this: `next` of a page, or a `messageId`."),
      after: cursor("Only newer messages than this: `next` of a page, or a `messageId`."),
    }),
    answers: { 200: pageBy("A page of messages", ChatMessage) },
  },

  listContacts: {
    at: "GET /v1/sessions/{id}/contacts",
    ...ofSession,
    tag: "Contacts",
    summary: "List contacts",
    description: "The people with whom the session has a chat, in a fixed order.",
    query: z.object({ limit, after: cursor("`next` of the page before."), q }),
    answers: { 200: pageBy("A page of contacts", Person) },
  },
});

export const chatHistoryResource = { routes: Object.values(routes), add: addChatHistory };

/** How long the names of groups are cached, for those that are still unknown. */
const NAMES_MAX_AGE_MS = 60_000;

function addChatHistory(api: Api, { lines, lookups, chatHistory, budgets, runtime: { clock } }: Services): void {
  /**
   * Asks the network for the names of groups that have none yet, and keeps them. An unconnected line shows the groups
   * without.
   */
  async function withGroupNames(chats: readonly Listed[], line: InLine): Promise<readonly Listed[]> {
    if (!chats.some(({ record }) => isGroup(record.chat) && record.name === null)) return chats;
    const ask = async () => {
      const { groups } = await lines.connection(line.accountId, line.lineId);
      return new Map((await groups.list()).map(({ id, name }) => [id, name]));
    };
    const question = { lineId: line.lineId, about: "group names", maxAgeMs: NAMES_MAX_AGE_MS, ask };
    const names = await lookups.answer(question).then(({ value }) => value, () => new Map<string, string>());
    return await Promise.all(chats.map(async ({ record, newest }) => {
      const name = record.name ?? names.get(record.chat) ?? null;
      if (name !== record.name) await chatHistory.rename(line, record.chat, name!);
      return { record: { ...record, name }, newest };
    }));
  }

  /** Resolves to the session's line. Throws Problem not_found, also for another account's. */
  async function lineOf(accountId: string, sessionId: string) {
    const { phone } = await lines.get(accountId, sessionId);
    return { lineId: sessionId, accountId, phone, now: clock.now() };
  }

  api.on(routes.listChats, async ({ accountId, params, query: { limit, after = null, q = null, unread, wrote } }) => {
    const line = await lineOf(accountId, params.id);
    const query = { limit, after, q, unread: unread === "true", wrote: wrote === "true" };
    const { chats, next } = await budgets.read(accountId, () => chatHistory.list(line, query));
    const named = await withGroupNames(chats, line);
    return ok({ data: named.map((chat) => shownChat(chat, line)), next });
  });

  api.answer(routes.getChat, async ({ accountId, params: { id, chat } }) => {
    const line = await lineOf(accountId, id);
    const [named] = await withGroupNames([await chatHistory.get(line, chat)], line);
    return shownChat(named!, line);
  });

  api.on(
    routes.listChatMessages,
    async ({ accountId, params: { id, chat }, query: { limit, before = null, after = null } }) => {
      const line = await lineOf(accountId, id);
      const query = { limit, before, after };
      const { entries, next } = await budgets.read(accountId, () => chatHistory.messages(line, chat, query));
      return ok({ data: entries.map((entry) => shownMessage(entry, line)), next });
    },
  );

  api.on(routes.listContacts, async ({ accountId, params, query: { limit, after = null, q = null } }) => {
    const line = await lineOf(accountId, params.id);
    const { people, next } = await budgets.read(accountId, () => chatHistory.people(line, { limit, after, q }));
    return ok({ data: people.map(shownPerson), next });
  });
}

interface Viewed {
  /** The line's own number. */
  phone: string | null;
  now: number;
}

function shownPerson({ number, lid, username, name, chat }: ChatRecord): z.infer<typeof Person> {
  return { number, lid, username: username ?? null, name, chat };
}

function shownChat({ record, newest }: Listed, line: Viewed): z.infer<typeof Chat> {
  return {
    ...shownPerson(record),
    isGroup: isGroup(record.chat),
    unread: record.unread,
    lastAt: timeOfOrder(record.last),
    lastMessage: newest && shownMessage(newest, line),
  };
}

function shownMessage({ order, row, message }: ChatEntry, { phone, now }: Viewed): z.infer<typeof ChatMessage> {
  const shown = message ? shownSent(message, order) : shownSaid(row as Said, now);
  const reactions = Object.entries(row.reactions ?? {}).map(([by, emoji]) => {
    const number = by === ME ? phone : by.includes("@") ? null : by;
    return { number, emoji };
  });
  return { ...shown, reactions, tags: [...message?.manner?.tags ?? []] };
}

type Shown = Omit<z.infer<typeof ChatMessage>, "reactions" | "tags">;

function shownSaid(said: Said, now: number): Shown {
  const { id, author, type, text, media, details, quoted, timestamp, editedAt = null, deletedAt = null } = said;
  return {
    messageId: id,
    networkId: id,
    direction: author === null ? "out" : "in",
    author: author && { number: author.number, name: author.name },
    type,
    text,
    media: media ? { ...media, url: linkAt(media.url, now) } : null,
    details: details ?? null,
    quoted: quoted ?? null,
    status: null,
    error: null,
    ...isoTimes({ timestamp: timestamp * 1000, editedAt, deletedAt }),
  };
}

function shownSent(message: Message, order: number): Shown {
  const { id, networkId, content, manner, status, error, sentAt, deliveredAt, readAt, editedAt, revokedAt } = message;
  const { text, caption } = previewOf(content);
  const isGone = revokedAt !== undefined;
  const quote = manner?.quote;
  return {
    messageId: id,
    networkId,
    direction: "out",
    author: null,
    type: typeOf(content),
    text: isGone ? null : text ?? caption,
    media: isGone ? null : fileOf(content),
    details: isGone ? null : detailsOf(content),
    quoted: quote && !isGone
      ? { messageId: quote.networkId, fromMe: quote.fromMe, participant: quote.participant, text: quote.text }
      : null,
    status: readAt !== null ? "read" : deliveredAt !== null ? "delivered" : status,
    error,
    timestamp: sentAt === null ? timeOfOrder(order) : isoTime(sentAt),
    editedAt: isoTimeOrNull(editedAt ?? null),
    deletedAt: isoTimeOrNull(revokedAt ?? null),
  };
}

function fileOf(content: OutgoingContent): z.infer<typeof ChatMessage>["media"] {
  const attachment = attachmentOf(content);
  if (!attachment) return null;
  const { filename, mimetype, file } = attachment;
  return { url: null, filename, mimetype, size: "size" in file ? file.size : 0, reason: "it was sent from here" };
}

/** Returns the link while it is valid. */
function linkAt(url: string | null, now: number): string | null {
  const expires = url && new URL(url).searchParams.get("expires");
  return expires && Number(expires) * 1000 > now ? url : null;
}

function timeOfOrder(order: number): string {
  return isoTime(Math.floor(order / 1000));
}
