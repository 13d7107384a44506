/** Maps each ref (the first part of a QR, or the id of a code exchange) to the companion that waits with it. */
import { Buffer } from "node:buffer";
import type { Random } from "../../../runtime.ts";
import type { CodeRequest, CompanionFinish, LinkAnswer, PasskeyPrimary, PrimaryHello } from "../../world/uplink.ts";
import type { Account } from "../../world/directory.ts";

/**
 * Number of refs kept for companions that are already linked, so that a phone that scans such a QR again is answered
 * "linked".
 */
const LINKED_REFS_KEPT = 1_000;

/** A phone's offer to link a companion: the signed identity, and its part in the exchange if a passkey is required. */
export interface LinkOffer {
  signedIdentity: Uint8Array;
  primary: PasskeyPrimary;
}

/** A companion that waits for a phone to accept it. */
export interface WaitingCompanion {
  /** Its last companion_hello; null if it asked for no code or its code has expired. */
  readonly codeRequest: CodeRequest | null;
  /** Relays primary_hello to the companion; resolves to companion_finish, or to null if it does not answer. */
  exchangeCode(hello: PrimaryHello): Promise<CompanionFinish | null>;
  /** Called when a phone accepted the companion by one of its refs. */
  take(account: Account, ref: string, offer: LinkOffer): LinkAnswer;
}

interface LinkedCompanion {
  /** Number of the phone that linked it. */
  number: string;
  deviceJid: string;
}

export class RefBook {
  #waiting = new Map<string, WaitingCompanion>();
  /** The number that each companion's code is for, and the ref of that exchange; the newest last. */
  #codes = new Map<WaitingCompanion, { number: string; ref: string }>();
  #linked = new Map<string, LinkedCompanion>();
  #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Issues new refs for a companion. */
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
   * Registers that a companion waits for its code to be entered on a number's phone; returns the ref of the exchange.
   * The companion's earlier code becomes invalid.
   */
  expectCode(companion: WaitingCompanion, number: string): string {
    this.withdrawCode(companion);
    const ref = this.issue(companion, 1)[0]!;
    this.#codes.set(companion, { number, ref });
    return ref;
  }

  /** Returns the newest companion that waits for a code to be entered on the number's phone. */
  awaitingCode(number: string): WaitingCompanion | null {
    const [companion] = [...this.#codes].findLast(([, code]) => code.number === number) ?? [];
    return companion ?? null;
  }

  /** Records that this number has linked the companion, or waits only for its proof. */
  remember(companion: WaitingCompanion, linked: LinkedCompanion): void {
    for (const [ref, waiting] of this.#waiting) if (waiting === companion) this.#linked.set(ref, linked);
    while (this.#linked.size > LINKED_REFS_KEPT) this.#linked.delete(this.#linked.keys().next().value!);
  }

  /** Returns the device that the number's phone linked by this ref; null if there was none. */
  recall(ref: string, number: string): string | null {
    const linked = this.#linked.get(ref);
    return linked?.number === number ? linked.deviceJid : null;
  }

  /** Invalidates the companion's code. */
  withdrawCode(companion: WaitingCompanion): void {
    const code = this.#codes.get(companion);
    if (!code) return;
    this.#codes.delete(companion);
    this.#waiting.delete(code.ref);
  }

  /** Removes a companion that disconnected. */
  withdraw(companion: WaitingCompanion): void {
    this.withdrawCode(companion);
    for (const [ref, waiting] of this.#waiting) if (waiting === companion) this.#waiting.delete(ref);
  }
}
