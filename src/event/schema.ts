/**
 * The schema of each event's `data`, for the types in `event.ts` and for the API reference (`webhooks` in OpenAPI).
 * Members are only ever added; any other change would be a new version, announced in the changelog.
 */
import { z } from "zod";
import { PRESENCE_STATES } from "../whatsapp/notices.ts";
import { INCOMING_TYPES } from "../whatsapp/incoming.ts";

const Time = z.iso.datetime().describe("ISO 8601, UTC");
const MessageId = z.string().describe("The gateway's id of the message, as in the acknowledgement of the send");
const NetworkId = z.string().describe("Id of the message on the messaging network");
const JobId = z.string().describe("Id of the queue job, as in the acknowledgement of the send");
const To = z.string().describe("Recipient as it was given");

const Media = z.object({
  url: z.string().nullable().describe("Download address, valid for 24 hours; null when the file could not be had"),
  mimetype: z.string(),
  size: z.number().int().describe("Bytes"),
  filename: z.string().describe("Original name for documents, generated for other kinds"),
  reason: z.string().optional().describe("Why `url` is null"),
});

const Chat = z.string().describe("JID of the chat: the other person's, or the group's");
const Number = z.string().nullable().describe("Whose doing it is, digits; null where the network never revealed it");

const Quoted = z.object({
  messageId: NetworkId,
  fromMe: z.boolean().describe("Whether the line sent it"),
  participant: z.string().nullable().describe("JID of its author, where the network names it"),
  text: z.string().nullable().describe("What a person reads first of it"),
}).describe("The message that it answers");

const received = {
  from: z.string().describe("Chat JID; it may end in @lid when the sender hides the number"),
  number: z.string().nullable().describe("Real number of the sender, digits; null where the network never revealed it"),
  pushName: z.string().nullable().describe("Public name of the sender"),
  messageId: NetworkId,
  timestamp: z.number().int().describe("Unix seconds"),
  type: z.enum([...INCOMING_TYPES, "unknown"]),
  text: z.string().nullable().describe("Body; caption of media; emoji of a reaction; null for media without caption"),
  media: Media.optional().describe("Present only when the message carries a file"),
  // Beyond the specification: the same as `from`, under the name that all other events use.
  chat: Chat,
  participant: z.string().optional().describe("Sender inside a group"),
  quoted: Quoted.optional(),
  mentions: z.array(z.string()).readonly().optional().describe("JIDs of those whom it mentions"),
  isForwarded: z.boolean(),
  viewOnce: z.literal(true).optional().describe("Present only where it is to be seen once"),
  ad: z.record(z.string(), z.string()).optional().describe(
    "Where the chat came from, as far as the network tells: title, body, sourceType, sourceId, sourceUrl, clickId, …",
  ),
  details: z.record(z.string(), z.unknown()).optional().describe("Content of the type that has no field of its own"),
};

const changed = { messageId: NetworkId, chat: Chat, number: Number };

const GroupNow = z.object({
  id: z.string().describe("Group JID"),
  name: z.string().optional(),
  description: z.string().optional(),
  size: z.number().int().optional().describe("Number of participants"),
  isAdmin: z.boolean().optional().describe("Whether the line is admin"),
  createdAt: Time.optional(),
  announce: z.boolean().optional(),
  locked: z.boolean().optional(),
  ephemeral: z.number().int().optional(),
}).describe("The group as it is after the change; only its id where the network does not tell the line any more");

interface EventSchema {
  /** When the event is emitted, in one sentence. */
  summary: string;
  data: z.ZodObject;
}

export const EVENT_SCHEMAS = {
  "message.sent": {
    summary: "The network acknowledged the message.",
    data: z.object({ messageId: MessageId, networkId: NetworkId, jobId: JobId, to: To, sentAt: Time }),
  },
  "message.status": {
    summary: "The message was delivered or read.",
    data: z.object({
      messageId: MessageId,
      networkId: NetworkId,
      status: z.enum(["delivered", "read"]),
      participant: z.string().nullable().describe("Who received or read it, in a group; null in a 1:1 chat"),
      at: Time,
    }),
  },
  "message.failed": {
    summary: "The send failed for good.",
    data: z.object({
      messageId: MessageId,
      networkId: NetworkId,
      jobId: JobId,
      to: To,
      error: z.object({
        code: z.string().describe("Stable: cancelled, expired, number_not_registered, refused, unacknowledged, …"),
        message: z.string().describe("One sentence"),
      }),
    }),
  },
  "message.received": { summary: "The line received a message.", data: z.object(received) },
  "session.connected": {
    summary: "The line connected.",
    data: z.object({ phone: z.string().describe("Linked number, digits") }),
  },
  "session.disconnected": {
    summary: "The line disconnected.",
    data: z.object({
      status: z.enum(["disconnected", "logged_out"]),
      reason: z.string().describe("One sentence"),
    }),
  },
  "session.qr": {
    summary: "A new QR was generated.",
    data: z.object({ qr: z.string().describe("Data URL of a PNG, base64") }),
  },
  "session.passkey": {
    summary: "Beyond the specification: the account asks for its passkey before it is linked.",
    data: z.object({
      stage: z.enum(["required", "confirm"]).describe(
        "What a person has to do: sign the challenge, or compare the code",
      ),
      expiresAt: Time,
    }),
  },
  "session.restricted": {
    summary: "Beyond the specification: the network lets the account start no new chats, or lets it again.",
    data: z.object({
      active: z.boolean().describe("False when the account may start new chats again"),
      kind: z.string().describe("As the network names it"),
      until: Time.nullable(),
    }),
  },
  "session.degraded": {
    summary:
      "Beyond the specification: the line is connected and hears nothing, or nothing readable; or it is well again.",
    data: z.object({
      reason: z.string().nullable().describe("One sentence; null when the line is well again"),
    }),
  },
  // A separate event, so that a client that replies to every `message.received` does not reply to the owner.
  "message.echo": {
    summary: "Beyond the specification: the line's owner wrote a message on the phone or another device.",
    data: z.object({
      ...received,
      from: z.string().describe("JID of the chat in which the owner wrote"),
      number: z.string().nullable().describe("The line's own number"),
      fromMe: z.literal(true),
    }),
  },
  // Not a `message.received`: a corrected order is not a second order.
  "message.edited": {
    summary: "Beyond the specification: an earlier message of the chat says something else now.",
    data: z.object({
      ...changed,
      text: z.string().nullable().describe("What it says now: the new text or caption"),
    }),
  },
  "message.deleted": {
    summary: "Beyond the specification: an earlier message of the chat was deleted for everyone.",
    data: z.object(changed),
  },
  "poll.vote": {
    summary: "Beyond the specification: somebody voted in a poll, or changed or took back the vote.",
    data: z.object({
      messageId: MessageId.nullable(),
      networkId: NetworkId,
      chat: Chat,
      number: Number,
      options: z.array(z.string()).readonly().describe("All that is chosen now; empty when the vote was taken back"),
    }),
  },
  "bulk.finished": {
    summary: "Beyond the specification: every message of a bulk was sent or has failed.",
    data: z.object({
      bulkId: z.string().describe("As in the acknowledgement of the bulk"),
      total: z.number().int(),
      sent: z.number().int(),
      failed: z.number().int().describe("Cancelled ones too"),
    }),
  },
  "recipient.opted_out": {
    summary: "Beyond the specification: somebody wrote one of the account's words, and is never written to again.",
    data: z.object({
      number: z.string().describe("A JID ending in `@lid` where the network never revealed the number"),
      word: z.string().describe("As in `optOutWords` of the account"),
    }),
  },
  "call.received": {
    summary: "Beyond the specification: somebody calls the line.",
    data: z.object({
      callId: z.string().describe("The network's id of the call"),
      chat: Chat,
      number: Number,
      video: z.boolean(),
    }),
  },
  "presence.updated": {
    summary: "Beyond the specification: somebody came online, went, or types. Only where it is subscribed to by name.",
    data: z.object({ chat: Chat, number: Number, state: z.enum(PRESENCE_STATES) }),
  },
  "group.updated": {
    summary: "Beyond the specification: a group was made with the line in it, or its name or settings changed.",
    data: z.object({ group: GroupNow }),
  },
  "group.participants": {
    summary: "Beyond the specification: participants of a group came, went, or became admins or no admins.",
    data: z.object({
      group: GroupNow,
      action: z.enum(["add", "remove", "promote", "demote", "leave"]),
      participants: z.array(z.object({ id: z.string(), number: z.string().nullable() })).readonly(),
    }),
  },
  "webhook.disabled": {
    summary: "Beyond the specification: a webhook was switched off, for its target asked for it or failed for days.",
    data: z.object({
      webhookId: z.string(),
      since: Time.describe("Since when nothing was delivered"),
      reason: z.string().describe("Why, and how to switch it on"),
    }),
  },
  "webhook.failing": {
    summary: "Beyond the specification: three deliveries of another webhook in a row failed, or it was switched off.",
    data: z.object({
      webhookId: z.string(),
      url: z.string(),
      active: z.boolean().describe("False when the gateway switched it off"),
      failedInARow: z.number().int().describe("Deliveries that ended as failed since the last success"),
      lastError: z.string(),
      since: Time,
    }),
  },
  "webhook.test": {
    summary: "Beyond the specification: the test that the webhook's owner asked for.",
    data: z.object({ webhookId: z.string(), at: Time }),
  },
} satisfies Record<string, EventSchema>;

/** The body of a webhook request; the feed adds the event's id and time. */
export function envelopeSchema<Name extends keyof typeof EVENT_SCHEMAS>(name: Name) {
  return z.object({
    event: z.literal(name),
    sessionId: z.string(),
    sessionName: z.string().describe("The name given to the session"),
    data: EVENT_SCHEMAS[name].data,
  });
}
