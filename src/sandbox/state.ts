/** What the parts of the network share: one instance a network, put together in `network.ts`. */
import type { KeyBundle, MediaAccess } from "./device.ts";
import type { Companion, Directory, Endpoint } from "./directory.ts";
import type { Faults } from "./faults.ts";
import type { Groups } from "./groups.ts";
import type { Relay } from "./relay.ts";
import type { WireLog } from "./wire_log.ts";
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
  /** Keys for one new session with a device, and a word to a companion that runs low; null for an unknown device. */
  takeKeys(endpoint: Endpoint): KeyBundle | null;
  /** Unlinks a companion: its session ends, its address is dead. */
  removeCompanion(companion: Companion): void;
}
