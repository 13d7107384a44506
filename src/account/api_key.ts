/** API keys: 32 random bytes behind a prefix that makes a leaked key recognisable. Kept sealed, found by hash (promise 6). */
import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import { Problem } from "../errors.ts";
import type { Random } from "../runtime.ts";

const PREFIX = "pk_";
const SHAPE = /^pk_[A-Za-z0-9_-]{43}$/;

export function makeApiKey(random: Random): string {
  return PREFIX + Buffer.from(random.bytes(32)).toString("base64url");
}

/** Whether the text can be a key at all: spares the store a read for garbage. */
export function isApiKeyShaped(text: string): boolean {
  return SHAPE.test(text);
}

/** What a key is found by. Plain SHA-256 is enough: 256 random bits cannot be guessed back from it. */
export function hashApiKey(apiKey: string): Buffer {
  return createHash("sha256").update(apiKey).digest();
}

/** Compares two hashes, in hexadecimal, in a time that tells nothing about where they differ. */
export function sameHash(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** The refusal of a key that nobody has. */
export function keyUnknown(): Problem {
  return new Problem("api_key_invalid", "The key is unknown; it may have been regenerated.");
}
