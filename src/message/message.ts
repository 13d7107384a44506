/**
 * An outgoing message: the record and its states.
 *
 * | from       | by            | to         |                                                      |
 * |------------|---------------|------------|------------------------------------------------------|
 * | (new)      | accepted      | queued     | one commit with queue row, quota, history (promise 1) |
 * | queued     | approved      | queued     | only what a key proposed; from then on it may leave  |
 * | queued     | dispatched    | processing | after the pause of the plan                          |
 * | queued     | cancelled     | failed     | error code `cancelled`, `cancelled_by_reply`         |
 * | queued     | expired       | failed     | error code `expired`                                 |
 * | queued     | line is gone  | failed     | error code `session_logged_out`, `session_deleted`   |
 * | queued     | proved        | sent       | the ack was lost, a receipt says that it arrived     |
 * | processing | acknowledged  | sent       | the server's ack, never less (promise 3)             |
 * | processing | held, retried | queued     | keeps its place and its network id                   |
 * | processing | held          | failed     | it was withdrawn meanwhile, by its tag or a reply    |
 * | processing | refused       | failed     | final, or the third attempt                          |
 */
import { isGroup } from "../whatsapp/chats.ts";
import type { Manner } from "../whatsapp/outgoing.ts";
import type { OutgoingContent } from "./content.ts";

export const MESSAGE_STATUSES = ["queued", "processing", "sent", "failed"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

export const PRIORITIES = ["high", "normal", "low"] as const;
export type Priority = (typeof PRIORITIES)[number];

/** The statuses that may follow each status. `sent` and `failed` are final. */
export const NEXT_STATUS: Readonly<Record<MessageStatus, readonly MessageStatus[]>> = {
  queued: ["processing", "failed", "sent"],
  processing: ["sent", "failed", "queued"],
  sent: [],
  failed: [],
};

/** Returns the chat that a recipient names. A number and its JID are the same chat. */
export function chatOf(to: string): string {
  return to.endsWith("@s.whatsapp.net") ? to.slice(0, to.indexOf("@")) : to;
}

/** Returns whether the chat is a group or the audience of a status, not a 1:1 chat. */
export function isOfMany(to: string): boolean {
  return isGroup(to) || to.endsWith("@broadcast");
}

/** Returns the message's place in its chat (`chat/rows.ts`); if an older version sent it, the place that it gets. */
export function orderInChat(message: Message): number {
  const { chatOrder, dispatchedAt, sentAt, failedAt, createdAt, historyNumber } = message;
  return chatOrder ?? (dispatchedAt ?? sentAt ?? failedAt ?? createdAt) * 1000 + historyNumber % 1000;
}

export function hasEnded(message: Pick<Message, "status">): boolean {
  return NEXT_STATUS[message.status].length === 0;
}

export interface MessageError {
  /**
   * Stable code: `cancelled`, `expired`, `number_not_registered`, `refused`, `unacknowledged`, `session_logged_out`, …
   */
  code: string;
  /** One sentence for the developer of the client. */
  message: string;
}

/** How a message is sent, as opposed to what it says. */
export interface SendManner extends Omit<Manner, "preview"> {
  /** False to show links in a text without a preview. */
  linkPreview?: false;
  /** How long "typing" is shown before the message leaves. */
  typingMs?: number;
  /** Words of the account's own by which messages are found and cancelled. */
  tags?: readonly string[];
  /** Cancelled if the chat writes before it leaves. */
  cancelOnReply?: true;
  /** What the official API's shape gives back with the message's statuses and answers (`src/cloud/`). */
  cloud?: { callbackData?: string; interactive?: "button" | "list" };
}

/** Who proposed a message, and when it was approved. */
interface Proposal {
  keyId: string;
  /** The key's name. */
  by: string;
  /** Unix ms; absent until then. */
  approvedAt?: number;
}

/** Returns whether the message waits for approval, and has no place in the queue. */
export function isProposed({ status, proposal }: Pick<Message, "status" | "proposal">): boolean {
  return status === "queued" && proposal !== undefined && proposal.approvedAt === undefined;
}

export interface Message {
  id: string;
  jobId: string;
  accountId: string;
  sessionId: string;
  /** The id on the messaging network, chosen at accept and the same in every attempt. */
  networkId: string;
  /**
   * Place among messages of the same priority in the line's queue: when it began to wait, in microseconds (`Ledger`).
   */
  position: number;
  /**
   * Place among messages of the same position: the position that was free at its accept. Absent if it was never
   * scheduled. Its history number would not do: a bulk that is not accepted yet may share that with another message.
   */
  order?: number;
  priority: Priority;
  /** Earliest time of departure, Unix ms; null for as soon as its turn comes. */
  sendAt: number | null;
  /** Place in the account's history: 1, 2, 3, … without gaps. */
  historyNumber: number;
  /** Recipient as accepted: digits, or a JID. */
  to: string;
  content: OutgoingContent;
  /** Absent if the message has no special options. */
  manner?: SendManner;
  /** False if it came with its line from another gateway, whose quota it counts on. */
  charged?: false;
  /** Absent unless a key that may only propose sent it: it waits until it is approved. */
  proposal?: Proposal;
  /** UTC day whose quota it counts on; absent if that is the day of `createdAt`, as it is unless clocks differ. */
  chargedDay?: string;
  /** The same for every message of a bulk; null for a single send. */
  bulkId: string | null;
  status: MessageStatus;
  /** Attempts that may have reached the network. */
  attempts: number;
  error: MessageError | null;
  /** Set while it is on its way: with what it ends if it comes back without having been handed to the network. */
  withdrawn?: MessageError;
  createdAt: number;
  /** After this time, Unix ms, the message is no longer sent. */
  expiresAt: number;
  sentAt: number | null;
  deliveredAt: number | null;
  readAt: number | null;
  /** Its place in its chat (`chat/rows.ts`), once it has one. */
  chatOrder?: number;
  /** When it was first handed to the network, failed, was edited or was revoked, Unix ms. */
  dispatchedAt?: number;
  failedAt?: number;
  editedAt?: number;
  revokedAt?: number;
  /** When its recipient was erased, together with the message's content (`history/erase.ts`), Unix ms. */
  erasedAt?: number;
  /** How often it was edited or rescheduled while it waited. */
  revision?: number;
}
