/** The chats of a line: which of them wrote within a day, and which were active within a year. */
import { chatKeys } from "../chat/rows.ts";
import { chatOf, isOfMany } from "../message/message.ts";
import { type Lane, messageKeys } from "../message/rows.ts";
import { deleteRange, deleteUnchanged } from "../store/delete_range.ts";
import { Change, type Key, type Kv, type Row, stretchOf } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import type { Network } from "../whatsapp/network.ts";
import { type Person, Traces } from "../whatsapp/person.ts";
import { lineKeys } from "./rows.ts";
import { KEEP_SEEN_MS, seenFrom, withoutAuthor } from "./seen.ts";

const DAY_MS = 24 * 3_600_000;
/** A message to a chat that wrote within this time is a reply. */
const REPLY_WITHIN_MS = DAY_MS;
/** A message to a chat that wrote within this time is an answer that even a restricted account may try once. */
const ANSWER_WITHIN_MS = 3 * DAY_MS;
/** A chat in which nobody has written for this long counts as new again. */
const KNOWN_MS = 365 * DAY_MS;
/** How long a chat's read time is kept: longer than its seen rows, or those not swept yet would count as unread. */
const KEEP_READ_MS = KEEP_SEEN_MS + DAY_MS;
/** Chat rows checked per turn of the sweep, so about a million a day; nothing depends on when a row is removed. */
const CHATS_A_TURN = 1_000;
/** Rows checked per step of an erasure. */
const READ_AT_ONCE = 500;

/** Returns the chats that a message came from: two if the sender's `@lid` and number are both known. */
export function chatsOf({ chat, number, participant }: Pick<Incoming, "chat" | "number" | "participant">): string[] {
  const chats = [chatOf(chat)];
  return participant === null && number !== null ? [...new Set([...chats, number])] : chats;
}

/** Returns when an incoming message counts as written, Unix ms: at most `now`, because a phone's clock may be ahead. */
export function writtenAt({ timestamp }: Pick<Incoming, "timestamp">, now: number): number {
  return Math.min(now, timestamp * 1000);
}

/** Adds to the change that these chats wrote at `at`, Unix ms. */
export function keepHeard(change: Change, lineId: string, { chats, at }: { chats: readonly string[]; at: number }) {
  for (const chat of chats) {
    change.set(lineKeys.heard(lineId, chat), at);
    keepKnown(change, lineId, { chat, at });
  }
}

/** Adds to the change that the line wrote to the chat, or the chat to the line, at `at`, Unix ms. */
export function keepKnown(change: Change, lineId: string, { chat, at }: { chat: string; at: number }): void {
  change.set(lineKeys.knownChat(lineId, chat), at);
}

/** Keeps for a new `@lid` of a person when the old one wrote. */
export async function keepMoved(kv: Kv, lineId: string, { old, lid }: { old: string; lid: string }): Promise<void> {
  const change = new Change();
  for (const keyOf of [lineKeys.heard, lineKeys.knownChat]) {
    const [before, now] = await kv.getMany([keyOf(lineId, old), keyOf(lineId, lid)]);
    if (before!.value !== null && now!.value === null) change.check(now!).set(now!.key, before!.value);
  }
  await kv.commit(change);
}

/** Forgets all chats of the line, with whom it has written and who has written to it. */
export async function forgetChats(kv: Kv, lineId: string): Promise<void> {
  await deleteRange(kv, { prefix: lineKeys.heardOfLine(lineId) });
  await deleteRange(kv, { prefix: lineKeys.knownChatsOfLine(lineId) });
  await deleteRange(kv, { prefix: chatKeys.messagesOfLine(lineId) });
  await deleteRange(kv, { prefix: chatKeys.recordsOfLine(lineId) });
  await deleteRange(kv, { prefix: chatKeys.places(lineId) });
  await deleteRange(kv, { prefix: messageKeys.choicesAskedOnLine(lineId) });
}

/** In-memory record of which chats of one line wrote within the last 24 h. */
export class Chats {
  readonly #kv: Kv;
  readonly #lineId: string;
  /** When each chat last wrote, Unix ms; in the order of arrival. */
  readonly #heardAt = new Map<string, number>();

  constructor(kv: Kv, lineId: string) {
    this.#kv = kv;
    this.#lineId = lineId;
  }

  /** Reads from the store which chats wrote lately, and resolves to them. */
  async load(now: number): Promise<string[]> {
    for await (const { key, value } of this.#kv.list({ prefix: lineKeys.heardOfLine(this.#lineId) })) {
      if (isRecent(value, now)) this.heard(String(key.at(-1)), { at: value, now });
    }
    return [...this.#heardAt.keys()];
  }

  heard(chat: string, { at, now }: { at: number; now: number }): void {
    const last = Math.max(at, this.#heardAt.get(chat) ?? 0);
    this.#heardAt.delete(chat);
    this.#heardAt.set(chat, last);
    this.#forgetOld(now);
  }

  anyWroteLately(now: number): boolean {
    this.#forgetOld(now);
    return this.#heardAt.size > 0;
  }

  wroteLately(chat: string, now: number): boolean {
    const at = this.#heardAt.get(chat);
    if (at === undefined) return false;
    if (isRecent(at, now)) return true;
    this.#heardAt.delete(chat);
    return false;
  }

  #forgetOld(now: number): void {
    for (const [chat, at] of this.#heardAt) {
      if (isRecent(at, now)) return;
      this.#heardAt.delete(chat);
    }
  }
}

/**
 * Returns which of the chats are new: neither the line nor the other side has written for a year. Groups and the
 * audience of a status never count as new.
 */
export async function newAmong(kv: Kv, lineId: string, chats: readonly string[]): Promise<Set<string>> {
  const people = [...new Set(chats)].filter((chat) => !isOfMany(chat));
  const slots = await kv.getMany(people.map((chat) => lineKeys.knownChat(lineId, chat)));
  return new Set(people.filter((_, i) => slots[i]!.value === null));
}

/** Reads the lane of a chat from the store, for callers without a `Chats` in memory. */
export async function laneOf(kv: Kv, lineId: string, { chat, now }: { chat: string; now: number }): Promise<Lane> {
  const { value } = await kv.get(lineKeys.heard(lineId, chat));
  return value !== null && isRecent(value, now) ? "reply" : "cold";
}

/** Returns whether the chat wrote within the last days. */
export async function wroteWithinDays(kv: Kv, lineId: string, { chat, now }: { chat: string; now: number }) {
  const { value } = await kv.get(lineKeys.heard(lineId, chat));
  return value !== null && value > now - ANSWER_WITHIN_MS;
}

/** Removes expired rows of when chats wrote and were read; resolves to the number removed. */
export async function sweepHeard(kv: Kv, now: number, signal?: AbortSignal): Promise<number> {
  async function* old(): AsyncGenerator<Row<number>> {
    for await (const row of kv.list({ prefix: lineKeys.allHeard() })) {
      if (row.value <= now - ANSWER_WITHIN_MS) yield row;
    }
    for await (const row of kv.list({ prefix: lineKeys.allChatsRead() })) {
      if (row.value <= now - KEEP_READ_MS) yield row;
    }
  }
  // One of the chats may write in the meantime.
  return await deleteUnchanged(kv, old(), { signal });
}

/**
 * Makes the sweep that forgets chats in which nobody has written for a year, with the line's keys for the other side.
 * Each turn resolves to the number forgotten. Without it, a gateway that keeps writing to new people would keep a few KB
 * for each of them forever.
 */
export function makeSweepKnown(kv: Kv, network: Pick<Network, "lidOf" | "numberOf" | "eraseKeys">) {
  /** Where the next turn begins; null for the first row. */
  let next: Key | null = null;

  return async (now: number, signal?: AbortSignal): Promise<number> => {
    const stretch = await stretchOf(kv, lineKeys.allKnownChats(), { from: next, limit: CHATS_A_TURN });
    let forgotten = 0;
    for (const row of stretch.rows) {
      if (signal?.aborted) return forgotten;
      const { key, value } = row;
      if (value === true) await kv.commit(new Change().check(row).set(key, now));
      else if (value <= now - KNOWN_MS) {
        const [, lineId = "", chat = ""] = key.map(String);
        const traces = new Traces(await personOf(network, lineId, chat));
        const names = await kv.getMany(traces.chats.map((name) => lineKeys.knownChat(lineId, name)));
        // The same person's chat under the other name, number or `@lid`, may be more recent.
        if (names.every(({ value }) => value === null || Number(value) <= now - KNOWN_MS)) {
          await network.eraseKeys(lineId, traces);
        }
        if (await kv.commit(new Change().check(row).delete(key)) !== null) forgotten++;
      }
    }
    next = stretch.next;
    return forgotten;
  };
}

async function personOf(network: Pick<Network, "lidOf" | "numberOf">, lineId: string, chat: string): Promise<Person> {
  if (chat.endsWith("@lid")) return { number: await network.numberOf(lineId, chat), lids: [chat] };
  const lid = await network.lidOf(lineId, chat);
  return { number: chat, lids: lid ? [lid] : [] };
}

/**
 * Builds one step of erasing a person from the chats of a line: when they wrote, and what was seen and read of them.
 * The step checks the seen rows from the key `at` on (null: from the first). `next` is null at the end.
 */
export async function eraseChats(
  kv: Kv,
  lineId: string,
  { traces, at }: { traces: Traces; at: Key | null },
): Promise<{ change: Change; next: Key | null }> {
  const change = new Change();
  for (const chat of traces.chats) {
    change.delete(lineKeys.heard(lineId, chat)).delete(lineKeys.knownChat(lineId, chat))
      .delete(lineKeys.chatRead(lineId, chat));
    await deleteRange(kv, { prefix: messageKeys.choicesAskedOf(lineId, chat) });
  }
  const { rows, next } = await stretchOf(kv, lineKeys.seenOfLine(lineId), { from: at, limit: READ_AT_ONCE });
  for (const { key, value } of rows) {
    const [, , chat = "", networkId = ""] = key.map(String);
    if (traces.isOf(chat)) change.delete(key);
    // The row of a group message stays, without its author, so that the message is not emitted again.
    else if (traces.isOf(seenFrom(value) ?? "")) {
      change.set(lineKeys.seen(lineId, chat, networkId), withoutAuthor(value));
    }
  }
  return { change, next };
}

function isRecent(at: number, now: number): boolean {
  return at > now - REPLY_WITHIN_MS;
}
