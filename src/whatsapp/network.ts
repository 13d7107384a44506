/**
 * The port to the messaging network. Nothing above `whatsapp/` knows which library is below (promise 8). What it speaks of
 * has a file each: the connection of a line, outgoing and incoming messages, groups, contacts, notices, passkeys, errors.
 */
import { onDemand } from "../base/single_flight.ts";
import type { Key } from "../store/kv.ts";
import type { AnnouncedVersion, Connection, ConnectionEvents, Restriction } from "./connection.ts";
import type { Recalled } from "./incoming.ts";
import type { Traces } from "./person.ts";

/** Opens connections and keeps what links a line (credentials, signal keys) between them. */
export interface Network {
  /** Resolves to a connection that has begun to connect. One open connection a line at most. */
  open(options: OpenOptions, events: ConnectionEvents): Promise<Connection>;
  /** Whether the line holds credentials of a completed link. */
  isLinked(lineId: string): Promise<boolean>;
  /**
   * Drops credentials and every key of the line. Only after a real log-out (promise 5). What was received and not
   * handed over yet goes to `receive` before.
   */
  forget(lineId: string, receive: ConnectionEvents["message"]): Promise<void>;
  /**
   * What is kept, for 30 days, of a message that the line received or that its owner sent from the phone; null when
   * nothing is. Throws StoreError.
   */
  recall(lineId: string, networkId: string): Promise<Recalled | null>;
  /** The digits behind a `@lid`, as far as the line knows them; also while it is away. Throws StoreError. */
  numberOf(lineId: string, lid: string): Promise<string | null>;
  /** As `numberOf`, the other way round. */
  lidOf(lineId: string, number: string): Promise<string | null>;
  /**
   * Removes what the line keeps of a person, its copies of sent messages aside, a piece at a time: begins at `at` (null: at
   * the first row) and resolves to where to go on, null at the end. Throws StoreError, SealError.
   */
  erase(lineId: string, traces: Traces, at: Key | null): Promise<Key | null>;
  /**
   * Removes the keys that the line has for a person alone, which the next message makes anew, but not which number a `@lid`
   * is; resolves to how many. Throws StoreError.
   */
  eraseKeys(lineId: string, traces: Traces): Promise<number>;
  /** Removes the copies of messages that the line sent. Throws StoreError. */
  eraseSent(lineId: string, networkIds: readonly string[]): Promise<void>;
  /** The version of the network's web client that was announced last, and where it is from; null before the first. */
  webVersion(): AnnouncedVersion | null;
  /** Drops rows of the engine's own whose time is over. Returns how many. */
  sweep(): Promise<number>;
}

/** What links lines, for taking it to another gateway. While it is read or written, the line must not be connected. */
export interface LinkCopy {
  /** Credentials and keys of the line in the clear: seal them. */
  read(lineId: string): Promise<Uint8Array>;
  /** Makes them the line's here. */
  write(lineId: string, copy: Uint8Array): Promise<void>;
  /** The line is linked no more. */
  drop(lineId: string): Promise<void>;
}

export interface OpenOptions {
  lineId: string;
  /** What the account is known to be under since an earlier connection. */
  restriction: Restriction | null;
  /** The line's own way out, with its login; null for none. There is no other while it is set. */
  proxy: string | null;
  /** Link by code for this number (digits) when the line is not linked yet; null links by QR. */
  pairingPhone: string | null;
}

/**
 * The network that `load` gives, once, when something first needs it; a load that fails is tried again at the next need.
 * Its engine is most of what a process loads, some 60 MB and half of its start: a gateway without lines does without.
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
    webVersion: () => engine.made()?.webVersion() ?? null,
    // What it would drop waits for the first line.
    sweep: async () => await engine.made()?.sweep() ?? 0,
  };
}
