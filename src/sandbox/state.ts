/** What the parts of the network share: one instance a network, put together in `network.ts`. */
import type { MediaAccess } from "./device.ts";
import type { Account, Companion, Directory } from "./directory.ts";
import type { Faults } from "./faults.ts";
import type { Groups } from "./groups.ts";
import type { Relay } from "./relay.ts";
import type { WireLog } from "./wire_log.ts";
import type { BinaryNode } from "./stanza.ts";
import type { Runtime } from "../runtime.ts";

export interface NetworkState {
  readonly runtime: Runtime;
  readonly directory: Directory;
  readonly groups: Groups;
  readonly relay: Relay;
  readonly faults: Faults;
  readonly wire: WireLog;
  readonly media: MediaAccess;
  /** By device jid: whether the companion that a phone took in has proved its side. */
  readonly linkings: Map<string, Promise<boolean>>;
  /** A fresh id for a stanza that the network itself sends. */
  stanzaId(): string;
  /** Keeps a new companion of the account and tells who should know. */
  addCompanion(companion: Companion): void;
  /** Unlinks a companion: its session ends, its address is dead. */
  removeCompanion(companion: Companion): void;
  /** Tells every companion of these accounts something that it must acknowledge. */
  notify(accounts: Iterable<Account>, attributes: Record<string, string | undefined>, content: BinaryNode[]): void;
}
