/**
 * Every key of the store: the schema. One function a kind of row; nobody else builds keys.
 * Sections are ordered as the floors of the house. Orders and sequence numbers are in keys so that lists need no sort.
 */
import type { AccountRecord } from "../account/account.ts";
import type { Plan } from "../account/plan.ts";
import type { KeptAnswer } from "../account/idempotency.ts";
import type { Pacing } from "../line/pacing.ts";
import type { Line } from "../line/line.ts";
import type { SeenRow } from "../line/seen_row.ts";
import type { LoggedEvent } from "../event/event.ts";
import type { FileRecord } from "../media/store.ts";
import type { BulkDraft } from "../message/bulk_draft.ts";
import type { Ledger } from "../message/ledger.ts";
import type { Bulk, Message, QueueRow } from "../message/message.ts";
import type { WebhookProgress, WebhookRow } from "../webhook/webhook_rows.ts";
import type { Delivery } from "../webhook/webhooks.ts";
import type { BlobRow } from "./chunk.ts";
import type { Key, KeyOf, PrefixOf } from "./kv.ts";

function key<T>(...parts: Key): KeyOf<T> {
  return parts as KeyOf<T>;
}

function prefix<T>(...parts: Key): PrefixOf<T> {
  return parts as PrefixOf<T>;
}

export const keys = {
  schemaVersion: () => key<number>("meta", "schema_version"),
  /** Sealed: opens with the secret key of this store and no other. */
  secretCheck: () => key<Uint8Array>("meta", "secret_check"),
  // store/: the engine's own rows; nothing above reads them
  /** Never holds anything: deleting it waits until the file can be written. */
  probe: () => key<never>("store", "probe"),
  /** The highest place in the order of commits that was handed out. */
  order: () => key<number>("store", "order"),
  /** How many instances have written chunks; each names its blobs by its number. */
  chunkWriters: () => key<number>("store", "chunk_writers"),
  /** Chunks are being written ahead of a commit; the value is when that began. */
  staging: (stageId: string) => key<number>("store", "staging", stageId),
  stagings: () => prefix<number>("store", "staging"),
  /** Which row a large value belongs to, and in how many chunks it lies. */
  blob: (stageId: string, index: number) => key<BlobRow>("store", "blob", stageId, index),
  blobs: () => prefix<BlobRow>("store", "blob"),
  chunk: (stageId: string, index: number, part: number) => key<Uint8Array>("store", "chunk", stageId, index, part),
  chunks: () => prefix<Uint8Array>("store", "chunk"),
  // account/
  /** An account with its sealed key. */
  account: (accountId: string) => key<AccountRecord>("account", accountId),
  accounts: () => prefix<AccountRecord>("account"),
  /** Whose API key has this SHA-256 (hex): the account's id. One row an account; rotating the key replaces it. */
  apiKey: (keyHash: string) => key<string>("api_key", keyHash),
  /** The plan catalogue. */
  plan: (name: string) => key<Plan>("plan", name),
  plans: () => prefix<Plan>("plan"),
  /** What was answered under a client's Idempotency-Key, of which the row's key has the hash. */
  answer: (accountId: string, keyHash: string) => key<KeptAnswer>("answer", accountId, keyHash),
  answers: () => prefix<KeptAnswer>("answer"),
  // line/
  /** A line. Stays after `delete` was wished, until the supervisor has unlinked it. */
  line: (lineId: string) => key<Line>("line", lineId),
  lines: () => prefix<Line>("line"),
  /** An account's lines in the order of creation; the value is the line's id. Gone as soon as `delete` is wished. */
  lineOfAccount: (accountId: string, createdAt: number, lineId: string) =>
    key<string>("line_of_account", accountId, createdAt, lineId),
  linesOfAccount: (accountId: string) => prefix<string>("line_of_account", accountId),
  /** How many lines the account has: checked by every create, so that the plan's limit holds. */
  lineCount: (accountId: string) => key<number>("line_count", accountId),
  /** When the line last connected, sent or received, Unix ms; beside the line's row, so that it never conflicts. */
  lineUsed: (lineId: string) => key<number>("line_used", lineId),
  /** When the line's last message departed and when the next may: the pause survives a restart (promise 2). */
  pacing: (lineId: string) => key<Pacing>("pacing", lineId),
  /** An incoming message that was kept: the same one is dropped when it comes again, see line/seen_row.ts. */
  seen: (lineId: string, chat: string, networkId: string) => key<SeenRow>("seen", lineId, chat, networkId),
  seenOfLine: (lineId: string) => prefix<SeenRow>("seen", lineId),
  allSeen: () => prefix<SeenRow>("seen"),
  // message/
  /** A message by its id. */
  message: (messageId: string) => key<Message>("message", messageId),
  messages: () => prefix<Message>("message"),
  /** A line's queue: one row for each message that is `queued` or `processing`, in the order of departure. */
  queue: (lineId: string, position: number) => key<QueueRow>("queue", lineId, position),
  queueOfLine: (lineId: string) => prefix<QueueRow>("queue", lineId),
  /** Ids of messages that may wait until this time (Unix ms), the first of them in the key; they may have ended since. */
  expiry: (expiresAt: number, firstMessageId: string) => key<string[]>("expiry", expiresAt, firstMessageId),
  expiries: () => prefix<string[]>("expiry"),
  /** A bulk: written last of its rows; without it the queue rows that name it do not count (all or none). */
  bulk: (bulkId: string) => key<Bulk>("bulk", bulkId),
  /** The gateway's message id of a network id, from the first departure: receipts name only that. */
  messageOfNetworkId: (lineId: string, networkId: string) => key<string>("message_of_network_id", lineId, networkId),
  networkIdsOfLine: (lineId: string) => prefix<string>("message_of_network_id", lineId),
  /** What a participant's receipt said, and when: each is reported once. The participant is "" in a 1:1 chat. */
  receipt: (messageId: string, status: "delivered" | "read", participant: string) =>
    key<number>("receipt", messageId, status, participant),
  receiptsOf: (messageId: string) => prefix<number>("receipt", messageId),
  /** An account's ledger: quota counts and the end of its history, rewritten by every accept. */
  ledger: (accountId: string) => key<Ledger>("ledger", accountId),
  ledgers: () => prefix<Ledger>("ledger"),
  /** Message ids of 30 consecutive history numbers; written when they are full. */
  historyBlock: (accountId: string, block: number) => key<string[]>("history_block", accountId, block),
  /** The first history number of a UTC day (`YYYY-MM-DD`) on which anything was accepted. */
  historyDay: (accountId: string, day: string) => key<number>("history_day", accountId, day),
  historyDays: (accountId: string) => prefix<number>("history_day", accountId),
  /** Packed statuses (level 0) and counts of them (above), see message/status_index.ts. */
  statusCounts: (accountId: string, level: number, index: number) =>
    key<bigint>("status_counts", accountId, level, index),
  statusCountsOf: (accountId: string, level: number) => prefix<bigint>("status_counts", accountId, level),
  /** A bulk that is being written over several commits; gone once the bulk's own row is there. */
  bulkDraft: (bulkId: string) => key<BulkDraft>("bulk_draft", bulkId),
  bulkDrafts: () => prefix<BulkDraft>("bulk_draft"),
  // event/
  /** An event at its place in the order of commits; its id is `evt_` and the order. */
  event: (accountId: string, order: string) => key<LoggedEvent>("event", accountId, order),
  events: (accountId: string) => prefix<LoggedEvent>("event", accountId),
  /** How many events of the account are kept. */
  eventCount: (accountId: string) => key<bigint>("event_count", accountId),
  eventCounts: () => prefix<bigint>("event_count"),
  /** Order of the newest event that was removed: a cursor before it has missed something. */
  eventFloor: (accountId: string) => key<string>("event_floor", accountId),
  // webhook/
  webhook: (accountId: string, webhookId: string) => key<WebhookRow>("webhook", accountId, webhookId),
  webhooksOfAccount: (accountId: string) => prefix<WebhookRow>("webhook", accountId),
  webhooks: () => prefix<WebhookRow>("webhook"),
  /** How many webhooks the account ever made: checked by every create, so that the limit holds. */
  webhooksMade: (accountId: string) => key<number>("webhooks_made", accountId),
  /** How far the webhook has come in its account's event log; written by its worker alone. */
  webhookProgress: (webhookId: string) => key<WebhookProgress>("webhook_progress", webhookId),
  allWebhookProgress: () => prefix<WebhookProgress>("webhook_progress"),
  /** What became of an event, by the event's order; exists from the end of the first attempt. */
  delivery: (webhookId: string, order: string) => key<Delivery>("delivery", webhookId, order),
  deliveries: (webhookId: string) => prefix<Delivery>("delivery", webhookId),
  /** An attempt that is waited for, by the time it is due (Unix ms); the value is its number in its series, from 1. */
  dueAttempt: (webhookId: string, dueAt: number, order: string) => key<number>("due_attempt", webhookId, dueAt, order),
  dueAttempts: (webhookId: string) => prefix<number>("due_attempt", webhookId),
  allDueAttempts: () => prefix<number>("due_attempt"),
  // media/
  /** A file on disk: what it is and until when. */
  file: (fileId: string) => key<FileRecord>("file", fileId),
  files: () => prefix<FileRecord>("file"),
  /** A received file by when it ends (Unix ms), as its row says; the value is its size in bytes. */
  fileEnd: (expiresAt: number, fileId: string) => key<number>("file_end", expiresAt, fileId),
  fileEnds: () => prefix<number>("file_end"),
  // whatsapp/ (everything that links a line lies under one prefix, so that a log-out can drop it; values are sealed)
  waLine: (lineId: string) => prefix<unknown>("wa", lineId),
  /** The line's credentials on the network. */
  waCreds: (lineId: string) => key<Uint8Array>("wa", lineId, "creds"),
  /** One key of the library's by its type and id: sessions, pre-keys, sender keys, id mappings, and the journal. */
  waKey: (lineId: string, type: string, id: string) => key<Uint8Array>("wa", lineId, "key", type, id),
  waKeysOf: (lineId: string, type: string) => prefix<Uint8Array>("wa", lineId, "key", type),
  /** A part of a stanza that was handed over (not sealed): delivered again, it is no failure. Value: when, Unix ms. */
  waSeen: (lineId: string, part: string) => key<number>("wa", lineId, "seen", part),
  /** A sent message, encoded, for receivers that ask for it again. */
  waSent: (lineId: string, networkId: string) => key<Uint8Array>("wa", lineId, "sent", networkId),
  /** The JID that the network gave for a number (not sealed), and when. */
  waRecipient: (lineId: string, number: string) => key<{ jid: string; at: number }>("wa", lineId, "recipient", number),
  /** What the sweep may drop, by the UTC day (days since 1970) on which it ends; the value is the row's key. */
  waExpiry: (day: number, lineId: string, kind: string, id: string) => key<Key>("wa_expiry", day, lineId, kind, id),
  waExpiries: () => prefix<Key>("wa_expiry"),
};
