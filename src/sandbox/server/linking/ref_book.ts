/** Which ref (the first part of a QR, or the handle of a code exchange) belongs to which waiting companion. */
import { Buffer } from "node:buffer";
import type { Random } from "../../../runtime.ts";
import type { CodeRequest, CompanionFinish, LinkAnswer, PasskeyPrimary, PrimaryHello } from "../../world/linking.ts";
import type { Account } from "../../world/directory.ts";

/** Refs of companions that are linked by now; a phone that reads such a QR again learns that it is done. */
const LINKED_REFS_KEPT = 1_000;

/** What a phone has for a companion: the identity that it signed, and its part where the account demands a passkey. */
export interface LinkOffer {
  signedIdentity: Uint8Array;
  primary: PasskeyPrimary;
}

/** A companion that waits for a phone to accept it. */
export interface WaitingCompanion {
  /** Its last companion_hello; null when it asked for no code or its code has expired. */
  readonly codeRequest: CodeRequest | null;
  /** Relays primary_hello to it; resolves with companion_finish, or null when it does not answer. */
  exchangeCode(hello: PrimaryHello): Promise<CompanionFinish | null>;
  /** A phone accepted the companion by one of its refs. */
  take(account: Account, ref: string, offer: LinkOffer): LinkAnswer;
}

interface LinkedCompanion {
  /** Of the phone that linked it. */
  number: string;
  deviceJid: string;
}

export class RefBook {
  #waiting = new Map<string, WaitingCompanion>();
  /** Whose phone a companion's code is for, and the ref of that exchange; the newest last. */
  #codes = new Map<WaitingCompanion, { number: string; ref: string }>();
  #linked = new Map<string, LinkedCompanion>();
  #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** New refs for a companion. */
  issue(companion: WaitingCompanion, count: number): string[] {
    return Array.from({ length: count }, () => {
      const ref = `2@${Buffer.from(this.#random.bytes(96)).toString("base64")}`;
      this.#waiting.set(ref, companion);
      return ref;
    });
  }

  find(ref: string): WaitingCompanion | null {
    return this.#waiting.get(ref) ?? null;
  }

  /**
   * A companion waits for its code to be typed on a number's phone; answers with the ref of that exchange. Its last code is
   * no longer valid.
   */
  expectCode(companion: WaitingCompanion, number: string): string {
    this.withdrawCode(companion);
    const ref = this.issue(companion, 1)[0]!;
    this.#codes.set(companion, { number, ref });
    return ref;
  }

  /** The newest companion that waits for a code to be typed on the number's phone. */
  awaitingCode(number: string): WaitingCompanion | null {
    const [companion] = [...this.#codes].findLast(([, code]) => code.number === number) ?? [];
    return companion ?? null;
  }

  /** The companion is linked, or about to prove itself, by this number. */
  remember(companion: WaitingCompanion, linked: LinkedCompanion): void {
    for (const [ref, waiting] of this.#waiting) if (waiting === companion) this.#linked.set(ref, linked);
    while (this.#linked.size > LINKED_REFS_KEPT) this.#linked.delete(this.#linked.keys().next().value!);
  }

  /** The device that the number's phone linked by this ref; null when there was none. */
  recall(ref: string, number: string): string | null {
    const linked = this.#linked.get(ref);
    return linked?.number === number ? linked.deviceJid : null;
  }

  /** The code of a companion is no longer valid. */
  withdrawCode(companion: WaitingCompanion): void {
    const code = this.#codes.get(companion);
    if (!code) return;
    this.#codes.delete(companion);
    this.#waiting.delete(code.ref);
  }

  /** The companion went away. */
  withdraw(companion: WaitingCompanion): void {
    this.withdrawCode(companion);
    for (const [ref, waiting] of this.#waiting) if (waiting === companion) this.#waiting.delete(ref);
  }
}
