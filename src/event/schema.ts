/**
 * The schema of each event's `data`, for the types in `event.ts` and for the API reference (`webhooks` in OpenAPI).
 * Members are only ever added; any other change would be a new version, announced in the changelog.
 */
import { z } from "zod";
import { MessageDetails } from "./details.ts";
import { INCOMING_TYPES, PRESENCE_STATES } from "../whatsapp/incoming.ts";

const Time = z.iso.datetime().describe("ISO 8601, UTC.");
const MessageId = z.string().describe("The gateway's id of the message, as returned by the send.");
const NetworkId = z.string().describe("WhatsApp's id of the message.");
const JobId = z.string().describe("Id of the queue job, as returned by the send.");
const To = z.string().describe("The recipient as given in the send.");

const Tags = z.array(z.string()).readonly().optional().describe("The tags of the send; absent if it had none.");

const VerificationId = z.string().describe("Id of the verification.");

const Media = z.object({
  url: z.string().nullable().describe("Download URL, valid for 24 hours; null if the file could not be downloaded."),
  mimetype: z.string(),
  size: z.number().int().describe("Size in bytes."),
  filename: z.string().describe("Original name of a document; generated for other types."),
  reason: z.string().optional().describe("Why `url` is null."),
}).meta({ id: "ReceivedFile", description: "Present only if the message has a file." });

const Chat = z.string().describe("JID of the chat: the other person's or the group's.");
const Number = z.string().nullable().describe(
  "Phone number of the person who did it, digits only; null if WhatsApp never revealed it.",
);

const Username = z.string().optional().describe("The person's username, without an @; left out if WhatsApp told none.");

const Quoted = z.object({
  messageId: NetworkId,
  fromMe: z.boolean().describe("Whether the session sent it."),
  participant: z.string().nullable().describe("JID of its author, if WhatsApp reports it."),
  text: z.string().nullable().describe("The text, or what else is shown first of the message."),
  status: z.literal(true).optional().describe("Present if it is a status post."),
}).meta({ id: "QuotedMessage", description: "The message that this one replies to." });

const received = {
  from: z.string().describe("JID of the chat. It may end in `@lid` if the sender's number is hidden."),
  number: z.string().nullable().describe(
    "Phone number of the sender, digits only; null if WhatsApp never revealed it.",
  ),
  pushName: z.string().nullable().describe("Public name of the sender."),
  username: Username,
  messageId: NetworkId,
  timestamp: z.number().int().describe("Unix time in seconds."),
  type: z.enum([...INCOMING_TYPES, "unknown"]),
  text: z.string().nullable().describe(
    "Body of a text, caption of a file, or emoji of a reaction; null for a file without a caption.",
  ),
  media: Media.optional(),
  // Beyond the specification: the same as `from`, under the name that all other events use.
  chat: Chat,
  participant: z.string().optional().describe("JID of the sender in a group."),
  quoted: Quoted.optional(),
  mentions: z.array(z.string()).readonly().optional().describe("JIDs of the people mentioned."),
  isForwarded: z.boolean(),
  viewOnce: z.literal(true).optional().describe("Present only on view-once messages."),
  ad: z.record(z.string(), z.string()).optional().describe(
    "The ad that started the chat, as far as WhatsApp reports it: title, body, sourceType, sourceId, " +
      "sourceUrl, clickId, …",
  ),
  choice: z.object({ messageId: MessageId, id: z.string(), label: z.string() }).meta({ id: "ChosenOption" }).optional()
    .describe("The option of your choices that the message picks; `choice.made` tells it too."),
  details: MessageDetails.optional(),
};

const changed = { messageId: NetworkId, chat: Chat, number: Number };

const GroupNow = z.object({
  id: z.string().describe("JID of the group."),
  name: z.string().optional(),
  description: z.string().optional(),
  size: z.number().int().optional().describe("Number of participants."),
  isAdmin: z.boolean().optional().describe("Whether the session's number is an admin."),
  createdAt: Time.optional(),
  announce: z.boolean().optional(),
  locked: z.boolean().optional(),
  ephemeral: z.number().int().optional(),
  community: z.object({ id: z.string(), isAnnouncement: z.boolean() }).meta({ id: "ChangedGroupCommunity" }).optional(),
}).meta({
  id: "ChangedGroup",
  description: "The group after the change; only its id if the session can no longer see the group.",
});

interface EventSchema {
  /** When the event is emitted, in one sentence. */
  summary: string;
  data: z.ZodObject;
}

export const EVENT_SCHEMAS = {
  "message.sent": {
    summary: "WhatsApp acknowledged the message.",
    data: z.object({ messageId: MessageId, networkId: NetworkId, jobId: JobId, to: To, sentAt: Time, tags: Tags }),
  },
  "message.status": {
    summary: "The message was delivered or read.",
    data: z.object({
      messageId: MessageId,
      networkId: NetworkId,
      status: z.enum(["delivered", "read"]),
      participant: z.string().nullable().describe(
        "JID of the person who received or read it in a group; null in a 1:1 chat.",
      ),
      at: Time,
      tags: Tags,
    }),
  },
  "message.failed": {
    summary: "The message failed for good.",
    data: z.object({
      messageId: MessageId,
      networkId: NetworkId,
      jobId: JobId,
      to: To,
      error: z.object({
        code: z.string().describe(
          "Stable code: cancelled, cancelled_by_reply, expired, number_not_registered, refused, unacknowledged, …",
        ),
        message: z.string().describe("The reason, in one sentence."),
      }),
      tags: Tags,
    }),
  },
  "message.proposed": {
    summary: "A key that may only propose sent the message: it waits until somebody approves it.",
    data: z.object({
      messageId: MessageId,
      to: To,
      type: z.string().describe("The kind of message, as in its record."),
      text: z.string().nullable().describe("The text, or the caption of a file."),
      by: z.string().describe("Name of the key."),
    }),
  },
  "message.received": { summary: "The session received a message.", data: z.object(received) },
  "session.connected": {
    summary: "The session connected.",
    data: z.object({ phone: z.string().describe("The linked phone number, digits only.") }),
  },
  "session.disconnected": {
    summary: "The session disconnected.",
    data: z.object({
      status: z.enum(["disconnected", "logged_out"]),
      reason: z.string().describe("The reason, in one sentence."),
    }),
  },
  "session.qr": {
    summary: "A new QR was generated.",
    data: z.object({ qr: z.string().describe("The QR as the data URL of a PNG image.") }),
  },
  "session.passkey": {
    summary: "Linking requires the account's passkey.",
    data: z.object({
      stage: z.enum(["required", "confirm"]).describe(
        "What a person has to do: sign the challenge, or compare the code.",
      ),
      expiresAt: Time,
    }),
  },
  "session.restricted": {
    summary: "WhatsApp stopped the account from starting new chats, or allows it again.",
    data: z.object({
      active: z.boolean().describe("False when the account may start new chats again."),
      kind: z.string().describe("WhatsApp's name for the restriction."),
      until: Time.nullable(),
    }),
  },
  "session.degraded": {
    summary: "The session is connected but receives nothing, or nothing it can decrypt; or it has recovered.",
    data: z.object({
      reason: z.string().nullable().describe("What is wrong, in one sentence; null once the session has recovered."),
    }),
  },
  // A separate event, so that a client that replies to every `message.received` does not reply to the owner.
  "message.echo": {
    summary: "The owner of the number sent a message from the phone or another device.",
    data: z.object({
      ...received,
      from: z.string().describe("JID of the chat in which the message was sent."),
      number: z.string().nullable().describe("The session's own number."),
      fromMe: z.literal(true),
    }),
  },
  // Not a `message.received`: a corrected order is not a second order.
  "message.edited": {
    summary: "An earlier message in the chat was edited.",
    data: z.object({
      ...changed,
      text: z.string().nullable().describe("The new text or caption."),
    }),
  },
  "message.deleted": {
    summary: "An earlier message in the chat was deleted for everyone.",
    data: z.object(changed),
  },
  "poll.vote": {
    summary: "Somebody voted in a poll, or changed or withdrew their vote.",
    data: z.object({
      messageId: MessageId.nullable(),
      networkId: NetworkId,
      chat: Chat,
      number: Number,
      options: z.array(z.string()).readonly().describe("All options now chosen; empty if the vote was withdrawn."),
    }),
  },
  "choice.made": {
    summary: "Somebody answered choices, or changed their answer.",
    data: z.object({
      messageId: MessageId,
      networkId: NetworkId,
      chat: Chat,
      number: Number,
      id: z.string().describe("Id of the option, as given in the send; its number if none was given."),
      label: z.string(),
      how: z.enum(["text", "vote", "tap"]).describe("Whether the person wrote it, voted in the poll or tapped it."),
    }),
  },
  "verification.passed": {
    summary: "Somebody sent the code of a verification to the session.",
    data: z.object({ id: VerificationId, number: Number, chat: Chat }),
  },
  "verification.failed": {
    summary: "Another number sent the code of a verification, or nobody did in time.",
    data: z.object({
      id: VerificationId,
      reason: z.string().describe("Stable code: expired, other_number, number_hidden."),
    }),
  },
  "bulk.finished": {
    summary: "Every message of a bulk was sent or has failed.",
    data: z.object({
      bulkId: z.string().describe("Id of the bulk, as returned by the send."),
      total: z.number().int(),
      sent: z.number().int(),
      failed: z.number().int().describe("Includes cancelled messages."),
    }),
  },
  "recipient.opted_out": {
    summary: "Somebody sent one of the account's opt-out words; messages to them are refused from now on.",
    data: z.object({
      number: z.string().describe(
        "Phone number, digits only, or a JID ending in `@lid` if WhatsApp never revealed the number.",
      ),
      word: z.string().describe("The word, as in the account's `optOutWords`."),
    }),
  },
  "call.received": {
    summary: "Somebody is calling the session's number.",
    data: z.object({
      callId: z.string().describe("WhatsApp's id of the call."),
      chat: Chat,
      number: Number,
      video: z.boolean(),
    }),
  },
  "presence.updated": {
    summary: "Somebody came online, went offline, or is typing. Sent only if subscribed to by name.",
    data: z.object({ chat: Chat, number: Number, state: z.enum(PRESENCE_STATES) }),
  },
  "group.updated": {
    summary: "A group with the session in it was created, or its name or settings changed.",
    data: z.object({ group: GroupNow }),
  },
  "group.participants": {
    summary: "Participants joined or left a group, or their admin status changed.",
    data: z.object({
      group: GroupNow,
      action: z.enum(["add", "remove", "promote", "demote", "leave"]),
      participants: z.array(
        z.object({ id: z.string(), number: z.string().nullable(), username: Username }).meta({
          id: "ChangedParticipant",
        }),
      ).readonly(),
    }),
  },
  "webhook.disabled": {
    summary: "The gateway disabled a webhook because its target asked for it or failed for days.",
    data: z.object({
      webhookId: z.string(),
      since: Time.describe("Since when nothing was delivered."),
      reason: z.string().describe("Why it was disabled, and how to enable it again."),
    }),
  },
  "webhook.failing": {
    summary: "Three deliveries in a row to another webhook failed, or it was disabled.",
    data: z.object({
      webhookId: z.string(),
      url: z.string(),
      active: z.boolean().describe("False if the gateway disabled it."),
      failedInARow: z.number().int().describe("Failed deliveries since the last success."),
      lastError: z.string(),
      since: Time,
    }),
  },
  "webhook.test": {
    summary: "A test requested through the API or the panel.",
    data: z.object({ webhookId: z.string(), at: Time }),
  },
} satisfies Record<string, EventSchema>;

/** The body of a webhook request; the feed adds the event's id and time. */
export function envelopeSchema<Name extends keyof typeof EVENT_SCHEMAS>(name: Name) {
  return z.object({
    event: z.literal(name),
    sessionId: z.string(),
    sessionName: z.string().describe("Name of the session."),
    data: EVENT_SCHEMAS[name].data,
  });
}
