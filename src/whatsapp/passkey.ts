/** The part of the port for linking an account that is protected by a passkey. */

/** What a person must do with the account's passkey before linking can continue. */
export type PasskeyRequest =
  | {
    /** Sign the challenge on `https://web.whatsapp.com`, the origin that the passkey is bound to. */
    stage: "required";
    /** WebAuthn request options as the network gave them: `challenge`, `rpId`, `allowCredentials`, … */
    options: Record<string, unknown>;
    /** Unix ms. After that a new challenge follows, or linking starts over. */
    expiresAt: number;
    /** Why the last signature was rejected, in one sentence; null for the first request. */
    refusal: string | null;
  }
  /** Compare this code (`XXXX-XXXX`) with the one on the phone. */
  | { stage: "confirm"; code: string; expiresAt: number };

/** A signed challenge in the form of `PublicKeyCredential.toJSON()`: binary fields are base64url. */
export interface PasskeyAssertion {
  id: string;
  rawId: string;
  type: "public-key";
  authenticatorAttachment?: string | null;
  response: {
    clientDataJSON: string;
    authenticatorData: string;
    signature: string;
    userHandle?: string | null;
  };
  clientExtensionResults: Record<string, unknown>;
}

/** Thrown when no passkey is being requested, or not this step of it. */
export class PasskeyNotRequested extends Error {
  override name = "PasskeyNotRequested";
}

/** Thrown when the signature was rejected. The message is one sentence that clients may read. */
export class PasskeyRefused extends Error {
  override name = "PasskeyRefused";
}
