/** The open session of a linked companion: processes and answers its stanzas, and delivers those waiting for it. */
import { answerQuery } from "../queries/table.ts";
import type { Companion, CompanionSession, Endpoint } from "../world/directory.ts";
import { streamError } from "../world/faults.ts";
import { relayReceipt } from "../world/receipts.ts";
import {
  type BinaryNode,
  bytesOf,
  child,
  childrenOf,
  element,
  elements,
  isGroup,
  seconds,
  SERVER,
  STATUS_CHAT,
} from "../world/stanza.ts";
import type { Shape, Switchboard } from "../world/switchboard.ts";
import type { CompanionSocket, SocketOwner } from "./companion_socket.ts";

/** The real network waits up to 50 minutes; in a sandbox that is too long. */
const STATUS_ACK_MS = 3_000;
/** What a companion begins its next connection with, so that the real network finds a server near it. */
const ROUTING_INFO = Uint8Array.of(0x08, 0x02, 0x08, 0x05);

/**
 * Opens the session of a companion that has logged in, and ends its earlier one; returns the receiver of its stanzas.
 */
export function openSession(companion: Companion, socket: CompanionSocket, network: Switchboard): SocketOwner {
  const session = new Session(companion, socket, network);
  companion.session?.end(streamError("replace"));
  companion.session = session;
  session.welcome();
  return session;
}

class Session implements CompanionSession, SocketOwner {
  #companion: Companion;
  #socket: CompanionSocket;
  #network: Switchboard;
  #self: Endpoint;
  /**
   * Stanzas in both directions while the line is silent; null otherwise. A stalled network delays stanzas but does not
   * lose them.
   */
  #stalled: (() => void)[] | null = null;
  #active = false;
  #closed = false;

  constructor(companion: Companion, socket: CompanionSocket, network: Switchboard) {
    this.#companion = companion;
    this.#socket = socket;
    this.#network = network;
    this.#self = { account: companion.account, device: companion.id };
  }

  get #line(): string {
    return this.#companion.account.number;
  }

  /** Sends `<success>`: the login is accepted; and the routing information of the next one. */
  welcome(): void {
    this.send(element("success", {
      t: seconds(this.#network.runtime.clock.now()),
      lid: this.#companion.lid,
      display_name: this.#companion.account.name,
      creation: seconds(this.#companion.linkedAt),
      location: "sbx",
    }));
    this.send(element("ib", { from: SERVER }, [
      element("edge_routing", {}, [element("routing_info", {}, ROUTING_INFO)]),
    ]));
    this.tellExpiration();
  }

  tellExpiration(): void {
    const { clientExpiration } = this.#companion.account;
    if (clientExpiration === null) return;
    this.send(element("ib", { from: SERVER }, [element("client_expiration", { t: seconds(clientExpiration) })]));
  }

  send(stanza: BinaryNode): void {
    this.#inOrder(() => this.#socket.send(stanza));
  }

  end(reason: BinaryNode): void {
    this.onClose();
    this.#socket.end(reason);
  }

  cut(): void {
    this.onClose();
    this.#socket.cut();
  }

  onStanza(stanza: BinaryNode): void {
    this.#inOrder(() => this.#take(stanza));
  }

  onClose(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#companion.session !== this) return;
    this.#companion.session = null;
    this.#companion.mailbox.detach();
    this.#network.presence.leave(this.#companion);
  }

  /** Runs now, or if the line is silent, when the silence ends. */
  #inOrder(run: () => void): void {
    if (this.#stalled) {
      this.#stalled.push(run);
      return;
    }
    const { faults } = this.#network;
    if (!faults.holds(this.#line, "silence")) return run();
    this.#stalled = [run];
    faults.after(this.#line, "silence", () => {
      if (this.#closed) return;
      const stalled = this.#stalled ?? [];
      this.#stalled = null;
      try {
        for (const run of stalled) run();
      } catch (error) {
        // Not thrown: the caller is a timer, or a request about another matter of the line.
        this.#socket.fail(error);
      }
    });
  }

  #take(stanza: BinaryNode): void {
    if (this.#closed) return;
    switch (stanza.tag) {
      case "iq":
        return this.#takeQuery(stanza);
      case "message":
        return this.#takeMessage(stanza);
      case "receipt":
        this.#companion.mailbox.acknowledge(stanza);
        relayReceipt(this.#self, stanza, this.#network);
        return this.#acknowledge(stanza);
      case "ack":
        return this.#companion.mailbox.acknowledge(stanza);
      case "presence":
        return this.#network.presence.take(this.#companion, stanza);
      case "chatstate":
        return this.#network.presence.relayState(this.#self, stanza);
      case "call":
        this.#network.presence.relayCall(this.#self, stanza);
        return this.#acknowledge(stanza);
      case "ib": {
        const count = child(stanza, "offline_batch")?.attrs.count;
        if (count !== undefined) this.#companion.mailbox.request(Number(count));
        return;
      }
      default:
        return;
    }
  }

  #takeQuery(query: BinaryNode): void {
    // Answers to the network's own queries need no answer.
    if (query.attrs.type === "result" || query.attrs.type === "error") return;
    const answer = answerQuery(query, { companion: this.#companion, network: this.#network });
    this.send(answer);
    if (query.attrs.xmlns === "passive" && child(query, "active") && !this.#active) this.#activate();
    if (answer.attrs.type === "result" && child(query, "remove-companion-device")) {
      this.#network.removeCompanion(this.#companion);
    }
  }

  /** From now on delivers the companion's stanzas: first the backlog, then new ones. */
  #activate(): void {
    this.#active = true;
    if (this.#network.faults.take(this.#line, "deaf")) {
      return this.#companion.mailbox.preview((stanza) => this.send(stanza));
    }
    const hasNoEnd = this.#network.faults.take(this.#line, "no_offline_end");
    this.#companion.mailbox.attach((kept) => {
      if (hasNoEnd && child(kept, "offline")) return;
      // What the owner's phone tells its companions is no message that comes in.
      const isIncoming = kept.tag === "message" && kept.attrs.category !== "peer";
      const garbled = isIncoming && this.#network.faults.take(this.#line, "garble");
      const stanza = garbled ? unreadable(kept) : kept;
      this.send(stanza);
      if (stanza.tag === "status") this.#expectAck(stanza);
      if (isIncoming && this.#network.faults.take(this.#line, "duplicate")) this.send(stanza);
    });
    if (this.#companion.welcomed) return;
    this.#companion.welcomed = true;
    this.#companion.account.phone?.welcome(this.#companion.jid);
  }

  /**
   * If the companion does not acknowledge a status post, ends the session with a stream error that asks for the ack.
   * The post is delivered again after the next login.
   */
  #expectAck(stanza: BinaryNode): void {
    this.#network.runtime.clock.after(STATUS_ACK_MS, () => {
      if (this.#closed || !this.#companion.mailbox.holds(stanza)) return;
      const { id, from } = stanza.attrs;
      this.end(element("stream:error", {}, [element("ack", { class: "status", id, to: from })]));
    });
  }

  #takeMessage(message: BinaryNode): void {
    const { faults, relay, runtime, wire } = this.#network;
    const { id, to } = message.attrs;
    const peer = message.attrs.category === "peer";
    if (id && to && !peer) {
      const shape = shapeOf(message);
      const retry = shape.encs.some(({ count }) => count !== undefined);
      wire.add({ line: this.#line, id, to, time: runtime.clock.now(), ...(retry ? { retry: true } : {}), shape });
    }
    const nack = peer ? null : faults.take(this.#line, "nack");
    const needsToken = !peer && !isGroup(to) && to !== STATUS_CHAT && faults.take(this.#line, "demand_token") !== null;
    const outcome = nack === null ? relay.submit(this.#self, message, { needsToken }) : { error: nack };
    faults.after(this.#line, "hold_acks", () => this.#closed || this.#acknowledge(message, outcome));
  }

  #acknowledge(stanza: BinaryNode, outcome: { error?: string; phash?: string } = {}): void {
    this.send(element("ack", {
      id: stanza.attrs.id,
      class: stanza.tag,
      from: stanza.attrs.to ?? SERVER,
      participant: stanza.attrs.participant,
      type: stanza.tag === "receipt" ? stanza.attrs.type : undefined,
      t: seconds(this.#network.runtime.clock.now()),
      ...outcome,
    }));
  }
}

/** What the server can read of a message: its attributes, those of its ciphertexts, and its other children. */
function shapeOf(message: BinaryNode): Shape {
  const addressed = childrenOf(child(message, "participants"), "to").flatMap((to) => childrenOf(to, "enc"));
  const others = elements(message).filter(({ tag }) => tag !== "enc" && tag !== "participants");
  return {
    attrs: message.attrs,
    encs: [...childrenOf(message, "enc"), ...addressed].map(({ attrs }) => attrs),
    children: others.map(({ tag, attrs }) => ({ tag, ...attrs })),
    reportingToken: bytesOf(child(child(message, "reporting"), "reporting_token")).toHex() || null,
  };
}

/** Corrupts the message's ciphertext; an empty one is unreadable already. */
function unreadable(message: BinaryNode): BinaryNode {
  const spoilt = elements(message).map((part) => {
    const bytes = bytesOf(part);
    const last = bytes.at(-1);
    return part.tag === "enc" && last !== undefined ? { ...part, content: bytes.with(-1, last ^ 0xff) } : part;
  });
  return { ...message, content: spoilt };
}
