/**
 * How long messages of 1:1 chats stay. Whoever writes into a chat says it in each message: one that does not makes the
 * other phone warn that it will not disappear. Groups have theirs in their metadata.
 */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { Change } from "../../store/kv.ts";
import { type LineRows, networkKeys, type Timer } from "./rows.ts";

export type DisappearingTimers = ReturnType<typeof makeDisappearingTimers>;

export function makeDisappearingTimers({ kv, lineId }: Pick<LineRows, "kv" | "lineId">) {
  const rowOf = (jid: string) => networkKeys.waTimer(lineId, jidNormalizedUser(jid));
  return {
    /** Resolves to the chat's timer; null if none was ever seen. Throws StoreError. */
    of: async (chat: string): Promise<Timer | null> => (await kv.get(rowOf(chat))).value,

    /** Keeps what a message says of its chat, under all names of the chat. Older news is ignored. Throws StoreError. */
    async learn(chats: readonly string[], timer: Timer): Promise<void> {
      const slots = await kv.getMany(chats.map(rowOf));
      const change = new Change();
      for (const { key, value } of slots) {
        if (value === null ? timer.seconds === 0 : isKnown(value, timer)) continue;
        change.set(key, timer);
      }
      if (change.mutations.length > 0) await kv.commit(change);
    },
  };
}

function isKnown(known: Timer, { seconds, setAt }: Timer): boolean {
  return setAt < known.setAt || (seconds === known.seconds && setAt === known.setAt);
}
