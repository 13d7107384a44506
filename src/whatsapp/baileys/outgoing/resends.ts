/**
 * Answers retry receipts: a device that could not decrypt a message gets it again, encrypted in a new session.
 *
 * The library sends the message to the whole chat again if the asking device is a phone, and gives every member of a
 * group the sender key again with the next message. So any member could make the line encrypt and send without end. It
 * also encrypts twice, and omits what the network has to know about a poll or an edit.
 *
 * Accounts are locked if many devices ask at once and all are answered at once, so answers are spread out.
 */
import {
  type BinaryNode,
  encodeSignedDeviceIdentity,
  encodeWAMessage,
  getBinaryNodeChild,
  isJidGroup,
  isJidStatusBroadcast,
  type proto,
  type WASocket,
} from "@whiskeysockets/baileys";
import { extractE2ESessionFromRetryReceipt } from "@whiskeysockets/baileys/lib/Utils/signal.js";
import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import { atMost } from "../../../base/at_most.ts";
import { KeyedQueue } from "../../../base/keyed_queue.ts";
import { detached } from "../../../base/retry.ts";
import { type Runtime, sleep } from "../../../runtime.ts";
import { untilStored } from "../../../store/kv.ts";
import { isOwn, type OwnJids } from "../jids.ts";
import { LONGEST_ID, withhold } from "../stanza.ts";
import { isMember } from "./devices.ts";
import type { GroupCache } from "./group_cache.ts";
import { marksOf } from "./marks.ts";

/** How often a device gets a message again within this time. */
const MOST_RESENDS = 5;
const COUNTED_MS = 60 * 60_000;
const MOST_COUNTED = 5_000;
/** How many resends may leave in a chat within this time, and on the line at once; others wait. */
const MOST_IN_CHAT = 10;
const IN_CHAT_MS = 60_000;
const MOST_AT_ONCE = 20;
/** A resend that would wait longer is not made, so that no member can queue them without end: the device asks again. */
const LONGEST_WAIT_MS = 10 * 60_000;

interface ResendsOptions {
  socket: Pick<WASocket, "ws" | "sendNode" | "assertSessions" | "sendMessageAck" | "signalRepository" | "authState">;
  groups: Pick<GroupCache, "metadata">;
  me: () => OwnJids;
  /** Finds a message that the line sent to this chat. Throws StoreError. */
  sentIn(key: { id: string; remoteJid: string }): Promise<proto.IMessage | undefined>;
  /** Whether the connection has ended. The network delivers a receipt without an ack to the next. */
  isOver(): boolean;
  runtime: Pick<Runtime, "clock" | "log">;
}

interface Request {
  receipt: BinaryNode;
  chat: string;
  /** JID. */
  device: string;
  isOfOwnDevice: boolean;
  message: proto.IMessage;
}

/** Handles retry receipts in place of the library. */
export function takeRetryReceipts({ socket, groups, me, sentIn, isOver, runtime }: ResendsOptions): void {
  const { clock, log } = runtime;
  const { signalRepository } = socket;
  const chats = new KeyedQueue();
  const line = new PQueue({ concurrency: MOST_AT_ONCE });
  /** When the last resends of each chat leave, Unix ms. */
  const departures = new LRUCache<string, number[]>(atMost(MOST_COUNTED, { forMs: COUNTED_MS, clock }));
  /** Resends of a message to a device. */
  const resends = new LRUCache<string, number>(atMost(MOST_COUNTED, { forMs: COUNTED_MS, clock }));

  /** Does the work after what was added earlier for the chat, again until the store answers, while the line is on. */
  const inTurn = (chat: string, work: () => Promise<void>) =>
    chats.add(chat, () => line.add(() => untilStored(() => isOver() ? Promise.resolve() : work(), { clock })));
  const inBackground = (work: Promise<unknown>) =>
    void detached(work, (failure) => log.warn(failure, "a message could not be sent again"));

  /** Starts a session with the device, by the keys in the receipt if it has any. */
  async function startSession(jid: string, receipt: BinaryNode): Promise<void> {
    const session = extractE2ESessionFromRetryReceipt(receipt);
    if (session) await signalRepository.injectE2ESession({ jid, session });
    else await socket.assertSessions([jid], true);
  }

  async function resend(receipt: BinaryNode): Promise<void> {
    const { id = "", from = "", participant: device = from, recipient } = receipt.attrs;
    const isOfOwnDevice = isOwn(device, me()) && !isJidGroup(from);
    const chat = isOfOwnDevice ? recipient : from;
    // The library can't address a single viewer of a status post. It would send the post to their chat with the line.
    if (!chat || isJidStatusBroadcast(chat) || id.length > LONGEST_ID) return;
    const resend = `${id} ${device}`;
    const before = resends.get(resend) ?? 0;
    const message = before < MOST_RESENDS && await sentIn({ id, remoteJid: chat });
    if (!message) return;
    // The group's present sender key goes with the message, so a former member gets neither.
    if (isJidGroup(chat) && !isMember(device, await groups.metadata(chat))) return;
    const waitMs = takePlace(chat);
    if (waitMs === null) return;
    resends.set(resend, before + 1);
    const request = { receipt, chat, device, isOfOwnDevice, message };
    if (waitMs === 0) return await sealAgain(request);
    // Not awaited: the network would hold back all that follows a receipt without an ack.
    inBackground(sleep(clock, waitMs).then(() => inTurn(from, () => sealAgain(request))));
  }

  /** Encrypts the message for the device that asked, and sends it. */
  async function sealAgain({ receipt, chat, device, isOfOwnDevice, message }: Request): Promise<void> {
    await startSession(device, receipt);
    const count = Number(getBinaryNodeChild(receipt, "retry")?.attrs.count) || 1;
    const route: Record<string, string> = isJidGroup(chat)
      ? { to: chat, participant: device }
      : { to: device, ...(isOfOwnDevice ? { recipient: chat } : {}), device_fanout: "false" };
    const withKey = { ...message, ...await senderKeyOf(chat) };
    const content = isOfOwnDevice ? { deviceSentMessage: { destinationJid: chat, message: withKey } } : withKey;
    const { type, ciphertext } = await signalRepository.encryptMessage({ jid: device, data: encodeWAMessage(content) });
    const { attrs, enc, nodes } = marksOf(message);
    const sealed = { tag: "enc", attrs: { v: "2", type, count: String(count), ...enc }, content: ciphertext };
    const identity = encodeSignedDeviceIdentity(socket.authState.creds.account!, true);
    await socket.sendNode({
      tag: "message",
      attrs: { id: receipt.attrs.id!, ...route, ...attrs },
      content: [sealed, { tag: "device-identity", attrs: {}, content: identity }, ...nodes],
    });
  }

  /** The group's present sender key, which a device that could not decrypt may lack; nothing for a person. */
  async function senderKeyOf(group: string): Promise<proto.IMessage> {
    const { id, lid } = me();
    for (const meId of isJidGroup(group) ? [lid, id] : []) {
      if (!meId || !await signalRepository.hasSenderKey({ group, meId })) continue;
      const key = await signalRepository.getSenderKeyDistributionMessage({ group, meId });
      return { senderKeyDistributionMessage: { groupId: group, axolotlSenderKeyDistributionMessage: key } };
    }
    return {};
  }

  /** Takes the next place for a resend in the chat; returns how long it has to wait, ms; null: there is none. */
  function takePlace(chat: string): number | null {
    const last = departures.get(chat) ?? [];
    const earliest = last.length < MOST_IN_CHAT ? 0 : last.at(-MOST_IN_CHAT)! + IN_CHAT_MS;
    const at = Math.max(clock.now(), earliest);
    if (at - clock.now() > LONGEST_WAIT_MS) return null;
    departures.set(chat, [...last.slice(1 - MOST_IN_CHAT), at]);
    return at - clock.now();
  }

  withhold(socket.ws, "CB:receipt", (receipt) => {
    if (receipt.attrs.type !== "retry") return false;
    const answered = inTurn(receipt.attrs.from ?? "", () => resend(receipt));
    inBackground(answered.finally(async () => void (isOver() || await socket.sendMessageAck(receipt))));
    return true;
  });
}
