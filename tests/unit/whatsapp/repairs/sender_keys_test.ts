/** Keys of group messages: a sender keeps none that nobody needs, and a receiver those of skipped messages. */
import assert from "node:assert/strict";
import { encodeWAMessage, proto, unpadRandomMax16 } from "@whiskeysockets/baileys";
import { repairDerivation } from "../../../../src/whatsapp/baileys/repairs/libsignal.ts";
import { repairSenderKeys } from "../../../../src/whatsapp/baileys/repairs/sender_keys.ts";
import { type SignalPeer, signalPeer } from "../../../support/signal_peer.ts";

const GROUP = "1-2@g.us";

async function send(from: SignalPeer, text: string) {
  const data = encodeWAMessage({ conversation: text });
  return await from.repository.encryptGroupMessage({ group: GROUP, meId: from.jid, data });
}

/** Sends 41 messages, of which the receiver reads some, in this order; resolves to the size of the sender's row after each. */
async function talk(sender: SignalPeer, receiver: SignalPeer, order: readonly number[]): Promise<number[]> {
  const messages = [await send(sender, "0")];
  const item = {
    groupId: GROUP,
    axolotlSenderKeyDistributionMessage: messages[0]!.senderKeyDistributionMessage,
  };
  await receiver.repository.processSenderKeyDistributionMessage({ authorJid: sender.jid, item });
  const sizes: number[] = [];
  for (let i = 1; i <= 40; i++) {
    messages.push(await send(sender, String(i)));
    const [row] = Object.values(await sender.keys.get("sender-key", [`${GROUP}::111_1::0`]));
    sizes.push(row!.length);
  }
  for (const i of order) {
    const { ciphertext: msg } = messages[i]!;
    const plaintext = await receiver.repository.decryptGroupMessage({ group: GROUP, authorJid: sender.jid, msg });
    assert.equal(proto.Message.decode(unpadRandomMax16(plaintext)).conversation, String(i));
  }
  return sizes;
}

const pair = () => [signalPeer("111@lid"), signalPeer("222@lid")] as const;

Deno.test("a sender's row does not grow, and a late message is read, once", async () => {
  const asIs = await talk(...pair(), [0, 5, 40]);
  assert.ok(asIs[39]! > asIs[9]! + 3_000, "when this fails, the repair has become needless");
  await assert.rejects(talk(...pair(), [0, 5, 4]), TypeError, "when this fails, the repair has become needless");
  repairDerivation();
  repairSenderKeys();
  const sizes = await talk(...pair(), [0, 5, 40, 4, 39]);
  assert.ok(sizes[39]! <= sizes[9]! + 100, `${sizes[9]} bytes have become ${sizes[39]}`);
  await assert.rejects(talk(...pair(), [0, 5, 5]));
  await assert.rejects(talk(...pair(), [5, 4, 4]));
});
