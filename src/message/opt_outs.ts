/**
 * The opt-outs of an account: people to whom it no longer writes. The owner adds them, or they opt out themselves by
 * writing one of the account's words. The ledger, which every accept checks, counts them. So sends are refused from the
 * very commit that adds their recipient, and accounts without opt-outs pay nothing.
 */
import type { ChatIndex } from "../chat/chat_index.ts";
import { notFound } from "../errors.ts";
import type { NewEvent } from "../event/event.ts";
import type { EventLog } from "../event/event_log.ts";
import type { Clock } from "../runtime.ts";
import { Change, type Kv, retryOnConflict, type Slot } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import type { OutgoingContent } from "./content.ts";
import { EMPTY_LEDGER } from "./history/ledger.ts";
import { chatOf, type MessageError } from "./message.ts";
import { LineQueue } from "./queue/queue.ts";
import { ringQueue } from "./queue/place.ts";
import type { Bell } from "../store/bell.ts";
import type { Recorder } from "./record.ts";
import { messageKeys, type OptOut } from "./rows.ts";

export const OPTED_OUT: MessageError = {
  code: "recipient_opted_out",
  message: "The recipient does not want to be written to by this account.",
};

interface OptOutDeps {
  kv: Kv;
  clock: Clock;
  events: EventLog;
  recorder: Pick<Recorder, "drop">;
  /** Returns the ids of the account's lines. */
  linesOf(accountId: string): Promise<string[]>;
  chats: Pick<ChatIndex, "addressesOf">;
  /** Returns the account's current opt-out words. */
  wordsOf(accountId: string): Promise<readonly string[]>;
  bell: Pick<Bell, "ring">;
}

export type OptOuts = ReturnType<typeof makeOptOuts>;

export function makeOptOuts({ kv, clock, events, recorder, linesOf, chats, wordsOf, bell }: OptOutDeps) {
  /** Returns a page of the list, in the order of numbers. */
  async function page(
    accountId: string,
    { page, limit }: { page: number; limit: number },
  ): Promise<{ optOuts: OptOut[]; total: number }> {
    const total = (await kv.get(messageKeys.ledger(accountId))).value?.optOuts ?? 0;
    const rows = kv.list({ prefix: messageKeys.optOuts(accountId) }, { limit: page * limit });
    const optOuts: OptOut[] = [];
    let at = 0;
    for await (const { value } of rows) if (at++ >= (page - 1) * limit) optOuts.push(value);
    return { optOuts, total };
  }

  /** Finds an entry by number or `@lid`. Throws Problem not_found if the person is not on the list. */
  async function get(accountId: string, number: string): Promise<OptOut> {
    const { value } = await slotOf(accountId, number);
    if (value === null) throw notFound("opt-out");
    return value;
  }

  /**
   * Adds a number or `@lid` to the list, together with the other one if a line of the account knows it, and fails the
   * messages that wait for that person. An existing entry stays, and gets the other name if it is new.
   */
  async function add(accountId: string, number: string): Promise<OptOut> {
    return await enter(accountId, { number, word: null, chats: await chatsOf(accountId, number) });
  }

  /** Removes an entry, by number or `@lid`, and resolves to it. Throws Problem not_found. */
  function remove(accountId: string, number: string): Promise<OptOut> {
    return retryOnConflict(kv, async () => {
      const [ledger, slot] = await Promise.all([
        kv.get(messageKeys.ledger(accountId)),
        slotOf(accountId, number),
      ]);
      if (slot.value === null || ledger.value === null) throw notFound("opt-out");
      const change = new Change().check(ledger).check(slot).delete(slot.key);
      for (const chat of slot.value.chats) change.delete(messageKeys.optedOutChat(accountId, chat));
      change.set(ledger.key, { ...ledger.value, optOuts: Math.max(0, (ledger.value.optOuts ?? 0) - 1) });
      return { change, result: slot.value };
    });
  }

  /** Adds the sender of an incoming message that is one of the account's words, with the event. Ignores groups. */
  async function heard(
    { text, chat: jid, number: digits, participant, fromMe }: Pick<
      Incoming,
      "text" | "chat" | "number" | "participant" | "fromMe"
    >,
    to: Pick<NewEvent, "accountId" | "sessionId" | "sessionName">,
  ): Promise<void> {
    if (fromMe || participant !== null || text === null || text.length > LONGEST_WORD) return;
    const said = wordOf(text);
    const word = (await wordsOf(to.accountId)).find((word) => wordOf(word) === said);
    if (word === undefined) return;
    const number = digits ?? chatOf(jid);
    const chats = [...new Set([...await chatsOf(to.accountId, number), chatOf(jid)])];
    await enter(to.accountId, { number, word, chats }, (change) => {
      events.append(change, { ...to, event: "recipient.opted_out", data: { number, word } });
    });
  }

  /** Extends the entry of one of these addresses to all of them: they are one person's. */
  async function known(accountId: string, chats: readonly string[]): Promise<void> {
    const listed = await kv.getMany(chats.map((chat) => messageKeys.optedOutChat(accountId, chat)));
    const number = listed.find(({ value }) => value !== null)?.value;
    if (number) await enter(accountId, { number, word: null, chats });
  }

  /**
   * Adds an entry, or adds new `chats` of the person to the existing one, and fails the messages that wait for them.
   */
  async function enter(
    accountId: string,
    wanted: Pick<OptOut, "number" | "word" | "chats">,
    alongside: (change: Change) => void = () => {},
  ): Promise<OptOut> {
    const { optOut, isNew } = await retryOnConflict(kv, async () => {
      const [ledger, slot, listed] = await Promise.all([
        kv.get(messageKeys.ledger(accountId)),
        slotOf(accountId, wanted.number),
        kv.getMany(wanted.chats.map((chat) => messageKeys.optedOutChat(accountId, chat))),
      ]);
      const before = slot.value;
      const { number } = before ?? wanted;
      // A chat that another entry covers stays with that entry, so that removing one entry does not affect the other.
      const own = wanted.chats.filter((_, i) => [null, number].includes(listed[i]!.value));
      const chats = [...new Set([...before?.chats ?? [], ...own])];
      if (before && chats.length === before.chats.length) {
        return { change: new Change(), result: { optOut: before, isNew: false } };
      }
      const optOut = before ? { ...before, chats } : { ...wanted, chats, createdAt: clock.now() };
      const kept = ledger.value ?? EMPTY_LEDGER;
      const change = new Change().check(ledger).check(slot).set(slot.key, optOut);
      for (const chat of chats) change.set(messageKeys.optedOutChat(accountId, chat), number);
      // Rewritten even if the count stays the same, so that accepts in progress conflict and check the list again.
      change.set(ledger.key, { ...kept, optOuts: (kept.optOuts ?? 0) + (before ? 0 : 1) });
      if (!before) alongside(change);
      return { change, result: { optOut, isNew: !before } };
    });
    if (isNew) events.committed(accountId);
    await endWaiting(accountId, new Set(optOut.chats));
    return optOut;
  }

  /** Fails waiting messages to these chats. Should a crash interrupt this, the runner drops the rest at their turn. */
  async function endWaiting(accountId: string, chats: ReadonlySet<string>): Promise<void> {
    for (const lineId of await linesOf(accountId)) {
      const ids = await new LineQueue(kv, lineId).idsFor(chats);
      for (const id of ids) await recorder.drop(id, OPTED_OUT);
      if (ids.length > 0) ringQueue(bell, lineId);
    }
  }

  /** Reads the entry that covers the number or `@lid`; an empty slot for a new entry if there is none. */
  async function slotOf(accountId: string, number: string): Promise<Slot<OptOut>> {
    const { value } = await kv.get(messageKeys.optedOutChat(accountId, number));
    return await kv.get(messageKeys.optOut(accountId, value ?? number));
  }

  /** Returns the names, number and `@lid`s old and new, under which the account's lines may write to the person. */
  async function chatsOf(accountId: string, number: string): Promise<string[]> {
    const lines = await linesOf(accountId);
    const known = await Promise.all(lines.map((lineId) => chats.addressesOf({ lineId, accountId }, number)));
    return [...new Set([number, ...known.flat()])];
  }

  return { page, get, add, remove, heard, known };
}

/** Longer texts are not compared with the opt-out words. */
const LONGEST_WORD = 100;

/** Normalizes a word for comparison: ignores case, and punctuation around the word. */
function wordOf(text: string): string {
  const letters = [...text.normalize("NFKC").toLowerCase()];
  const isLetter = (sign: string) => /[\p{L}\p{N}]/u.test(sign);
  return letters.slice(letters.findIndex(isLetter), letters.findLastIndex(isLetter) + 1).join("");
}

/** Returns the recipients of a message as the list names them: its chat, and the audience of a status post. */
export function recipientsOf({ to, content }: { to: string; content: OutgoingContent }): string[] {
  return [chatOf(to), ...content.kind === "status" ? content.audience : []];
}

/** Returns which of the recipients have opted out. */
export async function optedOutAmong(kv: Kv, accountId: string, recipients: readonly string[]): Promise<Set<string>> {
  const asked = [...new Set(recipients)];
  const slots = await kv.getMany(asked.map((chat) => messageKeys.optedOutChat(accountId, chat)));
  return new Set(asked.filter((_, i) => slots[i]!.value !== null));
}
