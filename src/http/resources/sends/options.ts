/**
 * Turns the options of a message into those that are stored: resolves references and refuses impossible options (400).
 */
import type { YieldPoint } from "../../../base/batches.ts";
import { invalid } from "../../../errors.ts";
import type { References, Referred } from "../../../line/references.ts";
import { type OutgoingContent, typeOf } from "../../../message/content.ts";
import type { SendManner } from "../../../message/message.ts";
import type { SendItem } from "../../../message/send_command.ts";
import { isGroup } from "../../../whatsapp/chats.ts";
import type { MannerFields } from "./fields.ts";

/** Options that make no sense for a kind of message, and why. */
const SENSELESS: { [Kind in OutgoingContent["kind"]]?: { fields: readonly (keyof MannerFields)[]; why: string } } = {
  reaction: { fields: ["replyTo", "mentions"], why: "is not supported for reactions" },
  status: { fields: ["replyTo", "mentions", "typing", "cancelOnReply"], why: "is for messages in a chat" },
};

export interface Item {
  to: string;
  content: OutgoingContent;
  manner?: MannerFields;
  cloud?: SendManner["cloud"] | undefined;
  /** Path of the item in the body, with a trailing dot; "" for a single send. */
  path?: string;
}

interface Context {
  accountId: string;
  sessionId: string | null;
  references: References;
  /** Called after each item. */
  yieldPoint: YieldPoint;
}

/** Most characters of a quoted text, for phones that no longer have the message; they show a few lines. */
const MAX_QUOTE = 1_000;
/** Kinds that can be sent as view-once. */
const ONCE: readonly string[] = ["image", "video", "audio", "voice"];

/**
 * Resolves to the items in the form in which they are accepted, and to their line: the one named, or else that of the
 * quoted message. Throws Problem validation_failed, not_found.
 */
export async function resolve(
  items: Iterable<Item>,
  context: Context,
): Promise<{ items: SendItem[]; sessionId: string | null }> {
  let { sessionId } = context;
  const resolved: SendItem[] = [];
  for (const item of items) {
    const { to, content } = item;
    const manner = mannerOf(item);
    if (item.manner?.replyTo != null) {
      const { quote, lineId } = await quoteOf(item, item.manner.replyTo, { ...context, sessionId });
      manner.quote = quote;
      sessionId ??= lineId;
    }
    resolved.push(Object.keys(manner).length > 0 ? { to, content, manner } : { to, content });
    const due = context.yieldPoint();
    if (due) await due;
  }
  return { items: resolved, sessionId };
}

/** Returns the options of the message, without the quote. */
function mannerOf({ to, content, manner: asked = {}, cloud, path = "" }: Item): SendManner {
  const manner: SendManner = {};
  const { mentions, viewOnce, linkPreview, typing, tags, cancelOnReply } = asked;
  const senseless = SENSELESS[content.kind];
  for (const field of senseless?.fields ?? []) {
    const value = asked[field];
    // An empty list or 0 requests nothing.
    if (Array.isArray(value) ? value.length > 0 : value) throw invalid(`${path}${field}`, senseless!.why);
  }
  if (mentions === "all" && !isGroup(to)) {
    throw invalid(`${path}mentions`, '"all" is allowed in groups only');
  }
  if (mentions?.length) manner.mentions = mentions;
  if (viewOnce) {
    if (!ONCE.includes(typeOf(content))) throw invalid(`${path}viewOnce`, "is for images, videos and sounds");
    manner.viewOnce = true;
  }
  if (linkPreview === false) manner.linkPreview = false;
  if (typing) manner.typingMs = typing;
  if (tags?.length) manner.tags = [...new Set(tags)];
  if (cancelOnReply) manner.cancelOnReply = true;
  if (cloud) manner.cloud = cloud;
  return manner;
}

/** Resolves to the quoted message and its line. */
async function quoteOf(
  { to, path = "" }: Item,
  replyTo: string,
  context: Context,
): Promise<{ quote: NonNullable<SendManner["quote"]>; lineId: string }> {
  const referred = await context.references.find(context.accountId, replyTo, context);
  const { key, chat, lineId, preview } = referred;
  assertSeen(referred, `${path}replyTo`);
  if (context.sessionId !== null && context.sessionId !== lineId) {
    throw invalid(`${path}replyTo`, "is a message of another session");
  }
  if (!await context.references.isInChat(referred, to)) throw invalid(`${path}replyTo`, "is a message of another chat");
  const text = (preview.text ?? preview.caption ?? preview.filename)?.slice(0, MAX_QUOTE) ?? null;
  return { quote: { ...key, chat, text }, lineId };
}

/** Throws Problem validation_failed at `path` for a message that nobody sees as one of the session: failed, for example. */
export function assertSeen({ message, isOfOtherNumber }: Referred, path: string): void {
  if (message?.status === "failed") throw invalid(path, "is a message that was not sent");
  if (message?.revokedAt !== undefined) throw invalid(path, "is a message that was deleted");
  if (isOfOtherNumber) throw invalid(path, "is a message that the session sent from another number");
}
