/** The accounts on the network (a phone with a number and a LID each) and the companions linked to them. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Random } from "../../runtime.ts";
import { type KeyBundle, KeyStore } from "./key_store.ts";
import { Mailbox } from "./mailbox.ts";
import { type AddressForm, type BinaryNode, child, childrenOf, makeJid, parseJid } from "./stanza.ts";
import type { Device, PasskeyCredential } from "./uplink.ts";

/** The account of a phone number. */
export class Account {
  readonly number: string;
  name: string;
  /** By which others find and see the account without its number. `pin`: whoever looks it up has to know it. */
  username: { name: string; pin: string | null } | null = null;
  /** The network tells nobody the number behind the account's LID. */
  hidesNumber = false;
  /** The owner's "about" text. */
  about = "";
  /** URL of the profile picture on the media host; null if there is none. */
  picture: string | null = null;
  /** Accounts whose messages do not reach this one, except in groups. They are not notified. */
  readonly blocked = new Set<Account>();
  /** Privacy settings: values by name. At first everything is open to everybody. */
  readonly privacy = new Map(
    ["readreceipts", "profile", "status", "online", "last", "groupadd", "calladd", "messages"].map((
      name,
    ) => [name, "all"]),
  );
  /** Changes to the settings shared by the account's devices: encoded SyncdPatches by collection, oldest first. */
  readonly settings = new Map<string, Uint8Array[]>();
  /** The business profile; null for an account that is not a business. */
  business: BusinessProfile | null = null;
  /** Addresses by number and by LID, without a device. */
  readonly jid: string;
  lid: string;
  /** Device 0; null until the phone is created. */
  phone: Device | null = null;
  phoneKeys: KeyStore | null = null;
  /** The passkey required to link a companion; null if none is required. */
  passkey: AccountPasskey | null = null;
  /** Devices whose keys the network has lost, as happens on the real network. */
  readonly keyless = new Set<number>();
  /** The only way in which the network lets the account's companions address people; null for any. */
  addressing: AddressForm | null = null;
  /** When the network will refuse the version of its companions, Unix ms; null if it does not say. */
  clientExpiration: number | null = null;
  /** Identifies the passkey exchange in progress; an account has at most one. */
  passkeyExchange: object | null = null;
  /** Linked devices by device id. */
  readonly companions = new Map<number, Companion>();
  /** Id of the next companion. Never reused, so that the address of an unlinked companion stays unused. */
  nextDeviceId = FIRST_DEVICE_ID;
  /** Accounts that queried this one's devices and are therefore notified of changes. */
  readonly watchers = new Set<Account>();

  constructor(number: string, lid: string, name: string) {
    this.number = number;
    this.name = name;
    this.jid = makeJid(number, "s.whatsapp.net");
    this.lid = makeJid(lid, "lid");
  }
}

/** The business profile as filled in by its owner; absent fields are not shown. */
interface BusinessProfile {
  description?: string;
  category?: string;
  address?: string;
  email?: string;
  website?: string;
}

interface AccountPasskey {
  credential: PasskeyCredential;
  /** Whether the request options come with the notification, or only when the companion queries them. */
  options: "notification" | "query";
}

/** A linked device: a line of the gateway. */
export interface Companion {
  readonly id: number;
  readonly account: Account;
  readonly jid: string;
  readonly lid: string;
  /** Hex; the companion logs in with this key. */
  readonly noisePublic: string;
  readonly keyIndex: number;
  /** Encoded `ADVSignedDeviceIdentity` with both signatures, returned together with the keys. */
  readonly identity: Uint8Array;
  readonly keys: KeyStore;
  readonly mailbox: Mailbox;
  readonly linkedAt: number;
  /**
   * Whether it makes the account appear online: after linking, and whenever it says so, until it says otherwise or its
   * session ends.
   */
  available: boolean;
  /** Login counter that the companion sends at each login; null if it sends none. */
  logins: number | null;
  /** Whether the phone has sent it the data for a new companion. */
  welcomed: boolean;
  /** The open session, if any. */
  session: CompanionSession | null;
}

/** The operations of other parts of the network on a companion's open session. */
export interface CompanionSession {
  /** Sends a stanza that needs no acknowledgement. */
  send(stanza: BinaryNode): void;
  /** Sends a stream error with the reason, and closes. */
  end(reason: BinaryNode): void;
  /** Closes the connection without a stream error. */
  cut(): void;
  /** Tells when the network will refuse the version of the companion, if it does. */
  tellExpiration(): void;
}

/** One device of one account; 0 is the phone. */
export interface Endpoint {
  account: Account;
  device: number;
}

/** Device id of an account's first companion. */
export const FIRST_DEVICE_ID = 1;

export class Directory {
  #byNumber = new Map<string, Account>();
  #byLid = new Map<string, Account>();

  accounts(): Account[] {
    return [...this.#byNumber.values()];
  }

  account(number: string): Account | null {
    return this.#byNumber.get(number) ?? null;
  }

  /** Opens an account with a unique LID. The number must not be in use. */
  open(number: string, options: { name: string; random: Random }): Account {
    const lid = this.#freeLid(options.random);
    const account = new Account(number, lid, options.name);
    this.#byNumber.set(number, account);
    this.#byLid.set(lid, account);
    return account;
  }

  /** Finds the account of a username, which are the same in any case. */
  named(username: string): Account | null {
    const name = username.toLowerCase();
    return this.accounts().find((account) => account.username?.name.toLowerCase() === name) ?? null;
  }

  /** Gives the account another LID, as when its number is registered anew. The old one goes on reaching it. */
  move(account: Account, random: Random): void {
    const lid = this.#freeLid(random);
    this.#byLid.set(lid, account);
    account.lid = makeJid(lid, "lid");
    if (account.phone) account.phone.lid = account.lid;
  }

  #freeLid(random: Random): string {
    let lid: string;
    do {
      lid = "1" + Array.from({ length: 14 }, () => random.between(0, 9)).join("");
    } while (this.#byLid.has(lid));
    return lid;
  }

  /** Returns the device that a jid (by number or LID) addresses; null if there is no such account or device. */
  resolve(jid: string | undefined): Endpoint | null {
    const address = parseJid(jid);
    if (!address) return null;
    const account = (address.server === "lid" ? this.#byLid : this.#byNumber).get(address.user);
    if (!account || (address.server !== "lid" && address.server !== "s.whatsapp.net")) return null;
    if (address.device !== 0 && !account.companions.has(address.device)) return null;
    return { account, device: address.device };
  }
}

export function isSame(a: Endpoint, b: Endpoint): boolean {
  return a.account === b.account && a.device === b.device;
}

/** Returns all devices of an account, the phone first. */
export function endpointsOf(account: Account): Endpoint[] {
  return [0, ...account.companions.keys()].map((device) => ({ account, device }));
}

/** Returns the companion at an address as it is when it has just been linked. */
export function newCompanion(
  endpoint: Endpoint,
  { keys, ...linked }: Pick<Companion, "noisePublic" | "keyIndex" | "identity" | "linkedAt"> & { keys: KeyBundle },
): Companion {
  return {
    ...linked,
    id: endpoint.device,
    account: endpoint.account,
    jid: jidOf(endpoint, "pn"),
    get lid() {
      return jidOf(endpoint, "lid");
    },
    keys: new KeyStore(keys),
    mailbox: new Mailbox(),
    available: true,
    logins: null,
    welcomed: false,
    session: null,
  };
}

/** Returns an endpoint's address, by number or by LID. */
export function jidOf({ account, device }: Endpoint, form: AddressForm): string {
  const { user, server } = parseJid(form === "lid" ? account.lid : account.jid)!;
  return makeJid(user, server, device);
}

/** Delivers a stanza: a phone receives it immediately, a companion's mailbox keeps it until it is acknowledged. */
export function deliver({ account, device }: Endpoint, stanza: BinaryNode): void {
  if (device === 0) account.phone?.deliver(stanza);
  else account.companions.get(device)?.mailbox.put(stanza);
}

/** Length of the hash of a device list, by which sender and network detect that their lists differ. */
const HASH_BYTES = 6;

/** Returns the hash, version 2: base64 of the first six bytes of the SHA-256 over the sorted `user.0:device@server`. */
export function participantHash(jids: string[]): string {
  const devices = jids.map((jid) => {
    const { user, device, server } = parseJid(jid)!;
    return `${user}.0:${device}@${server}`;
  });
  const hash = createHash("sha256").update(devices.sort().join("")).digest();
  return `2:${Buffer.from(hash.subarray(0, HASH_BYTES)).toString("base64")}`;
}

/**
 * Returns the hash of the network's device list if the sender's list differs from it; null if they agree. The sender's
 * list is given by the hash that it states, or in a 1:1 chat by the devices that it encrypted for.
 */
export function differingHash(
  message: BinaryNode,
  { sender, receivers, form, isGroup }: {
    sender: Endpoint;
    receivers: Endpoint[];
    form: AddressForm;
    isGroup: boolean;
  },
): string | null {
  const named = childrenOf(child(message, "participants"), "to").flatMap(({ attrs: { jid } }) => jid ?? []);
  const own = jidOf(sender, form);
  const implied = isGroup || named.length === 0 ? null : participantHash([own, ...named]);
  const stated = message.attrs.phash ?? implied;
  if (!stated) return null;
  const others = receivers.filter((one) => !isSame(one, sender)).map((one) => jidOf(one, form));
  const phash = participantHash([own, ...others]);
  return phash === stated ? null : phash;
}
