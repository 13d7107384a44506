/** Which ref (the first part of a QR, or the handle of a code exchange) belongs to which waiting companion. */
import { Buffer } from "node:buffer";
import type { LinkAnswer } from "./device.ts";
import type { Registration } from "./registration.ts";
import type { Random } from "../runtime.ts";

/** Refs of companions that are linked by now; a phone that reads such a QR once more hears that it is done. */
const LINKED_REFS_KEPT = 1_000;

export class RefBook {
  #waiting = new Map<string, Registration>();
  /** By phone number: the newest companion that waits for a code to be typed there, and its ref. */
  #codes = new Map<string, { ref: string; registration: Registration }>();
  #linked = new Map<string, { number: string; answer: LinkAnswer }>();
  #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** New refs for a companion. */
  issue(registration: Registration, count: number): string[] {
    return Array.from({ length: count }, () => {
      const ref = `2@${Buffer.from(this.#random.bytes(96)).toString("base64")}`;
      this.#waiting.set(ref, registration);
      return ref;
    });
  }

  find(ref: string): Registration | null {
    return this.#waiting.get(ref) ?? null;
  }

  /** A companion waits for its code to be typed on a number's phone. */
  awaitCode(number: string, waiting: { ref: string; registration: Registration }): void {
    this.#codes.set(number, waiting);
  }

  codeFor(number: string): { ref: string; registration: Registration } | null {
    return this.#codes.get(number) ?? null;
  }

  /** The companion is linked, or about to prove itself, by this number. */
  remember(registration: Registration, linked: { number: string; answer: LinkAnswer }): void {
    for (const [ref, waiting] of this.#waiting) if (waiting === registration) this.#linked.set(ref, linked);
    while (this.#linked.size > LINKED_REFS_KEPT) this.#linked.delete(this.#linked.keys().next().value!);
  }

  /** The answer that this number got for a ref before; null when there was none. */
  recall(ref: string, number: string): LinkAnswer | null {
    const linked = this.#linked.get(ref);
    return linked?.number === number ? linked.answer : null;
  }

  /** The code of a companion is no longer good. */
  withdrawCode(registration: Registration): void {
    for (const [number, code] of this.#codes) if (code.registration === registration) this.#codes.delete(number);
  }

  /** The companion went away. */
  withdraw(registration: Registration): void {
    for (const [ref, waiting] of this.#waiting) if (waiting === registration) this.#waiting.delete(ref);
    this.withdrawCode(registration);
  }
}
