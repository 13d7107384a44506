/** What phone, network and companion give each other while a companion is linked: by QR, by code, with a passkey. */

/** A companion that asks to be linked: its identity, and the secret that only the phone learned. */
export interface LinkRequest {
  identityPublic: Uint8Array;
  advSecret: Uint8Array;
}

/** What a phone needs to know of the companion that it links: the parts of the QR's text. */
export interface QrText extends LinkRequest {
  ref: string;
  noisePublic: Uint8Array;
  platform: string;
}

/**
 * What the network says to a phone that scanned a QR. `refresh` asks it to read the QR that is shown next, `passkey` says
 * that the owner has to sign first; `unknown_ref` is for a QR that no companion shows any more, or another phone has taken.
 */
export type LinkAnswer =
  | { kind: "linked"; deviceJid: string }
  | { kind: "refresh" }
  | { kind: "passkey" }
  | { kind: "unknown_ref" };

/** `no_request`: nothing waits for a code on this number; `wrong_code`: the exchange failed, as with a mistyped code. */
export type CodeAnswer = LinkAnswer | { kind: "no_request" } | { kind: "wrong_code" };

/** What a companion's companion_hello holds, and the ref that the network gave it. */
export interface CodeRequest {
  ref: string;
  /** 32 bytes salt, 16 bytes IV, 32 bytes encrypted ephemeral key. */
  wrappedEphemeral: Uint8Array;
  noisePublic: Uint8Array;
}

/** The phone's half of pairing by code. */
export interface PrimaryHello {
  /** Same form as the companion's. */
  wrappedEphemeral: Uint8Array;
  identityPublic: Uint8Array;
}

/** The companion's answer. */
export interface CompanionFinish {
  /** 32 bytes salt, 12 bytes IV, AES-GCM of companion identity, primary identity and a random. */
  wrappedKeyBundle: Uint8Array;
  identityPublic: Uint8Array;
}

/** A passkey as a relying party keeps it. */
export interface PasskeyCredential {
  /** Base64url. */
  readonly id: string;
  /** A COSE key. */
  readonly publicKey: Uint8Array;
  /** Signatures so far, which reveal a copied authenticator. */
  counter: number;
}

/** A passkey with its private key (PKCS #8), as a virtual authenticator takes it. */
export interface ExportedPasskey {
  credentialId: string;
  rpId: string;
  userHandle: string;
  privateKey: Uint8Array;
}

/** A WebAuthn assertion in the form of `PublicKeyCredential.toJSON()`; binary fields are base64url. */
export interface AssertionJson {
  id: string;
  rawId: string;
  type: "public-key";
  authenticatorAttachment: "platform";
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle: string };
  clientExtensionResults: Record<string, never>;
}

/** The phone's part in linking one companion with a passkey, as the network calls it. */
export interface PasskeyPrimary {
  /** The owner has been asked to sign, at first or anew. */
  ask(): void;
  /** Takes an encoded ProloguePayload whose assertion was right; answers with an encoded PrimaryEphemeralIdentity. */
  begin(prologue: Uint8Array, handoffProof: Uint8Array | null): Uint8Array;
  /** Takes the companion's nonce; false when the companion had committed to another. */
  reveal(companionNonce: Uint8Array): boolean;
  /**
   * Takes an encoded EncryptedPairingRequest; null when it cannot be read. Resolves with the signed identity
   * (ADVSignedDeviceIdentityHMAC) when the owner has confirmed, or with null when the link fails.
   */
  open(encryptedRequest: Uint8Array): Promise<Uint8Array | null> | null;
  /** The exchange is over, whatever its outcome. */
  end(): void;
}

/** What the phone shows of a link with a passkey: whether its owner has to compare the code with the companion's. */
export interface PasskeyState {
  stage: "required" | "confirm" | "confirmed";
  /** `XXXX-XXXX`, from `confirm` on. */
  code: string | null;
}
