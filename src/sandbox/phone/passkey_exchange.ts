/**
 * A phone's half of linking with a passkey. Companion and phone agree on a key and exchange nonces, to which the
 * companion has committed, so that both can show the same code. The companion then sends its secrets encrypted with
 * that key. The network only relays the messages.
 */
import { Curve, type KeyPair, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Random } from "../../runtime.ts";
import { hkdf, openGcm } from "../world/crypto.ts";
import type { LinkRequest, PasskeyPrimary } from "../world/uplink.ts";

/** Protocol constants. */
const KEY_BYTES = 32;
const NONCE_BYTES = 32;
const GCM_IV_BYTES = 12;
const CODE_BYTES = 5;
const HANDOFF_INFO = "shortcake-passkey-handoff-v1";
const ENCRYPTION_INFO = "Pairing Information Encryption Key";
/** The characters of codes: no 0, I, O and U. */
const CODE_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTVWXYZ";

/** The state of linking with a passkey as the phone shows it. In `confirm` the owner has to compare the code. */
export interface PasskeyState {
  stage: "required" | "confirm" | "confirmed";
  /** `XXXX-XXXX`; null before `confirm`. */
  code: string | null;
}

interface PasskeyExchangeOptions {
  /** Its secret is the key of the handoff proof; the phone read it from the QR or agreed on it by the code. */
  companion: LinkRequest;
  random: Random;
  /** Signs the companion's identity, once the owner has confirmed. */
  sign(companion: LinkRequest): Uint8Array;
  /** Called when the network asks for the passkey, for the first time or again: the exchange is in progress. */
  onAsk(): void;
  onEnd(): void;
}

export class PasskeyExchange implements PasskeyPrimary {
  #options: PasskeyExchangeOptions;
  #state: PasskeyState | null = null;
  #ephemeral: KeyPair | null = null;
  #nonce: Uint8Array = new Uint8Array(0);
  #prologue: { identity: Uint8Array; commitment: Uint8Array } | null = null;
  #trusted = false;
  #confirmed = Promise.withResolvers<boolean>();

  constructor(options: PasskeyExchangeOptions) {
    this.#options = options;
  }

  /** The state that the owner sees; null if no exchange is in progress. */
  get state(): PasskeyState | null {
    return this.#state && { ...this.#state };
  }

  ask(): void {
    this.#confirmed.resolve(false);
    this.#confirmed = Promise.withResolvers();
    this.#prologue = null;
    this.#state = { stage: "required", code: null };
    this.#options.onAsk();
  }

  begin(payload: Uint8Array, handoffProof: Uint8Array | null): Uint8Array {
    const { companionEphemeralIdentity, commitment } = proto.ProloguePayload.decode(payload);
    this.#prologue = {
      identity: companionEphemeralIdentity ?? new Uint8Array(0),
      commitment: commitment?.hash ?? new Uint8Array(0),
    };
    const { advSecret } = this.#options.companion;
    const handoffKey = hkdf(advSecret, "", HANDOFF_INFO);
    const proof = createHmac("sha256", handoffKey).update(payload).digest();
    this.#trusted = handoffProof?.length === proof.length && timingSafeEqual(handoffProof, proof);
    this.#ephemeral = Curve.generateKeyPair();
    this.#nonce = this.#options.random.bytes(NONCE_BYTES);
    return proto.PrimaryEphemeralIdentity.encode({ publicKey: this.#ephemeral.public, nonce: this.#nonce }).finish();
  }

  reveal(companionNonce: Uint8Array): boolean {
    if (!this.#prologue || !this.#ephemeral) return false;
    const { identity, commitment } = this.#prologue;
    const committed = createHash("sha256").update(identity).update(companionNonce).digest();
    if (companionNonce.length !== NONCE_BYTES || !committed.equals(commitment)) return false;
    const digest = createHash("sha256").update(companionNonce).update(this.#ephemeral.public).digest();
    const code = base32(this.#nonce.subarray(0, CODE_BYTES).map((byte, index) => byte ^ digest[index]!));
    // A companion that proves that it knows the QR's secret needs no comparison by the owner.
    this.#state = { stage: this.#trusted ? "confirmed" : "confirm", code: `${code.slice(0, 4)}-${code.slice(4)}` };
    if (this.#trusted) this.#confirmed.resolve(true);
    return true;
  }

  open(encryptedRequest: Uint8Array): Promise<Uint8Array | null> | null {
    const request = this.#decrypt(encryptedRequest);
    return request && this.#signOnceConfirmed(request);
  }

  async #signOnceConfirmed(request: LinkRequest): Promise<Uint8Array | null> {
    return await this.#confirmed.promise ? this.#options.sign(request) : null;
  }

  /** Called when the owner has seen the same code on the companion; returns false if there is no code to confirm. */
  confirm(): boolean {
    if (!this.#state || this.#state.stage === "required") return false;
    this.#state.stage = "confirmed";
    this.#confirmed.resolve(true);
    return true;
  }

  end(): void {
    this.#state = null;
    this.#confirmed.resolve(false);
    this.#options.onEnd();
  }

  /** Decrypts the companion's secrets; returns null if this is not a request of the scanned companion. */
  #decrypt(encryptedRequest: Uint8Array): LinkRequest | null {
    const { encryptedPayload, iv } = proto.EncryptedPairingRequest.decode(encryptedRequest);
    if (!this.#prologue || !this.#ephemeral || iv?.length !== GCM_IV_BYTES || !encryptedPayload) return null;
    const { publicKey, deviceType, ref } = proto.CompanionEphemeralIdentity.decode(this.#prologue.identity);
    const shared = Curve.sharedKey(this.#ephemeral.private, publicKey!);
    const key = hkdf(shared, `Companion Pairing ${deviceType} with ref ${ref}`, ENCRYPTION_INFO);
    try {
      const plain = openGcm(encryptedPayload, { key, iv });
      const { companionIdentityKey, companionPublicKey, advSecret } = proto.PairingRequest.decode(plain);
      const keys = [companionIdentityKey, companionPublicKey, advSecret];
      if (keys.some((bytes) => bytes?.length !== KEY_BYTES)) return null;
      const { identityPublic } = this.#options.companion;
      if (!Buffer.from(companionIdentityKey!).equals(identityPublic)) return null;
      return { identityPublic, advSecret: advSecret! };
    } catch {
      return null;
    }
  }
}

/** Encodes five bits per character, in WhatsApp's alphabet. */
function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.replaceAll(/.{5}/g, (five) => CODE_ALPHABET[parseInt(five, 2)]!);
}
