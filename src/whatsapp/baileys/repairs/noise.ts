/**
 * Completes the handshake's check of the server's identity. Baileys 7.0.0-rc14 checks that the root signed the
 * intermediate certificate and that the intermediate signed the leaf, but not that the leaf belongs to the key used in
 * the handshake. A chain can be copied from any connection, so without that check anyone could present it. The library
 * also ignores the leaf's issuer and the dates. The rules are those of whatsmeow's `verifyServerCert`.
 *
 * The library decodes the chain in the same synchronous run in which it derives a secret from the server's key, so the
 * last key used is the server's.
 */
import { Buffer } from "node:buffer";
import { Curve, proto } from "@whiskeysockets/baileys";
import type { Clock } from "../../../runtime.ts";

type Details = proto.CertChain.NoiseCertificate.Details;

const { Details } = proto.CertChain.NoiseCertificate;
const { sharedKey } = Curve;
const { decode } = proto.CertChain;

/** The network's server failed to prove its identity. The message is a constant sentence. */
export class UntrustedServer extends Error {
  override name = "UntrustedServer";
}

/** Makes every handshake of this process reject a server whose key the certificates do not certify. */
export function repairNoise(clock: Pick<Clock, "now">): void {
  let serverKey: Uint8Array = new Uint8Array();
  Curve.sharedKey = (privateKey, publicKey) => {
    serverKey = publicKey;
    return sharedKey(privateKey, publicKey);
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
