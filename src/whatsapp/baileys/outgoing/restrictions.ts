/**
 * The account's restrictions on the network: whether it may start new chats, and how many.
 *
 * A restricted account (the network's "reach-out time lock", error 463) may continue chats that the other side wants:
 * each has a token that the other side gave (`tctoken`). Trying other chats again makes the restriction worse. The
 * network announces a restriction and its end, and describes it on request. Such a query sends nothing to other people.
 */
import { createHmac } from "node:crypto";
import {
  type BaileysEventMap,
  type BinaryNode,
  isJidGroup,
  isLidUser,
  jidNormalizedUser,
  S_WHATSAPP_NET,
  type WASocket,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { within } from "../../../base/within.ts";
import type { Clock } from "../../../runtime.ts";
import type { NewChats, Restriction } from "../../connection.ts";
import { askMex } from "../stanza.ts";

/** The account may not start new chats for now, or addresses somebody by number that it knows by LID. */
export const RESTRICTED = 463;
const ANSWER_MS = 5_000;
/** The query for the limit of new chats, as WhatsApp Web sends it since August 2026. */
const NEW_CHATS_QUERY = "27910975521856601";
const NEW_CHATS_TYPE = "INDIVIDUAL_NEW_CHAT_THREAD";
/** How often WhatsApp Web sends it at most: changes are announced. */
const NEW_CHATS_EVERY_MS = 60 * 60_000;
/** How often the network is asked whether a restriction still holds: its end may have been announced to nobody. */
const CHECK_EVERY_MS = 60 * 60_000;
/** How long tokens are valid: four weeks, counted from the beginning of a week as WhatsApp Web does. */
const WEEK_S = 7 * 24 * 60 * 60;
const TOKEN_WEEKS = 4;
/** Maximum number of generated tokens that are cached, for the chats last written to. */
const MOST_COLD_TOKENS = 200;

interface RestrictionsOptions {
  socket: Pick<WASocket, "ev" | "authState" | "fetchAccountReachoutTimelock" | "query" | "generateMessageTag"> & {
    signalRepository: { lidMapping: Pick<WASocket["signalRepository"]["lidMapping"], "getLIDForPN"> };
  };
  clock: Clock;
  /** The salt for tokens to chats whose other side gave none; null if the phone sent none. Throws StoreError. */
  saltOf(): Promise<Uint8Array | null>;
  /** The restriction known before this connection. */
  restriction: Restriction | null;
  /** Called when the account becomes restricted, or no longer is. */
  changed(restriction: Restriction | null): void;
}

export type Restrictions = ReturnType<typeof makeRestrictions>;

export function makeRestrictions({ socket, clock, saltOf, restriction, changed }: RestrictionsOptions) {
  let present = restriction;
  let asking: Promise<boolean> | null = null;
  let cancelEnd = () => {};
  /** What the network last said about new chats, and when it was last asked, Unix ms. */
  let cap: NewChats | null = null;
  let capAskedAt = -Infinity;
  /** The tokens generated last, each with its salt. */
  const coldTokens = new LRUCache<string, { salt: Uint8Array; token: Uint8Array }>(atMost(MOST_COLD_TOKENS));

  function set(next: Restriction | null): void {
    const isNews = next?.until !== present?.until || next?.kind !== present?.kind;
    present = next;
    waitForEnd();
    if (isNews) changed(next);
  }

  function waitForEnd(): void {
    cancelEnd();
    if (!present) return;
    const leftMs = (present.until ?? Infinity) - clock.now();
    cancelEnd = clock.after(Math.min(Math.max(0, leftMs), CHECK_EVERY_MS), () => {
      if (present?.until != null && present.until <= clock.now()) return set(null);
      waitForEnd();
      void isRestricted();
    });
  }

  /** The token that the person gave the line; null if there is none, or it is too old. */
  async function given(jid: string): Promise<Uint8Array | null> {
    const lid = jid.endsWith(S_WHATSAPP_NET) ? await socket.signalRepository.lidMapping.getLIDForPN(jid) : null;
    const ids = lid ? [lid, jid] : [jid];
    const found = await socket.authState.keys.get("tctoken", ids);
    const good = ids.map((id) => found[id]).find((kept) => kept?.token?.length && isGood(Number(kept.timestamp ?? 0)));
    return good?.token ?? null;
  }

  function coldToken(jid: string, salt: Uint8Array): Uint8Array {
    const known = coldTokens.get(jid);
    if (known?.salt === salt) return known.token;
    const token = createHmac("sha256", salt).update(jid).digest();
    coldTokens.set(jid, { salt, token });
    return token;
  }

  function isGood(timestamp: number): boolean {
    const week = Math.floor(clock.now() / 1000 / WEEK_S) - (TOKEN_WEEKS - 1);
    return timestamp >= week * WEEK_S;
  }

  /** Queries the restriction. The library reports the answer as an update, just like an announcement of the network. */
  async function ask(): Promise<boolean> {
    const answer = await within(clock, ANSWER_MS, socket.fetchAccountReachoutTimelock()).catch(() => null);
    return answer !== null && answer !== "late" && answer.isActive === true;
  }

  async function isRestricted(): Promise<boolean> {
    asking ??= ask().finally(() => asking = null);
    return await asking;
  }

  socket.ev.on("connection.update", ({ reachoutTimeLock }) => {
    if (!reachoutTimeLock) return;
    const { isActive, timeEnforcementEnds, enforcementType } = reachoutTimeLock;
    // An invalid time yields an invalid date.
    const until = timeEnforcementEnds?.getTime() || null;
    const isOver = until !== null && until <= clock.now();
    set(isActive && !isOver ? { kind: String(enforcementType ?? "DEFAULT"), until } : null);
  });
  socket.ev.on("message-capping.update", (announced) => cap = newChatsIn(announced));
  waitForEnd();

  async function askForCap(): Promise<void> {
    capAskedAt = clock.now();
    const variables = { input: { type: NEW_CHATS_TYPE } };
    const asked = askMex<Record<string, NewChatCap>>(socket, variables, [NEW_CHATS_QUERY, ""]);
    const answer = await within(clock, ANSWER_MS, asked).catch(() => "late" as const);
    if (answer !== "late") cap = newChatsIn(Object.values(answer ?? {})[0]);
  }

  return {
    /** Throws StoreError. */
    given,
    /** Whether the network would accept a message to this chat, as far as is known. Throws StoreError. */
    async allows(to: string): Promise<boolean> {
      if (!present || isJidGroup(to)) return true;
      return await given(/^\d+$/.test(to) ? `${to}${S_WHATSAPP_NET}` : jidNormalizedUser(to)) !== null;
    },
    /**
     * Returns what a message needs besides the token that the library adds: for a chat without one, a token generated
     * for its LID (`cstoken`). Throws StoreError.
     */
    async tokenFor(jid: string): Promise<BinaryNode[]> {
      if (!isLidUser(jid) || await given(jid) !== null) return [];
      const salt = await saltOf();
      return salt ? [{ tag: "cstoken", attrs: {}, content: coldToken(jidNormalizedUser(jid), salt) }] : [];
    },
    /**
     * After a refused message: asks the network whether the account is restricted. Concurrent calls share a query.
     * Never rejects.
     */
    isRestricted,
    /** Called when the line has logged in. Never rejects. */
    async loggedIn(): Promise<void> {
      if (present) await isRestricted();
    },
    /** Null if the network sets no limit, or does not say. Asks it at most hourly. Never rejects. */
    async newChats(): Promise<NewChats | null> {
      if (clock.now() - capAskedAt >= NEW_CHATS_EVERY_MS) await askForCap();
      return cap;
    },
    /** Called when the connection has ended. */
    end: () => cancelEnd(),
  };
}

type NewChatCap = BaileysEventMap["message-capping.update"];

/** Null if there is no limit. */
function newChatsIn(cap: Partial<NewChatCap> | null | undefined): NewChats | null {
  if (!cap?.total_quota) return null;
  const resetsAt = Number(cap.cycle_end_timestamp ?? 0) * 1000;
  return { used: Number(cap.used_quota ?? 0), limit: Number(cap.total_quota), resetsAt: resetsAt || null };
}
