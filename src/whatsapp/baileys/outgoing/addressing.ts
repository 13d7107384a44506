/**
 * How people are addressed. An account whose chats have migrated may write to people by LID only (the network refuses
 * a number with 463), any other by number only (400). The network tells which of them the account is when it is linked,
 * or by its answers. An account migrates once, and never back. Below: the JID that a number has, asked and cached.
 */
import {
  type AuthenticationCreds,
  isLidUser,
  isPnUser,
  jidDecode,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import { RESTRICTED } from "./restrictions.ts";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { inBatches } from "../../../base/batches.ts";
import type { Runtime } from "../../../runtime.ts";
import type { AuthState } from "../auth_state.ts";
import { expireAfter, isKept, networkKeys } from "../rows.ts";
import { digitsOf } from "../jids.ts";
import { Change, type Kv } from "../../../store/kv.ts";
import type { NumberCheck } from "../../chats.ts";
import { NetworkTimeout } from "../../connection.ts";
import { answerOf } from "../stanza.ts";

/** The network does not take a LID from this account, or cannot read the message. */
const NO_LID = 400;

/** In the line's credentials: whether the account's chats have migrated, as far as the network has said. */
export interface Migration {
  chatsAreByLid?: boolean;
}

export type Addressing = ReturnType<typeof makeAddressing>;

type LidMapping = Pick<WASocket["signalRepository"]["lidMapping"], "getLIDsForPNs" | "getPNForLID">;

/** `newLid` tells by which other LID the person of this one, its part before the `@`, is known by now. */
export function makeAddressing(
  lidMapping: () => LidMapping,
  creds: Partial<AuthenticationCreds> & Migration,
  newLid: (user: string) => Promise<string | null>,
) {
  let byNumber = creds.chatsAreByLid === false;
  /** Whether the network has taken a message by LID. */
  let hasMigrated = false;

  /** Addresses people by LID if it is known, as WhatsApp's own clients do. */
  async function byLid(jids: readonly string[]): Promise<string[]> {
    const pairs = await lidMapping().getLIDsForPNs(jids.filter((jid) => isPnUser(jid))).catch(() => null) ?? [];
    const lids = new Map(pairs.map(({ pn, lid }) => [pn, lid]));
    return jids.map((jid) => lids.get(jid) ?? jid);
  }

  /** The jid itself if no LID is known. */
  async function lidOf(jid: string): Promise<string> {
    return (await byLid([jid]))[0]!;
  }

  /** The number's jid; the person's present LID if no number is known. */
  async function numberOf(jid: string): Promise<string> {
    if (!isLidUser(jid)) return jid;
    const number = await lidMapping().getPNForLID(jid).catch(() => null);
    if (number) return jidNormalizedUser(number);
    const lid = await newLid(jidDecode(jid)!.user);
    return lid ? await numberOf(lid) : jid;
  }

  return {
    byLid,
    lidOf,
    numberOf,
    /** Returns the address for a message to a person: also to somebody who is known by another LID by now. */
    async of(jid: string): Promise<string> {
      const number = await numberOf(jid);
      return byNumber ? number : await lidOf(number);
    },
    /** Notes that the network took a message to this address. */
    acknowledged(jid: string): void {
      if (!isLidUser(jid)) return;
      hasMigrated = true;
      if (creds.chatsAreByLid === false) creds.chatsAreByLid = true;
    },
    /** Notes that the network refused one; resolves to whether it may take it with the person's other address. */
    async refused(jid: string, code: number): Promise<boolean> {
      const isLid = isLidUser(jid) === true;
      const isRefused = isLid ? code === NO_LID && !hasMigrated : isPnUser(jid) && code === RESTRICTED;
      if (!isRefused) return false;
      const other = isLid ? await numberOf(jid) : await lidOf(jid);
      if (other === jid) return false; // unknown
      byNumber = isLid;
      return true;
    },
  };
}

/** People seldom change or leave. A number without an account is queried every time. */
export const RECIPIENT_DAYS = 7;
const ANSWER_MS = 15_000;
/** Maximum number of recipients that one line caches in memory. */
const MOST_REMEMBERED = 500;
/** Maximum number of phone numbers in one query. */
const ASKED_AT_ONCE = 250;

export type Recipients = ReturnType<typeof makeRecipients>;

interface RecipientsOptions {
  socket: Pick<WASocket, "onWhatsApp">;
  kv: Pick<Kv, "get">;
  auth: Pick<AuthState, "commit">;
  lineId: string;
  runtime: Pick<Runtime, "clock">;
}

export function makeRecipients({ socket, kv, auth, lineId, runtime }: RecipientsOptions) {
  const { clock } = runtime;
  /** Rows as last read or written. Only this connection writes them. */
  const remembered = new LRUCache<string, { jid: string; at: number }>(atMost(MOST_REMEMBERED));

  /** Returns the JIDs of those numbers that have an account. */
  async function ask(numbers: readonly string[]): Promise<string[]> {
    const what = "say whether the number exists";
    const answer = await answerOf(clock, socket.onWhatsApp(...numbers), what, { withinMs: ANSWER_MS });
    if (!answer) throw new NetworkTimeout(`The messaging network did not ${what} in time.`);
    return answer.flatMap(({ exists, jid }) => exists ? [jid] : []);
  }

  async function remember(jids: ReadonlyMap<string, string>): Promise<void> {
    if (jids.size === 0) return;
    const now = clock.now();
    const change = new Change();
    for (const [number, jid] of jids) {
      const row = networkKeys.waRecipient(lineId, number);
      expireAfter(change, row, { days: RECIPIENT_DAYS, now }).set(row, { jid, at: now });
    }
    await auth.commit(change);
    for (const [number, jid] of jids) remembered.set(number, { jid, at: now });
  }

  async function known(number: string): Promise<string | null> {
    const value = remembered.get(number) ?? (await kv.get(networkKeys.waRecipient(lineId, number))).value;
    // Valid only as long as its row. If the number were stored again before, the older expiry would delete the new row.
    if (value === null || !isKept({ days: RECIPIENT_DAYS, at: value.at }, clock.now())) return null;
    remembered.set(number, value);
    return value.jid;
  }

  /** Queries the network. Throws NetworkRefusal, NetworkTimeout. */
  async function check(number: string): Promise<NumberCheck> {
    const [jid] = await ask([number]);
    if (jid === undefined) return { exists: false, jid: `${number}@s.whatsapp.net` };
    await remember(new Map([[number, jid]]));
    return { exists: true, jid };
  }

  async function checked(number: string): Promise<string | null> {
    const { exists, jid } = await check(number);
    return exists ? jid : null;
  }

  return {
    check,
    /**
     * Resolves to the JID to send to, from the store if it is recent; null if the number has no account. Throws as
     * `check` does.
     */
    async jidOf(number: string): Promise<string | null> {
      return await known(number) ?? await checked(number);
    },

    /** Resolves many numbers as `jidOf` does, with few queries. Throws as `check` does. */
    async jidsOf(numbers: readonly string[]): Promise<Map<string, string | null>> {
      const jids = new Map<string, string | null>();
      for (const number of numbers) jids.set(number, await known(number));
      const unknown = [...jids].flatMap(([number, jid]) => jid === null ? [number] : []);
      for (const asked of inBatches(unknown, ASKED_AT_ONCE)) {
        const answer = new Map((await ask(asked)).map((jid) => [digitsOf(jid), jid]));
        const named = new Map(asked.flatMap((number) => answer.has(number) ? [[number, answer.get(number)!]] : []));
        await remember(named);
        // If the network corrects a number, its answer does not contain the one that was asked for.
        const isCorrected = named.size < answer.size;
        for (const number of asked) jids.set(number, named.get(number) ?? (isCorrected ? await checked(number) : null));
      }
      return jids;
    },
  };
}
