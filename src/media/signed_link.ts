/** Signed links to files, usable without a key: `/media/{id}?expires=…&signature=…`. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { Buffer } from "node:buffer";

export type MediaLinks = ReturnType<typeof makeMediaLinks>;

/**
 * Signs and verifies links. The signature covers id and expiry; its key is derived from the gateway's secret key.
 * `baseUrl` returns the base of the links, without a trailing slash, and is called at every `sign`.
 */
export function makeMediaLinks(baseUrl: () => string, secretKey: Uint8Array) {
  const key = createHmac("sha256", secretKey).update("paloma media link v1").digest();
  const signature = (fileId: string, expires: string) =>
    createHmac("sha256", key).update(`${fileId}\n${expires}`).digest();
  return {
    /** Returns the base of the links, without a trailing slash. */
    base: baseUrl,
    /** Returns the link, valid until `expiresAt` (Unix ms, rounded down to the second). */
    sign(fileId: string, expiresAt: number): string {
      const expires = String(Math.floor(expiresAt / 1000));
      return `${baseUrl()}/media/${fileId}?expires=${expires}&signature=${signature(fileId, expires).toString("hex")}`;
    },
    /** Whether this gateway made the link, expired or not. Takes constant time. */
    verify(fileId: string, query: { expires: string; signature: string }): boolean {
      if (!/^\d{1,12}$/.test(query.expires) || !/^[0-9a-f]{64}$/.test(query.signature)) return false;
      return timingSafeEqual(signature(fileId, query.expires), Buffer.from(query.signature, "hex"));
    },
  };
}
