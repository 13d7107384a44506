/**
 * Processes what a phone receives: decrypts and stores messages, acknowledges stanzas, and asks again for messages that
 * it could not decrypt.
 */
import { jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { hkdf, sealGcm } from "../world/crypto.ts";
import { type BinaryNode, child, childrenOf, element } from "../world/stanza.ts";
import { AttachmentError, receiveFile, upload } from "./attachment.ts";
import { amendmentOf, type Content, readContent, unwrap } from "./content.ts";
import { isOwn, lidForm, type PhoneContext } from "./context.ts";
import type { Inbox, Received } from "./inbox.ts";
import { newBundle, refill } from "./keys.ts";
import type { Outbox } from "./outbox.ts";
import { signalAddress, unpad } from "./signal.ts";
import { ack, type ChatState, deliveryReceipt, readChatState, retryReceipt } from "./stanzas.ts";

/** Number of retry receipts per message before the phone gives up. */
const RETRY_RECEIPTS = 5;

/** Number of typing states kept for the control API. */
const STATES_KEPT = 1_000;

export type Receiver = ReturnType<typeof makeReceiver>;

export function makeReceiver(phone: PhoneContext, { inbox, outbox }: { inbox: Inbox; outbox: Outbox }) {
  const { runtime, uplink, self, keys } = phone;
  const retryReceipts = new Map<string, number>();
  const states: ChatState[] = [];

  /** Returns the typing states seen in chats, oldest first. */
  function chatStates(): ChatState[] {
    return states.map((state) => ({ ...state }));
  }

  /** Processes a stanza, and answers it as the app does. */
  async function take(stanza: BinaryNode): Promise<void> {
    if (stanza.tag === "message") return await receiveMessage(stanza);
    if (stanza.tag === "chatstate") return see(stanza);
    uplink.send(self, ack(stanza));
    if (stanza.tag !== "receipt") return;
    if (stanza.attrs.type === "retry") await outbox.resend(stanza);
    if (stanza.attrs.type === "server-error" && isOwn(phone, stanza.attrs.from ?? "")) {
      uplink.send(self, await reupload(phone, stanza, inbox.withId(stanza.attrs.id ?? "")));
    }
  }

  async function receiveMessage(stanza: BinaryNode): Promise<void> {
    const decrypted = await decryptStanza(phone, stanza);
    const bundle = refill(keys);
    if (bundle) uplink.publishKeys(self, bundle);
    const destination = decrypted.kind === "message" ? decrypted.destination : stanza.attrs.recipient ?? null;
    const known = inbox.find(stanza, destination);
    if (known) {
      known.item.copies++;
    } else if (decrypted.kind === "failed") {
      return askAgain(stanza, decrypted.error);
    } else if (decrypted.kind === "message") {
      const { inner } = unwrap(decrypted.message);
      const { secretEncryptedMessage: sealed } = inner;
      const change = sealed ? inbox.openEdit(stanza, destination, sealed) : inner;
      const amendment = change && amendmentOf(change);
      const content = amendment || sealed ? null : asShown(readContent(decrypted.message), stanza);
      if (amendment) inbox.amend(stanza, destination, amendment);
      // Peer messages between a companion and its phone appear in no chat.
      if (content && stanza.attrs.category !== "peer") await keep(stanza, destination, content);
    }
    const own = isOwn(phone, stanza.attrs.participant ?? stanza.attrs.from ?? "");
    uplink.send(self, deliveryReceipt(stanza, { self, own }));
  }

  async function keep(stanza: BinaryNode, destination: string | null, content: Content): Promise<void> {
    try {
      const file = content.file && await receiveFile(content.file, phone);
      const { linkPreview, previewFile: attachment } = content;
      if (linkPreview && attachment) {
        linkPreview.pictureSha256 = (await receiveFile({ attachment, kind: "linkPreview" }, phone)).sha256;
      }
      inbox.add(stanza, destination, { content, file, mediaError: null });
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      inbox.add(stanza, destination, { content, file: null, mediaError: error.message });
    }
  }

  function see(stanza: BinaryNode): void {
    const seen = readChatState(stanza, phone);
    if (seen) states.push(seen);
    while (states.length > STATES_KEPT) states.shift();
  }

  function askAgain(stanza: BinaryNode, error: unknown): void {
    const { id, from, participant } = stanza.attrs;
    const key = `${id} ${participant ?? from}`;
    const count = (retryReceipts.get(key) ?? 0) + 1;
    retryReceipts.set(key, count);
    runtime.log.debug({ phone: self.jid, id, count, err: error }, "a phone could not decrypt a message");
    if (count <= RETRY_RECEIPTS) {
      uplink.send(self, retryReceipt(stanza, { self, bundle: newBundle(keys, 1), count }));
    }
    uplink.send(self, ack(stanza));
  }

  return { take, chatStates };
}

/** Returns the content as the app shows it: options that the stanza does not announce cannot be tapped. */
function asShown(content: Content | null, stanza: BinaryNode): Content | null {
  return content && !child(stanza, "biz") ? { ...content, buttons: null, list: null } : content;
}

/** `MediaRetryNotification.ResultType`, as the code of an error node. */
const NOT_FOUND = String(proto.MediaRetryNotification.ResultType.NOT_FOUND);

/**
 * Answers a `<receipt type="server-error">` of a companion whose download failed: returns the `mediaretry` notification
 * with the file's new location, encrypted with a key derived from the file's own. Throws AttachmentError if the upload
 * fails.
 */
async function reupload(
  phone: PhoneContext,
  request: BinaryNode,
  candidates: readonly Received[],
): Promise<BinaryNode> {
  const { id, from } = request.attrs;
  const asked = child(request, "rmr")?.attrs ?? {};
  const answer = (content: BinaryNode) => {
    const { jid, from_me, participant } = asked;
    const rmr = element("rmr", { jid, from_me, participant });
    return element("notification", { id, to: from, from: phone.self.jid, type: "mediaretry" }, [content, rmr]);
  };
  const found = candidates.find(({ file }) => file?.sealed);
  const mediaKey = found?.content.file?.attachment?.mediaKey;
  if (!found?.file?.sealed || !mediaKey) return answer(element("error", { code: NOT_FOUND }));
  const { directPath } = await upload(found.file.sealed, phone);
  const notification = proto.MediaRetryNotification.encode({
    stanzaId: id,
    directPath,
    result: proto.MediaRetryNotification.ResultType.SUCCESS,
  }).finish();
  const iv = phone.runtime.random.bytes(12);
  const key = hkdf(mediaKey, "", "WhatsApp Media Retry Notification");
  const sealed = sealGcm(notification, { key, iv, context: Buffer.from(id ?? "") });
  return answer(element("encrypt", {}, [element("enc_p", {}, sealed), element("enc_iv", {}, iv)]));
}

type Decrypted =
  /** `destination` is the chat, if this is a copy of the owner's own message; else null. */
  | { kind: "message"; message: proto.IMessage; destination: string | null }
  /** The keys are used up: the message was decrypted before. */
  | { kind: "read_before" }
  /** The session or sender key is missing or damaged; a retry receipt helps. */
  | { kind: "failed"; error: unknown };

export async function decryptStanza(phone: PhoneContext, stanza: BinaryNode): Promise<Decrypted> {
  const { from = "", participant } = stanza.attrs;
  const author = participant ?? from;
  const whole: proto.IMessage = {};
  let destination: string | null = null;
  try {
    for (const { attrs, content } of childrenOf(stanza, "enc")) {
      if (!(content instanceof Uint8Array)) throw new Error("a ciphertext is missing");
      const plaintext = await decrypt(phone, { type: attrs.type, body: content, author, group: from });
      const message = proto.Message.decode(unpad(plaintext));
      // Only the owner's own devices may report what the owner wrote elsewhere.
      const copy = isOwn(phone, author) ? message.deviceSentMessage : null;
      if (copy) destination = jidNormalizedUser(copy.destinationJid ?? undefined) || null;
      const inner = copy?.message ?? message;
      await learnSenderKey(phone, inner, author);
      Object.assign(whole, inner);
    }
  } catch (error) {
    return readBefore(error) ? { kind: "read_before" } : { kind: "failed", error };
  }
  return { kind: "message", message: whole, destination };
}

async function decrypt(
  { uplink, sessions, senderKeys }: PhoneContext,
  { type, body, author, group }: { type: string | undefined; body: Uint8Array; author: string; group: string },
): Promise<Uint8Array> {
  switch (type) {
    case "pkmsg":
    case "msg":
      return await sessions.decrypt(signalAddress(lidForm(uplink, author)), { type, body });
    case "skmsg":
      return await senderKeys.decrypt({ group, device: author }, body);
    default:
      throw new Error(`unknown ciphertext type ${type}`);
  }
}

async function learnSenderKey({ senderKeys }: PhoneContext, message: proto.IMessage, author: string): Promise<void> {
  const { groupId, axolotlSenderKeyDistributionMessage: key } = message.senderKeyDistributionMessage ?? {};
  if (groupId && key) await senderKeys.learn({ group: groupId, device: author }, key);
}

/** Whether libsignal or the group cipher reports that the message's key is used up. */
function readBefore(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "MessageCounterError" || error.message.startsWith("Received message with old counter");
}
