/**
 * Webhooks in the shape of the official API: one message or one status in each body, all of it in ASCII, as some clients
 * verify the signature over what they escape themselves.
 */
import { createHmac } from "node:crypto";
import type { LoggedEvent } from "../event/event.ts";
import { lineKeys } from "../line/rows.ts";
import { mediaKeys } from "../media/rows.ts";
import { chatOf } from "../message/message.ts";
import { messageKeys } from "../message/rows.ts";
import type { Kv } from "../store/kv.ts";
import { isGroup } from "../whatsapp/chats.ts";
import type { Format } from "../webhook/format.ts";
import type { Fields } from "./fields.ts";
import { chosen, contentOf, contextOf, type Known, referralOf } from "./received.ts";
import { type Status, statusOf } from "./statuses.ts";
import { userIdOf } from "./user_id.ts";

type Of<Name extends LoggedEvent["event"]> = Extract<LoggedEvent, { event: Name }>;

/** A change of the body: its field, and its value beside what every value has. */
interface Change {
  field: "messages" | "smb_message_echoes";
  value: Fields;
}

/** Returns the format, which looks up what events do not tell. */
export function cloudFormat(kv: Pick<Kv, "get">): Format {
  const valueOf = async <T>(key: Parameters<typeof kv.get<T>>[0]) => (await kv.get(key)).value;

  /** Resolves to the change; `line` is the line's number. */
  async function changeOf(event: LoggedEvent, line: string): Promise<Change> {
    const known: Known = {
      file: (fileId) => valueOf(mediaKeys.file(fileId)),
      message: (messageId) => valueOf(messageKeys.message(messageId)),
      idOf: async (networkId) => await valueOf(messageKeys.messageOfNetworkId(event.sessionId, networkId)) ?? networkId,
    };
    switch (event.event) {
      case "message.received":
        return { field: "messages", value: await received(event, { line, known }) };
      case "message.echo":
        return { field: "smb_message_echoes", value: await echoed(event, { line, known }) };
      case "choice.made":
        return { field: "messages", value: await voted(event, { line, known }) };
      case "message.sent":
      case "message.status":
      case "message.failed":
        return { field: "messages", value: reported(statusOf(event, await known.message(event.data.messageId))) };
      default:
        return { field: "messages", value: reported(sample(event, line)) };
    }
  }

  return {
    async bodyOf(event) {
      const { sessionId } = event;
      const line = (await valueOf(lineKeys.line(sessionId)))?.phone ?? sessionId;
      const { field, value } = await changeOf(event, line);
      const metadata = { display_phone_number: line, phone_number_id: line };
      const change = { field, value: { messaging_product: "whatsapp", metadata, ...value } };
      // Some clients know a business account by digits alone, and drop what is of another.
      return inAscii({ object: "whatsapp_business_account", entry: [{ id: line, changes: [change] }] });
    },
    signatureHeaders: ({ id, body, secrets }) => ({
      // Not the official API's: the same for retries and redeliveries.
      "webhook-id": id,
      "x-hub-signature-256": `sha256=${createHmac("sha256", secrets[0]!).update(body).digest("hex")}`,
    }),
  };
}

async function received({ data }: Of<"message.received">, { line, known }: { line: string; known: Known }) {
  const person = personOf(data.number, data.participant ?? data.chat);
  const message = {
    from: person,
    from_user_id: userIdOf(person),
    ...(isGroup(data.chat) ? { group_id: data.chat } : {}),
    id: data.messageId,
    timestamp: String(data.timestamp),
    ...await contextOf(data, { line, other: person, known }),
    ...referralOf(data),
    ...await contentOf(data, known),
  };
  return { contacts: [contactOf(person, data.pushName)], messages: [message] };
}

async function echoed({ data }: Of<"message.echo">, { line, known }: { line: string; known: Known }) {
  const person = chatOf(data.chat);
  const message = {
    from: line,
    to: person,
    ...(isGroup(person) ? { group_id: person } : { to_user_id: userIdOf(person) }),
    id: data.messageId,
    timestamp: String(data.timestamp),
    ...await contextOf(data, { line, other: person, known }),
    ...await contentOf(data, known),
  };
  return { contacts: [contactOf(person, null)], message_echoes: [message] };
}

/** A vote is no message of its own: the event's id stands for it. */
async function voted({ id, createdAt, data }: Of<"choice.made">, { line, known }: { line: string; known: Known }) {
  const person = personOf(data.number, data.chat);
  const message = {
    from: person,
    from_user_id: userIdOf(person),
    ...(isGroup(data.chat) ? { group_id: data.chat } : {}),
    id,
    timestamp: inSeconds(createdAt),
    context: { from: line, id: data.messageId },
    ...await chosen(data, known),
  };
  return { contacts: [contactOf(person, null)], messages: [message] };
}

/** Returns a status, with the person whom it is about: in a group its participant. */
function reported({ chat, participant, ...status }: Status): Fields {
  const person = participant ?? chat;
  const recipient = isGroup(chat)
    ? {
      recipient_id: chat,
      recipient_type: "group",
      ...(participant === null
        ? {}
        : { recipient_participant_id: participant, recipient_participant_user_id: userIdOf(participant) }),
    }
    : { recipient_id: chat, recipient_user_id: userIdOf(chat) };
  return { contacts: [contactOf(person, null)], statuses: [{ ...status, ...recipient }] };
}

/** A test is a status of no message, as nothing answers that. */
function sample({ id, createdAt }: LoggedEvent, line: string): Status {
  return { id, status: "sent", timestamp: inSeconds(createdAt), chat: line, participant: null };
}

/** Names a person as `wa_id`s do: by digits, or by JID if WhatsApp hides the number. */
function personOf(number: string | null, jid: string): string {
  return number ?? chatOf(jid);
}

function contactOf(person: string, name: string | null): Fields {
  return { profile: { name: name || person }, wa_id: person, user_id: userIdOf(person) };
}

function inSeconds(ms: number): string {
  return String(Math.floor(ms / 1000));
}

function inAscii(body: object): string {
  return JSON.stringify(body).replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
