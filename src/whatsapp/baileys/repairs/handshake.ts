/** Repairs of the login in Baileys 7.0.0-rc14: the certificates of the server, signatures, and the login payload. */
import { Buffer } from "node:buffer";
import { type AuthenticationCreds, Curve, jidDecode, proto } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../../runtime.ts";
import { atMost } from "../../../base/at_most.ts";
import { verify } from "../../../base/xeddsa.ts";

type Details = proto.CertChain.NoiseCertificate.Details;

const { Details } = proto.CertChain.NoiseCertificate;
const { sharedKey } = Curve;
const { decode } = proto.CertChain;
const decodeDetails = Details.decode;

/** The network's server failed to prove its identity. The message is a constant sentence. */
export class UntrustedServer extends Error {
  override name = "UntrustedServer";
}

/**
 * Makes every handshake of this process reject a server whose key the certificates do not certify. The library checks
 * that the root signed the intermediate certificate and that the intermediate signed the leaf, but not that the leaf
 * belongs to the key used in the handshake. A chain can be copied from any connection, so without that check anyone
 * could present it. The library also ignores the leaf's issuer and the dates. The rules are those of whatsmeow's
 * `verifyServerCert`.
 *
 * The library decodes the chain in the same synchronous run in which it derives a secret from the server's key, so the
 * last key used is the server's.
 */
export function repairNoise(clock: Pick<Clock, "now">): void {
  let serverKey: Uint8Array = new Uint8Array();
  Curve.sharedKey = (privateKey, publicKey) => {
    serverKey = publicKey;
    return sharedKey(privateKey, publicKey);
  };
  // A number of 0 may be left off the wire. The library takes it for another one.
  Details.decode = (reader, length) => {
    const details = decodeDetails(reader, length);
    for (const field of ["serial", "issuerSerial", "notBefore", "notAfter"] as const) details[field] ??= 0;
    return details;
  };
  proto.CertChain.decode = (reader, length) => {
    const chain = decode(reader, length);
    checkServer(chain, { serverKey, now: clock.now() });
    return chain;
  };
}

/** Checks the certificates except for their signatures, which the library verifies. Throws UntrustedServer. */
function checkServer(chain: proto.ICertChain, { serverKey, now }: { serverKey: Uint8Array; now: number }): void {
  const leaf = Details.decode(chain.leaf?.details ?? new Uint8Array());
  const intermediate = Details.decode(chain.intermediate?.details ?? new Uint8Array());
  if (!leaf.key || Buffer.compare(leaf.key, serverKey) !== 0) {
    throw new UntrustedServer("the certificate is for another server's key");
  }
  if (leaf.issuerSerial !== intermediate.serial) throw new UntrustedServer("the certificate has another issuer");
  for (const certificate of [intermediate, leaf]) {
    if (!isValidAt(certificate, now / 1000)) throw new UntrustedServer("a certificate is not valid at this time");
  }
}

function isValidAt({ notBefore, notAfter }: Details, seconds: number): boolean {
  return Number(notBefore ?? 0) <= seconds && seconds <= Number(notAfter ?? 0);
}

/**
 * Makes `verify` return false for a signature that does not match the key, and for a malformed key or signature.
 * Baileys expects libsignal to throw on a forged signature, but libsignal 6.0.0 returns false, so every signature
 * passes. Two proofs depend on the check: the network's, by the certificates of the handshake, and the phone's, by the
 * account signature of the link.
 */
export function repairCurve(curve: Pick<typeof Curve, "verify"> = Curve): void {
  curve.verify = verify;
}

const MOST_LOGINS = 2 ** 31 - 1;
/** Maximum number of devices about to log in, some of which never do. */
const MOST_AT_ONCE = 10_000;
const { fromObject } = proto.ClientPayload;
/** The counters of upcoming logins, by user and device: the library builds the payloads itself. */
const counts = new LRUCache<string, number>(atMost(MOST_AT_ONCE));

/**
 * Adds the counter set by `countLogin` to every login of this process: the number of times that the device has logged
 * in (`lc`), which the library omits. WhatsApp Web increments it with every login and starts over past 31 bits.
 */
export function repairLogins(): void {
  proto.ClientPayload.fromObject = (payload) => {
    const who = `${payload.username}:${payload.device}`;
    const lc = counts.get(who);
    counts.delete(who);
    return fromObject(lc === undefined ? payload : { ...payload, lc });
  };
}

/** Counts the login that these credentials are used for. The counter is saved with the credentials. */
export function countLogin(creds: AuthenticationCreds & { logins?: number }): void {
  const { user, device = 0 } = jidDecode(creds.me?.id)!;
  const { logins = 0 } = creds;
  creds.logins = logins < MOST_LOGINS ? logins + 1 : 0;
  counts.set(`${Number(user)}:${device}`, creds.logins);
}
