/**
 * The stanzas waiting for one companion. Each is kept, in order, until the companion acknowledges it, and is delivered
 * again after a reconnect. So nothing is lost if a gateway is killed between receiving and acknowledging.
 */
import { type BinaryNode, childrenOf, element, elements, parseJid, SERVER, STATUS_CHAT } from "./stanza.ts";

/** Stanzas of a backlog that the network delivers unrequested. */
const UNREQUESTED = 5;

export class Mailbox {
  /** Unacknowledged stanzas in order of arrival; a Set keeps the order and deletes in O(1). */
  #waiting = new Set<BinaryNode>();
  #byKey = new Map<string, BinaryNode[]>();
  #send: ((stanza: BinaryNode) => void) | null = null;
  /** What the companion has yet to request before it gets new stanzas; null once it has got everything. */
  #backlog: BinaryNode[] | null = null;
  /** Stanzas of the backlog that this connection has got. */
  #handedOver = 0;
  /** A status post that the companion could not decrypt and refused with an error. It blocks everything behind it. */
  #blockedBy: BinaryNode | null = null;

  get size(): number {
    return this.#waiting.size;
  }

  /** Whether a status post blocks the mailbox. */
  get blocked(): boolean {
    return this.#blockedBy !== null;
  }

  /** Stores a stanza, and delivers it immediately if the companion is online and has got everything before it. */
  put(stanza: BinaryNode): void {
    this.#waiting.add(stanza);
    const key = keyOf(stanza.tag, stanza.attrs.id);
    this.#byKey.set(key, [...this.#byKey.get(key) ?? [], stanza]);
    if (this.#backlog) this.#backlog.push(stanza);
    else this.#send?.(stanza);
  }

  /** Whether a stanza with this tag and id is still unacknowledged. */
  holds({ tag, attrs }: BinaryNode): boolean {
    return this.#byKey.has(keyOf(tag, attrs.id));
  }

  /** Called when the companion comes online. Announces the backlog; the companion has to request all but its beginning. */
  attach(send: (stanza: BinaryNode) => void): void {
    this.#send = send;
    this.#handedOver = 0;
    this.#backlog = [...this.#waiting];
    if (this.#waiting.size > 0) this.preview(send);
    if (this.#blockedBy) send({ ...this.#blockedBy, attrs: { ...this.#blockedBy.attrs, offline: "0" } });
    else this.request(UNREQUESTED);
  }

  /** Delivers the next stanzas of the backlog, marked `offline`; after the last one a count, then every new stanza. */
  request(count: number): void {
    const send = this.#send;
    if (!send || !this.#backlog || this.#blockedBy) return;
    for (const stanza of this.#backlog.splice(0, count)) {
      send({ ...stanza, attrs: { ...stanza.attrs, offline: String(this.#handedOver++) } });
    }
    if (this.#backlog.length > 0) return;
    this.#backlog = null;
    send(element("ib", { from: SERVER }, [element("offline", { count: String(this.#handedOver) })]));
  }

  /** Announces the size of the backlog without delivering it. */
  preview(send: (stanza: BinaryNode) => void): void {
    const waiting = [...this.#waiting];
    const count = (tag: string) => String(waiting.filter((stanza) => stanza.tag === tag).length);
    const preview = {
      count: String(waiting.length),
      message: count("message"),
      receipt: count("receipt"),
      notification: count("notification"),
      appdata: "0",
    };
    send(element("ib", { from: SERVER }, [element("offline_preview", preview)]));
  }

  /** Called when the companion goes offline. */
  detach(): void {
    this.#send = null;
    this.#backlog = null;
  }

  /** Takes an `<ack>` or a receipt of the companion, and removes what it acknowledges. */
  acknowledge(stanza: BinaryNode): void {
    if (stanza.tag === "ack") return this.#forget(stanza.attrs.class ?? "", stanza.attrs.id, stanza);
    // A retry receipt only says that the message was unreadable; the ack with an error after it removes the stanza.
    if (stanza.attrs.type === "retry" || stanza.attrs.type === "server-error") return;
    const items = elements(stanza).flatMap((list) => childrenOf(list, "item")).map((item) => item.attrs.id);
    for (const id of [stanza.attrs.id, ...items]) this.#forget("message", id, stanza);
  }

  #forget(tag: string, id: string | undefined, by: BinaryNode): void {
    const key = keyOf(tag, id);
    const candidates = this.#byKey.get(key);
    if (!candidates) return;
    // Two peers may choose the same id; prefer the peer to whom the acknowledgement is addressed.
    const peer = parseJid(by.attrs.to)?.user;
    const found = candidates.find((stanza) => parseJid(stanza.attrs.from)?.user === peer) ?? candidates[0]!;
    if (by.tag === "ack" && by.attrs.error && found.attrs.from === STATUS_CHAT) {
      this.#blockedBy = found;
      this.#backlog ??= [];
      return;
    }
    const left = candidates.filter((stanza) => stanza !== found);
    if (left.length) this.#byKey.set(key, left);
    else this.#byKey.delete(key);
    this.#waiting.delete(found);
    if (found !== this.#blockedBy) return;
    this.#blockedBy = null;
    this.#backlog = [...this.#waiting];
    this.request(Infinity);
  }
}

function keyOf(tag: string, id: string | undefined): string {
  return `${tag} ${id}`;
}
