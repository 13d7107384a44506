/**
 * The account's passkey, and a software authenticator that signs with it, as the browser on `web.whatsapp.com` does
 * after asking the owner (WebAuthn level 3, ES256).
 */
import { Buffer } from "node:buffer";
import { createHash, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { z } from "zod";
import { invalid } from "../../errors.ts";
import type { Random } from "../../runtime.ts";
import type { PasskeyCredential } from "../world/uplink.ts";

/** The relying party, and the origin at which a browser may use the passkey. */
const RP_ID = "whatsapp.com";
const ORIGIN = "https://web.whatsapp.com";
/** User present, and user verified (by fingerprint, face or PIN). */
const FLAGS = 0x01 | 0x04;

/** The signing request of the network: WebAuthn's `PublicKeyCredentialRequestOptionsJSON`. */
const requestOptions = z.object({
  challenge: z.string().regex(/^[A-Za-z0-9_-]+$/, "must be base64url"),
  rpId: z.literal(RP_ID, `must be ${RP_ID}, or a browser refuses`),
  allowCredentials: z.array(z.object({ id: z.string() })).optional(),
});

export class Passkey {
  #id: string;
  #userHandle: string;
  #publicKey: KeyObject;
  #privateKey: KeyObject;
  #signCount = 0;

  constructor(random: Random) {
    this.#id = Buffer.from(random.bytes(16)).toString("base64url");
    this.#userHandle = Buffer.from(random.bytes(16)).toString("base64url");
    ({ publicKey: this.#publicKey, privateKey: this.#privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" }));
  }

  /** The part of the passkey that the network stores. */
  get credential(): PasskeyCredential {
    return { id: this.#id, publicKey: coseKey(this.#publicKey), counter: 0 };
  }

  /** Exports the passkey with its private key (PKCS #8), in the form that a virtual authenticator accepts. */
  export() {
    const privateKey = this.#privateKey.export({ type: "pkcs8", format: "der" });
    return { credentialId: this.#id, rpId: RP_ID, userHandle: this.#userHandle, privateKey };
  }

  /**
   * Signs the challenge; returns the assertion in the form of `PublicKeyCredential.toJSON()`, with binary fields in
   * base64url. Throws Problem validation_failed for options that match no passkey in a browser.
   */
  sign(options: unknown) {
    const parsed = requestOptions.safeParse(options);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw invalid(["options", ...issue?.path ?? []].join("."), issue?.message ?? "cannot be signed");
    }
    const { challenge, allowCredentials } = parsed.data;
    if (allowCredentials?.length && !allowCredentials.some(({ id }) => id === this.#id)) {
      throw invalid("options.allowCredentials", "does not name the passkey of this account");
    }
    const clientData = Buffer.from(
      JSON.stringify({ type: "webauthn.get", challenge, origin: ORIGIN, crossOrigin: false }),
    );
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(++this.#signCount);
    const authenticatorData = Buffer.concat([sha256(Buffer.from(RP_ID)), Buffer.of(FLAGS), counter]);
    const signature = createSign("sha256").update(authenticatorData).update(sha256(clientData)).sign(this.#privateKey);
    return {
      id: this.#id,
      rawId: this.#id,
      type: "public-key" as const,
      authenticatorAttachment: "platform" as const,
      response: {
        clientDataJSON: clientData.toString("base64url"),
        authenticatorData: authenticatorData.toString("base64url"),
        signature: signature.toString("base64url"),
        userHandle: this.#userHandle,
      },
      clientExtensionResults: {},
    };
  }
}

/** COSE_Key of an ES256 key: kty EC2 (1: 2), alg ES256 (3: -7), crv P-256 (-1: 1), then x (-2) and y (-3). */
function coseKey(publicKey: KeyObject): Uint8Array {
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  return Buffer.concat([
    Buffer.from("a5010203262001215820", "hex"),
    Buffer.from(x, "base64url"),
    Buffer.from("225820", "hex"),
    Buffer.from(y, "base64url"),
  ]);
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}
