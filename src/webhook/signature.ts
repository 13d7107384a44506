/**
 * Webhook secrets and signatures: the specification's `x-webhook-signature`, and the headers of Standard Webhooks
 * (https://www.standardwebhooks.com), for which many languages have libraries.
 */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import type { Random } from "../runtime.ts";

const SECRET_PREFIX = "whsec_";
/** Standard Webhooks requires 24 to 64. */
const SECRET_BYTES = 32;

/** Returns a new secret: `whsec_` and 32 random bytes in base64. */
export function makeSecret(random: Random): string {
  return SECRET_PREFIX + Buffer.from(random.bytes(SECRET_BYTES)).toString("base64");
}

export interface SignedBody {
  /** The event's id, the same for retries and redeliveries. */
  id: string;
  /** When this attempt began, Unix ms. */
  at: number;
  body: Uint8Array;
  /** Newest first; two during a rotation. */
  secrets: readonly string[];
}

/** Returns the headers by which the receiver verifies the body's origin and integrity. */
export function signatureHeaders({ id, at, body, secrets }: SignedBody): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000));
  const [current, previous] = secrets.map((secret) => createHmac("sha256", secret).update(body).digest("hex"));
  return {
    "x-webhook-signature": current!,
    ...(previous === undefined ? {} : { "x-webhook-signature-previous": previous }),
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map((secret) => `v1,${standardSignature({ id, timestamp, body, secret })}`).join(" "),
  };
}

function standardSignature(
  { id, timestamp, body, secret }: { id: string; timestamp: string; body: Uint8Array; secret: string },
): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
  return createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
}
