/** The network without its sockets: its accounts, its relay, and its injected faults. */
import { proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import type { Runtime } from "../../runtime.ts";
import { type Account, type Companion, Directory, type Endpoint } from "./directory.ts";
import { breakOff, Faults, streamError, type StreamFault } from "./faults.ts";
import { GroupChanges } from "./group_changes.ts";
import { Groups } from "./groups.ts";
import type { KeyBundle } from "./key_store.ts";
import { Notices } from "./notices.ts";
import { Presence } from "./presence.ts";
import { Relay } from "./relay.ts";
import { type BinaryNode, element, messageId, seconds, STATUS_CHAT } from "./stanza.ts";
import { Trust } from "./trust.ts";
import type { MediaAccess } from "./uplink.ts";

/** A companion with fewer one-time keys is asked for more (Baileys uploads when it has fewer than five). */
const LOW_PRE_KEYS = 5;

export type Switchboard = ReturnType<typeof createSwitchboard>;

/** A query's context: the companion that sent it, and the network. */
export interface QueryContext {
  companion: Companion;
  network: Switchboard;
}

export function createSwitchboard({ runtime, media }: { runtime: Runtime; media: MediaAccess }) {
  const directory = new Directory();
  const groups = new Groups();
  const faults = new Faults(runtime.clock);
  const notices = new Notices(runtime);
  const trust = new Trust(runtime, {
    onToken: (issuer, holder, issued) => notices.token(issuer, holder, issued),
    onRestriction: (account) => notices.restrictions(account, trust.restrictions(account)),
  });

  /** Unlinks a companion: ends its session. Its address is not reused. */
  function removeCompanion(companion: Companion): void {
    companion.account.companions.delete(companion.id);
    companion.session?.end(streamError("logout"));
    notices.devices(companion, "remove");
  }

  return {
    runtime,
    media,
    directory,
    groups,
    faults,
    trust,
    notices,
    groupChanges: new GroupChanges({ groups, notices, runtime }),
    presence: new Presence({ directory, groups }),
    relay: new Relay({ directory, groups, trust, clock: runtime.clock }),
    wire: new WireLog(),
    /** Revisions of the web client: the one that its page names (null: there is no page), and the oldest accepted. */
    web: { current: 1_060_000_000 as number | null, oldest: 0 },
    /** By device jid: resolves to whether the companion that a phone accepted has proved its identity. */
    linkings: new Map<string, Promise<boolean>>(),
    removeCompanion,

    /** Adds a companion to the account and notifies those concerned. */
    addCompanion(companion: Companion): void {
      notices.devices(companion, "add");
      companion.account.companions.set(companion.id, companion);
    },

    /** Takes keys for one session with a device, and notifies a companion that runs low. Null for an unknown device. */
    takeKeys({ account, device }: Endpoint): KeyBundle | null {
      const companion = account.companions.get(device);
      const keys = device === 0 ? account.phoneKeys : companion?.keys;
      if (!keys || account.keyless.has(device)) return null;
      const bundle = keys.take();
      if (companion && keys.preKeyCount < LOW_PRE_KEYS) notices.lowKeys(companion);
      return bundle;
    },

    /** Appends patches of a device to a collection of settings, each with the version that it creates. */
    changeSettings(by: Endpoint, name: string, patches: readonly Uint8Array[]): void {
      const changes = by.account.settings.get(name) ?? [];
      by.account.settings.set(name, changes);
      for (const patch of patches) changes.push(withVersion(patch, changes.length + 1));
      notices.settings(by, { name, version: changes.length });
    },

    /** Makes the patch the first of an empty collection, which no companion is told of; otherwise does nothing. */
    beginSettings({ settings }: Account, name: string, patch: Uint8Array): void {
      if (!settings.has(name)) settings.set(name, [withVersion(patch, 1)]);
    },

    /** Ends the account's open sessions with the fault, and later connections too: `count` times in all. */
    breakSessions(account: Account, { kind, count = 1 }: { kind: StreamFault; count?: number }): void {
      const open = [...account.companions.values()].filter(({ session }) => session !== null);
      faults.add(account.number, "stream", kind, open.length === 0 ? count : count - 1);
      for (const companion of open) {
        if (kind === "logout") removeCompanion(companion);
        else breakOff(companion.session!, kind);
      }
    },

    /** Delivers a whole stanza of the sender to the account's companions; `from`, `id` and `t` are added if left out. */
    handOver(sender: Account, account: Account, stanza: BinaryNode): string {
      const id = stanza.attrs.id ?? messageId(runtime.random);
      const usual = { id, from: sender.jid, t: seconds(runtime.clock.now()), notify: sender.name, type: "text" };
      const whole = { ...stanza, attrs: { ...usual, ...stanza.attrs } };
      for (const { mailbox } of account.companions.values()) mailbox.put(whole);
      return id;
    },

    /** Delivers somebody's status post to the account's companions. */
    postStatus(account: Account, form: StatusForm): void {
      const poster = directory.accounts().find((other) => other !== account) ?? account;
      for (const { mailbox } of account.companions.values()) mailbox.put(statusPost(poster, form, runtime));
    },
  };
}

/** A message stanza of a line as the server saw it. Tests check order, pauses and ids by these. */
interface WireEntry {
  /** Number of the line that sent it. */
  line: string;
  id: string;
  to: string;
  /** Unix ms at which the stanza arrived. Refused and repeated stanzas are logged too. */
  time: number;
  /** Present on the answer to a retry receipt: the same message, encrypted again for one device. */
  retry?: true;
  shape: Shape;
}

/** What the server can read of a message. */
export interface Shape {
  attrs: Record<string, string>;
  /** Attributes of its ciphertexts. */
  encs: Record<string, string>[];
  /** Tag and attributes of its other children. */
  children: Record<string, string>[];
  /** Hex. */
  reportingToken: string | null;
}

class WireLog {
  #entries: WireEntry[] = [];

  add(entry: WireEntry): void {
    this.#entries.push(entry);
  }

  /** Returns the entries, oldest first; only those of `line` if it is given. */
  entries(line?: string): WireEntry[] {
    return line === undefined ? [...this.#entries] : this.#entries.filter((entry) => entry.line === line);
  }
}

/** `stanza`: a top-level `<status>`. `undecryptable`: a message to `status@broadcast` under a key that nobody has. */
export const STATUS_FORMS = ["stanza", "undecryptable"] as const;
type StatusForm = (typeof STATUS_FORMS)[number];

function statusPost(poster: Account, form: StatusForm, { clock, random }: Runtime): BinaryNode {
  const id = messageId(random);
  const t = seconds(clock.now());
  const notify = poster.name;
  if (form === "stanza") {
    const message = proto.Message.encode({ conversation: "What I did today" }).finish();
    return element("status", { id, t, from: poster.lid, type: "text", notify }, [element("plaintext", {}, message)]);
  }
  const author = { participant: poster.lid, participant_pn: poster.jid, notify };
  const attributes = { id, t, from: STATUS_CHAT, type: "text", ...author };
  return element("message", attributes, [element("enc", { v: "2", type: "skmsg" }, random.bytes(96))]);
}

/** A field appended to an encoded protobuf message overrides its earlier value. */
function withVersion(patch: Uint8Array, version: number): Uint8Array {
  return Buffer.concat([patch, proto.SyncdPatch.encode({ version: { version } }).finish()]);
}
