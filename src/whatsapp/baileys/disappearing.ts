/**
 * How long messages of 1:1 chats stay. Whoever writes into a chat says it in each message: one that does not makes the
 * other phone warn that it will not disappear. Groups have theirs in their metadata.
 */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../base/at_most.ts";
import { Change } from "../../store/kv.ts";
import { type LineRows, networkKeys, type Timer } from "./rows.ts";

export type DisappearingTimers = ReturnType<typeof makeDisappearingTimers>;

/** Chats whose timer one line caches. */
const MOST_CHATS = 1_000;

/** Only the line's own connection may write these rows, an erasure apart: it caches them. */
export function makeDisappearingTimers({ kv, lineId }: Pick<LineRows, "kv" | "lineId">) {
  /** By chat; null for one that has none. */
  const known = new LRUCache<string, { timer: Timer | null }>(atMost(MOST_CHATS));

  async function timersOf(chats: readonly string[]): Promise<(Timer | null)[]> {
    const unread = chats.filter((chat) => !known.has(chat)).map((chat) => networkKeys.waTimer(lineId, chat));
    for (const { key, value: timer } of unread.length > 0 ? await kv.getMany(unread) : []) {
      const chat = String(key.at(-1));
      // It may have been written while it was read.
      if (!known.has(chat)) known.set(chat, { timer });
    }
    return chats.map((chat) => known.get(chat)?.timer ?? null);
  }

  return {
    /** Resolves to the chat's timer; null if none was ever seen. Throws StoreError. */
    of: async (chat: string): Promise<Timer | null> => (await timersOf([jidNormalizedUser(chat)]))[0] ?? null,

    /** Keeps what a message says of its chat, under all names of the chat. Older news is ignored. Throws StoreError. */
    async learn(names: readonly string[], timer: Timer): Promise<void> {
      const chats = names.map((name) => jidNormalizedUser(name));
      const timers = await timersOf(chats);
      const news = chats.filter((_, i) => isNews(timers[i] ?? null, timer));
      if (news.length === 0) return;
      const change = new Change();
      for (const chat of news) change.set(networkKeys.waTimer(lineId, chat), timer);
      await kv.commit(change);
      for (const chat of news) known.set(chat, { timer });
    },
  };
}

function isNews(known: Timer | null, { seconds, setAt }: Timer): boolean {
  if (known === null) return seconds > 0;
  return setAt > known.setAt || (setAt === known.setAt && seconds !== known.seconds);
}
