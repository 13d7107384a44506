/**
 * Relays messages from a device to the devices that it encrypted for. Each device gets a message once: if the same
 * sender sends the same id again because its ack was lost, it is only acknowledged again. Exceptions are a device that
 * asked for a retry and one that needs the sender key that comes with the message.
 */
import {
  type Attributes,
  type BinaryNode,
  child,
  childrenOf,
  element,
  elements,
  formOf,
  isGroup,
  isLid,
  makeJid,
  parseJid,
  seconds,
  STATUS_CHAT,
} from "./stanza.ts";
import { deliver, differingHash, type Directory, type Endpoint, endpointsOf, isSame, jidOf } from "./directory.ts";
import { addressIn, type Group, type Groups } from "./groups.ts";
import { refusalOfMessage } from "./refusals.ts";
import type { Trust } from "./trust.ts";
import type { Clock } from "../../runtime.ts";

/** How many messages per sender are remembered; more than any gateway resends. */
const REMEMBERED_PER_SENDER = 20_000;

/** The network's answer to a message: the attributes of its `<ack class="message">`. */
interface Acknowledgement {
  /** Set if the message was refused. */
  error?: string;
  /** The network's hash of the receiving devices, set if the sender's list differs. */
  phash?: string;
  /** "true" if the recipient has another LID by now. */
  refresh_lid?: string;
}

interface Parcel {
  endpoint: Endpoint;
  encs: BinaryNode[];
  /** Whether it holds the sender key for the group, which later messages need, even if the device has this one. */
  carriesKey?: boolean;
}

interface RelayParts {
  directory: Directory;
  groups: Groups;
  trust: Trust;
  clock: Clock;
}

export class Relay {
  #parts: RelayParts;
  /** By sender's device jid, then message id: the jids of the devices that have received the message. */
  #relayed = new Map<string, Map<string, Set<string>>>();

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  /**
   * Relays a `<message>`. If the receiver has blocked the sender, the message is accepted and dropped. With
   * `hideNumber` the receivers see only the sender's LID; with `needsToken` the message must carry a token even if the
   * sender is not restricted.
   */
  submit(
    sender: Endpoint,
    message: BinaryNode,
    options: { hideNumber?: boolean; needsToken?: boolean } = {},
  ): Acknowledgement {
    const { to, id } = message.attrs;
    if (!to || !id) return { error: "400" };
    const group = isGroup(to) ? this.#parts.groups.get(to) : null;
    const peer = isGroup(to) ? null : this.#parts.directory.resolve(to);
    const error = refusalOfMessage(message, { ...options, sender, group, peer, trust: this.#parts.trust });
    if (error) return { error };
    if (to === STATUS_CHAT) return this.#post(sender, id, message);
    // Messages to channels are accepted; the sandbox has no followers.
    if (!group && !peer) return {};

    const receivers = group ? group.participants : [...new Set([peer!.account, sender.account])];
    // In a group all members get the message, whomever they have blocked.
    const parcels = this.#parcels(message, { group, peer }).filter(({ endpoint: { account } }) =>
      receivers.includes(account) && (group || !account.blocked.has(sender.account))
    );
    this.#handOut({ sender, id, parcels }, ({ endpoint, encs }) => {
      const route = { sender, receiver: endpoint, group, hideNumber: options.hideNumber ?? false };
      return element("message", this.#attributes(message, route), [...encs, ...extras(message)]);
    });
    const devices = receivers.flatMap(endpointsOf);
    const form = group?.addressing ?? formOf(to);
    const phash = differingHash(message, { sender, receivers: devices, form, isGroup: group !== null });
    const hasMoved = peer && isLid(to) && jidOf(peer, "lid") !== to;
    return { ...phash === null ? {} : { phash }, ...hasMoved ? { refresh_lid: "true" } : {} };
  }

  /** Allows a resend to a device that could not read the message and asked for it to be encrypted again. */
  allowAgain(sender: Endpoint, id: string, receiver: Endpoint): void {
    this.#relayed.get(jidOf(sender, "pn"))?.get(id)?.delete(jidOf(receiver, "pn"));
  }

  /** Delivers a status post to the devices that it addresses, each with the sender key if that was encrypted for it. */
  #post(sender: Endpoint, id: string, message: BinaryNode): Acknowledgement {
    const common = childrenOf(message, "enc");
    const attributes = {
      id,
      t: seconds(this.#parts.clock.now()),
      type: message.attrs.type,
      notify: sender.account.name,
      from: STATUS_CHAT,
      participant: jidOf(sender, "lid"),
      participant_pn: sender.account.jid,
      edit: message.attrs.edit,
    };
    const parcels = this.#addressed(message)
      .filter(({ endpoint }) => !endpoint.account.blocked.has(sender.account))
      .map((parcel) => ({ ...parcel, carriesKey: parcel.encs.length > 0 }));
    this.#handOut({ sender, id, parcels }, ({ encs }) => element("message", attributes, [...encs, ...common]));
    return {};
  }

  /** Delivers to every device except the sender's own and those that have the message already. */
  #handOut(
    { sender, id, parcels }: { sender: Endpoint; id: string; parcels: readonly Parcel[] },
    stanzaOf: (parcel: Parcel) => BinaryNode,
  ): void {
    const seen = this.#receiversOf(sender, id);
    for (const parcel of parcels) {
      const receiver = jidOf(parcel.endpoint, "pn");
      if (isSame(parcel.endpoint, sender) || seen.has(receiver) && !parcel.carriesKey) continue;
      seen.add(receiver);
      deliver(parcel.endpoint, stanzaOf(parcel));
    }
  }

  #receiversOf(sender: Endpoint, id: string): Set<string> {
    const key = jidOf(sender, "pn");
    const messages = this.#relayed.get(key) ?? new Map<string, Set<string>>();
    this.#relayed.set(key, messages);
    const receivers = messages.get(id) ?? new Set<string>();
    messages.set(id, receivers);
    if (messages.size > REMEMBERED_PER_SENDER) messages.delete(messages.keys().next().value!);
    return receivers;
  }

  /** Returns the `<enc>` nodes for each receiving device. */
  #parcels(message: BinaryNode, { group, peer }: { group: Group | null; peer: Endpoint | null }): Parcel[] {
    const common = childrenOf(message, "enc");
    const addressed = this.#addressed(message);
    if (!group) {
      // A lone <enc> is for the addressed device: a peer message to the own phone, or the answer to a retry receipt.
      return common.length ? [{ endpoint: peer!, encs: common }] : addressed;
    }
    if (message.attrs.participant) {
      const endpoint = this.#parts.directory.resolve(message.attrs.participant);
      return endpoint ? [{ endpoint, encs: common }] : [];
    }
    // Every device of a member gets the group's ciphertext, preceded by the sender key if that was encrypted for it.
    const keys = new Map(addressed.map(({ endpoint, encs }) => [jidOf(endpoint, "pn"), encs]));
    return group.participants.flatMap(endpointsOf).map((endpoint) => {
      const key = keys.get(jidOf(endpoint, "pn")) ?? [];
      return { endpoint, encs: [...key, ...common], carriesKey: key.length > 0 };
    }).filter(({ encs }) => encs.length > 0);
  }

  /** Returns the ciphertexts that are encrypted for single devices. */
  #addressed(message: BinaryNode): Parcel[] {
    return childrenOf(child(message, "participants"), "to").flatMap((to) => {
      const endpoint = this.#parts.directory.resolve(to.attrs.jid);
      return endpoint ? [{ endpoint, encs: childrenOf(to, "enc") }] : [];
    });
  }

  #attributes(
    message: BinaryNode,
    { sender, receiver, group, hideNumber }: {
      sender: Endpoint;
      receiver: Endpoint;
      group: Group | null;
      hideNumber: boolean;
    },
  ): Attributes {
    const { name, number, username } = sender.account;
    const attributes: Attributes = {
      id: message.attrs.id,
      t: seconds(this.#parts.clock.now()),
      type: message.attrs.type,
      // The default name is the number.
      notify: hideNumber && name === number ? undefined : name,
      edit: message.attrs.edit,
      category: message.attrs.category,
    };
    if (group) {
      const byLid = hideNumber || group.addressing === "lid";
      return {
        ...attributes,
        from: group.jid,
        participant: hideNumber ? jidOf(sender, "lid") : addressIn(group, sender),
        participant_pn: byLid && !hideNumber ? sender.account.jid : undefined,
        participant_lid: byLid ? undefined : sender.account.lid,
        participant_username: username?.name,
        addressing_mode: byLid ? "lid" : "pn",
      };
    }
    const chat = message.attrs.recipient ?? message.attrs.to!;
    if (receiver.account === sender.account) return { ...attributes, ...this.#ownCopy(sender, chat, message) };
    const byLid = hideNumber || isLid(message.attrs.to);
    return {
      ...attributes,
      from: jidOf(sender, byLid ? "lid" : "pn"),
      sender_pn: byLid && !hideNumber ? sender.account.jid : undefined,
      sender_lid: byLid ? undefined : sender.account.lid,
      username: username?.name,
      addressing_mode: byLid ? "lid" : "pn",
    };
  }

  /** Returns the addresses of the copy for the sender's other devices: a message from themselves, and its chat. */
  #ownCopy(sender: Endpoint, chat: string, message: BinaryNode): Attributes {
    const form = formOf(chat);
    const from = jidOf(sender, form);
    if (message.attrs.category === "peer") return { from };
    const recipient = this.#parts.directory.resolve(chat);
    const { user, server } = parseJid(chat)!;
    return {
      from,
      recipient: makeJid(user, server),
      peer_recipient_pn: form === "lid" ? recipient?.account.jid : undefined,
      peer_recipient_lid: form === "pn" ? recipient?.account.lid : undefined,
      peer_recipient_username: recipient?.account.username?.name,
      addressing_mode: form,
    };
  }
}

/** Returns the other children, which every receiver gets. Privacy and reporting tokens are for the server only. */
function extras(message: BinaryNode): BinaryNode[] {
  const own = new Set(["enc", "participants", "tctoken", "cstoken", "reporting"]);
  return elements(message).filter(({ tag }) => !own.has(tag));
}
