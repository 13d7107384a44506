/** A chat's record, read to be changed. One person's chats under two addresses become one as soon as that is known. */
import type { Change, Kv, Row, Slot } from "../store/kv.ts";
import { chatKeys, type ChatPlace, type ChatRecord } from "./rows.ts";

interface Named {
  accountId: string;
  /** The address by which the message comes or goes: digits, or a JID of another kind. */
  address: string;
  /** The other address of the same person, if it is known. */
  other: string | null;
}

/** A chat as it was read. The commit of a change must include `write`, which fails if the chat has changed since. */
export class OpenChat {
  readonly record: ChatRecord;
  readonly isNew: boolean;
  readonly #lineId: string;
  readonly #places: readonly Slot<ChatPlace>[];
  readonly #records: readonly Row<ChatRecord>[];

  private constructor(lineId: string, named: Named, read: { places: Slot<ChatPlace>[]; records: Row<ChatRecord>[] }) {
    this.#lineId = lineId;
    this.#places = read.places;
    this.#records = read.records;
    this.isNew = read.records.length === 0;
    this.record = merged(named, read);
  }

  static async read(kv: Pick<Kv, "get" | "getMany">, lineId: string, named: Named): Promise<OpenChat> {
    const { address, other } = named;
    const places = await kv.getMany(
      [address, ...other === null ? [] : [other]].map((name) => chatKeys.place(lineId, name)),
    );
    const known = new Set(places.map(({ key }) => String(key.at(-1))));
    // Of somebody with several LIDs in turn, each names the next.
    for (const { value } of places) {
      if (value === null || !("same" in value) || known.has(value.same)) continue;
      known.add(value.same);
      places.push(await kv.get(chatKeys.place(lineId, value.same)));
    }
    const records: Row<ChatRecord>[] = [];
    for (const { key, value, version } of places) {
      if (value === null || "same" in value) continue;
      const slot = await kv.get(chatKeys.record(lineId, value.unread, value.last, String(key.at(-1))));
      if (slot.value) records.push(slot as Row<ChatRecord>);
      // A message came between the two reads, and moved the record.
      else if ((await kv.get(key)).version !== version) return await OpenChat.read(kv, lineId, named);
    }
    return new OpenChat(lineId, named, { places, records });
  }

  /** Whether a number and a `@lid` turn out here to be one person's. */
  get isJoin(): boolean {
    const { number, lid } = this.record;
    return number !== null && lid !== null &&
      (this.#records.length > 1 || this.#places.some(({ value }) => value === null));
  }

  /** All addresses of the person that the line knows: number, LID, and those that came before. */
  get addresses(): string[] {
    const { number, lid, parts } = this.record;
    return [...new Set([number, lid, ...parts])].filter((each) => each !== null);
  }

  /** Returns the order of a message that is kept at `now`, Unix ms: after all others of the chat. */
  nextOrder(now: number): number {
    return Math.max(now * 1000, this.record.last + 1);
  }

  write(
    change: Change,
    next: Partial<Pick<ChatRecord, "parts" | "name" | "username" | "lid" | "unread" | "wrote" | "last">>,
  ): void {
    const record = { ...this.record, ...next };
    // Somebody without a known number is shown by the present address.
    if (record.number === null && record.lid !== null) record.chat = record.lid;
    const { chat, unread, last } = record;
    for (const place of this.#places) change.check(place);
    const at = chatKeys.record(this.#lineId, unread > 0, last, chat);
    for (const { key } of this.#records) if (key.join() !== at.join()) change.delete(key);
    change.set(at, record).set(chatKeys.place(this.#lineId, chat), { last, unread: unread > 0 });
    for (const { key, value } of this.#places) {
      const address = String(key.at(-1));
      const isSet = value !== null && "same" in value && value.same === chat;
      if (address !== chat && !isSet) change.set(chatKeys.place(this.#lineId, address), { same: chat });
    }
  }

  /** Removes the record and all names of the chat. */
  remove(change: Change): void {
    for (const place of this.#places) change.check(place);
    const { chat, number, lid } = this.record;
    for (const { key } of [...this.#records, ...this.#places]) change.delete(key);
    for (const address of [chat, number, lid]) if (address) change.delete(chatKeys.place(this.#lineId, address));
  }
}

/** Returns the one record of the person: kept where it is, or at the number if there are two. */
function merged(
  { accountId, address, other }: Named,
  { places, records }: { places: readonly Slot<ChatPlace>[]; records: readonly Row<ChatRecord>[] },
): ChatRecord {
  const all = records.map(({ value }) => value);
  // An address that is new is the present one; those of before name the same chat.
  const [fresh, known] = [true, false].map((isNew) =>
    places.filter(({ value }) => (value === null) === isNew).map(({ key }) => String(key.at(-1)))
  );
  const names = [...fresh!, ...all.flatMap(({ number, lid }) => [number, lid]), ...known!];
  const number = names.find((name) => name && !name.includes("@")) ?? null;
  const lid = names.find((name) => name?.endsWith("@lid")) ?? null;
  const first = all.find(({ chat }) => chat === number) ?? all[0];
  const newest = all.toSorted((a, b) => b.last - a.last);
  const username = newest.find(({ username }) => username !== undefined)?.username;
  return {
    accountId,
    chat: first?.chat ?? (address.endsWith("@lid") ? other ?? address : address),
    parts: [...new Set(all.flatMap(({ parts }) => parts))],
    number,
    lid,
    name: newest.find(({ name }) => name !== null)?.name ?? null,
    ...(username === undefined ? {} : { username }),
    unread: all.reduce((sum, { unread }) => sum + unread, 0),
    ...(all.some(({ wrote }) => wrote) ? { wrote: true } : {}),
    last: newest[0]?.last ?? 0,
  };
}
