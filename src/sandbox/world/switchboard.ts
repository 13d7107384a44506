/** The network without its doors: directory, groups, relay, faults, and what it tells companions of its own accord. */
import { Buffer } from "node:buffer";
import type { KeyBundle, MediaAccess } from "./device.ts";
import { type Account, type Companion, Directory, type Endpoint, jidOf, keysOf } from "./directory.ts";
import { Faults, streamError, type StreamFault } from "./faults.ts";
import { type AddressingMode, type Group, groupNode, Groups } from "./groups.ts";
import { Relay } from "./relay.ts";
import { type Attributes, type BinaryNode, element, seconds, SERVER } from "./stanza.ts";
import type { Runtime } from "../../runtime.ts";

/** Below this many one-time keys a companion is asked for more (Baileys uploads below five). */
const LOW_PRE_KEYS = 5;

/** What the parts of the network share: one instance a network. */
export interface Switchboard {
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
  /** Makes a group and tells its members' companions. */
  createGroup(details: { subject: string; participants: Account[]; addressing: AddressingMode }): Group;
  /** Ends the account's open sessions as the fault says; with none open, its next one. */
  breakSessions(account: Account, kind: StreamFault): void;
}

export function createSwitchboard({ runtime, media }: { runtime: Runtime; media: MediaAccess }): Switchboard {
  const directory = new Directory();
  const groups = new Groups();
  const faults = new Faults(runtime.clock);

  const network: Switchboard = {
    runtime,
    media,
    directory,
    groups,
    faults,
    relay: new Relay(directory, groups, runtime.clock),
    wire: new WireLog(),
    linkings: new Map(),

    stanzaId: () => Buffer.from(runtime.random.bytes(8)).toString("hex"),

    addCompanion(companion) {
      tellDevices(companion, "add");
      companion.account.companions.set(companion.id, companion);
    },

    takeKeys(endpoint) {
      const keys = keysOf(endpoint);
      if (!keys) return null;
      const bundle = keys.take();
      const companion = endpoint.account.companions.get(endpoint.device);
      if (companion && keys.preKeyCount < LOW_PRE_KEYS) {
        const attributes = { from: SERVER, id: network.stanzaId(), type: "encrypt", t: seconds(runtime.clock) };
        const low = element("count", { value: String(keys.preKeyCount) });
        companion.mailbox.put(element("notification", attributes, [low]));
      }
      return bundle;
    },

    removeCompanion(companion) {
      companion.account.companions.delete(companion.id);
      companion.session?.end(streamError("logout")!);
      tellDevices(companion, "remove");
    },

    createGroup(details) {
      const group = groups.create(details, runtime);
      const [creator] = group.participants;
      const lidMode = group.addressing === "lid";
      notify(group.participants, {
        from: group.jid,
        type: "w:gp2",
        participant: lidMode ? creator?.lid : creator?.jid,
        participant_pn: lidMode ? creator?.jid : undefined,
        notify: creator?.name,
      }, [element("create", { type: "new" }, [groupNode(group)])]);
      return group;
    },

    breakSessions(account, kind) {
      const open = [...account.companions.values()].filter(({ session }) => session !== null);
      if (open.length === 0) return faults.await(account.number, kind);
      const error = streamError(kind);
      for (const companion of open) {
        if (kind === "logout") network.removeCompanion(companion);
        else if (error) companion.session?.end(error);
        else companion.session?.cut();
      }
    },
  };

  /** Tells every companion of these accounts something that it must acknowledge. */
  const notify = (accounts: Iterable<Account>, attributes: Attributes, content: BinaryNode[]) => {
    const t = seconds(runtime.clock);
    for (const account of new Set(accounts)) {
      for (const { mailbox } of account.companions.values()) {
        mailbox.put(element("notification", { id: network.stanzaId(), t, ...attributes }, content));
      }
    }
  };

  /** The account's other companions, and everybody who asked for its devices, hear of a change, so that none is left out. */
  const tellDevices = (companion: Companion, change: "add" | "remove") => {
    const { account, id } = companion;
    const watchers = [...account.watchers].flatMap((number) => directory.account(number) ?? []);
    const devices = (["pn", "lid"] as const).map((form) =>
      element("device", { jid: jidOf({ account, device: id }, form), "key-index": String(companion.keyIndex) })
    );
    notify([account, ...watchers], { from: account.jid, lid: account.lid, type: "devices" }, [
      element(change, { device_hash: "2:sandbox" }, devices),
    ]);
  };

  return network;
}

/** A message stanza of a line as the server saw it: the witness of order, pauses and ids. */
export interface WireEntry {
  /** Number of the line that sent it. */
  line: string;
  id: string;
  to: string;
  /** Unix ms at which the stanza arrived, refused and repeated ones included. */
  time: number;
  /** Present on what answers a retry receipt: the same message, encrypted again for one device. */
  retry?: true;
}

export class WireLog {
  #entries: WireEntry[] = [];

  add(entry: WireEntry): void {
    this.#entries.push(entry);
  }

  /** Oldest first; of one line where it is named. */
  entries(line?: string): WireEntry[] {
    return line === undefined ? [...this.#entries] : this.#entries.filter((entry) => entry.line === line);
  }
}
