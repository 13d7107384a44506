/** Random secrets that are given out once and stored as hashes: cookies, one-time links. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Random } from "../../runtime.ts";

/** Returns 256 random bits, in a form that is safe in URLs and cookies. */
export function makeToken(random: Random): string {
  return Buffer.from(random.bytes(32)).toString("base64url");
}

/**
 * Returns the hash by which a token is stored and found. Plain SHA-256 suffices, because random bits cannot be guessed.
 */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
