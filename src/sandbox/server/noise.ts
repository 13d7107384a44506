/**
 * The server's half of WhatsApp's handshake, and the transport cipher after it. A client introduces itself by Noise XX:
 * client ephemeral -> server ephemeral, static, certificate -> client static, payload. One that remembers the server's
 * static key resumes by IK: client ephemeral, static, payload -> server ephemeral, certificate. If that key is not the
 * server's any more, the server answers as in XX, and both go on by XXfallback.
 */
import { createHash } from "node:crypto";
import { Curve, type KeyPair, proto } from "@whiskeysockets/baileys";
import { hkdf, openGcm, sealGcm } from "../world/crypto.ts";

const XX = "Noise_XX_25519_AESGCM_SHA256";
const IK = "Noise_IK_25519_AESGCM_SHA256";
const XX_FALLBACK = "Noise_XXfallback_25519_AESGCM_SHA256";
const HASH_BYTES = 32;
/** "WA", protocol 6, and the version of the token dictionary (DICT_VERSION). */
export const WA_HEADER: Uint8Array = Uint8Array.of(0x57, 0x41, 6, 3);
const DAY_S = 24 * 60 * 60;
/** A sandbox may run for long. Certificates are also valid for the day before, in case clocks differ. */
const VALID_DAYS = 365;

/** The network's static Noise key, and the certificate chain signed by the root key. */
export interface NoiseIdentity {
  /** The key that clients pin, 32 bytes. */
  readonly rootPublic: Uint8Array;
  readonly staticKeys: KeyPair;
  /** Encoded `CertChain`: the root signs the intermediate, which signs the leaf (the static key). */
  readonly certificate: Uint8Array;
}

/**
 * Creates the identity of a network: new root, intermediate and static keys. `now` (Unix ms) is for the dates of the
 * certificates.
 */
export function createNoiseIdentity(now: number): NoiseIdentity {
  const root = Curve.generateKeyPair();
  const intermediate = Curve.generateKeyPair();
  const staticKeys = Curve.generateKeyPair();
  const today = Math.floor(now / 1000);
  const dates = { notBefore: today - DAY_S, notAfter: today + VALID_DAYS * DAY_S };
  const details = (serial: number, issuerSerial: number, key: Uint8Array) =>
    proto.CertChain.NoiseCertificate.Details.encode({ serial, issuerSerial, key, ...dates }).finish();
  const signed = (by: KeyPair, bytes: Uint8Array) => ({ details: bytes, signature: Curve.sign(by.private, bytes) });
  // Clients check that serial 0, the pinned root, issued the intermediate, and the intermediate the leaf.
  const certificate = proto.CertChain.encode({
    intermediate: signed(root, details(1, 0, intermediate.public)),
    leaf: signed(intermediate, details(2, 1, staticKeys.public)),
  }).finish();
  return { rootPublic: root.public, staticKeys, certificate };
}

/** What the client proves about itself in the handshake. */
export interface ClientFinish {
  /** The client's static Noise key, authenticated; it identifies a companion at login. */
  staticPublic: Uint8Array;
  /** Encoded `ClientPayload`. */
  payload: Uint8Array;
}

/** The answer to a client hello; `resumed` if no client finish follows. */
interface Answer {
  frame: Uint8Array;
  resumed: ClientFinish | null;
}

/** Creates the state of one connection's handshake and transport. */
export function createNoiseResponder({ staticKeys, certificate }: NoiseIdentity) {
  const ephemeral = Curve.generateKeyPair();
  let noise: SymmetricState | undefined;
  let ciphers: { receive: Cipher; send: Cipher } | undefined;

  /** Answers a client that knows the static key. Throws if it knows another one. */
  function resume({ ephemeral: e, static: s, payload }: Required<Hello>): Answer {
    const state = symmetricState(IK);
    state.mixHash(staticKeys.public);
    state.mixHash(e);
    state.mixKey(Curve.sharedKey(staticKeys.private, e));
    const staticPublic = state.open(s);
    state.mixKey(Curve.sharedKey(staticKeys.private, staticPublic));
    const resumed = { staticPublic, payload: state.open(payload) };
    state.mixHash(ephemeral.public);
    state.mixKey(Curve.sharedKey(ephemeral.private, e));
    state.mixKey(Curve.sharedKey(ephemeral.private, staticPublic));
    const frame = serverHello({ ephemeral: ephemeral.public, payload: state.seal(certificate) });
    ciphers = state.split();
    return { frame, resumed };
  }

  /** Answers a client that has yet to learn the static key. */
  function introduce(mode: string, e: Uint8Array): Answer {
    noise = symmetricState(mode);
    noise.mixHash(e);
    noise.mixHash(ephemeral.public);
    noise.mixKey(Curve.sharedKey(ephemeral.private, e));
    const sealedStatic = noise.seal(staticKeys.public);
    noise.mixKey(Curve.sharedKey(staticKeys.private, e));
    const payload = noise.seal(certificate);
    return { frame: serverHello({ ephemeral: ephemeral.public, static: sealedStatic, payload }), resumed: null };
  }

  return {
    /** Takes the client hello; returns the server hello. Throws if the frame is not a client hello. */
    hello(frame: Uint8Array): Answer {
      const { ephemeral: e, static: s, payload } = proto.HandshakeMessage.decode(frame).clientHello ?? {};
      if (e?.length !== 32) throw new Error("the handshake does not begin with a client hello");
      if (!s || !payload) return introduce(XX, e);
      try {
        return resume({ ephemeral: e, static: s, payload });
      } catch {
        // The client holds a key of another time.
        return introduce(XX_FALLBACK, e);
      }
    },
    /** Takes the client finish and switches to transport. Throws if it does not authenticate. */
    finish(frame: Uint8Array): ClientFinish {
      const finish = proto.HandshakeMessage.decode(frame).clientFinish;
      if (!noise || !finish?.static || !finish.payload) {
        throw new Error("the handshake does not end with a client finish");
      }
      const staticPublic = noise.open(finish.static);
      noise.mixKey(Curve.sharedKey(ephemeral.private, staticPublic));
      const payload = noise.open(finish.payload);
      ciphers = noise.split();
      return { staticPublic, payload };
    },
    /** The transport cipher, valid after the handshake. `decrypt` throws for a frame that does not authenticate. */
    encrypt: (plaintext: Uint8Array) => transport(ciphers?.send).encrypt(plaintext),
    decrypt: (ciphertext: Uint8Array) => transport(ciphers?.receive).decrypt(ciphertext),
  };
}

interface Hello {
  ephemeral: Uint8Array;
  static?: Uint8Array;
  payload: Uint8Array;
}

function serverHello(hello: Hello): Uint8Array {
  return proto.HandshakeMessage.encode({ serverHello: hello }).finish();
}

type SymmetricState = ReturnType<typeof symmetricState>;

/** What both sides have said so far, and the keys derived from it (Noise, 5.2). */
function symmetricState(mode: string) {
  const name = new TextEncoder().encode(mode);
  let hash: Uint8Array = name.length > HASH_BYTES ? sha256(name) : new Uint8Array(HASH_BYTES);
  if (name.length <= HASH_BYTES) hash.set(name);
  let salt = hash;
  let key = hash;
  let counter = 0;

  const mixHash = (data: Uint8Array) => {
    hash = sha256(hash, data);
  };
  const expand = (secret: Uint8Array) => {
    const bytes = hkdf(secret, salt, "", 64);
    return [bytes.subarray(0, 32), bytes.subarray(32)] as const;
  };
  mixHash(WA_HEADER);
  return {
    mixHash,
    mixKey(secret: Uint8Array): void {
      [salt, key] = expand(secret);
      counter = 0;
    },
    seal(plaintext: Uint8Array): Uint8Array {
      const sealed = sealGcm(plaintext, { key, iv: nonce(counter++), context: hash });
      mixHash(sealed);
      return sealed;
    },
    /** Throws if it does not authenticate. */
    open(ciphertext: Uint8Array): Uint8Array {
      const plain = openGcm(ciphertext, { key, iv: nonce(counter++), context: hash });
      mixHash(ciphertext);
      return plain;
    },
    /** The ciphers of the transport, as the server uses them. */
    split() {
      const [fromClient, toClient] = expand(new Uint8Array(0));
      return { receive: new Cipher(fromClient), send: new Cipher(toClient) };
    },
  };
}

function sha256(...data: Uint8Array[]): Uint8Array {
  const hash = createHash("sha256");
  for (const part of data) hash.update(part);
  return hash.digest();
}

function transport(cipher: Cipher | undefined): Cipher {
  if (!cipher) throw new Error("the handshake is not finished");
  return cipher;
}

/** One direction of the transport. The nonce counts frames, so nothing decrypts after a lost or repeated frame. */
class Cipher {
  #key: Uint8Array;
  #counter = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  encrypt(plaintext: Uint8Array): Uint8Array {
    return sealGcm(plaintext, { key: this.#key, iv: nonce(this.#counter++) });
  }

  decrypt(ciphertext: Uint8Array): Uint8Array {
    return openGcm(ciphertext, { key: this.#key, iv: nonce(this.#counter++) });
  }
}

function nonce(counter: number): Uint8Array {
  const bytes = new Uint8Array(12);
  new DataView(bytes.buffer).setUint32(8, counter);
  return bytes;
}
