/**
 * Each change of a Signal session alone and on disk at once, whatever transaction the library is in (promises 1 and 4).
 *
 * The library encrypts inside of one long transaction that it commits after the frame was written. What came in from the
 * same peer meanwhile changed the same session, and one of the two changes was lost; and a kill after the frame forgot
 * that its key was used. Either way a later message was encrypted with a used key: receivers take that for a repetition
 * and drop it, although the server acknowledged it. See docs/decisions/0009-signal-sessions.md.
 *
 * And none of them on a session that could not be read: the library takes it for one that is not there, asks the sender
 * for the message once more, which then comes behind later ones, or begins a new session in its place.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  isPnUser,
  jidDecode,
  type SignalDataSet,
  type SignalKeyStoreWithTransaction,
  type SignalRepositoryWithLIDStore,
} from "@whiskeysockets/baileys";
import { StoreError } from "../../../store/kv.ts";

/** The library's row of all chats with tokens. */
const INDEX = "__index";

/** Runs `work` in a transaction of its own, one at a time for each peer or group. Throws StoreError when a read failed. */
type Alone = <T>(jid: string, work: () => Promise<T>) => Promise<T>;

/** To be called outside of any transaction: its works run where it was called. `refusedReads`: of the store, so far. */
export function makeAlone(
  store: Pick<SignalKeyStoreWithTransaction, "transaction">,
  lidMapping: Pick<SignalRepositoryWithLIDStore["lidMapping"], "getLIDForPN">,
  refusedReads: () => number,
): Alone {
  // The library knows its transaction by the asynchronous context; this leads out of it.
  const outside = AsyncLocalStorage.snapshot();
  /** A peer's number and LID share sessions, which lie under the LID once it is known. */
  async function ownerOf(jid: string): Promise<string> {
    const lid = isPnUser(jid) ? await lidMapping.getLIDForPN(jid).catch(() => null) : null;
    const { user, server } = jidDecode(lid ?? jid)!;
    return `${user}@${server}`;
  }
  /** Within the transaction, so that nothing of it is written. */
  async function onWhatWasRead<T>(before: number, work: () => Promise<T>): Promise<T> {
    const [settled] = await Promise.allSettled([work()]);
    if (refusedReads() !== before) throw new StoreError("unavailable", "what the message needs could not be read");
    if (settled.status === "rejected") throw settled.reason;
    return settled.value;
  }
  return (jid, work) =>
    outside(async () => {
      const before = refusedReads();
      return await store.transaction(() => onWhatWasRead(before, work), `alone/${await ownerOf(jid)}`);
    });
}

/** The repository with everything that changes a session or our sender keys run alone. Decryption is the journal's. */
export function isolate(repository: SignalRepositoryWithLIDStore, alone: Alone): SignalRepositoryWithLIDStore {
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
 * The library gives each chat that it writes to our token once a week (`tctoken`), and notes so after the network's
 * answer: in the key transaction of a send that is over by then, so that the note is lost and every message asks again.
 * Tokens are read and written outside of transactions here; the library changes nothing together with them.
 *
 * The index of all chats with tokens stays out of it: rewritten for each chat, it would be the longest row of a campaign.
 *
 * To be called outside of any transaction, on the library's own store.
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
