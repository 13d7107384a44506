/** Makes of what a send says about its manner what the message keeps: references are found, and what cannot be is 400. */
import type { YieldPoint } from "../../../base/yielding.ts";
import { keysOf } from "../../../base/typed_keys.ts";
import { invalid } from "../../../errors.ts";
import type { References, Referred } from "../../../line/references.ts";
import { type OutgoingContent, typeOf } from "../../../message/content.ts";
import type { SendManner } from "../../../message/message.ts";
import type { SendItem } from "../../../message/send.ts";
import { isGroup } from "../../../whatsapp/groups.ts";
import type { MannerFields } from "./fields.ts";

/** What makes no sense of a kind, and why. */
const SENSELESS: Partial<Record<OutgoingContent["kind"], Partial<Record<keyof MannerFields, string>>>> = {
  reaction: { replyTo: "is for what says more than a reaction", mentions: "is for what says more than a reaction" },
  status: {
    replyTo: "is for messages in a chat",
    mentions: "is for messages in a chat",
    typing: "is for messages in a chat",
  },
};

export interface Item {
  to: string;
  content: OutgoingContent;
  manner?: MannerFields;
  /** Where the item stands in the body, with a dot behind it; "" for a single send. */
  path?: string;
}

interface Context {
  accountId: string;
  sessionId: string | null;
  references: References;
  /** After each item. */
  yieldPoint: YieldPoint;
}

/** Of a quoted text that phones no longer know; they show a few lines. */
const MAX_QUOTE = 1_000;
/** What can be shown once only. */
const ONCE: readonly string[] = ["image", "video", "audio", "voice"];

/**
 * The items as they are accepted, and the line that they leave on: that of the message that is answered where none is
 * named. Throws Problem validation_failed, not_found.
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

/** All but what it answers. */
function mannerOf({ to, content, manner: asked = {}, path = "" }: Item): SendManner {
  const manner: SendManner = {};
  const { mentions, viewOnce, linkPreview, typing } = asked;
  const senseless = SENSELESS[content.kind] ?? {};
  for (const field of keysOf(senseless)) {
    const value = asked[field];
    // An empty list, and 0, ask for nothing.
    if (Array.isArray(value) ? value.length > 0 : value) throw invalid(`${path}${field}`, senseless[field]!);
  }
  if (mentions === "all" && !isGroup(to)) {
    throw invalid(`${path}mentions`, '"all" are mentioned in groups only');
  }
  if (mentions?.length) manner.mentions = mentions;
  if (viewOnce) {
    if (!ONCE.includes(typeOf(content))) throw invalid(`${path}viewOnce`, "is for images, videos and sounds");
    manner.viewOnce = true;
  }
  if (linkPreview === false) manner.linkPreview = false;
  if (typing) manner.typingMs = typing;
  return manner;
}

/** The message that is answered, and its line. */
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

/** What never left, or was deleted, is nothing that anybody sees. Throws Problem validation_failed at `path`. */
export function assertSeen({ message }: Referred, path: string): void {
  if (message?.status === "failed") throw invalid(path, "is a message that was not sent");
  if (message?.revokedAt !== undefined) throw invalid(path, "is a message that was deleted");
}
