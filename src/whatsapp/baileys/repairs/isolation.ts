/**
 * Runs each change of a Signal session on its own, and has it on disk at once, whatever transaction the library is in
 * (promises 1 and 4).
 *
 * The library encrypts within one long transaction, which it commits after the frame was written. If a message from the
 * same peer arrives in the meantime, it changes the same session, and one of the two changes is lost. If the process is
 * killed after the frame, the used key is forgotten. Either way, a later message is encrypted with a used key, and the
 * receiver drops it as a duplicate although the server acknowledged it. See docs/decisions/0009-signal-sessions.md.
 *
 * No change is made to a session that could not be read. The library takes it for a missing one: it asks the sender for
 * the message again, which then arrives out of order, or it starts a new session in its place.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  isPnUser,
  jidDecode,
  type SignalDataSet,
  type SignalKeyStoreWithTransaction,
  type SignalRepositoryWithLIDStore,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { StoreError } from "../../../store/kv.ts";

/** Id of the library's row that lists all chats with tokens. */
const INDEX = "__index";

/** Maximum number of names that one line caches, two per person: enough for all members of a group. */
const MOST_NAMES = 10_000;

/** Runs `work` in a separate transaction, one at a time for each peer or group. Throws StoreError if a read failed. */
type Isolation = <T>(jid: string, work: () => Promise<T>) => Promise<T>;

/**
 * Must be called outside any transaction, because all work runs in the context of that call. `refusedReads` returns the
 * number of reads that the store has refused so far.
 */
export function makeIsolation(
  store: Pick<SignalKeyStoreWithTransaction, "transaction">,
  lidMapping: Pick<SignalRepositoryWithLIDStore["lidMapping"], "getLIDForPN">,
  refusedReads: () => number,
): Isolation {
  // The library finds its transaction through the asynchronous context. This leaves that context.
  const outside = AsyncLocalStorage.snapshot();
  /** A peer's number and LID share sessions, which are stored under the LID once it is known. */
  async function ownerOf(jid: string): Promise<string> {
    const lid = isPnUser(jid) ? await lidMapping.getLIDForPN(jid).catch(() => null) : null;
    const { user, server } = jidDecode(lid ?? jid)!;
    return `${user}@${server}`;
  }
  /** Runs `work`. Throws within the transaction if the store refused a read meanwhile, so that nothing is written. */
  async function checkingReads<T>(before: number, work: () => Promise<T>): Promise<T> {
    const [settled] = await Promise.allSettled([work()]);
    if (refusedReads() !== before) throw new StoreError("unavailable", "what the message needs could not be read");
    if (settled.status === "rejected") throw settled.reason;
    return settled.value;
  }
  return (jid, work) =>
    outside(async () => {
      const before = refusedReads();
      return await store.transaction(() => checkingReads(before, work), `alone/${await ownerOf(jid)}`);
    });
}

/**
 * Wraps the repository so that each change of a session or of the line's sender keys runs alone. Decryption is wrapped
 * by `incoming/decryption.ts`.
 */
export function isolate(repository: SignalRepositoryWithLIDStore, alone: Isolation): SignalRepositoryWithLIDStore {
  return {
    ...repository,
    encryptMessage: (message) => alone(message.jid, () => repository.encryptMessage(message)),
    encryptGroupMessage: (message) => alone(message.group, () => repository.encryptGroupMessage(message)),
    injectE2ESession: (keys) => alone(keys.jid, () => repository.injectE2ESession(keys)),
    migrateSession: (from, to) => alone(to, () => repository.migrateSession(from, to)),
    async deleteSession(jids) {
      for (const jid of jids) await alone(jid, () => repository.deleteSession([jid]));
    },
  };
}

/**
 * Reads and writes tokens outside transactions. Once a week, the library gives a token (`tctoken`) to each chat that
 * the line writes to, and records that after the network's answer. It does so in the key transaction of a send that has
 * finished by then, so the record is lost and every message sends a token again. The library changes nothing else
 * together with tokens.
 *
 * The index of all chats with tokens is not written: rewritten for each chat, it would become the longest row of a
 * campaign.
 *
 * Must be called outside any transaction, with the library's own store.
 */
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

/**
 * Limits the mapping cache. The library remembers every number and `@lid` for three days, and each timer keeps alive
 * the key transaction in which it was started, with the sessions read there. The mappings are in the store as well.
 *
 * Also keeps it right: when the library reads the number of an earlier `@lid` from the store, it would take that
 * `@lid` for the number's present one.
 */
export function boundNames(lidMapping: SignalRepositoryWithLIDStore["lidMapping"]): void {
  const cache = new LRUCache<string, string>(atMost(MOST_NAMES));
  const find = lidMapping.getPNsForLIDs.bind(lidMapping);
  Object.assign(lidMapping, {
    mappingCache: cache,
    async getPNsForLIDs(lids: string[]) {
      const read = lids.filter((lid) => !cache.has(`lid:${jidDecode(lid)?.user}`));
      const pairs = await find(lids);
      for (const { lid, pn } of pairs ?? []) if (read.includes(lid)) cache.delete(`pn:${jidDecode(pn)!.user}`);
      return pairs;
    },
  });
}
