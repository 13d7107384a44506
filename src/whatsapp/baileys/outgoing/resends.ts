/**
 * Answers retry receipts: a device that could not decrypt a message gets it again, encrypted in a new session.
 *
 * The library sends the message to the whole chat again if the asking device is a phone, and gives every member of a
 * group the sender key again with the next message. So any member could make the line encrypt and send without end. It
 * also omits what the network has to know about a poll or an edit.
 */
import {
  type BinaryNode,
  getBinaryNodeChild,
  isJidGroup,
  isJidStatusBroadcast,
  type proto,
  type WASocket,
} from "@whiskeysockets/baileys";
import { extractE2ESessionFromRetryReceipt } from "@whiskeysockets/baileys/lib/Utils/signal.js";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { KeyedQueue } from "../../../base/keyed_queue.ts";
import { detached } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";
import { untilStored } from "../../../store/kv.ts";
import { isOwn, type OwnJids } from "../jids.ts";
import { LONGEST_ID, withhold } from "../stanza.ts";
import { isMember } from "./devices.ts";
import type { GroupCache } from "./group_cache.ts";
import { marksOf } from "./relay.ts";

/** How often a device gets a message again within this time. */
const MOST_RESENDS = 5;
const COUNTED_MS = 60 * 60_000;
const MOST_COUNTED = 5_000;

interface ResendsOptions {
  socket: Pick<WASocket, "ws" | "relayMessage" | "assertSessions" | "sendMessageAck" | "signalRepository">;
  groups: Pick<GroupCache, "metadata">;
  me: () => OwnJids;
  /** Finds a message that the line sent to this chat. Throws StoreError. */
  sentIn(key: { id: string; remoteJid: string }): Promise<proto.IMessage | undefined>;
  /** Whether the connection has ended. The network delivers a receipt without an ack to the next. */
  isOver(): boolean;
  runtime: Pick<Runtime, "clock" | "log">;
}

/** Handles retry receipts in place of the library. */
export function takeRetryReceipts({ socket, groups, me, sentIn, isOver, runtime }: ResendsOptions): void {
  const { clock, log } = runtime;
  const { signalRepository } = socket;
  const chats = new KeyedQueue();
  /** Resends of a message to a device. */
  const resends = new LRUCache<string, number>(atMost(MOST_COUNTED, { forMs: COUNTED_MS, clock }));

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
    resends.set(resend, before + 1);
    await startSession(device, receipt);
    const count = Number(getBinaryNodeChild(receipt, "retry")?.attrs.count) || 1;
    await socket.relayMessage(chat, message, {
      messageId: id,
      participant: { jid: device, count },
      ...marksOf(message),
    });
  }

  withhold(socket.ws, "CB:receipt", (receipt) => {
    if (receipt.attrs.type !== "retry") return false;
    const answered = chats.add(receipt.attrs.from ?? "", async () => {
      try {
        await untilStored(() => isOver() ? Promise.resolve() : resend(receipt), { clock });
      } finally {
        if (!isOver()) await socket.sendMessageAck(receipt);
      }
    });
    void detached(answered, (failure) => log.warn(failure, "a message could not be sent again"));
    return true;
  });
}
