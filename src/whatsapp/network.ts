/**
 * The port to the messaging network. Nothing above `whatsapp/` knows which library is below (promise 8). Each topic has
 * its own file: a line's connection, outgoing messages, what arrives, people and groups.
 */
import { onDemand } from "../base/single_flight.ts";
import type { WhatsAppConfig } from "../config.ts";
import type { Proxy } from "../egress/proxy.ts";
import { Change, type Key, key, type Kv } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import type { AnnouncedVersion, Connection, ConnectionEvents, Restriction } from "./connection.ts";
import type { Recalled } from "./incoming.ts";
import type { Traces } from "./person.ts";
import type { Runtime } from "../runtime.ts";

/** Opens connections, and stores the credentials and Signal keys that link a line. */
export interface Network {
  /** Resolves to a connection that has begun to connect. A line may have only one open connection. */
  open(options: OpenOptions, events: ConnectionEvents): Promise<Connection>;
  /** Whether the line has the credentials of a completed link. */
  isLinked(lineId: string): Promise<boolean>;
  /**
   * Deletes the line's credentials and all its keys. Only after a real log-out (promise 5). Messages that were received
   * but not yet handed over go to `receive` first.
   */
  forget(lineId: string, receive: ConnectionEvents["message"]): Promise<void>;
  /**
   * Resolves to what is stored about a message that the line received or that its owner sent from the phone, for 30
   * days (a poll for 90); null if nothing is. Throws StoreError.
   */
  recall(lineId: string, networkId: string): Promise<Recalled | null>;
  /**
   * Resolves to the digits behind a `@lid`, if the line knows them. Works while the line is offline. Throws StoreError.
   */
  numberOf(lineId: string, lid: string): Promise<string | null>;
  /** The inverse of `numberOf`: resolves to the `@lid` of a number. */
  lidOf(lineId: string, number: string): Promise<string | null>;
  /**
   * Removes what the line stores about a person, except copies of sent messages, one batch per call. Starts at `at`
   * (null: the first row); resolves to the key where the next call continues, or null at the end. Throws StoreError,
   * SealError.
   */
  erase(lineId: string, traces: Traces, at: Key | null): Promise<Key | null>;
  /**
   * Removes the keys that concern only this person; the next message recreates them. The mapping from `@lid` to
   * number stays. Resolves to how many were removed. Throws StoreError.
   */
  eraseKeys(lineId: string, traces: Traces): Promise<number>;
  /** Removes the stored copies of sent messages. Throws StoreError. */
  eraseSent(lineId: string, networkIds: readonly string[]): Promise<void>;
  /** Removes the stored copies of received messages. Throws StoreError, SealError. */
  eraseReceived(lineId: string, messages: readonly { chat: string; networkId: string }[]): Promise<void>;
  /** The version of WhatsApp Web announced last, and its source; null before the first. */
  webVersion(): AnnouncedVersion | null;
  /** Deletes the engine's own expired rows. Returns how many. */
  sweep(): Promise<number>;
}

/** Copies the link of a line so that it can move to another gateway. The line must not be connected during a call. */
export interface LinkCopy {
  /** Returns the line's credentials and keys in the clear: the caller must seal them. */
  read(lineId: string): Promise<Uint8Array>;
  /**
   * Returns a function that writes the copy as this gateway's link for the line; it counts as linked once the whole copy
   * is there. Does nothing if the line is linked: it may have used its link since, and recipients silently drop what is
   * encrypted with a used key. Throws OperatorError, before anything is written, if the copy is none.
   */
  opened(copy: Uint8Array): (lineId: string) => Promise<void>;
  /** Deletes the link from this gateway. */
  drop(lineId: string): Promise<void>;
}

/** What an engine behind the port is made of. */
export interface NetworkOptions {
  runtime: Runtime;
  kv: Kv;
  /** Returns the store through which the line's owner writes. */
  storeOf(lineId: string): Kv;
  seal: Seal;
  whatsapp: WhatsAppConfig;
  /** Opens a line's own proxy. Throws EgressError. */
  openProxy(proxy: string): Promise<Proxy>;
  /** Counts a stanza that has no handler, by tag and type. */
  countUnknown(stanza: { tag: string; type: string }): void;
  /** Counts a message during which the process ended twice. */
  countSetAside(): void;
}

export interface OpenOptions {
  lineId: string;
  /** Whose lines share their turns where what came from outside is read. */
  accountId: string;
  /** The restriction that an earlier connection found on the account; null for none. */
  restriction: Restriction | null;
  /** The line's own proxy URL, with its login; null for none. When set, all traffic of the line goes through it. */
  proxy: string | null;
  /** Digits of the number to link by code, if the line is not linked yet; null links by QR. */
  pairingPhone: string | null;
}

/**
 * Wraps `load` so that the engine is loaded once, on first use; a failed load is retried on the next use. The engine is
 * most of what a process loads: some 60 MB and half of its start-up time. A gateway without lines never loads it.
 */
export function networkOnDemand(load: () => Promise<Network>): Network {
  const engine = onDemand(load);

  return {
    open: async (options, events) => await (await engine.need()).open(options, events),
    isLinked: async (lineId) => await (await engine.need()).isLinked(lineId),
    forget: async (lineId, receive) => await (await engine.need()).forget(lineId, receive),
    recall: async (lineId, networkId) => await (await engine.need()).recall(lineId, networkId),
    numberOf: async (lineId, lid) => await (await engine.need()).numberOf(lineId, lid),
    lidOf: async (lineId, number) => await (await engine.need()).lidOf(lineId, number),
    erase: async (lineId, traces, at) => await (await engine.need()).erase(lineId, traces, at),
    eraseKeys: async (lineId, traces) => await (await engine.need()).eraseKeys(lineId, traces),
    eraseSent: async (lineId, networkIds) => await (await engine.need()).eraseSent(lineId, networkIds),
    eraseReceived: async (lineId, messages) => await (await engine.need()).eraseReceived(lineId, messages),
    webVersion: () => engine.made()?.webVersion() ?? null,
    // Expired rows can wait until the first line loads the engine.
    sweep: async () => await engine.made()?.sweep() ?? 0,
  };
}

/** A random name for the last setback of the store. */
const setbackKey = () => key<string>("setback");

/**
 * Records that the store was set back: a backup was restored, or a database lost its last commits. From now on, no line
 * sends with keys that were in the store before: they may be older than messages already sent, and recipients silently
 * drop a message encrypted with a key that they have seen. Throws StoreError.
 */
export async function noteSetback(kv: Kv, { ids }: Pick<Runtime, "ids">): Promise<void> {
  await kv.commit(new Change().set(setbackKey(), ids.network()));
}

/** Returns the name of the last setback; null if the store was never set back. Throws StoreError. */
export async function lastSetback(kv: Kv): Promise<string | null> {
  return (await kv.get(setbackKey())).value;
}
