/**
 * The number of a sender who is known by `@lid` alone. A message gives it as a rule; then nobody comes here.
 * Else it is what the network said before, or says of the members of the group, or answers when it is asked: a usync query
 * for a LID is answered with `pn_jid` where the network lets the line know.
 */
import { errorName } from "../../../base/detached.ts";
import {
  type BinaryNode,
  getBinaryNodeChild,
  isJidGroup,
  isPnUser,
  jidDecode,
  S_WHATSAPP_NET,
  type SignalKeyStore,
  type WASocket,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import type { Runtime } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import { within } from "../../../base/within.ts";
import { iq } from "../stanza.ts";
import type { GroupCache } from "../outgoing/group_cache.ts";

/** A chat waits for the answer: it is short. */
const ANSWER_MS = 5_000;
/** A number that the network does not give is not asked for again before this. */
const ASK_AGAIN_MS = 60 * 60 * 1000;
/** Senders without a number that are remembered. */
const UNKNOWN_KEPT = 1_000;

interface NumbersOptions {
  socket: Pick<WASocket, "query" | "generateMessageTag"> & {
    signalRepository: {
      lidMapping: Pick<WASocket["signalRepository"]["lidMapping"], "getPNForLID" | "storeLIDPNMappings">;
    };
  };
  groups: Pick<GroupCache, "metadata">;
  runtime: Pick<Runtime, "clock" | "log">;
}

/** The phone-number JID behind a `@lid` that wrote in `chat`; null where the network does not say. Throws StoreError. */
export type PhoneOf = (lid: string, chat: string) => Promise<string | null>;

/** What the network said before, from where the library keeps it; no socket is needed. Throws StoreError. */
export async function keptPhoneOf(keys: SignalKeyStore, lid: string): Promise<string | null> {
  const row = `${jidDecode(lid)?.user}_reverse`;
  const { [row]: user } = await keys.get("lid-mapping", [row]);
  return user ? `${user}${S_WHATSAPP_NET}` : null;
}

/** As `keptPhoneOf`, the other way round. */
export async function keptLidOf(keys: SignalKeyStore, number: string): Promise<string | null> {
  const { [number]: user } = await keys.get("lid-mapping", [number]);
  return user ? `${user}@lid` : null;
}

/** What a chat is called, on whatever device: a person has a number and a LID, as far as the network said. */
export async function keptNamesOf(keys: SignalKeyStore, jid: string): Promise<string[]> {
  const { user = "", server } = jidDecode(jid) ?? {};
  if (server === "lid" || server === "hosted.lid") {
    const lid = `${user}@lid`;
    const phone = await keptPhoneOf(keys, lid);
    return phone === null ? [lid] : [lid, phone];
  }
  if (server === "s.whatsapp.net" || server === "hosted") {
    const lid = await keptLidOf(keys, user);
    return [`${user}${S_WHATSAPP_NET}`, ...lid === null ? [] : [lid]];
  }
  return [jid];
}

export function makePhoneOf({ socket, groups, runtime }: NumbersOptions): PhoneOf {
  const { clock, log } = runtime;
  const { lidMapping } = socket.signalRepository;
  /** LIDs of which the network did not say lately. */
  const unknown = new LRUCache<string, true>(atMost(UNKNOWN_KEPT, { forMs: ASK_AGAIN_MS, clock }));

  async function ofMember(lid: string, group: string): Promise<string | null> {
    const { participants } = await groups.metadata(group);
    const member = participants.find((one) => one.id === lid || one.lid === lid);
    return member?.phoneNumber ?? (isPnUser(member?.id) ? member!.id : null);
  }

  async function ask(lid: string): Promise<string | null> {
    const answer = await socket.query(lidQuery(lid, socket.generateMessageTag()));
    const list = getBinaryNodeChild(getBinaryNodeChild(answer, "usync"), "list");
    const phone = getBinaryNodeChild(list, "user")?.attrs.pn_jid;
    return isPnUser(phone) ? phone! : null;
  }

  async function find(lid: string, chat: string): Promise<string | null> {
    const member = isJidGroup(chat) ? await ofMember(lid, chat).catch(() => null) : null;
    const phone = member ?? await ask(lid);
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
      // Not to know for an hour what could not be read for a second would part a chat in two.
      if (error instanceof StoreError) throw error;
      failed(error);
    }
    unknown.set(lid, true);
    return null;
  };
}

/** Asks who a LID is; the network names the number as `pn_jid` beside it. */
function lidQuery(lid: string, sid: string): BinaryNode {
  const list = { tag: "list", attrs: {}, content: [{ tag: "user", attrs: { jid: lid } }] };
  const query = { tag: "query", attrs: {}, content: [{ tag: "lid", attrs: {} }] };
  const usync = { context: "interactive", mode: "query", sid, last: "true", index: "0" };
  return iq({ type: "get", xmlns: "usync" }, { tag: "usync", attrs: usync, content: [query, list] });
}
