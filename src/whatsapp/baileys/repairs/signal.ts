/**
 * Repairs of libsignal 6.0.0, and of the group keys in Baileys 7.0.0-rc14. Baileys and libsignal create its objects
 * themselves, so each repair modifies a class or module, once per process and for all lines.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { createHash, hkdfSync } from "node:crypto";
import { SessionBuilder, SessionCipher } from "libsignal";
import crypto from "libsignal/src/crypto.js";
import { SenderChainKey, SenderKeyState, SenderMessageKey } from "@whiskeysockets/baileys/lib/Signal/Group/index.js";
import type { Session } from "../../../base/libsignal.ts";

/** The part of its cryptography that is repaired. */
interface Derivation {
  /** Derives `chunks` keys of 32 bytes each; three by default. */
  deriveSecrets(input: Uint8Array, salt: Uint8Array, info: Uint8Array, chunks?: number): Buffer[];
  /** HMAC-SHA256. */
  calculateMAC(key: Uint8Array, data: Uint8Array): Uint8Array;
}

const CHUNK_BYTES = 32;
/** Block size of SHA-256. */
const BLOCK_BYTES = 64;
const repaired = new WeakSet<object>();

/** How many of a sender's sessions are tried, last used first: the sender's device uses the newest that it knows. */
const MOST_TRIED = 10;

/**
 * Makes trial decryption use copies. libsignal tries a message on each session with the sender, newest first, and a
 * trial on the wrong session corrupts it for good: nobody can read what is sent on it later. Each reconnect starts new
 * sessions while messages on older ones are still arriving, so every line is affected.
 *
 * It also bounds the trials, and lets others run between two: a stranger can have forty sessions, and a forged message
 * costs each of them thousands of key derivations.
 */
export function repairTrials(cipher: Pick<SessionCipher, "decryptWithSessions"> = SessionCipher.prototype): void {
  if (repaired.has(cipher.decryptWithSessions)) return;
  const { decryptWithSessions } = cipher;
  cipher.decryptWithSessions = async function (data, sessions) {
    let failure: unknown;
    for (const session of sessions.slice(0, MOST_TRIED)) {
      if (failure) await new Promise(setImmediate);
      const copy = session.constructor.deserialize(session.serialize());
      try {
        const { plaintext } = await decryptWithSessions.call(this, data, [copy]);
        // If the copy has lost this member, because the peer has answered, the session must lose it too.
        Object.assign(session, { pendingPreKey: undefined }, copy);
        return { session, plaintext };
      } catch (error) {
        failure = error;
      }
    }
    if (failure) throw failure;
    return await decryptWithSessions.call(this, data, sessions);
  };
  repaired.add(cipher.decryptWithSessions);
}

/** As in Signal's own libraries: messages of older chains can no longer be read. */
const MOST_CHAINS = 5;
/** Keys of skipped messages, of all chains of a session together. */
const MOST_SKIPPED = 2_000;
const RECEIVING = 2;

/**
 * Bounds what a session keeps. libsignal adds a chain each time the sides take turns, and the keys of up to 2,000
 * skipped messages with each message, and removes none: the session, which is written with every message, grows with
 * each turn, and a stranger can make it grow by 100 KB a message.
 */
export function repairGrowth(cipher: Pick<SessionCipher, "doDecryptWhisperMessage"> = SessionCipher.prototype): void {
  if (repaired.has(cipher.doDecryptWhisperMessage)) return;
  const { doDecryptWhisperMessage } = cipher;
  cipher.doDecryptWhisperMessage = async function (data, session) {
    const plaintext = await doDecryptWhisperMessage.call(this, data, session);
    prune(session);
    return plaintext;
  };
  repaired.add(cipher.doDecryptWhisperMessage);
}

function prune(session: Session): void {
  const newestFirst = [...session.chains()].filter(([, { chainType }]) => chainType === RECEIVING).reverse();
  for (const [key] of newestFirst.slice(MOST_CHAINS)) session.deleteChain(key);
  let left = MOST_SKIPPED;
  for (const [, { messageKeys }] of newestFirst.slice(0, MOST_CHAINS)) {
    const skipped = Object.keys(messageKeys).map(Number);
    for (const number of skipped.slice(0, Math.max(0, skipped.length - left))) delete messageKeys[number];
    left = Math.max(0, left - skipped.length);
  }
}

/**
 * Runs each job of the queue in the context that requested it. libsignal has one queue per peer for all lines of the
 * process, and runs waiting jobs in the asynchronous context of whichever caller came first: that of another line, or
 * of a transaction that ended long ago. Changes were then read from and written to that transaction, so a session was
 * reset and its keys were used again. Receivers drop such a message as a duplicate, although the server acknowledged
 * it. See docs/decisions/0009-signal-sessions.md.
 */
export function repairQueue(
  cipher: Pick<SessionCipher, "queueJob"> = SessionCipher.prototype,
  builder: SessionBuilder = SessionBuilder.prototype,
): void {
  if (repaired.has(cipher.queueJob)) return;
  const { queueJob } = cipher;
  cipher.queueJob = async function (job) {
    const inContext = AsyncLocalStorage.snapshot();
    return await queueJob.call(this, () => inContext(job));
  };
  repaired.add(cipher.queueJob);
  const { initOutgoing } = builder;
  builder.initOutgoing = async function (this: SessionBuilder, keys) {
    // The job itself is out of reach, but everything that it reads and writes goes through the storage.
    const storage = inPresentContext(this.storage);
    await initOutgoing.call(Object.create(this, { storage: { value: storage } }), keys);
  };
}

/** Returns a proxy whose methods always run in the present context. */
function inPresentContext<T extends object>(target: T): T {
  const inContext = AsyncLocalStorage.snapshot();
  return new Proxy(target, {
    get(target, name) {
      const member = Reflect.get(target, name);
      return typeof member === "function"
        ? (...args: unknown[]) => inContext(() => Reflect.apply(member, target, args))
        : member;
    },
  });
}

/**
 * Makes deriving keys cheap. libsignal composes HKDF (RFC 5869) from up to four HMACs, each an object of the runtime's
 * streams: the runtime has it as a single call, and an HMAC (RFC 2104) is two of its hashes. A stranger's message of a
 * hundred bytes takes up to 8,000 of them before it turns out to be forged.
 */
export function repairDerivation(derivation: Derivation = crypto): void {
  const { calculateMAC } = derivation;
  derivation.deriveSecrets = (input, salt, info, chunks = 3) => {
    const secrets = Buffer.from(hkdfSync("sha256", input, salt, info, chunks * CHUNK_BYTES));
    return Array.from({ length: chunks }, (_, i) => secrets.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES));
  };
  derivation.calculateMAC = (key, data) => key.length > BLOCK_BYTES ? calculateMAC(key, data) : hmac(key, data);
}

/** The inputs of the two hashes of an HMAC; the second input ends with the first hash. */
const inner = Buffer.alloc(BLOCK_BYTES);
const outer = Buffer.alloc(BLOCK_BYTES + CHUNK_BYTES);

/** The key takes one block at most. */
function hmac(key: Uint8Array, data: Uint8Array): Buffer {
  for (let i = 0; i < BLOCK_BYTES; i++) {
    const byte = key[i] ?? 0;
    inner[i] = byte ^ 0x36;
    outer[i] = byte ^ 0x5c;
  }
  createHash("sha256").update(inner).update(data).digest().copy(outer, BLOCK_BYTES);
  return createHash("sha256").update(outer).digest();
}

type MessageKey = Pick<SenderMessageKey, "getIteration" | "getSeed" | "getIv" | "getCipherKey">;

/** The inputs from which a chain derives the key of a message, and its own next link. */
const MESSAGE = Buffer.of(1);
const NEXT = Buffer.of(2);

/**
 * Makes the keys of group messages cheap. A group's member who skips messages, as everybody who sends with the library
 * does, makes their receivers derive and keep a key of each.
 */
export function repairSenderKeys(): void {
  readKept(SenderKeyState.prototype);
  keepNoneOfOwn(SenderKeyState.prototype);
  deriveWhenNeeded(SenderChainKey.prototype);
}

/** The library stores a seed as JSON and derives the key from the JSON object, so that no late message could be read. */
function readKept(state: SenderKeyState): void {
  state.removeSenderMessageKey = function (this: SenderKeyState, iteration) {
    const { senderMessageKeys } = this.getStructure();
    const at = senderMessageKeys.findIndex((key) => key.iteration === iteration);
    if (at < 0) return null;
    const [kept] = senderMessageKeys.splice(at, 1);
    return new SenderMessageKey(iteration, Buffer.from(kept!.seed));
  };
}

/**
 * The library skips every second key of its own and keeps it for messages that nobody sends: each message to a group
 * wrote up to 330 KB.
 */
function keepNoneOfOwn(state: SenderKeyState): void {
  const { addSenderMessageKey } = state;
  state.addSenderMessageKey = function (this: SenderKeyState, key) {
    if (this.getSigningKeyPrivate()?.length) this.getStructure().senderMessageKeys.length = 0;
    else addSenderMessageKey.call(this, key);
  };
}

/** Derives a key only when it is used. For one that is just kept, the seed is enough, at a tenth of the cost. */
function deriveWhenNeeded(chain: SenderChainKey): void {
  chain.getSenderMessageKey = function (this: SenderChainKey): SenderMessageKey {
    const iteration = this.getIteration();
    const seed = crypto.calculateMAC(Buffer.from(this.getSeed()), MESSAGE);
    let derived: SenderMessageKey | undefined;
    const whole = () => derived ??= new SenderMessageKey(iteration, seed);
    const key: MessageKey = {
      getIteration: () => iteration,
      getSeed: () => seed,
      getIv: () => whole().getIv(),
      getCipherKey: () => whole().getCipherKey(),
    };
    return key as SenderMessageKey;
  };
  chain.getNext = function (this: SenderChainKey) {
    return new SenderChainKey(this.getIteration() + 1, crypto.calculateMAC(Buffer.from(this.getSeed()), NEXT));
  };
}
