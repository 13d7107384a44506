/**
 * Hands over the messages that the network considers received but that were still in the journal when the link ended.
 * The journal is deleted with the link and no login follows, so they are handed over first, which needs no socket
 * (promise 4).
 */
import { errorName } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import type { ConnectionEvents } from "../../connection.ts";
import type { Incoming } from "../../incoming.ts";
import { type AuthState, isLinked, openAuthState } from "../auth_state.ts";
import { decode, type DecodeContext, decodeUndecryptable } from "./decode.ts";
import { ownJids } from "../jids.ts";
import type { LineRows } from "../rows.ts";
import { incomingMedia } from "./media.ts";
import { mayBeOf } from "./inbox.ts";
import { Journal, MOST_ATTEMPTS } from "./journal.ts";
import type { MediaHost } from "../media_host.ts";
import { keptPhoneOf } from "./numbers.ts";
import { findOriginal } from "./message_secret.ts";

interface LeftoversOptions extends LineRows {
  runtime: Pick<Runtime, "clock" | "log">;
  mediaHost: MediaHost;
}

/**
 * Returns the messages left in the journal by the line's connections, oldest first, then a report for each message that
 * did not decrypt, because no second attempt can arrive. The line must not be open. Throws StoreError.
 */
export async function leftoversOf(options: LeftoversOptions): Promise<Incoming[]> {
  const { lineId, runtime: { clock, log } } = options;

  /** Malformed content must neither keep the link's rows alive nor cost other messages. */
  async function readable<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof StoreError) throw error;
      log.warn({ lineId, error: errorName(error) }, "a message left over from a link could not be read");
      return otherwise;
    }
  }

  return await readable(async () => {
    const auth = await openAuthState(options);
    if (!isLinked(auth.creds)) return [];
    const journal = new Journal(options, auth, clock);
    const left = await journal.leftovers();
    const waiting = new Set(left.undecrypted.map(({ attrs }) => attrs.id));
    const isLost = async (id: string) => waiting.has(id) || await journal.wasUndecrypted(id);
    const context = { ...contextOf(auth, options), isLost };
    const messages: Incoming[] = [];
    for (const entry of left.decrypted) {
      const attempts = entry.attempts ?? 0;
      messages.push(
        ...await readable(async () => {
          if (attempts >= MOST_ATTEMPTS) {
            return entry.attrs.category === "peer" ? [] : [await decodeUndecryptable(entry, context)];
          }
          await journal.count(entry, attempts + 1);
          return await decode(entry, context);
        }, []),
      );
    }
    const lost = left.undecrypted.filter((entry) =>
      entry.attrs.category !== "peer" && !messages.some((message) => mayBeOf(entry, message))
    );
    const reports = await Promise.all(
      lost.map((entry) => readable(async () => [await decodeUndecryptable(entry, context)], [])),
    );
    return [...messages, ...reports.flat()];
  }, []);
}

/** Hands over each chat's messages in order, all chats in parallel. Rejects if the receiver fails. */
export async function handOver(messages: Incoming[], receive: ConnectionEvents["message"]): Promise<void> {
  const chats = Map.groupBy(messages, ({ chat }) => chat);
  await Promise.all([...chats.values()].map(async (chat) => {
    // Nothing to settle: the journal is deleted with the link.
    for (const message of chat) await receive(message, () => {});
  }));
}

/**
 * A context without a socket: it knows only the numbers stored before, and cannot ask for another upload of a lost
 * file.
 */
function contextOf({ creds, keys }: AuthState, options: LeftoversOptions): Omit<DecodeContext, "isLost"> {
  const { mediaHost, runtime } = options;
  const source = { host: mediaHost, runtime, socket: () => null };
  return {
    me: ownJids(creds),
    clock: runtime.clock,
    findOriginal: (networkId) => findOriginal(options, networkId),
    timer: () => Promise.resolve(), // no use: the link has ended
    phoneOf: (lid) => keptPhoneOf(keys, lid),
    isAdmin: () => Promise.resolve(false),
    media: (message, kind, file) => incomingMedia(source, message, { kind, file }),
    history: () => Promise.resolve(), // no use: the link has ended
  };
}
