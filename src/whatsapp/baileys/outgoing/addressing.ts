/**
 * How people are addressed. An account whose chats have migrated may write to people by LID only (the network refuses
 * a number with 463), any other by number only (400). The network tells which of them the account is when it is linked,
 * or by its answers. An account migrates once, and never back.
 */
import {
  type AuthenticationCreds,
  isLidUser,
  isPnUser,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import { RESTRICTED } from "./standing.ts";

/** The network does not take a LID from this account, or cannot read the message. */
const NO_LID = 400;

/** In the line's credentials: whether the account's chats have migrated, as far as the network has said. */
export interface Migration {
  chatsAreByLid?: boolean;
}

export type Addressing = ReturnType<typeof makeAddressing>;

type LidMapping = Pick<WASocket["signalRepository"]["lidMapping"], "getLIDsForPNs" | "getPNForLID">;

export function makeAddressing(lidMapping: () => LidMapping, creds: Partial<AuthenticationCreds> & Migration) {
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

  /** The number's jid; the jid itself if no number is known. */
  async function numberOf(jid: string): Promise<string> {
    const number = isLidUser(jid) ? await lidMapping().getPNForLID(jid).catch(() => null) : null;
    return number ? jidNormalizedUser(number) : jid;
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
