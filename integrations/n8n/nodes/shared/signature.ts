import { createHmac, timingSafeEqual } from "node:crypto";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** How far the sender's clock may be from ours, in seconds. */
const TOLERANCE = 300;

/**
 * Whether a delivery was signed with the webhook's secret, as Standard Webhooks says: the header may hold several
 * signatures, because after a rotation the gateway signs with both secrets for a day. An old request is refused.
 */
export function isSigned(body: Buffer, headers: Headers, secret: string, now = Date.now()): boolean {
  const [id, timestamp] = [headers["webhook-id"], headers["webhook-timestamp"]];
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= TOLERANCE)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${String(id)}.${String(timestamp)}.`).update(body).digest();
  return String(headers["webhook-signature"]).split(" ").some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ""), "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
