/**
 * A phone's sender keys for groups, with the group ciphers of the Baileys library. Each sender has one key per group.
 * The sender sends it to each device in a pairwise message (the distribution), then encrypts once for all.
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

/** A sender in a group. For a receiver, messages from a number and from its LID have different senders. */
interface GroupSender {
  group: string;
  /** Jid of the sending device, in the form that the network uses. */
  device: string;
}

export class SenderKeys {
  #records = new Map<string, Uint8Array>();

  /** Encrypts for the whole group; with `distribution` a device can read this message and later ones. */
  async encrypt(sender: GroupSender, plaintext: Uint8Array): Promise<{ body: Uint8Array; distribution: Uint8Array }> {
    const name = nameOf(sender);
    const distribution = await new GroupSessionBuilder(this.#store).create(name);
    const body = await new GroupCipher(this.#store, name).encrypt(Buffer.from(plaintext));
    return { body, distribution: distribution.serialize() };
  }

  /** Returns what a device needs to read messages from now on; creates a key if there is none. */
  async distribution(sender: GroupSender): Promise<Uint8Array> {
    return (await new GroupSessionBuilder(this.#store).create(nameOf(sender))).serialize();
  }

  /** Processes a sender's distribution. Throws if it is malformed. */
  async learn(sender: GroupSender, distribution: Uint8Array): Promise<void> {
    const message = new SenderKeyDistributionMessage(null, null, null, null, Buffer.from(distribution));
    await new GroupSessionBuilder(this.#store).process(nameOf(sender), message);
  }

  /** Decrypts a message. Throws if the sender's key is unknown, the message is damaged, or it was read before. */
  async decrypt(sender: GroupSender, body: Uint8Array): Promise<Uint8Array> {
    return await new GroupCipher(this.#store, nameOf(sender)).decrypt(Buffer.from(body));
  }

  /** Deletes a key, so that the next message creates a new one. */
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
