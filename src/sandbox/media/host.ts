/**
 * The media host of the simulated network: HTTPS on loopback. Clients upload encrypted files under their hash, and get
 * a path from which others download them, whole or in part.
 */
import "reflect-metadata"; // which @peculiar/x509 needs before it is loaded
import * as x509 from "@peculiar/x509";
import { Buffer } from "node:buffer";
import { serveLocally } from "../../base/listening.ts";
import type { Runtime } from "../../runtime.ts";
import { FileShelf } from "./shelf.ts";
import type { MediaAccess } from "../world/uplink.ts";

/** The last part is the file's hash in base64url; some clients pad it. */
const UPLOAD_PATH = /^\/(?:mms|product|pps)\/[a-z-]+\/([A-Za-z0-9_-]+)(?:=|%3D){0,2}$/i;

const PICTURE_PATH = "/v/t61.24694-24/";

export interface MediaHost extends MediaAccess {
  /** Returns the direct paths of the stored files, oldest first. */
  paths(): string[];
  /** Removes a file, as the real host removes old ones; returns false if there is no such file. */
  remove(directPath: string): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Starts the host on a free port of 127.0.0.1. `taken` resolves when an upload of this line may be answered; by default
 * immediately.
 */
export async function startMedia(
  { runtime, taken = () => Promise.resolve() }: { runtime: Runtime; taken?: (line: string) => Promise<void> },
): Promise<MediaHost> {
  const { caPem, certPem, keyPem } = await makeServerCertificate(runtime);
  const folder = await Deno.makeTempDir({ prefix: "paloma-sandbox-media-" });
  const files = new FileShelf(folder, runtime);
  const auth = Buffer.from(runtime.random.bytes(24)).toString("base64url");
  // Profile pictures by path: unencrypted, and available to everybody who knows the URL.
  const pictures = new Map<string, Uint8Array>();
  const onError = (error: unknown) => {
    runtime.log.warn({ err: error }, "the sandbox's media host failed");
    return new Response(null, { status: 500 });
  };
  const server = serveLocally(
    { cert: certPem, key: keyPem, onError },
    (request) => answer(request, { files, auth, pictures, taken }),
  );
  const { address } = server;
  return {
    url: `https://${address}`,
    host: address,
    auth,
    caPem,
    keepPicture(picture) {
      const path = `${PICTURE_PATH}${Buffer.from(runtime.random.bytes(12)).toString("hex")}.jpg`;
      pictures.set(path, picture);
      return `https://${address}${path}`;
    },
    paths: () => files.paths(),
    remove: (directPath) => files.remove(directPath),
    close: async () => {
      await server.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function answer(
  request: Request,
  { files, auth, pictures, taken }: {
    files: FileShelf;
    auth: string;
    pictures: ReadonlyMap<string, Uint8Array>;
    taken: (line: string) => Promise<void>;
  },
): Promise<Response> {
  const { pathname, searchParams, origin } = new URL(request.url);
  if (request.method === "POST") {
    const token = UPLOAD_PATH.exec(pathname)?.[1];
    if (!token) return refuse(404, "no such upload path");
    const [given, line] = (searchParams.get("auth") ?? "").split(".");
    if (given !== auth) return refuse(401, "the auth token is wrong");
    const stored = await files.store(request.body, token);
    if (line) await taken(line);
    return "path" in stored
      ? Response.json({ url: `${origin}${stored.path}`, direct_path: stored.path })
      : refuse(stored.status, stored.reason);
  }
  // A companion removes the files of its history once it has read them.
  if (request.method === "DELETE") {
    return await files.remove(pathname) ? new Response(null, { status: 200 }) : refuse(404, "there is no such file");
  }
  if (request.method !== "GET") return refuse(405, "only GET, POST and DELETE");
  const picture = pictures.get(pathname);
  if (picture) return new Response(Uint8Array.from(picture), { headers: { "content-type": "image/jpeg" } });
  // The direct path has a query of the host's own, to which clients append `&hash=…&mms-type=…`.
  const served = await files.serve(pathname, request.headers.get("range"));
  return served ?? refuse(404, "there is no such file, or not any more");
}

function refuse(status: number, reason: string): Response {
  return Response.json({ error: { code: status, message: reason } }, { status });
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** A sandbox may run for long. Certificates are also valid for the day before, in case clocks differ. */
const VALID_DAYS = 365;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const ISSUER = "CN=Paloma sandbox CA";

/**
 * Creates a certificate for a server on 127.0.0.1, and an authority that issues it, which clients must trust. Both are
 * new at every start and stay in memory.
 */
export async function makeServerCertificate({ clock, random }: Runtime) {
  const [authority, server] = await Promise.all([makeKeyPair(), makeKeyPair()]);
  const certify = async (subject: string, publicKey: CryptoKey, extensions: x509.Extension[]): Promise<string> => {
    const certificate = await x509.X509CertificateGenerator.create({
      subject,
      publicKey,
      extensions,
      issuer: ISSUER,
      signingKey: authority.privateKey,
      signingAlgorithm: ALGORITHM,
      // Positive, and new at every start, so that no client takes it for an earlier certificate.
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
