/** The network as a WebAuthn relying party: requests a signature from an owner, and verifies assertions. */
import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import { Buffer } from "node:buffer";
import type { Runtime } from "../../../runtime.ts";
import type { PasskeyCredential } from "../../world/uplink.ts";

const RP_ID = "whatsapp.com";
const ORIGIN = "https://web.whatsapp.com";
const CHALLENGE_BYTES = 32;

/** A request for one signature. */
export interface Challenge {
  /** Base64url. */
  value: string;
  /** Unix ms. */
  expiresAt: number;
}

export function newChallenge({ clock, random }: Runtime, lifetimeMs: number): Challenge {
  const value = Buffer.from(random.bytes(CHALLENGE_BYTES)).toString("base64url");
  return { value, expiresAt: clock.now() + lifetimeMs };
}

/** Returns WebAuthn's request options as JSON, the content of `<passkey_request_options>`. */
export function requestOptions({ value }: Challenge, credential: PasskeyCredential, lifetimeMs: number): Uint8Array {
  return Buffer.from(JSON.stringify({
    challenge: value,
    timeout: lifetimeMs,
    rpId: RP_ID,
    allowCredentials: [{ id: credential.id, type: "public-key", transports: ["internal", "hybrid"] }],
    userVerification: "required",
  }));
}

/**
 * Whether the assertion is the credential's answer to this challenge: checks challenge, origin, rpId hash, flags,
 * signature and counter. `credentialId` is the id that the companion sent with the assertion. Updates the credential's
 * counter on success.
 */
export async function verifies(
  assertion: Uint8Array,
  { challenge, credential, credentialId }: {
    challenge: Challenge;
    credential: PasskeyCredential;
    credentialId: Uint8Array;
  },
): Promise<boolean> {
  if (Buffer.from(credentialId).toString("base64url") !== credential.id) return false;
  // Loaded on first use, because most runs need no passkey.
  const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
  try {
    const response: AuthenticationResponseJSON = JSON.parse(Buffer.from(assertion).toString("utf8"));
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge.value,
      expectedOrigin: ORIGIN,
      expectedRPID: RP_ID,
      requireUserVerification: true,
      credential: { ...credential, publicKey: Uint8Array.from(credential.publicKey) },
    });
    if (verified) credential.counter = authenticationInfo.newCounter;
    return verified && authenticationInfo.credentialID === credential.id;
  } catch {
    // The library throws for every fault except a wrong signature.
    return false;
  }
}
