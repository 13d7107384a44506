/** The codes that people send: short, without signs that look alike, found in any text around them. */
import type { Random } from "../runtime.ts";

/**
 * Without 0, 1, I, L, O, S, Z, B and G, which are misread, and without vowels: a word in a text rarely has eight of these
 * in a row.
 */
const ALPHABET = "23456789CDFHJKMNPQRTVWXY";
/** 24 to the power of 8, 110 thousand million: nobody finds an open code by trying. */
const LENGTH = 8;
/** Longer texts are not searched to the end. */
const SEARCHED = 500;
/** At most this many places of a text are looked up. */
const MOST_CANDIDATES = 64;

/** A run of signs that may hold a code, however the person groups it. */
const RUN = new RegExp(`[${ALPHABET}](?:[\\s\\p{Pd}\\p{Cf}]*[${ALPHABET}]){${LENGTH - 1},}`, "gu");

export function makeCode(random: Random): string {
  return Array.from({ length: LENGTH }, () => ALPHABET[random.between(0, ALPHABET.length - 1)]).join("");
}

/** Returns what may be codes in the text, without regard to case and blanks; the last ones first. */
export function codesIn(text: string): string[] {
  const runs = text.slice(0, SEARCHED).normalize("NFKC").toUpperCase().match(RUN) ?? [];
  const codes = runs.flatMap((run) => {
    const signs = run.replace(/[^A-Z0-9]/g, "");
    return Array.from({ length: signs.length - LENGTH + 1 }, (_, i) => signs.slice(i, i + LENGTH));
  });
  return [...new Set(codes)].reverse().slice(0, MOST_CANDIDATES);
}
