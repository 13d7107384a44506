/**
 * Repairs of the keys of group messages, Baileys 7.0.0-rc14. A group's member who skips messages, as everybody who sends
 * with the library does, makes their receivers derive and keep a key of each.
 */
import { Buffer } from "node:buffer";
import crypto from "libsignal/src/crypto.js";
import { SenderChainKey, SenderKeyState, SenderMessageKey } from "@whiskeysockets/baileys/lib/Signal/Group/index.js";

type MessageKey = Pick<SenderMessageKey, "getIteration" | "getSeed" | "getIv" | "getCipherKey">;

/** What messages and the next link of a chain are derived by. */
const MESSAGE = Buffer.of(1);
const NEXT = Buffer.of(2);

export function repairSenderKeys(): void {
  readKept(SenderKeyState.prototype);
  keepNoneOfOwn(SenderKeyState.prototype);
  deriveWhenNeeded(SenderChainKey.prototype);
}

/** The library keeps a seed as JSON and derives from that as it stands, which fails: no late message could be read. */
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
 * The library skips every second key of its own, and keeps it for messages that nobody sends: with each message to a group
 * up to 330 KB were written.
 */
function keepNoneOfOwn(state: SenderKeyState): void {
  const { addSenderMessageKey } = state;
  state.addSenderMessageKey = function (this: SenderKeyState, key) {
    if (this.getSigningKeyPrivate()?.length) this.getStructure().senderMessageKeys.length = 0;
    else addSenderMessageKey.call(this, key);
  };
}

/** Of a key that is only kept its seed is enough, which costs a tenth: one message may skip 2,000. */
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
