/**
 * Finds the number of a sender known only by `@lid`. Most messages contain it and need no lookup. Otherwise it comes
 * from what the network said before, from the group's members, or from a usync query for the LID, which is answered
 * with `pn_jid` if the network reveals the number.
 */
import { errorName } from "../../../base/retry.ts";
import {
  isJidGroup,
  isLidUser,
  isPnUser,
  jidDecode,
  S_WHATSAPP_NET,
  type SignalKeyStore,
  type WASocket,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { Batcher } from "../../../base/batcher.ts";
import type { Runtime } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import { within } from "../../../base/within.ts";
import { numberIn, plainJid } from "../jids.ts";
import { askAboutUsers } from "../stanza.ts";
import type { GroupCache } from "../outgoing/group_cache.ts";

/** Short, because the chat waits for the answer. */
const ANSWER_MS = 5_000;
/** A number that the network did not reveal is not requested again before this. */
const ASK_AGAIN_MS = 60 * 60 * 1000;
/** Maximum number of LIDs that are remembered as unknown. */
const UNKNOWN_KEPT = 1_000;
/** Maximum number of LIDs in one query, and of queries under way: an unanswered one must not hold up other chats. */
const ASKED_AT_ONCE = 250;
const QUERIES_AT_ONCE = 8;

interface NumbersOptions {
  socket: Pick<WASocket, "query" | "generateMessageTag"> & {
    signalRepository: {
      lidMapping: Pick<WASocket["signalRepository"]["lidMapping"], "getPNForLID" | "storeLIDPNMappings">;
    };
  };
  groups: Pick<GroupCache, "metadata">;
  runtime: Pick<Runtime, "clock" | "log">;
}

/**
 * Returns the phone-number JID behind a `@lid` that wrote in `chat`; null if the network does not reveal it. Throws
 * StoreError.
 */
export type PhoneOf = (lid: string, chat: string) => Promise<string | null>;

/** Reads the number from the library's stored mappings, without a socket. Throws StoreError. */
export async function keptPhoneOf(keys: SignalKeyStore, lid: string): Promise<string | null> {
  const row = `${jidDecode(lid)?.user}_reverse`;
  const { [row]: user } = await keys.get("lid-mapping", [row]);
  return user ? `${user}${S_WHATSAPP_NET}` : null;
}

/** The inverse of `keptPhoneOf`: returns the `@lid` of a number. */
export async function keptLidOf(keys: SignalKeyStore, number: string): Promise<string | null> {
  const { [number]: user } = await keys.get("lid-mapping", [number]);
  return user ? `${user}@lid` : null;
}

/** Returns all names of a chat, without device: a person has a number and a LID, as far as they are known. */
export async function keptNamesOf(keys: SignalKeyStore, jid: string): Promise<string[]> {
  const name = plainJid(jid);
  const number = numberIn(name);
  const other = number !== null
    ? await keptLidOf(keys, number)
    : isLidUser(name)
    ? await keptPhoneOf(keys, name)
    : null;
  return other === null ? [name] : [name, other];
}

export function makePhoneOf({ socket, groups, runtime }: NumbersOptions): PhoneOf {
  const { clock, log } = runtime;
  const { lidMapping } = socket.signalRepository;
  /** LIDs whose number the network recently did not reveal. */
  const unknown = new LRUCache<string, true>(atMost(UNKNOWN_KEPT, { forMs: ASK_AGAIN_MS, clock }));

  async function phoneOfMember(lid: string, group: string): Promise<string | null> {
    const { participants } = await groups.metadata(group);
    const member = participants.find((one) => one.id === lid || one.lid === lid);
    return member?.phoneNumber ?? (isPnUser(member?.id) ? member!.id : null);
  }

  /** Asks for several LIDs in one query: a change of a group may name a thousand members. */
  const questions = new Batcher<string, string | null>(async (waiting) => {
    const lids = [...new Set(waiting)];
    // The answer gives the number of each as `pn_jid`.
    const users = await askAboutUsers(socket, "interactive", {
      asked: [{ tag: "lid", attrs: {} }],
      users: lids.map((jid) => ({ tag: "user", attrs: { jid } })),
    });
    return waiting.map((lid) => {
      const user = lids.length === 1 ? users[0] : users.find(({ attrs }) => attrs.jid === lid);
      const phone = user?.attrs.pn_jid;
      return { status: "fulfilled", value: isPnUser(phone) ? phone! : null };
    });
  }, { take: ({ length }) => Math.min(length, ASKED_AT_ONCE), flights: QUERIES_AT_ONCE });

  async function find(lid: string, chat: string): Promise<string | null> {
    const member = isJidGroup(chat) ? await phoneOfMember(lid, chat).catch(() => null) : null;
    const phone = member ?? await questions.add(lid);
    if (phone) await lidMapping.storeLIDPNMappings([{ lid, pn: phone }]).catch(failed);
    return phone;
  }

  function failed(error: unknown): void {
    log.debug({ error: errorName(error) }, "a sender's number could not be looked up");
  }

  return async (lid, chat) => {
    try {
      const known = await lidMapping.getPNForLID(lid);
      if (known) return known;
      if (unknown.has(lid)) return null;
      const found = await within(clock, ANSWER_MS, find(lid, chat));
      if (found !== "late" && found !== null) return found;
    } catch (error) {
      // Not remembered as unknown: after a store error of one second, the chat would be split in two for an hour.
      if (error instanceof StoreError) throw error;
      failed(error);
    }
    unknown.set(lid, true);
    return null;
  };
}
