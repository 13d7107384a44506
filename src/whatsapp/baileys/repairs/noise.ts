/**
 * Completes the handshake's check of who the server is. Baileys 7.0.0-rc14 looks whether the root signed the intermediate
 * certificate and that one the leaf, but never whether the leaf is about the key that the server shook hands with: a
 * chain can be copied from any connection, so that alone anybody could show it. Nor does it look at the leaf's issuer and
 * at the dates. (The same rules as in whatsmeow's `verifyServerCert`.)
 *
 * The library decodes the chain in the same synchronous run in which it agreed on a secret with the server's key, so the
 * last key agreed with is the server's.
 */
import { Buffer } from "node:buffer";
import { Curve, proto } from "@whiskeysockets/baileys";
import type { Clock } from "../../../runtime.ts";

type Details = proto.CertChain.NoiseCertificate.Details;

const { Details } = proto.CertChain.NoiseCertificate;
const { sharedKey } = Curve;
const { decode } = proto.CertChain;

/** The network's server did not prove that it is one. The message is a constant sentence. */
export class UntrustedServer extends Error {
  override name = "UntrustedServer";
}

/** Makes every handshake of this process refuse a server that the certificates are not about. */
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

/** Signatures are the library's part. Throws UntrustedServer. */
function checkServer(chain: proto.ICertChain, { serverKey, now }: { serverKey: Uint8Array; now: number }): void {
  const leaf = Details.decode(chain.leaf?.details ?? new Uint8Array());
  const intermediate = Details.decode(chain.intermediate?.details ?? new Uint8Array());
  if (!leaf.key || Buffer.compare(leaf.key, serverKey) !== 0) {
    throw new UntrustedServer("the certificate is about another server's key");
  }
  if (leaf.issuerSerial !== intermediate.serial) throw new UntrustedServer("the certificate has another issuer");
  for (const certificate of [intermediate, leaf]) {
    if (!isValidAt(certificate, now / 1000)) throw new UntrustedServer("a certificate is not valid at this time");
  }
}

function isValidAt({ notBefore, notAfter }: Details, seconds: number): boolean {
  return Number(notBefore ?? 0) <= seconds && seconds <= Number(notAfter ?? 0);
}
