/** Encrypts a phone's messages for every device that should read them, and again for a device that could not. */
import { proto } from "@whiskeysockets/baileys";
import { invalid } from "../../errors.ts";
import { readBundle } from "../world/key_store.ts";
import { type BinaryNode, child, element, isGroup, isLid, messageId, seconds } from "../world/stanza.ts";
import { type Composed, wireType } from "./compose.ts";
import { devicesOf, isOwn, lidForm, membersOf, type PhoneContext, readersOf } from "./context.ts";
import { pad, signalAddress } from "./signal.ts";

/** Number of sent messages kept to answer retry receipts. */
const MESSAGES_KEPT = 5_000;
/** Limit of resends of a message to one device; further copies would not help. */
const RESENDS = 5;

/** Explanations of the network's error codes, appended to the problem. */
const REFUSALS: Readonly<Record<string, string>> = {
  "403": ": the phone may not write in this group now",
  "463": ": the account may start no chat now",
};

/** A message that this phone sent. */
export interface Sent extends Composed {
  chat: string;
  /** The phone's jid, or its LID if the number was hidden. */
  from: string;
  hideNumber: boolean;
}

interface Encrypted {
  content: BinaryNode[];
  /** The devices that hold the sender key once the network has accepted the message; null outside groups. */
  holders: Set<string> | null;
}

export type Outbox = ReturnType<typeof makeOutbox>;

export function makeOutbox(phone: PhoneContext) {
  const { runtime, uplink, self, name, sessions, senderKeys } = phone;
  const sentMessages = new Map<string, Sent>();
  /** Devices that hold this phone's sender key, by group and form of the own address. */
  const keyHolders = new Map<string, Set<string>>();
  const resends = new Map<string, number>();
  /** Chats (in LID form) in which the last message hid the number. */
  const hidden = new Set<string>();

  /**
   * Encrypts and sends a message; resolves to its id. `to` is the jid of a user or group. Throws Problem
   * validation_failed if the jid is not on the network, and if the network refuses the message.
   */
  async function send(
    to: string,
    message: proto.IMessage,
    { hideNumber = false, edit }: { hideNumber?: boolean | undefined; edit?: string | undefined } = {},
  ): Promise<string> {
    const id = messageId(runtime.random);
    const sent: Sent = { chat: to, from: hideNumber ? self.lid : self.jid, hideNumber, message, edit };
    const { content, holders } = isGroup(to) ? await forGroup(sent) : await forUser(sent);
    const refused = uplink.submit(self, stanza(id, sent, { to, content }));
    if (refused) throw invalid("to", `is refused by the network (${refused})${REFUSALS[refused] ?? ""}`);
    // Only after the network accepted the message: if it is refused, its sender key has reached no device.
    if (holders) keyHolders.set(holdersKey(sent), holders);
    remember(id, sent);
    // An edit has the same address form as the original, which may be old, so it does not show the chat's current form.
    if (!edit) noteHidden(sent);
    return id;
  }

  /** Sends a peer message to one of the phone's own companions; it appears in no chat. */
  async function tell(companion: string, message: proto.IMessage): Promise<void> {
    const enc = await encrypt(companion, message);
    const peer = { to: companion, type: "protocol", category: "peer" };
    const attributes = { ...peer, id: messageId(runtime.random), from: self.jid, notify: name };
    if (enc) uplink.submit(self, element("message", attributes, [enc, element("meta", { appdata: "default" })]));
  }

  /** Whether the phone currently hides its number in this chat. */
  function hidesNumberIn(chat: string): boolean {
    return hidden.has(lidForm(uplink, chat));
  }

  /** Returns a message that this phone sent; null if it is unknown or no longer kept. */
  function find(id: string): Sent | null {
    return sentMessages.get(id) ?? null;
  }

  /** Answers a retry receipt: encrypts the message for that device only, in a new session. */
  async function resend(receipt: BinaryNode): Promise<void> {
    const id = receipt.attrs.id ?? "";
    const device = receipt.attrs.participant ?? receipt.attrs.from ?? "";
    const sent = sentMessages.get(id);
    const attempts = resends.get(`${id} ${device}`) ?? 0;
    if (!sent || attempts >= RESENDS) return;
    resends.set(`${id} ${device}`, attempts + 1);

    const bundle = readBundle(receipt, child(receipt, "keys")) ?? uplink.takeBundle(device);
    if (!bundle) return;
    await sessions.start(signalAddress(lidForm(uplink, device)), bundle);
    const inGroup = isGroup(sent.chat);
    const message = inGroup
      ? { ...sent.message, ...distribution(sent, await senderKeys.distribution(senderIn(sent))) }
      : sent.message;
    const own = isOwn(phone, device);
    const count = child(receipt, "retry")?.attrs.count;
    const enc = await encrypt(device, own ? deviceSent(sent.chat, message) : message, { count });
    if (!enc) return;
    const target = inGroup
      ? { to: sent.chat, participant: device }
      : { to: device, recipient: own ? sent.chat : undefined };
    uplink.submit(self, stanza(id, sent, { ...target, content: [enc] }));
  }

  async function forUser(sent: Sent): Promise<Encrypted> {
    const readers = readersOf(sent.chat, phone);
    const theirs = isOwn(phone, sent.chat) ? [] : readers;
    const ours = devicesOf([isLid(sent.chat) ? self.lid : self.jid], phone);
    const copy = deviceSent(sent.chat, sent.message);
    const nodes = [...await toEach(theirs, sent.message), ...await toEach(ours, copy)];
    return { content: [element("participants", {}, nodes)], holders: null };
  }

  async function forGroup(sent: Sent): Promise<Encrypted> {
    const devices = devicesOf(membersOf(sent.chat, phone), phone);
    const sender = senderIn(sent);
    let holders = new Set(keyHolders.get(holdersKey(sent)));
    if ([...holders].some((holder) => !devices.includes(holder))) {
      // A member who left could still read: use a new key from now on.
      senderKeys.forget(sender);
      holders = new Set();
    }
    const { body, distribution: key } = await senderKeys.encrypt(sender, padded(sent.message));
    const lacking = devices.filter((device) => !holders.has(device));
    const nodes = await toEach(lacking, distribution(sent, key));
    for (const { attrs } of nodes) holders.add(attrs.jid ?? "");
    const enc = element("enc", { v: "2", type: "skmsg", ...mediaTypeOf(sent.message) }, body);
    return { content: nodes.length > 0 ? [element("participants", {}, nodes), enc] : [enc], holders };
  }

  async function toEach(devices: readonly string[], message: proto.IMessage): Promise<BinaryNode[]> {
    const nodes: BinaryNode[] = [];
    for (const jid of devices) {
      const enc = await encrypt(jid, message);
      if (enc) nodes.push(element("to", { jid }, [enc]));
    }
    return nodes;
  }

  /** Returns null for a device that has published no keys. */
  async function encrypt(
    device: string,
    message: proto.IMessage,
    attrs: { count?: string } = {},
  ): Promise<BinaryNode | null> {
    const address = signalAddress(lidForm(uplink, device));
    if (!sessions.has(address)) {
      const bundle = uplink.takeBundle(device);
      if (!bundle) return null;
      await sessions.start(address, bundle);
    }
    const { type, body } = await sessions.encrypt(address, padded(message));
    return element("enc", { v: "2", type, ...mediaTypeOf(message), ...attrs }, body);
  }

  function padded(message: proto.IMessage): Uint8Array {
    return pad(proto.Message.encode(message).finish(), runtime.random.between(1, 16));
  }

  function stanza(
    id: string,
    { chat, from, message, edit }: Sent,
    { content, ...target }: { to: string; participant?: string; recipient?: string; content: BinaryNode[] },
  ): BinaryNode {
    const attributes = { id, from, type: wireType(message).type, notify: name, edit, ...target };
    return element("message", attributes, [...content, ...tokenFor(chat)]);
  }

  /** Returns the token for this chat, if the peer has given one; a restricted account needs it. */
  function tokenFor(chat: string): BinaryNode[] {
    const held = uplink.chatsOf(self).tokens.find(({ jid, lid }) => chat === jid || chat === lid);
    return held ? [element("tctoken", { t: seconds(held.at) }, held.token)] : [];
  }

  function noteHidden({ chat, hideNumber }: Sent): void {
    const key = lidForm(uplink, chat);
    if (hideNumber) hidden.add(key);
    else hidden.delete(key);
  }

  function remember(id: string, sent: Sent): void {
    sentMessages.set(id, sent);
    const [oldest] = sentMessages.keys();
    if (sentMessages.size > MESSAGES_KEPT && oldest) sentMessages.delete(oldest);
  }

  return { send, tell, hidesNumberIn, find, resend };
}

/** Wraps a message as the copy for the sender's own other devices. */
function deviceSent(destinationJid: string, message: proto.IMessage): proto.IMessage {
  return { deviceSentMessage: { destinationJid, message } };
}

function distribution(sent: Sent, key: Uint8Array): proto.IMessage {
  return { senderKeyDistributionMessage: { groupId: sent.chat, axolotlSenderKeyDistributionMessage: key } };
}

function senderIn(sent: Sent) {
  return { group: sent.chat, device: sent.from };
}

function holdersKey({ chat, from }: Sent): string {
  return `${chat} ${from}`;
}

function mediaTypeOf(message: proto.IMessage): { mediatype?: string } {
  const { mediaType } = wireType(message.deviceSentMessage?.message ?? message);
  return mediaType ? { mediatype: mediaType } : {};
}
