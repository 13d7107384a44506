/**
 * The library gives each chat that it writes to our token once a week (`tctoken`), and notes so after the network's
 * answer: in the key transaction of a send that is over by then, so that the note is lost and every message asks again.
 * Tokens are read and written outside of transactions here; the library changes nothing together with them.
 *
 * The index of all chats with tokens stays out of it: rewritten for each chat, it would be the longest row of a campaign.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { SignalDataSet, SignalKeyStoreWithTransaction } from "@whiskeysockets/baileys";

const INDEX = "__index";

/** To be called outside of any transaction, on the library's own store. */
export function keepTrustedTokens(keys: SignalKeyStoreWithTransaction): void {
  const outside = AsyncLocalStorage.snapshot();
  const { get, set } = keys;
  keys.get = (type, ids) => type === "tctoken" ? outside(() => get(type, ids)) : get(type, ids);
  keys.set = (data: SignalDataSet) => {
    if (!data.tctoken || !keys.isInTransaction()) return set(data);
    const { [INDEX]: _, ...tctoken } = data.tctoken;
    return outside(() => set({ tctoken }));
  };
}
