/**
 * A phone's group sender keys, with the group ciphers of the Baileys library: one key per group and sender, sent to each
 * device in a pairwise message (the distribution), then one ciphertext for all.
 */
import {
  GroupCipher,
  GroupSessionBuilder,
  SenderKeyDistributionMessage,
  SenderKeyName,
  SenderKeyRecord,
} from "@whiskeysockets/baileys/lib/Signal/Group/index.js";
import { Buffer } from "node:buffer";
import { signalAddress } from "./signal.ts";

/** A sender inside a group: to a receiver, messages from a number and from its LID have two senders. */
interface GroupSender {
  group: string;
  /** Jid of the sending device, in the form in which the network names it. */
  device: string;
}

export class SenderKeys {
  #records = new Map<string, Uint8Array>();

  /** Encrypts for the whole group; `distribution` is what a device needs to read this message and later ones. */
  async encrypt(sender: GroupSender, plaintext: Uint8Array): Promise<{ body: Uint8Array; distribution: Uint8Array }> {
    const name = nameOf(sender);
    const distribution = await new GroupSessionBuilder(this.#store).create(name);
    const body = await new GroupCipher(this.#store, name).encrypt(Buffer.from(plaintext));
    return { body, distribution: distribution.serialize() };
  }

  /** What a device needs to read messages from now on; makes a key if there is none. */
  async distribution(sender: GroupSender): Promise<Uint8Array> {
    return (await new GroupSessionBuilder(this.#store).create(nameOf(sender))).serialize();
  }

  /** Processes a sender's distribution. Throws on a malformed one. */
  async learn(sender: GroupSender, distribution: Uint8Array): Promise<void> {
    const message = new SenderKeyDistributionMessage(null, null, null, null, Buffer.from(distribution));
    await new GroupSessionBuilder(this.#store).process(nameOf(sender), message);
  }

  /** Throws when the sender's key is unknown, or the message is damaged or was read before. */
  async decrypt(sender: GroupSender, body: Uint8Array): Promise<Uint8Array> {
    return await new GroupCipher(this.#store, nameOf(sender)).decrypt(Buffer.from(body));
  }

  /** Drops a key, so that the next message starts a new one. */
  forget(sender: GroupSender): void {
    this.#records.delete(nameOf(sender).toString());
  }

  #store = {
    loadSenderKey: (name: SenderKeyName): Promise<SenderKeyRecord> => {
      const record = this.#records.get(name.toString());
      return Promise.resolve(record ? SenderKeyRecord.deserialize(record) : new SenderKeyRecord());
    },
    storeSenderKey: (name: SenderKeyName, record: SenderKeyRecord): Promise<void> => {
      this.#records.set(name.toString(), Buffer.from(JSON.stringify(record.serialize())));
      return Promise.resolve();
    },
  };
}

function nameOf({ group, device }: GroupSender): SenderKeyName {
  const { id, deviceId } = signalAddress(device);
  return new SenderKeyName(group, { id, deviceId, toString: () => `${id}.${deviceId}` });
}
