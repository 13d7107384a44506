/**
 * A message on its way out: the record and its states.
 *
 * | from       | by            | to         |                                                      |
 * |------------|---------------|------------|------------------------------------------------------|
 * | (new)      | accepted      | queued     | one commit with queue row, quota, history (promise 1) |
 * | queued     | dispatched    | processing | after the pause of the plan                          |
 * | queued     | cancelled     | failed     | error code `cancelled`                               |
 * | queued     | expired       | failed     | error code `expired`                                 |
 * | queued     | line is gone  | failed     | error code `session_logged_out`, `session_deleted`   |
 * | queued     | proved        | sent       | the ack was lost, a receipt says that it arrived     |
 * | processing | acknowledged  | sent       | the server's ack, never less (promise 3)             |
 * | processing | held, retried | queued     | keeps its place and its network id                   |
 * | processing | refused       | failed     | final, or the third attempt                          |
 */
import { isGroup } from "../whatsapp/groups.ts";
import type { Manner } from "../whatsapp/outgoing.ts";
import type { OutgoingContent } from "./content.ts";

export const MESSAGE_STATUSES = ["queued", "processing", "sent", "failed"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

export const PRIORITIES = ["high", "normal", "low"] as const;
export type Priority = (typeof PRIORITIES)[number];

/** Which status may follow which. `sent` and `failed` are ends. */
export const NEXT_STATUS: Readonly<Record<MessageStatus, readonly MessageStatus[]>> = {
  queued: ["processing", "failed", "sent"],
  processing: ["sent", "failed", "queued"],
  sent: [],
  failed: [],
};

/** The chat that a recipient names. A number and its JID are one chat. */
export function chatOf(to: string): string {
  return to.endsWith("@s.whatsapp.net") ? to.slice(0, to.indexOf("@")) : to;
}

/** Whether the chat is a group or an audience, and not of two. */
export function isOfMany(to: string): boolean {
  return isGroup(to) || to.endsWith("@broadcast");
}

export function hasEnded(message: Pick<Message, "status">): boolean {
  return NEXT_STATUS[message.status].length === 0;
}

export interface MessageError {
  /** Stable code: `cancelled`, `expired`, `number_not_registered`, `refused`, `unacknowledged`, `session_logged_out`, … */
  code: string;
  /** One sentence for the client's developer. */
  message: string;
}

/** How it is to be sent, beside what it says. */
export interface SendManner extends Omit<Manner, "preview"> {
  /** False: links in a text are shown without a preview. */
  linkPreview?: false;
  /** How long "typing" is shown before it leaves. */
  typingMs?: number;
}

export interface Message {
  id: string;
  jobId: string;
  accountId: string;
  sessionId: string;
  /** The id on the messaging network, chosen at accept, the same over every attempt. */
  networkId: string;
  /** Place in the line's queue among messages of its priority: when it began to wait, in microseconds (`Ledger`). */
  position: number;
  priority: Priority;
  /** Not before this time; null: as soon as its turn comes. */
  sendAt: number | null;
  /** Place in the account's history, dense from 1. */
  historyNumber: number;
  /** Recipient as accepted: digits, or a JID. */
  to: string;
  content: OutgoingContent;
  /** Absent: plainly. */
  manner?: SendManner;
  /** Set on every message of one bulk. */
  bulkId: string | null;
  status: MessageStatus;
  /** Attempts that may have reached the network. */
  attempts: number;
  error: MessageError | null;
  createdAt: number;
  /** After this time it is not sent any more. */
  expiresAt: number;
  sentAt: number | null;
  deliveredAt: number | null;
  readAt: number | null;
  /** When it was first handed to the network, when it failed, and what was done to it after it was sent; Unix ms. */
  dispatchedAt?: number;
  failedAt?: number;
  editedAt?: number;
  revokedAt?: number;
  /** When its recipient was erased, and with it all that the message said (`history/erase.ts`). */
  erasedAt?: number;
  /** How often it was changed, or moved to another time, while it waited. */
  revision?: number;
}
