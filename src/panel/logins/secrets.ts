/** Random secrets that are handed out once and kept by their hash: cookies, one-time links. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Random } from "../../runtime.ts";

/** 256 random bits, safe in URLs and cookies. */
export function makeToken(random: Random): string {
  return Buffer.from(random.bytes(32)).toString("base64url");
}

/** The hash that a token is stored and found by. Plain SHA-256 is enough: random bits cannot be guessed from it. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
