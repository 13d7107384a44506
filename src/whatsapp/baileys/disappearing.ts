/**
 * How long messages of 1:1 chats stay. Whoever writes into a chat says it in each message: one that does not makes the
 * other phone warn that it will not disappear. Groups have theirs in their metadata.
 */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../base/at_most.ts";
import { Change, type Slot } from "../../store/kv.ts";
import { type LineRows, networkKeys, type Timer } from "./rows.ts";

export type DisappearingTimers = ReturnType<typeof makeDisappearingTimers>;

/** Chats whose timer one line caches. */
const MOST_CHATS = 1_000;

/** Only the line's own connection may write these rows, an erasure apart: it caches them. */
export function makeDisappearingTimers({ kv, lineId }: Pick<LineRows, "kv" | "lineId">) {
  const known = new LRUCache<string, Slot<Timer>>(atMost(MOST_CHATS));

  async function timerOf(jid: string): Promise<Slot<Timer>> {
    const chat = jidNormalizedUser(jid);
    const slot = known.get(chat) ?? await kv.get(networkKeys.waTimer(lineId, chat));
    // It may have been written while it was read.
    const newest = known.get(chat) ?? slot;
    known.set(chat, newest);
    return newest;
  }

  return {
    /** Resolves to the chat's timer; null if none was ever seen. Throws StoreError. */
    of: async (chat: string): Promise<Timer | null> => (await timerOf(chat)).value,

    /** Keeps what a message says of its chat, under all names of the chat. Older news is ignored. Throws StoreError. */
    async learn(chats: readonly string[], timer: Timer): Promise<void> {
      const slots = await Promise.all(chats.map(timerOf));
      const news = slots.filter(({ value }) => value === null ? timer.seconds > 0 : !isKnown(value, timer));
      if (news.length === 0) return;
      const change = new Change();
      for (const { key } of news) change.set(key, timer);
      const version = await kv.commit(change);
      for (const slot of news) known.set(String(slot.key.at(-1)), { ...slot, value: timer, version });
    },
  };
}

function isKnown(known: Timer, { seconds, setAt }: Timer): boolean {
  return setAt < known.setAt || (seconds === known.seconds && setAt === known.setAt);
}
