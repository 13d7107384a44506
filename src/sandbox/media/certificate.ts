/** A certificate authority and a server certificate for loopback, made anew at every start and kept in memory. */
import "reflect-metadata"; // which @peculiar/x509 needs before it is loaded
import * as x509 from "@peculiar/x509";
import { Buffer } from "node:buffer";
import type { Runtime } from "../../runtime.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** A sandbox may run for long; the day before covers clocks that differ. */
const VALID_DAYS = 365;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const ISSUER = "CN=Paloma sandbox CA";

interface ServerCertificate {
  /** What clients must trust. */
  caPem: string;
  certPem: string;
  keyPem: string;
}

/** For a server on 127.0.0.1. */
export async function makeServerCertificate({ clock, random }: Runtime): Promise<ServerCertificate> {
  const [authority, server] = await Promise.all([makeKeyPair(), makeKeyPair()]);
  const certify = async (subject: string, publicKey: CryptoKey, extensions: x509.Extension[]): Promise<string> => {
    const certificate = await x509.X509CertificateGenerator.create({
      subject,
      publicKey,
      extensions,
      issuer: ISSUER,
      signingKey: authority.privateKey,
      signingAlgorithm: ALGORITHM,
      // Positive, and new at every start, so that no client mistakes it for an earlier one.
      serialNumber: "01" + Buffer.from(random.bytes(15)).toString("hex"),
      notBefore: new Date(clock.now() - DAY_MS),
      notAfter: new Date(clock.now() + VALID_DAYS * DAY_MS),
    });
    return certificate.toString("pem");
  };
  return {
    caPem: await certify(ISSUER, authority.publicKey, [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ]),
    certPem: await certify("CN=Paloma sandbox media", server.publicKey, [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: "ip", value: "127.0.0.1" }]),
    ]),
    keyPem: x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", server.privateKey), "PRIVATE KEY"),
  };
}

function makeKeyPair(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}
