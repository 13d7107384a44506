/** Which messages of a chat were received and not read yet, going by the rows of what was emitted (`seen.ts`). */
import { notFound } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { ReadMessage } from "../whatsapp/contacts.ts";
import { lineKeys } from "./rows.ts";
import { ME, seenAt, seenFrom } from "./seen.ts";

/** The newest of a chat that nobody read for long: what is above them on a screen counts as read with them. */
const MOST_AT_ONCE = 500;
/** Rows of a chat that are looked at; a group of this many messages in a month has readers of its own. */
const ROWS_READ = 20_000;

export class Unread {
  readonly #deps: { kv: Kv; clock: Clock };

  constructor(deps: { kv: Kv; clock: Clock }) {
    this.#deps = deps;
  }

  /**
   * The message, or all that came since the chat was last read; `chats` are the names that the chat may have. `done` notes
   * that they were read. Throws Problem not_found for a message that the chat does not have.
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
