/**
 * Decides to whom an account may write: by the tokens that show that a chat is wanted (`tctoken`), by the account's
 * restriction (the reach-out time lock), and by the cap on new chats.
 */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import type { Account } from "./directory.ts";
import type { Runtime } from "../../runtime.ts";

/** The code with which a message that starts a chat is refused. */
const NOT_WANTED = "463";
const TOKEN_BYTES = 16;
const SALT_BYTES = 32;

interface NewChatCap {
  limit: number;
  /** Unix ms. */
  until: number;
}

/** An account's restriction and cap, as a query or a notification reports them. */
export interface Restrictions {
  /** Unix ms until which the account may start no chats; 0 if it is not restricted. */
  restrictedUntil: number;
  cap: NewChatCap | null;
  /** Number of chats started under the cap. */
  started: number;
}

interface IssuedToken {
  token: Uint8Array;
  /** Unix ms. */
  at: number;
  /** Whether the issuer has hidden its number from the holder. */
  hidden: boolean;
}

interface AccountTrust {
  restrictedUntil: number;
  cap: NewChatCap | null;
  /** Accounts to which this one wrote first, since the cap began. */
  started: Set<Account>;
  /** Tokens given to this account, by who gave them; chats with those are not new. */
  held: Map<Account, IssuedToken>;
  /** The salt from which the account makes tokens for chats without a `tctoken`. */
  salt: Uint8Array;
}

/** The tokens in a message; empty if absent. */
interface ShownTokens {
  tctoken: Uint8Array;
  cstoken: Uint8Array;
  /** Refuse a message without a valid token, even if the sender is not restricted. */
  needsToken: boolean;
}

interface TrustEvents {
  /** Called when the account gave the holder a token, so that the holder's companions are notified. */
  onToken(issuer: Account, holder: Account, issued: IssuedToken): void;
  onRestriction(account: Account): void;
}

export class Trust {
  #runtime: Runtime;
  #events: TrustEvents;
  #accounts = new Map<Account, AccountTrust>();

  constructor(runtime: Runtime, events: TrustEvents) {
    this.#runtime = runtime;
    this.#events = events;
  }

  /**
   * Gives the holder a token to write to the issuer, unless it has one. If the holder has blocked the issuer, a later
   * message does so. With `hideNumber` the holder knows the issuer only by LID.
   */
  issue(issuer: Account, holder: Account, { hideNumber = false } = {}): void {
    if (issuer === holder || holder.blocked.has(issuer)) return;
    const { held } = this.#of(holder);
    const given = held.get(issuer);
    if (given) {
      given.hidden &&= hideNumber;
      return;
    }
    const { random, clock } = this.#runtime;
    const token = { token: random.bytes(TOKEN_BYTES), at: clock.now(), hidden: hideNumber };
    held.set(issuer, token);
    this.#events.onToken(issuer, holder, token);
  }

  /** Whether the issuer gave the holder this token. */
  isGiven(issuer: Account, holder: Account, token: Uint8Array): boolean {
    const given = this.#of(holder).held.get(issuer);
    return given !== undefined && Buffer.from(given.token).equals(token);
  }

  /** Returns the tokens that others gave this holder. */
  tokensFor(holder: Account): (IssuedToken & { issuer: Account })[] {
    return [...this.#of(holder).held].map(([issuer, given]) => ({ issuer, ...given }));
  }

  /** Returns the account's own salt, which its phone shares with its companions. */
  saltOf(account: Account): Uint8Array {
    return this.#of(account).salt;
  }

  /** Replaces the salt of the account's tokens. */
  renewSalt(account: Account): void {
    this.#of(account).salt = this.#runtime.random.bytes(SALT_BYTES);
  }

  /**
   * Restricts the account until `until` (Unix ms); a time in the past lifts the restriction. If it is not announced,
   * the account learns of it only by a query.
   */
  restrict(account: Account, until: number, { announced = true } = {}): void {
    this.#of(account).restrictedUntil = wholeSecond(until);
    if (announced) this.#events.onRestriction(account);
  }

  capNewChats(account: Account, { limit, until }: NewChatCap): void {
    const trust = this.#of(account);
    trust.cap = { limit, until: wholeSecond(until) };
    trust.started.clear();
    this.#events.onRestriction(account);
  }

  /** Ends restriction and cap, if there are any. */
  lift(account: Account): void {
    const { restrictedUntil, cap } = this.restrictions(account);
    Object.assign(this.#of(account), { restrictedUntil: 0, cap: null });
    if (restrictedUntil || cap) this.#events.onRestriction(account);
  }

  restrictions(account: Account): Restrictions {
    const { restrictedUntil, cap, started } = this.#of(account);
    const now = this.#runtime.clock.now();
    const inForce = cap && cap.until > now ? cap : null;
    return { restrictedUntil: restrictedUntil > now ? restrictedUntil : 0, cap: inForce, started: started.size };
  }

  /**
   * Returns the code with which a message of `sender` to `receiver` is refused, or null. A chat that the message starts
   * counts from then on.
   */
  refusal(sender: Account, receiver: Account, { tctoken, cstoken, needsToken }: ShownTokens): string | null {
    if (sender === receiver) return null;
    const { restrictedUntil, cap } = this.restrictions(sender);
    const trust = this.#of(sender);
    const isWanted = this.isGiven(receiver, sender, tctoken);
    if (restrictedUntil) return isWanted ? null : NOT_WANTED;
    const made = createHmac("sha256", trust.salt).update(receiver.lid).digest();
    if (needsToken && !isWanted && !made.equals(cstoken)) return NOT_WANTED;
    if (trust.held.has(receiver) || trust.started.has(receiver)) return null;
    if (cap && trust.started.size >= cap.limit) return NOT_WANTED;
    trust.started.add(receiver);
    if (cap) this.#events.onRestriction(sender);
    return null;
  }

  #of(account: Account): AccountTrust {
    let trust = this.#accounts.get(account);
    if (!trust) {
      const salt = this.#runtime.random.bytes(SALT_BYTES);
      trust = { restrictedUntil: 0, cap: null, started: new Set(), held: new Map(), salt };
      this.#accounts.set(account, trust);
    }
    return trust;
  }
}

/** Rounds up: the network announces in seconds when something ends, and whoever waits for that may write then. */
function wholeSecond(ms: number): number {
  return Math.ceil(ms / 1000) * 1000;
}
