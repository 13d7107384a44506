/**
 * Indexes the chats of data that an older version wrote: batch by batch, in commits that let others pass.
 * A row says how far each account is. Batches may be repeated, so a kill at any point loses and doubles nothing. What was
 * received then counts as read.
 */
import { inBatches } from "../base/batches.ts";
import { type ChatIndex, type InLine, reacted } from "../chat/chat_index.ts";
import type { OpenChat } from "../chat/chat_record.ts";
import { type Backfill, BACKFILL_TOPIC, chatKeys, type ChatRow, isReceived, isSent } from "../chat/rows.ts";
import { type ChatEvent, isChatEvent, type LoggedEvent } from "../event/event.ts";
import { EVENTS_A_READ, orderOf, readAfter } from "../event/event_log.ts";
import { eventKeys } from "../event/rows.ts";
import { ledgerOf, messageIds, messagesOf, sequence } from "../message/history/ledger.ts";
import { chatOf, hasEnded, type Message, orderInChat } from "../message/message.ts";
import { isSaid } from "../message/record.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, type Kv, retryOnConflict, type Row } from "../store/kv.ts";
import { isGroup } from "../whatsapp/chats.ts";
import { deleted, edited, isKept, jidOf, placeOf, reactorOf, saidIn, targetOf } from "./chat_entries.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";
import { orderOfSeen, withOrder } from "./seen.ts";

const BATCH = 50;
/** By number and by LID, and the one that either stands for: their rows are checked too. */
const PLACES_OF_A_CHAT = 3;
/** Time that one run spends, because other sweeps wait for its end. */
const RUN_MS = 2_000;
/** Pause before the next run, if one is needed. */
const REST_MS = 500;
/** After each batch, disk and processor are left to others for this many times its duration. */
const PAUSE_FACTOR = 2;

interface BackfillDeps {
  kv: Kv;
  chats: ChatIndex;
  runtime: Pick<Runtime, "clock">;
  bell: Pick<Bell, "ringAt">;
}

/** A message to be indexed. */
interface Entry {
  line: InLine;
  address: string;
  number: string | null;
  name: string | null;
  order: number;
  row: ChatRow;
}

/** Continues each account's index for a limited time; resolves to the number of messages indexed. */
export async function backfillChats(deps: BackfillDeps, signal: AbortSignal): Promise<number> {
  const { kv, runtime: { clock }, bell } = deps;
  const until = clock.now() + RUN_MS;
  let indexed = 0;
  let left = false;
  for await (const first of kv.list({ prefix: chatKeys.backfills() })) {
    let row: Row<Backfill> | null = first;
    while (row && clock.now() < until && !signal.aborted) {
      const begun = clock.now();
      const { entries, marking = [], next }: Batch = await batchOf(kv, row);
      await index(deps, entries);
      for (const event of marking) await markAgain(deps, event);
      indexed += entries.length;
      row = await advance(kv, row, next);
      await sleep(clock, Math.max(1, PAUSE_FACTOR * (clock.now() - begun)), signal);
    }
    left ||= row !== null;
  }
  if (left) bell.ringAt(BACKFILL_TOPIC, clock.now() + REST_MS);
  return indexed;
}

/** What to index now, and where to continue; `next` null: the account is done. */
interface Batch {
  entries: Entry[];
  /** Edits, deletions and reactions. */
  marking?: LoggedEvent[];
  next: Backfill | null;
}

async function advance(kv: Kv, row: Row<Backfill>, next: Backfill | null): Promise<Row<Backfill> | null> {
  const change = new Change().check(row);
  if (next) change.set(row.key, next);
  else change.delete(row.key);
  const version = await kv.commit(change);
  return next && version !== null ? { key: row.key, value: next, version } : null;
}

async function batchOf(kv: Kv, { key, value }: Row<Backfill>): Promise<Batch> {
  const accountId = String(key.at(-1));
  switch (value.step) {
    case "sent":
      return await sentBatch(kv, accountId, value.upTo);
    case "written":
      return await writtenBatch(kv, accountId, value);
    case "marks": {
      const events = await readAfter(kv, accountId, value.after);
      const newest = events.at(-1);
      const next = events.length < EVENTS_A_READ ? null : { step: "marks", after: orderOf(newest!.id) } as const;
      return { entries: [], marking: events, next };
    }
  }
}

async function sentBatch(kv: Kv, accountId: string, upTo: number): Promise<Batch> {
  if (upTo === 0) return { entries: [], next: { step: "written", before: null } };
  const from = Math.max(1, upTo - BATCH + 1);
  const ledger = await ledgerOf(kv, accountId);
  const messages = await messagesOf(kv, await messageIds(kv, { accountId, ledger }, sequence(from, upTo)));
  const lines = await linesOf(kv, messages.map(({ sessionId }) => sessionId));
  const entries = messages.filter((message) => isToIndex(message, lines.get(message.sessionId) ?? null)).map(
    (message): Entry => ({
      line: { lineId: message.sessionId, accountId },
      address: chatOf(message.to),
      number: null,
      name: null,
      order: orderInChat(message),
      row: { messageId: message.id },
    }),
  );
  return { entries: entries.reverse(), next: { step: "sent", upTo: from - 1 } };
}

/** What has not ended gets its place when it departs, and what ended since the upgrade has one. */
function isToIndex(message: Message, line: Line | null): boolean {
  const { chatOrder, erasedAt, sentAt, createdAt } = message;
  if (line === null || (sentAt ?? createdAt) < (line.numberSince ?? 0)) return false;
  return hasEnded(message) && isSaid(message) && chatOrder === undefined && erasedAt === undefined;
}

async function writtenBatch(
  kv: Kv,
  accountId: string,
  { before }: Extract<Backfill, { step: "written" }>,
): Promise<Batch> {
  const end = before === null ? {} : { end: eventKeys.event(accountId, before) };
  const range = { prefix: eventKeys.events(accountId), ...end };
  const events = await Array.fromAsync(kv.list(range, { limit: BATCH, reverse: true }), ({ value }) => value);
  const written = events.filter(isChatEvent).filter(({ data }) => isKept(data.chat) && data.type !== "reactionMessage");
  const lines = await linesOf(kv, written.map(({ sessionId }) => sessionId));
  const seen = await kv.getMany(
    written.map(({ sessionId, data }) => lineKeys.seen(sessionId, data.chat, data.messageId)),
  );
  const entries = written.flatMap((event, i): Entry[] => {
    const line = lines.get(event.sessionId);
    if (!line || event.createdAt < (line.numberSince ?? 0)) return [];
    const { value } = seen[i]!;
    return [entryOf(event, value === null ? microsecondsOf(event) : orderOfSeen(value))];
  });
  const oldest = events.at(-1);
  return {
    entries,
    next: events.length < BATCH ? { step: "marks", after: null } : { step: "written", before: orderOf(oldest!.id) },
  };
}

/** Does again what an event marked at another message; that it was done before changes nothing. */
async function markAgain({ kv, chats }: BackfillDeps, event: LoggedEvent): Promise<void> {
  const marked = markOf(event);
  if (marked === null || !isKept(marked.chat)) return;
  const line = { lineId: event.sessionId, accountId: event.accountId };
  const place = await placeOf({ kv, chats }, line, marked);
  if (place) await chats.amend(line.lineId, place, marked.next);
}

function markOf(event: LoggedEvent): { chat: string; id: string; next: (row: ChatRow) => ChatRow } | null {
  switch (event.event) {
    case "message.edited": {
      const { chat, messageId: id, text } = event.data;
      return { chat, id, next: (row) => edited(row, text, event.createdAt) };
    }
    case "message.deleted": {
      const { chat, messageId: id } = event.data;
      return { chat, id, next: (row) => deleted(row, event.createdAt) };
    }
    case "message.received":
    case "message.echo": {
      const { data } = event;
      const id = data.type === "reactionMessage" ? targetOf(data) : null;
      if (id === null) return null;
      const { chat, number, participant = null, text } = data;
      const by = reactorOf({ fromMe: event.event === "message.echo", number, participant, chat });
      return { chat, id, next: (row) => reacted(row, by, text ?? "") };
    }
    default:
      return null;
  }
}

async function linesOf(kv: Kv, ids: readonly string[]): Promise<Map<string, Line>> {
  const slots = await kv.getMany([...new Set(ids)].map((id) => lineKeys.line(id)));
  return new Map(slots.flatMap(({ value }) => value ? [[value.id, value]] : []));
}

/** Events are ordered by their time in microseconds. */
function microsecondsOf({ id }: ChatEvent): number {
  return Number(orderOf(id).slice(0, 16));
}

function entryOf({ event, accountId, sessionId: lineId, data }: ChatEvent, order: number): Entry {
  const { chat, number, pushName: name } = data;
  const isOwn = event === "message.echo";
  const isPerson = !isOwn && !isGroup(chat);
  return {
    line: { lineId, accountId },
    address: chatOf(chat),
    number: isPerson ? number : null,
    name: isPerson ? name : null,
    order,
    row: saidIn(data, { accountId, isOwn }),
  };
}

/** Writes the entries: a person's in commits of their own, tried again if the chat changes meanwhile. */
async function index({ kv, chats }: BackfillDeps, entries: readonly Entry[]): Promise<void> {
  const byPerson = Map.groupBy(entries, ({ line, address, number }) => `${line.lineId} ${number ?? address}`);
  // Side by side, they share flushes.
  await Promise.all([...byPerson.values()].map(async (all) => {
    for (const some of inBatches(all, kv.mostChecks - PLACES_OF_A_CHAT)) {
      const { line, address, number } = some[0]!;
      await retryOnConflict(kv, async () => {
        const chat = await chats.open(line, { address, number });
        const change = new Change();
        await add(kv, change, chat, some);
        return { change, result: null, background: true };
      });
    }
  }));
}

async function add(kv: Kv, change: Change, chat: OpenChat, entries: readonly Entry[]): Promise<void> {
  let { parts, name, wrote, last } = chat.record;
  const taken = new Set<number>();
  let isNew = false;
  for (const entry of entries) {
    const { line: { lineId }, address, row } = entry;
    let { order } = entry;
    let slot = await kv.get(chatKeys.message(lineId, address, order));
    while (taken.has(order) || (slot.value !== null && idOf(slot.value) !== idOf(row))) {
      slot = await kv.get(chatKeys.message(lineId, address, ++order));
    }
    taken.add(order);
    if (slot.value !== null) continue;
    isNew = true;
    change.check(slot).set(slot.key, row);
    if (order !== entry.order && !isSent(row)) await noteOrder(kv, change, entry, order);
    if (!parts.includes(address)) parts = [...parts, address];
    name ??= entry.name;
    if (isReceived(row)) wrote = true;
    last = Math.max(last, order);
  }
  if (isNew) chat.write(change, { parts, name, last, ...(wrote ? { wrote } : {}) });
}

/** Two messages were received in the same millisecond: the seen row of one has its new place. */
async function noteOrder(kv: Kv, change: Change, { line, address, row }: Entry, order: number): Promise<void> {
  const slot = await kv.get(lineKeys.seen(line.lineId, jidOf(address), idOf(row)));
  if (slot.value !== null) change.check(slot).set(slot.key, withOrder(slot.value, order));
}

function idOf(row: ChatRow): string {
  return isSent(row) ? row.messageId : row.id;
}
