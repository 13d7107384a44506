/** What phone, network and companion exchange while a companion is linked: by QR, by code, or with a passkey. */

/** A request to link a companion: its identity, and the secret known only to it and the phone. */
export interface LinkRequest {
  identityPublic: Uint8Array;
  advSecret: Uint8Array;
}

/** The fields of the QR's text, with which the phone links the companion. */
export interface QrText extends LinkRequest {
  ref: string;
  noisePublic: Uint8Array;
  platform: string;
}

/**
 * The network's answer to a phone that scanned a QR. `refresh` asks it to scan the QR that is shown next, `passkey`
 * requires the owner to sign first. `unknown_ref` means that no companion shows this QR any longer, or that another
 * phone has used it.
 */
export type LinkAnswer =
  | { kind: "linked"; deviceJid: string }
  | { kind: "refresh" }
  | { kind: "passkey" }
  | { kind: "unknown_ref" };

/**
 * `no_request`: no companion waits for a code on this number. `wrong_code`: the exchange failed, as with a mistyped
 * code.
 */
export type CodeAnswer = LinkAnswer | { kind: "no_request" } | { kind: "wrong_code" };

/** The content of a companion's `companion_hello`, and the ref that the network assigned. */
export interface CodeRequest {
  ref: string;
  /** 32 bytes salt, 16 bytes IV, 32 bytes encrypted ephemeral key. */
  wrappedEphemeral: Uint8Array;
  noisePublic: Uint8Array;
}

/** The phone's half of pairing by code (`primary_hello`). */
export interface PrimaryHello {
  /** In the same form as the companion's. */
  wrappedEphemeral: Uint8Array;
  identityPublic: Uint8Array;
}

/** The companion's answer (`companion_finish`). */
export interface CompanionFinish {
  /** 32 bytes salt, 12 bytes IV, then the AES-GCM of companion identity, primary identity and random bytes. */
  wrappedKeyBundle: Uint8Array;
  identityPublic: Uint8Array;
}

/** A passkey as a relying party stores it. */
export interface PasskeyCredential {
  /** Base64url. */
  readonly id: string;
  /** A COSE key. */
  readonly publicKey: Uint8Array;
  /** Signature counter; a value that does not increase reveals a cloned authenticator. */
  counter: number;
}

/** A passkey with its private key (PKCS #8), in the form that a virtual authenticator accepts. */
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

/** The phone's part in linking one companion with a passkey; called by the network. */
export interface PasskeyPrimary {
  /** Asks the owner to sign, for the first time or again. */
  ask(): void;
  /** Takes an encoded ProloguePayload whose assertion was valid; returns an encoded PrimaryEphemeralIdentity. */
  begin(prologue: Uint8Array, handoffProof: Uint8Array | null): Uint8Array;
  /** Takes the companion's nonce; returns false if it does not match the companion's commitment. */
  reveal(companionNonce: Uint8Array): boolean;
  /**
   * Takes an encoded EncryptedPairingRequest; returns null if it cannot be read. Resolves to the signed identity
   * (ADVSignedDeviceIdentityHMAC) once the owner has confirmed, or to null if the link fails.
   */
  open(encryptedRequest: Uint8Array): Promise<Uint8Array | null> | null;
  /** Ends the exchange, whatever its outcome. */
  end(): void;
}

/** The state of linking with a passkey as the phone shows it. In `confirm` the owner has to compare the code. */
export interface PasskeyState {
  stage: "required" | "confirm" | "confirmed";
  /** `XXXX-XXXX`; null before `confirm`. */
  code: string | null;
}
