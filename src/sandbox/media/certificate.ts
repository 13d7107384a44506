/** A certificate authority and a server certificate for loopback, made anew at every start and kept in memory. */
// @ts-types="@types/node-forge"
import forge from "node-forge";
import { Buffer } from "node:buffer";
import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import type { Runtime } from "../../runtime.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** A sandbox may run for long; the day before covers clocks that differ. */
const VALID_DAYS = 365;
/** node-forge's number for an IP address among alternative names. */
const IP_ADDRESS = 7;

interface ServerCertificate {
  /** What clients must trust. */
  caPem: string;
  certPem: string;
  keyPem: string;
}

interface Request {
  subject: string;
  publicPem: string;
  issuer: { name: string; keyPem: string };
  extensions: Record<string, unknown>[];
}

/** For a server on 127.0.0.1. The keys come from the system's generator: node-forge's own is slow. */
export async function makeServerCertificate(runtime: Runtime): Promise<ServerCertificate> {
  const [authority, server] = await Promise.all([makeKeyPair(), makeKeyPair()]);
  const issuer = { name: "Paloma sandbox CA", keyPem: authority.privateKey };
  const caPem = sign({
    subject: issuer.name,
    publicPem: authority.publicKey,
    issuer,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  }, runtime);
  const certPem = sign({
    subject: "Paloma sandbox media",
    publicPem: server.publicKey,
    issuer,
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [{ type: IP_ADDRESS, ip: "127.0.0.1" }] },
    ],
  }, runtime);
  return { caPem, certPem, keyPem: server.privateKey };
}

function sign({ subject, publicPem, issuer, extensions }: Request, { clock, random }: Runtime): string {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(publicPem);
  // Positive, and new at every start, so that no client mistakes it for an earlier one.
  certificate.serialNumber = "01" + Buffer.from(random.bytes(15)).toString("hex");
  certificate.validity.notBefore = new Date(clock.now() - DAY_MS);
  certificate.validity.notAfter = new Date(clock.now() + VALID_DAYS * DAY_MS);
  certificate.setSubject([{ name: "commonName", value: subject }]);
  certificate.setIssuer([{ name: "commonName", value: issuer.name }]);
  certificate.setExtensions(extensions);
  certificate.sign(forge.pki.privateKeyFromPem(issuer.keyPem), forge.md.sha256.create());
  return forge.pki.certificateToPem(certificate);
}

function makeKeyPair(): Promise<{ publicKey: string; privateKey: string }> {
  return promisify(generateKeyPair)("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
}
