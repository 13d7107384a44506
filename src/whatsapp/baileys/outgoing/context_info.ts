/**
 * What accompanies a message's content: the quoted message, mentions, a link preview, "view once", and the "forwarded"
 * label.
 */
import type { proto } from "@whiskeysockets/baileys";
import { timeLimit } from "../../../base/within.ts";
import type { Inspect } from "../../../inspect/inspector.ts";
import type { Runtime } from "../../../runtime.ts";
import type { LinkPreview, Manner, Words } from "../../outgoing.ts";
import type { Timer } from "../rows.ts";
import { encryptFile, type Upload } from "./media_upload.ts";

/** A text does not wait longer for the upload of its preview's picture. */
const PICTURE_WITHIN_MS = 5_000;

export interface ContextTools {
  /** The line's own JID as the chat addresses it. */
  me: string;
  /** Returns the addresses by which people are mentioned in the chat: known LIDs, in a group that is addressed by LID. */
  mentioned(jids: readonly string[]): Promise<string[]>;
  /** How long messages of the chat stay; null: for ever. */
  timer: Timer | null;
  upload: Upload;
  inspect: Inspect;
  runtime: Pick<Runtime, "clock" | "random">;
  signal: AbortSignal;
  /** Finds the network's form of a message that the line sent or received; null if it is no longer stored. */
  original(networkId: string): Promise<proto.IMessage | null>;
}

/** Returns the content with its manner applied. */
export async function withContext(
  content: proto.IMessage,
  manner: Manner,
  tools: ContextTools,
): Promise<proto.IMessage> {
  const mentions = await mentionsOf(manner, tools);
  const { field, body } = withNames(bodyOf(content), mentions.renamed);
  const shown = manner.preview && field === "extendedTextMessage" ? await previewFields(manner.preview, tools) : {};
  const contextInfo = {
    ...body.contextInfo,
    ...await quoteOf(manner, tools),
    ...mentions.context,
    ...(WITHOUT_CONTEXT.has(field) ? {} : timerOf(tools)),
  };
  const context = Object.keys(contextInfo).length > 0 ? { contextInfo } : {};
  const withContext = { ...content, [field]: { ...body, ...shown, ...context } };
  return manner.viewOnce ? asViewOnce(withContext) : withContext;
}

/** Changes of earlier messages, which stay as long as these. */
const WITHOUT_CONTEXT = new Set(["protocolMessage", "reactionMessage"]);

function timerOf({ timer }: ContextTools): proto.IContextInfo {
  if (timer === null || timer.seconds === 0) return {};
  const { seconds: expiration, setAt } = timer;
  return { expiration, ...(setAt > 0 ? { ephemeralSettingTimestamp: setAt } : {}) };
}

async function quoteOf({ quote }: Manner, { me, original }: ContextTools): Promise<proto.IContextInfo> {
  if (!quote) return {};
  const { networkId, participant, fromMe, chat, text } = quote;
  const kept = await original(networkId);
  const { messageContextInfo: _, ...quotedMessage } = kept ?? { conversation: text ?? "" };
  return { stanzaId: networkId, participant: fromMe ? me : participant ?? chat, quotedMessage };
}

/** A mention of everybody names nobody: the apps resolve it. `renamed`: the users that the chat knows by another name. */
async function mentionsOf(
  { mentions }: Manner,
  { mentioned }: ContextTools,
): Promise<{ context: proto.IContextInfo; renamed: Map<string, string> }> {
  if (!mentions) return { context: {}, renamed: new Map() };
  if (mentions === "all") return { context: { nonJidMentions: 1 }, renamed: new Map() };
  const jids = mentions.map((name) => name.includes("@") ? name : `${name}@s.whatsapp.net`);
  const mentionedJid = await mentioned(jids);
  const users = (all: readonly string[]) => all.map((jid) => jid.split("@")[0]!);
  const as = users(mentionedJid);
  return { context: { mentionedJid }, renamed: new Map(users(jids).map((user, i) => [user, as[i]!])) };
}

/** Apps show the name of a person in place of `@` and the user of the JID. */
function withNames({ field, body }: ReturnType<typeof bodyOf>, renamed: ReadonlyMap<string, string>) {
  const named = (text: string) => text.replaceAll(/@(\d+)/g, (mark, user) => `@${renamed.get(user) ?? mark.slice(1)}`);
  const { text, caption } = body;
  return {
    field,
    body: { ...body, ...(text ? { text: named(text) } : {}), ...(caption ? { caption: named(caption) } : {}) },
  };
}

async function previewFields(
  { url, title, description, picture }: LinkPreview,
  tools: ContextTools,
): Promise<proto.Message.IExtendedTextMessage> {
  return {
    matchedText: url,
    title,
    ...(description ? { description } : {}),
    ...(picture ? await pictureFields(picture, tools) : {}),
  };
}

/** A small picture, which travels in the message, and the picture itself, uploaded as the apps do. */
async function pictureFields(
  picture: Uint8Array,
  { inspect, upload, runtime, signal }: ContextTools,
): Promise<proto.Message.IExtendedTextMessage> {
  const { width, height, jpegThumbnail } = await inspect(picture, { signal }) ?? {};
  const small = jpegThumbnail ? { jpegThumbnail } : {};
  if (!width || !height) return small;
  using limit = timeLimit(runtime.clock, PICTURE_WITHIN_MS, signal);
  try {
    const encrypted = await encryptFile(picture, "thumbnail-link", runtime.random);
    const { directPath } = await upload(encrypted, { kind: "thumbnail-link", signal: limit.signal });
    return {
      ...small,
      mediaKey: encrypted.mediaKey,
      mediaKeyTimestamp: Math.floor(runtime.clock.now() / 1000),
      thumbnailDirectPath: directPath,
      thumbnailSha256: encrypted.fileSha256,
      thumbnailEncSha256: encrypted.fileEncSha256,
      thumbnailWidth: width,
      thumbnailHeight: height,
    };
  } catch {
    signal.throwIfAborted();
    return small;
  }
}

/** Voice and audio have an envelope of their own in the apps. A thumbnail would be seen before the picture is opened. */
function asViewOnce(content: proto.IMessage): proto.IMessage {
  const { imageMessage, videoMessage, audioMessage } = content;
  const once = { viewOnce: true, jpegThumbnail: undefined };
  if (imageMessage) return { viewOnceMessageV2: { message: { imageMessage: { ...imageMessage, ...once } } } };
  if (videoMessage) return { viewOnceMessageV2: { message: { videoMessage: { ...videoMessage, ...once } } } };
  if (!audioMessage) return content;
  return { viewOnceMessageV2Extension: { message: { audioMessage: { ...audioMessage, viewOnce: true } } } };
}

/**
 * Returns the message as it is forwarded: without its context, and with its current words in case it was edited. Apps
 * show "forwarded many times" from a score of five.
 */
export function forwarded(original: proto.IMessage, { text, caption }: Words): proto.IMessage {
  const { messageContextInfo: _, conversation, ...rest } = original;
  const content: proto.IMessage = conversation == null ? rest : { extendedTextMessage: { text: conversation } };
  const { field, body } = bodyOf(content);
  const forwardingScore = (body.contextInfo?.forwardingScore ?? 0) + 1;
  const words = field === "extendedTextMessage" && text !== null
    ? { text }
    : body.caption && caption !== null
    ? { caption }
    : {};
  return { [field]: { ...body, ...words, contextInfo: { isForwarded: true, forwardingScore } } };
}

interface Body {
  text?: string | null;
  caption?: string | null;
  contextInfo?: proto.IContextInfo | null;
}

/** The field of a message that holds its content, and the value of that field. */
function bodyOf(content: proto.IMessage): { field: string; body: Body } {
  const [field, body]: [string, Body] = Object.entries(content).find(([, value]) => value != null)!;
  return { field, body };
}
