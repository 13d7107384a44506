/**
 * API keys: 32 random bytes after a prefix that makes leaked keys recognisable. Stored sealed, found by hash (promise
 * 6).
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Problem } from "../errors.ts";
import type { Random } from "../runtime.ts";

const PREFIX = "pk_";
const SHAPE = /^pk_[A-Za-z0-9_-]{43}$/;

export function makeApiKey(random: Random): string {
  return PREFIX + Buffer.from(random.bytes(32)).toString("base64url");
}

/** Whether the text has the form of a key, which saves a read for garbage. */
export function isApiKeyShaped(text: string): boolean {
  return SHAPE.test(text);
}

/** Returns the hash by which a key is found, hexadecimal. Plain SHA-256 is enough for 256 random bits. */
export function hashApiKey(apiKey: string): string {
  return createHash("sha256").update(apiKey).digest("hex");
}

/** Returns the refusal of an unknown key. */
export function keyUnknown(): Problem {
  return new Problem("api_key_invalid", "The key is unknown; it may have been regenerated.");
}
