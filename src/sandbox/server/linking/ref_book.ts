/** Maps each ref (the first part of a QR, or the id of a code exchange) to the companion that waits with it. */
import type { Random } from "../../../runtime.ts";
import type { Account } from "../../world/directory.ts";
import type { LinkAnswer, PasskeyPrimary } from "../../world/uplink.ts";
import type { CodeLink } from "./code_link.ts";

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
  readonly code: CodeLink;
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
  #linked = new Map<string, LinkedCompanion>();
  #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Issues a new ref for a companion. */
  issue(companion: WaitingCompanion): string {
    const ref = `2@${this.#random.bytes(96).toBase64()}`;
    this.#waiting.set(ref, companion);
    return ref;
  }

  find(ref: string): WaitingCompanion | null {
    return this.#waiting.get(ref) ?? null;
  }

  /** Returns the newest code that waits to be entered on the number's phone. */
  codeFor(number: string): CodeLink | null {
    const isAwaited = ([ref, { code: { request } }]: [string, WaitingCompanion]) =>
      request?.ref === ref && request.number === number;
    return [...this.#waiting].findLast(isAwaited)?.[1].code ?? null;
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

  /** Invalidates a ref. */
  forget(ref: string): void {
    this.#waiting.delete(ref);
  }

  /** Removes a companion that disconnected. */
  withdraw(companion: WaitingCompanion): void {
    for (const [ref, waiting] of this.#waiting) if (waiting === companion) this.#waiting.delete(ref);
  }
}
