/** The part of the port that is about linking an account that asks for its passkey. */

/** What a person has to do with the account's passkey before the link goes on. */
export type PasskeyRequest =
  | {
    /** Sign the challenge, on `https://web.whatsapp.com`, which the passkey is bound to. */
    stage: "required";
    /** WebAuthn request options as the network gave them: `challenge`, `rpId`, `allowCredentials`, … */
    options: Record<string, unknown>;
    /** Unix ms; a new challenge follows, or the link begins anew. */
    expiresAt: number;
    /** Why the last signature was not taken, one sentence; null for the first. */
    refusal: string | null;
  }
  /** Compare `XXXX-XXXX` with the phone's. */
  | { stage: "confirm"; code: string; expiresAt: number };

/** A signed challenge, as `PublicKeyCredential.toJSON()` gives it: binary fields are base64url. */
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

/** Nobody is asked for a passkey, or for this step of it, now. */
export class PasskeyNotRequested extends Error {
  override name = "PasskeyNotRequested";
}

/** The signature was not taken. The message is one sentence that clients may read. */
export class PasskeyRefused extends Error {
  override name = "PasskeyRefused";
}
