/** Finds the received messages of a chat that are still unread, from the seen rows (`seen.ts`). */
import { notFound } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { ReadMessage } from "../whatsapp/contacts.ts";
import { lineKeys } from "./rows.ts";
import { ME, seenAt, seenFrom } from "./seen.ts";

/** Limit of messages marked as read at once, the newest ones; older messages of the chat count as read with them. */
const MOST_AT_ONCE = 500;
/** Rows read per chat. A group with more messages than this in a month hardly depends on the gateway to be read. */
const ROWS_READ = 20_000;

export class Unread {
  readonly #deps: { kv: Kv; clock: Clock };

  constructor(deps: { kv: Kv; clock: Clock }) {
    this.#deps = deps;
  }

  /**
   * Returns the message with this id, or, if that is null, all messages since the chat was last read. `chats`
   * are the possible names of the chat. `done` records that they were read. Throws Problem not_found for a
   * message that is not in the chat.
   */
  async of(
    lineId: string,
    { chats, networkId }: { chats: readonly string[]; networkId: string | null },
  ): Promise<{ messages: ReadMessage[]; done(): Promise<void> }> {
    const { clock, kv } = this.#deps;
    if (networkId !== null) {
      return { messages: await this.#one(lineId, chats, networkId), done: () => Promise.resolve() };
    }
    const now = clock.now();
    const found: (ReadMessage & { at: number })[] = [];
    for (const chat of chats) {
      const readAt = (await kv.get(lineKeys.chatRead(lineId, chat))).value ?? 0;
      found.push(...await Array.fromAsync(this.#since(lineId, chat, readAt)));
    }
    const newest = found.sort((a, b) => a.at - b.at).slice(-MOST_AT_ONCE);
    const change = new Change();
    for (const chat of chats) change.set(lineKeys.chatRead(lineId, chat), now);
    return {
      messages: newest.map(({ at: _, ...message }) => message),
      done: async () => void await kv.commit(change),
    };
  }

  async #one(lineId: string, chats: readonly string[], networkId: string): Promise<ReadMessage[]> {
    for (const chat of chats) {
      const { value } = await this.#deps.kv.get(lineKeys.seen(lineId, chat, networkId));
      if (value === null) continue;
      const from = seenFrom(value);
      return from === ME ? [] : [{ chat, networkId, participant: from }];
    }
    throw notFound("message in this chat");
  }

  async *#since(lineId: string, chat: string, readAt: number): AsyncGenerator<ReadMessage & { at: number }> {
    for await (const row of this.#deps.kv.list({ prefix: lineKeys.seenOfChat(lineId, chat) }, { limit: ROWS_READ })) {
      const [at, from] = [seenAt(row.value), seenFrom(row.value)];
      if (at >= readAt && from !== ME) yield { chat, networkId: String(row.key.at(-1)), participant: from, at };
    }
  }
}
