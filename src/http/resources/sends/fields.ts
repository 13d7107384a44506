/** Shared parts of the sends: fields of their bodies, answers and errors. */
import { z } from "@hono/zod-openapi";
import { MAX_TYPING_MS } from "../../../account/plan.ts";
import { invalid } from "../../../errors.ts";
import { PRIORITIES } from "../../../message/message.ts";
import { idOf, oneLine, Person, rare } from "../../api/schemas.ts";

/** The size of the largest group. */
const MAX_MENTIONS = 1_024;

export const DAY_SECONDS = 24 * 60 * 60;
const MAX_TTL_SECONDS = 7 * DAY_SECONDS;

const Session = z.string().min(1).max(100).openapi({
  description: "Session that sends the message. Defaults to the account's first connected session, which is the " +
    "oldest.",
  example: "ses_01kf0m3e4v8s2q6w9x1y5z7abc",
});
export const sessionId = Session.nullish();

const TTL = rare("Seconds the message may wait before it fails as `expired`. Defaults to 24 hours.");
const REPLY_TO = rare(
  "Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is " +
    "sent by that message's session.",
);
const VIEW_ONCE = rare("Whether an image, video or audio message can be opened only once.");
const LINK_PREVIEW = rare(
  "Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does " +
    "not answer within 5 seconds, the message is sent without a preview.",
);
const TYPING = rare(
  'Milliseconds to show "typing…" before the message is sent. Counts towards the plan\'s pause between messages.',
);

const TAGS = rare(
  "Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be " +
    "listed, and cancelled by one call.",
);
const CANCEL_ON_REPLY = rare(
  "Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction " +
    "does not.",
);
const MAX_TAGS = 10;
/** One line, because tags stand in lists and events. */
export const Tag = oneLine(z.string().trim().min(1).max(64));
const Tags = z.array(Tag).max(MAX_TAGS);

const seconds = z.int().min(1).max(MAX_TTL_SECONDS);

// Checks the length first: parsing 30 MB as a URL takes half a second.
export const FileUrl = z.string().max(2048, { abort: true }).check(
  z.url({ protocol: /^https?$/, error: "must be an http or https URL" }),
).openapi(rare(
  "URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is " +
    "about to be sent.",
));

const SendAt = z.iso.datetime({ offset: true }).openapi(rare(
  "Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled " +
    "message does not delay others.",
));
export const sendAt = SendAt.nullish();
export const Priority = z.enum(PRIORITIES).openapi(
  "Priority",
  rare(
    "Messages with a higher priority are sent first. Defaults to `normal`. Within a chat, messages keep " +
      "the order in which they were accepted.",
  ),
);
export const priority = Priority.nullish();

/** Options of every send. */
export const options = { ttl: seconds.nullish().openapi(TTL), sendAt, priority };
export type SendOptions = z.infer<z.ZodObject<typeof options & { sessionId: typeof sessionId }>>;

const MAX_AHEAD_MS = 30 * DAY_SECONDS * 1000;

/**
 * Returns the time, Unix ms; null if none was given. Throws Problem validation_failed if it is past or too far ahead.
 */
export function sendTimeOf(sendAt: string | null | undefined, now: number): number | null {
  if (typeof sendAt !== "string") return null;
  const time = Date.parse(sendAt);
  if (time <= now) throw invalid("sendAt", "is in the past");
  if (time > now + MAX_AHEAD_MS) throw invalid("sendAt", "is more than 30 days ahead");
  return time;
}

/** A message id: the gateway's, or the network's as events report it. */
export const MessageReference = z.string().regex(/^[0-9A-Za-z_.:-]{1,128}$/, "must be the id of a message").openapi({
  description: "Id of a message: `msg_…`, or the `messageId` of an event.",
  example: "msg_01kf0m3e4v8s2q6w9x1y5z7abc",
});

const Mentions = z.union([z.literal("all"), z.array(Person).max(MAX_MENTIONS)], {
  error: () => `must be "all" or a list of at most ${MAX_MENTIONS.toLocaleString("en")} numbers or JIDs`,
});
/** `"all"` alone is taken too, but documented as a list: hardly any generator of clients can read a choice of the two. */
const ListedMentions = z.preprocess((given) => isListOfAll(given) ? "all" : given, Mentions);

function isListOfAll(given: unknown): boolean {
  return Array.isArray(given) && given.length === 1 && given[0] === "all";
}

const typingMs = z.int().min(0).max(MAX_TYPING_MS);

/** Options of each message, in every send and in each item of a bulk. */
export const manner = {
  replyTo: MessageReference.nullish().openapi(REPLY_TO),
  mentions: ListedMentions.nullish().openapi({
    type: ["array", "null"],
    items: { type: "string" },
    maxItems: MAX_MENTIONS,
    ...rare('Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`.'),
  }),
  viewOnce: z.boolean().nullish().openapi(VIEW_ONCE),
  linkPreview: z.boolean().nullish().openapi(LINK_PREVIEW),
  typing: typingMs.nullish().openapi(TYPING),
  tags: Tags.nullish().openapi(TAGS),
  cancelOnReply: z.boolean().nullish().openapi(CANCEL_ON_REPLY),
};

const formBoolean = z.enum(["true", "false"]).transform((word) => word === "true").optional()
  .openapi({ type: "string", enum: ["true", "false"] });

/** `manner` and `options` for a form, in which all values are text. */
export const inForm = {
  replyTo: MessageReference.optional().openapi(REPLY_TO),
  mentions: z.string().transform((names) => names === "all" ? names : names.split(",").map((name) => name.trim()))
    .pipe(Mentions).optional().openapi({
      type: "string",
      ...rare("Numbers or JIDs to mention, separated by commas, or `all` in a group."),
    }),
  viewOnce: formBoolean.openapi(VIEW_ONCE),
  linkPreview: formBoolean.openapi(LINK_PREVIEW),
  typing: z.string().regex(/^\d{1,5}$/, "must be a whole number of milliseconds").transform(Number).pipe(typingMs)
    .optional().openapi({ type: "integer", minimum: 0, maximum: MAX_TYPING_MS, ...TYPING }),
  tags: z.string().transform((tags) => tags.split(",")).pipe(Tags).optional().openapi({
    type: "string",
    ...rare("Tags, separated by commas."),
  }),
  cancelOnReply: formBoolean.openapi(CANCEL_ON_REPLY),
  ttl: z.string().regex(/^\d{1,6}$/, "must be a whole number of seconds").transform(Number).pipe(seconds)
    .optional().openapi({ type: "integer", minimum: 1, maximum: MAX_TTL_SECONDS, ...TTL }),
  sendAt: SendAt.optional(),
  priority: Priority.optional(),
};

export type MannerFields = z.infer<z.ZodObject<typeof manner>>;

const ack = { messageId: idOf("message", "msg"), status: z.literal("queued"), jobId: idOf("queue job", "job") };
const Acknowledgement = z.object(ack).openapi("Acknowledgement");
export const BulkAcknowledgement = z.object({
  bulkId: idOf("bulk", "blk"),
  total: z.int(),
  status: z.literal("queued"),
  messages: z.array(z.object({ index: z.int(), to: z.string(), ...ack }).openapi("BulkItemAcknowledgement")),
}).openapi("BulkAcknowledgement");

export const quotaHeaders = {
  "x-quota-daily-remaining": "Messages left this UTC day. Absent if the plan sets no limit.",
  "x-quota-monthly-remaining": "Messages left this UTC month. Absent if the plan sets no limit.",
};

/** Common fields of the routes that send one message. */
export const single = {
  proposals: true,
  repeats: "handler",
  checksKey: true,
  answers: { 202: { description: "The message is stored and queued", schema: Acknowledgement, headers: quotaHeaders } },
  problems: [
    "not_found",
    "session_not_connected",
    "no_connected_session",
    "quota_exceeded",
    "recipient_opted_out",
    "username_key_required",
    "network_error",
    "network_timeout",
  ],
} as const;

/** Most characters of a text or a caption. */
export const MAX_TEXT = 65_536;

/** Text of 1 to 65,536 characters (code points, as JSON Schema counts them). */
export const Text = textOf(1).meta({ minLength: 1, maxLength: MAX_TEXT });

/** Caption of an image, a video or a document. */
export const Caption = textOf(0).meta({ maxLength: MAX_TEXT, example: "Your invoice" });

/** Returns the schema of a short text that is not blank, such as a name or a question. */
export function label(maxLength: number) {
  return textOf(1, maxLength).refine((text) => text.trim() !== "", "is blank").meta({ minLength: 1, maxLength });
}

function textOf(minimum: number, maximum = MAX_TEXT) {
  return z.string()
    .refine((text) => text.length >= minimum, { error: "is empty", abort: true })
    .refine((text) => !isLonger(text, maximum), {
      // Formatted only on error: the first use of a locale takes 15 ms.
      error: () => `has more than ${maximum.toLocaleString("en")} characters`,
    })
    .refine((text) => text.isWellFormed(), "must not contain an unpaired surrogate");
}

function isLonger(text: string, characters: number): boolean {
  if (text.length <= characters) return false;
  if (text.length > 2 * characters) return true;
  let count = 0;
  for (const _ of text) count++;
  return count > characters;
}
