/**
 * Numbers that an account never writes to again: put on its list by its owner, or by themselves with one of its words.
 * How many there are is in the account's ledger, which every accept checks: so a send is refused from the commit on that
 * puts its recipient on the list, and an account without opt-outs pays nothing.
 */
import { notFound } from "../errors.ts";
import type { NewEvent } from "../event/event.ts";
import type { EventLog } from "../event/log.ts";
import type { Clock } from "../runtime.ts";
import { Change, type Kv, retryOnConflict, type Slot } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import type { OutgoingContent } from "./content.ts";
import { EMPTY_LEDGER } from "./history/ledger.ts";
import { chatOf, type MessageError } from "./message.ts";
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
  recorder: Pick<Recorder, "dropped">;
  /** Ids of the account's lines. */
  linesOf(accountId: string): Promise<string[]>;
  /** The person's `@lid`, and the number behind one, as far as the line knows them. */
  lidOf(lineId: string, number: string): Promise<string | null>;
  numberOf(lineId: string, lid: string): Promise<string | null>;
  /** Words that opt out, as the account has them now. */
  wordsOf(accountId: string): Promise<readonly string[]>;
  /** Called afterwards with each line whose queue has changed. */
  queueChanged(lineId: string): void;
}

export class OptOuts {
  readonly #deps: OptOutDeps;

  constructor(deps: OptOutDeps) {
    this.#deps = deps;
  }

  /** In the order of their numbers. */
  async page(
    accountId: string,
    { page, limit }: { page: number; limit: number },
  ): Promise<{ optOuts: OptOut[]; total: number }> {
    const { kv } = this.#deps;
    const total = (await kv.get(messageKeys.ledger(accountId))).value?.optOuts ?? 0;
    const rows = kv.list({ prefix: messageKeys.optOuts(accountId) }, { limit: page * limit });
    const optOuts: OptOut[] = [];
    let at = 0;
    for await (const { value } of rows) if (at++ >= (page - 1) * limit) optOuts.push(value);
    return { optOuts, total };
  }

  /** By the number or the `@lid`. Throws Problem not_found when the person is not on the list. */
  async get(accountId: string, number: string): Promise<OptOut> {
    const { value } = await this.#slotOf(accountId, number);
    if (value === null) throw notFound("opt-out");
    return value;
  }

  /**
   * Puts the number, or `@lid`, on the list, with the other one as far as the account's lines know it, and ends what
   * waits for it; one that is on it stays, and learns the other.
   */
  async add(accountId: string, number: string): Promise<OptOut> {
    return await this.#add(accountId, { number, word: null, chats: await this.#chatsOf(accountId, number) });
  }

  /** Resolves to what was on the list. Throws Problem not_found. */
  remove(accountId: string, number: string): Promise<OptOut> {
    const { kv } = this.#deps;
    return retryOnConflict(kv, async () => {
      const [ledger, slot] = await Promise.all([
        kv.get(messageKeys.ledger(accountId)),
        this.#slotOf(accountId, number),
      ]);
      if (slot.value === null || ledger.value === null) throw notFound("opt-out");
      const change = new Change().check(ledger).check(slot).delete(slot.key);
      for (const chat of slot.value.chats) change.delete(messageKeys.optedOutChat(accountId, chat));
      change.set(ledger.key, { ...ledger.value, optOuts: Math.max(0, (ledger.value.optOuts ?? 0) - 1) });
      return { change, result: slot.value };
    });
  }

  /** Puts on the list who wrote one of the account's words, with the event. A group has no words. */
  async heard(
    { text, chat: jid, number: digits, participant, fromMe }: Pick<
      Incoming,
      "text" | "chat" | "number" | "participant" | "fromMe"
    >,
    to: Pick<NewEvent, "accountId" | "sessionId" | "sessionName">,
  ): Promise<void> {
    const { wordsOf, events } = this.#deps;
    if (fromMe || participant !== null || text === null || text.length > LONGEST_WORD) return;
    const said = wordOf(text);
    const word = (await wordsOf(to.accountId)).find((word) => wordOf(word) === said);
    if (word === undefined) return;
    const number = digits ?? chatOf(jid);
    const chats = [...new Set([...await this.#chatsOf(to.accountId, number), chatOf(jid)])];
    await this.#add(to.accountId, { number, word, chats }, (change) => {
      events.append(change, { ...to, event: "recipient.opted_out", data: { number, word } });
    });
  }

  /** `chats`: under what else the person is written to. */
  async #add(
    accountId: string,
    wanted: Pick<OptOut, "number" | "word" | "chats">,
    alongside: (change: Change) => void = () => {},
  ): Promise<OptOut> {
    const { kv, clock, events } = this.#deps;
    const { optOut, isNew } = await retryOnConflict(kv, async () => {
      const [ledger, slot, listed] = await Promise.all([
        kv.get(messageKeys.ledger(accountId)),
        this.#slotOf(accountId, wanted.number),
        kv.getMany(wanted.chats.map((chat) => messageKeys.optedOutChat(accountId, chat))),
      ]);
      const before = slot.value;
      const { number } = before ?? wanted;
      // What another entry covers stays its own: taking one entry off the list leaves the other whole.
      const own = wanted.chats.filter((_, i) => [null, number].includes(listed[i]!.value));
      const chats = [...new Set([...before?.chats ?? [], ...own])];
      if (before && chats.length === before.chats.length) {
        return { change: new Change(), result: { optOut: before, isNew: false } };
      }
      const optOut = before ? { ...before, chats } : { ...wanted, chats, createdAt: clock.now() };
      const kept = ledger.value ?? EMPTY_LEDGER;
      const change = new Change().check(ledger).check(slot).set(slot.key, optOut);
      for (const chat of chats) change.set(messageKeys.optedOutChat(accountId, chat), number);
      // Rewritten also where the number stays the same: accepts that are under way decide anew.
      change.set(ledger.key, { ...kept, optOuts: (kept.optOuts ?? 0) + (before ? 0 : 1) });
      if (!before) alongside(change);
      return { change, result: { optOut, isNew: !before } };
    });
    if (isNew) events.committed(accountId);
    await this.#endWaiting(accountId, new Set(optOut.chats));
    return optOut;
  }

  /** Where this ends early, the rest ends when its turn to leave comes. */
  async #endWaiting(accountId: string, chats: ReadonlySet<string>): Promise<void> {
    const { linesOf, kv, recorder, queueChanged } = this.#deps;
    for (const lineId of await linesOf(accountId)) {
      const ids = await waitingFor(kv, lineId, chats);
      for (const id of ids) await recorder.dropped(id, OPTED_OUT);
      if (ids.length > 0) queueChanged(lineId);
    }
  }

  /** The entry that covers the number or `@lid`, or the place for one. */
  async #slotOf(accountId: string, number: string): Promise<Slot<OptOut>> {
    const { kv } = this.#deps;
    const { value } = await kv.get(messageKeys.optedOutChat(accountId, number));
    return await kv.get(messageKeys.optOut(accountId, value ?? number));
  }

  /** Under what the account's lines may write to the person. */
  async #chatsOf(accountId: string, number: string): Promise<string[]> {
    const { linesOf, lidOf, numberOf } = this.#deps;
    const otherOf = number.endsWith("@lid") ? numberOf : lidOf;
    const others = await Promise.all((await linesOf(accountId)).map((lineId) => otherOf(lineId, number)));
    return [...new Set([number, ...others.flatMap((other) => other === null ? [] : chatOf(other))])];
  }
}

/** Ids of what waits on the line for these chats. */
export async function waitingFor(kv: Kv, lineId: string, chats: ReadonlySet<string>): Promise<string[]> {
  const ids: string[] = [];
  for (const chat of chats) {
    for await (const { value } of kv.list({ prefix: messageKeys.queueOfChat(lineId, chat) })) ids.push(value.messageId);
  }
  for await (const { value } of kv.list({ prefix: messageKeys.scheduleOfLine(lineId) })) {
    if (chats.has(value.chat)) ids.push(value.messageId);
  }
  return ids;
}

/** Longer texts say more than a word. */
const LONGEST_WORD = 100;

/** A word as it is compared: neither capitals nor the signs around it matter. */
function wordOf(text: string): string {
  const letters = [...text.normalize("NFKC").toLowerCase()];
  const isLetter = (sign: string) => /[\p{L}\p{N}]/u.test(sign);
  return letters.slice(letters.findIndex(isLetter), letters.findLastIndex(isLetter) + 1).join("");
}

/** Who a message goes to, as it stands on the list: a chat, and the audience of a status post. */
export function recipientsOf({ to, content }: { to: string; content: OutgoingContent }): string[] {
  return [chatOf(to), ...content.kind === "status" ? content.audience : []];
}

/** Which of the recipients do not want to be written to. */
export async function optedOutAmong(kv: Kv, accountId: string, recipients: readonly string[]): Promise<Set<string>> {
  const asked = [...new Set(recipients)];
  const slots = await kv.getMany(asked.map((chat) => messageKeys.optedOutChat(accountId, chat)));
  return new Set(asked.filter((_, i) => slots[i]!.value !== null));
}
