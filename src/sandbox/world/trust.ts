/**
 * Whom an account may write to: the tokens by which a chat is known to be wanted (`tctoken`), the restriction that an
 * account is under (the reach-out time lock), and how many chats it may still start.
 */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import type { Account } from "./directory.ts";
import type { Runtime } from "../../runtime.ts";

/** The refusal of a message that starts a chat. */
const NOT_WANTED = "463";
const TOKEN_BYTES = 16;
const SALT_BYTES = 32;

interface NewChatCap {
  limit: number;
  /** Unix ms. */
  until: number;
}

/** What an account learns about itself, from a query or a notification. */
export interface Standing {
  /** Unix ms until which it may start no chat; 0 without a restriction. */
  restrictedUntil: number;
  cap: NewChatCap | null;
  /** Chats that it started under its cap. */
  started: number;
}

interface AccountTrust {
  restrictedUntil: number;
  cap: NewChatCap | null;
  /** By account whom it wrote to first, since the cap began. */
  started: Set<Account>;
  /** Those who wrote to it or answered: their chats are not new. */
  known: Set<Account>;
  /** By the account that may write to this one: the token that says so, and when it was given (Unix ms). */
  issued: Map<Account, { token: Uint8Array; at: number }>;
  /** The salt from which the account makes tokens for chats that gave it none. */
  salt: Uint8Array;
}

/** What a message shows; empty where it shows none. */
interface ShownTokens {
  tctoken: Uint8Array;
  cstoken: Uint8Array;
  /** Refused without either, even if the account is under no restriction. */
  needsToken: boolean;
}

interface TrustEvents {
  /** The account gave the holder a token; the holder's companions have to be told. */
  onToken(issuer: Account, holder: Account, token: Uint8Array): void;
  onStanding(account: Account): void;
}

export class Trust {
  #runtime: Runtime;
  #events: TrustEvents;
  #accounts = new Map<Account, AccountTrust>();

  constructor(runtime: Runtime, events: TrustEvents) {
    this.#runtime = runtime;
    this.#events = events;
  }

  /** The issuer lets the holder write to it, unless the holder has blocked them: then it does so with a later message. */
  issue(issuer: Account, holder: Account): void {
    if (issuer === holder || holder.blocked.has(issuer) || this.#of(issuer).issued.has(holder)) return;
    const { random, clock } = this.#runtime;
    const token = random.bytes(TOKEN_BYTES);
    this.#of(issuer).issued.set(holder, { token, at: clock.now() });
    this.#of(holder).known.add(issuer);
    this.#events.onToken(issuer, holder, token);
  }

  /** The tokens that others gave this holder, and when. */
  tokensFor(holder: Account): { issuer: Account; token: Uint8Array; at: number }[] {
    return [...this.#accounts].flatMap(([issuer, { issued }]) => {
      const given = issued.get(holder);
      return given ? [{ issuer, ...given }] : [];
    });
  }

  /** The account's own, which its phone shares with its companions. */
  saltOf(account: Account): Uint8Array {
    return this.#of(account).salt;
  }

  /** Changes the salt of its tokens. */
  renewSalt(account: Account): void {
    this.#of(account).salt = this.#runtime.random.bytes(SALT_BYTES);
  }

  /** `until` is Unix ms; a time in the past lifts the restriction. Unless it is announced, the account has to ask. */
  restrict(account: Account, until: number, { announced = true } = {}): void {
    this.#of(account).restrictedUntil = until;
    if (announced) this.#events.onStanding(account);
  }

  capNewChats(account: Account, { limit, until }: NewChatCap): void {
    const trust = this.#of(account);
    trust.cap = { limit, until };
    trust.started.clear();
    this.#events.onStanding(account);
  }

  /** Ends restriction and cap, where there are any. */
  lift(account: Account): void {
    const { restrictedUntil, cap } = this.standing(account);
    Object.assign(this.#of(account), { restrictedUntil: 0, cap: null });
    if (restrictedUntil || cap) this.#events.onStanding(account);
  }

  standing(account: Account): Standing {
    const { restrictedUntil, cap, started } = this.#of(account);
    const now = this.#runtime.clock.now();
    const inForce = cap && cap.until > now ? cap : null;
    return { restrictedUntil: restrictedUntil > now ? restrictedUntil : 0, cap: inForce, started: started.size };
  }

  /** Why a message of `sender` to `receiver` is refused, or null. A chat that it starts counts from then on. */
  refusal(sender: Account, receiver: Account, { tctoken, cstoken, needsToken }: ShownTokens): string | null {
    if (sender === receiver) return null;
    const { restrictedUntil, cap } = this.standing(sender);
    const trust = this.#of(sender);
    const given = this.#of(receiver).issued.get(sender);
    const isWanted = given !== undefined && Buffer.from(given.token).equals(tctoken);
    if (restrictedUntil) return isWanted ? null : NOT_WANTED;
    const made = createHmac("sha256", trust.salt).update(receiver.lid).digest();
    if (needsToken && !isWanted && !made.equals(cstoken)) return NOT_WANTED;
    if (trust.known.has(receiver) || trust.started.has(receiver)) return null;
    if (cap && trust.started.size >= cap.limit) return NOT_WANTED;
    trust.started.add(receiver);
    return null;
  }

  #of(account: Account): AccountTrust {
    let trust = this.#accounts.get(account);
    if (!trust) {
      const salt = this.#runtime.random.bytes(SALT_BYTES);
      trust = { restrictedUntil: 0, cap: null, started: new Set(), known: new Set(), issued: new Map(), salt };
      this.#accounts.set(account, trust);
    }
    return trust;
  }
}
