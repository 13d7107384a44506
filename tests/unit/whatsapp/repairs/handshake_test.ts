/** The handshake with servers that prove who they are, and with those that don't. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  Curve,
  type KeyPair,
  makeNoiseHandler,
  NOISE_WA_HEADER,
  proto,
  WA_CERT_DETAILS,
} from "@whiskeysockets/baileys";
import pino from "pino";
import { createNoiseIdentity, createNoiseResponder, type NoiseIdentity } from "../../../../src/sandbox/server/noise.ts";
import { reasonOf } from "../../../../src/whatsapp/baileys/close_reason.ts";
import { repairCurve, repairNoise } from "../../../../src/whatsapp/baileys/repairs/handshake.ts";

const NOW = Date.parse("2026-08-01T00:00:00Z");
const DAY_S = 24 * 60 * 60;

/** Shakes hands up to the point where the client would say who it is. Throws when it refuses the server. */
function shakeHands(identity: NoiseIdentity, rootPublic: Uint8Array): void {
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(rootPublic);
  const keyPair = Curve.generateKeyPair();
  const logger = pino({ level: "silent" }) as unknown as Parameters<typeof makeNoiseHandler>[0]["logger"];
  const noise = makeNoiseHandler({ keyPair, NOISE_HEADER: NOISE_WA_HEADER, logger });
  const hello = proto.HandshakeMessage.encode({ clientHello: { ephemeral: keyPair.public } }).finish();
  const answer = createNoiseResponder(identity).hello(hello).frame;
  noise.processHandshake(proto.HandshakeMessage.decode(answer), Curve.generateKeyPair());
}

interface Forgery {
  leafSigner?: KeyPair;
  leafKey?: Uint8Array;
  leafIssuer?: number;
  intermediateIssuer?: number;
  validFrom?: number;
  validTo?: number;
  /** Leaves off the serial of the root, and the date from which the certificates are valid. */
  isZeroLeftOff?: true;
}

/** A chain with one thing about it that is not as it should be. */
function forge(forgery: Forgery = {}): NoiseIdentity {
  const [root, intermediate, staticKeys] = [1, 2, 3].map(() => Curve.generateKeyPair()) as [KeyPair, KeyPair, KeyPair];
  const { leafSigner = intermediate, leafKey = staticKeys.public, leafIssuer = 7, intermediateIssuer = 0 } = forgery;
  const { validFrom = -DAY_S, validTo = DAY_S, isZeroLeftOff } = forgery;
  const notAfter = NOW / 1000 + validTo;
  const dates = isZeroLeftOff ? { notAfter } : { notBefore: NOW / 1000 + validFrom, notAfter };
  const ofRoot = isZeroLeftOff ? {} : { issuerSerial: intermediateIssuer };
  const signed = (by: KeyPair, details: proto.CertChain.NoiseCertificate.IDetails) => {
    const bytes = proto.CertChain.NoiseCertificate.Details.encode(details).finish();
    return { details: bytes, signature: Curve.sign(by.private, bytes) };
  };
  const certificate = proto.CertChain.encode({
    intermediate: signed(root, { serial: 7, ...ofRoot, key: intermediate.public, ...dates }),
    leaf: signed(leafSigner, { serial: 8, issuerSerial: leafIssuer, key: leafKey, ...dates }),
  }).finish();
  return { rootPublic: root.public, staticKeys, certificate };
}

/** Before the repairs of this file: what the library does by itself. */
Deno.test("the library by itself takes any server for the network: when this fails, the repairs can go", () => {
  shakeHands(createNoiseIdentity(NOW), createNoiseIdentity(NOW).rootPublic);
  shakeHands({ ...createNoiseIdentity(NOW), staticKeys: Curve.generateKeyPair() }, createNoiseIdentity(NOW).rootPublic);
});

function testRepaired(name: string, run: () => void): void {
  Deno.test(name, () => {
    repairCurve();
    repairNoise({ now: () => NOW });
    run();
  });
}

testRepaired("a server that the root key vouches for is taken", () => {
  const forged = forge();
  shakeHands(forged, forged.rootPublic);
  const identity = createNoiseIdentity(NOW);
  shakeHands(identity, identity.rootPublic);
});

testRepaired("a number of 0 in a certificate may be left off", () => {
  const forged = forge({ isZeroLeftOff: true });
  shakeHands(forged, forged.rootPublic);
});

testRepaired("a network of another root key is refused, and the line's reason says so", () => {
  const identity = createNoiseIdentity(NOW);
  let refusal: unknown;
  try {
    shakeHands(identity, createNoiseIdentity(NOW).rootPublic);
  } catch (error) {
    refusal = error;
  }
  const { kind, code, detail } = reasonOf(refusal);
  assert.deepEqual([kind, code], ["untrusted", null]);
  assert.match(detail, /did not prove/);
});

testRepaired("a server that shows somebody else's chain is refused", () => {
  const genuine = createNoiseIdentity(NOW);
  const thief = { ...genuine, staticKeys: Curve.generateKeyPair() };
  assert.throws(() => shakeHands(thief, genuine.rootPublic), { name: "UntrustedServer" });
});

const FORGERIES: [what: string, forgery: () => Forgery][] = [
  ["a leaf that the intermediate did not sign", () => ({ leafSigner: Curve.generateKeyPair() })],
  ["a leaf about another key", () => ({ leafKey: Curve.generateKeyPair().public })],
  ["a leaf without a key", () => ({ leafKey: new Uint8Array() })],
  ["a leaf of another issuer", () => ({ leafIssuer: 9 })],
  ["an intermediate of another issuer", () => ({ intermediateIssuer: 1 })],
  ["certificates that have run out", () => ({ validTo: -1 })],
  ["certificates that are not valid yet", () => ({ validFrom: 1 })],
];

for (const [what, forgery] of FORGERIES) {
  testRepaired(`${what} ends the handshake as untrusted`, () => {
    const identity = forge(forgery());
    assert.throws(
      () => shakeHands(identity, identity.rootPublic),
      (error) => reasonOf(error).kind === "untrusted",
    );
  });
}
