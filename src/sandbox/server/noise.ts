/**
 * The server's half of WhatsApp's handshake, Noise_XX_25519_AESGCM_SHA256, and the transport cipher after it. Messages:
 * client ephemeral -> server ephemeral, static, certificate -> client static, payload.
 */
import { createHash } from "node:crypto";
import { Curve, type KeyPair, proto } from "@whiskeysockets/baileys";
import { hkdf, openGcm, sealGcm } from "../world/crypto.ts";

const MODE = new TextEncoder().encode("Noise_XX_25519_AESGCM_SHA256\0\0\0\0");
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

/** The content of the client's last handshake message. */
export interface ClientFinish {
  /** The client's static Noise key, authenticated; it identifies a companion at login. */
  staticPublic: Uint8Array;
  /** Encoded `ClientPayload`. */
  payload: Uint8Array;
}

/** Creates the state of one connection's handshake and transport. */
export function createNoiseResponder(identity: NoiseIdentity) {
  const ephemeral = Curve.generateKeyPair();
  let hash: Uint8Array = MODE;
  let salt: Uint8Array = MODE;
  let key: Uint8Array = MODE;
  let counter = 0;
  let receive: Cipher | undefined;
  let send: Cipher | undefined;

  const mixHash = (data: Uint8Array) => {
    hash = createHash("sha256").update(hash).update(data).digest();
  };
  const expand = (secret: Uint8Array) => {
    const bytes = hkdf(secret, salt, "", 64);
    return [bytes.subarray(0, 32), bytes.subarray(32)] as const;
  };
  const mixKey = (secret: Uint8Array) => {
    [salt, key] = expand(secret);
    counter = 0;
  };
  const seal = (plaintext: Uint8Array) => {
    const sealed = sealGcm(plaintext, { key, iv: nonce(counter++), context: hash });
    mixHash(sealed);
    return sealed;
  };
  const open = (ciphertext: Uint8Array) => {
    const plain = openGcm(ciphertext, { key, iv: nonce(counter++), context: hash });
    mixHash(ciphertext);
    return plain;
  };

  mixHash(WA_HEADER);
  return {
    /** Takes the client hello; returns the server hello. Throws if the frame is not a client hello. */
    hello(frame: Uint8Array): Uint8Array {
      const clientEphemeral = proto.HandshakeMessage.decode(frame).clientHello?.ephemeral;
      if (clientEphemeral?.length !== 32) throw new Error("the handshake does not begin with a client hello");
      mixHash(clientEphemeral);
      mixHash(ephemeral.public);
      mixKey(Curve.sharedKey(ephemeral.private, clientEphemeral));
      const sealedStatic = seal(identity.staticKeys.public);
      mixKey(Curve.sharedKey(identity.staticKeys.private, clientEphemeral));
      const payload = seal(identity.certificate);
      return proto.HandshakeMessage.encode({
        serverHello: { ephemeral: ephemeral.public, static: sealedStatic, payload },
      }).finish();
    },
    /** Takes the client finish and switches to transport. Throws if it does not authenticate. */
    finish(frame: Uint8Array): ClientFinish {
      const finish = proto.HandshakeMessage.decode(frame).clientFinish;
      if (!finish?.static || !finish.payload) throw new Error("the handshake does not end with a client finish");
      const staticPublic = open(finish.static);
      mixKey(Curve.sharedKey(ephemeral.private, staticPublic));
      const payload = open(finish.payload);
      const [fromClient, toClient] = expand(new Uint8Array(0));
      receive = new Cipher(fromClient);
      send = new Cipher(toClient);
      return { staticPublic, payload };
    },
    /** The transport cipher, valid after `finish`. `decrypt` throws for a frame that does not authenticate. */
    encrypt: (plaintext: Uint8Array) => transport(send).encrypt(plaintext),
    decrypt: (ciphertext: Uint8Array) => transport(receive).decrypt(ciphertext),
  };
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
