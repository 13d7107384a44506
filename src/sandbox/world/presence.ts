/**
 * Signals between accounts other than messages: presence, typing and calls. Presence and typing reach only companions
 * that show themselves available, presence only if they have subscribed to it; they are not stored. A call waits until
 * it is acknowledged.
 */
import { type BinaryNode, element, formOf, isGroup, isLid } from "./stanza.ts";
import {
  type Account,
  type Companion,
  deliver,
  type Directory,
  type Endpoint,
  endpointsOf,
  FIRST_DEVICE_ID,
  jidOf,
} from "./directory.ts";
import type { Groups } from "./groups.ts";

export class Presence {
  #parts: { directory: Directory; groups: Groups };
  /** Subscribed companions, each with the address that it subscribed by, by the account that they watch. */
  #watchers = new Map<Account, Map<Companion, string>>();

  constructor(parts: { directory: Directory; groups: Groups }) {
    this.#parts = parts;
  }

  /** Takes a `<presence>` of a companion: its own, or a subscription to somebody else's. */
  take(companion: Companion, { attrs }: BinaryNode): void {
    if (attrs.type === "subscribe") return this.#subscribe(companion, attrs.to);
    if (attrs.name) companion.account.name = attrs.name;
    companion.available = attrs.type !== "unavailable";
    this.#announce(companion.account);
  }

  /** Relays a `<chatstate>`. With `hideNumber` the receivers see only the sender's LID. */
  relayState(sender: Endpoint, { attrs, content }: BinaryNode, { hideNumber = false } = {}): void {
    const group = isGroup(attrs.to) ? this.#parts.groups.get(attrs.to!) : null;
    const peer = this.#parts.directory.resolve(attrs.to)?.account;
    const { jid, lid } = sender.account;
    const byLid = hideNumber || (group ? group.addressing === "lid" : isLid(attrs.to));
    const own = byLid ? lid : jid;
    const number = byLid && !hideNumber ? jid : undefined;
    const from = group
      ? { from: group.jid, participant: own, participant_pn: number }
      : { from: own, sender_pn: number };
    const state = element("chatstate", from, content);
    const receivers = group
      ? group.participants.includes(sender.account) ? group.participants : []
      : peer && !peer.blocked.has(sender.account)
      ? [peer]
      : [];
    for (const account of receivers) {
      if (account === sender.account) continue;
      account.phone?.deliver(state);
      for (const companion of account.companions.values()) show(companion, state);
    }
  }

  /**
   * Relays a `<call>`: an offer, its rejection or its end. With `hideNumber` the receiver sees only the sender's LID.
   */
  relayCall(sender: Endpoint, call: BinaryNode, { hideNumber = false } = {}): void {
    const peer = this.#parts.directory.resolve(call.attrs.to)?.account;
    if (!peer || peer === sender.account || peer.blocked.has(sender.account)) return;
    const { to, ...attributes } = call.attrs;
    const from = jidOf(sender, hideNumber ? "lid" : formOf(to));
    for (const endpoint of endpointsOf(peer)) deliver(endpoint, element("call", { ...attributes, from }, call.content));
  }

  /**
   * Called when the companion goes offline: it no longer makes its account appear online, and its subscriptions end.
   */
  leave(companion: Companion): void {
    const wasAvailable = companion.available;
    companion.available = false;
    for (const watchers of this.#watchers.values()) watchers.delete(companion);
    if (wasAvailable) this.#announce(companion.account);
  }

  #subscribe(companion: Companion, to: string | undefined): void {
    const watched = this.#parts.directory.resolve(to)?.account;
    if (!to || !watched) return;
    const watchers = this.#watchers.get(watched) ?? new Map();
    this.#watchers.set(watched, watchers.set(companion, to));
    show(companion, presenceOf(watched, isLid(to)));
  }

  #announce(account: Account): void {
    for (const [watcher, to] of this.#watchers.get(account) ?? []) show(watcher, presenceOf(account, isLid(to)));
  }
}

function show({ available, session }: Companion, stanza: BinaryNode): void {
  if (available) session?.send(stanza);
}

/** Returns an account's presence. It is online if one of its companions says so, or if it never had a companion. */
function presenceOf(account: Account, byLid: boolean): BinaryNode {
  const neverLinked = account.nextDeviceId === FIRST_DEVICE_ID;
  const online = neverLinked || [...account.companions.values()].some(({ available }) => available);
  const from = byLid ? account.lid : account.jid;
  return element("presence", { from, type: online ? undefined : "unavailable", last: online ? undefined : "deny" });
}
