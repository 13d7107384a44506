/** Who is on the network: accounts (a phone with a number and a LID) and the companions linked to each. */
import type { Device } from "./device.ts";
import type { PasskeyCredential } from "./linking.ts";
import type { KeyStore } from "./key_store.ts";
import type { Mailbox } from "./mailbox.ts";
import type { Random } from "../../runtime.ts";
import { makeJid, parseJid } from "./address.ts";
import type { BinaryNode } from "./stanza.ts";

/** A phone number's account. */
export interface Account {
  readonly number: string;
  name: string;
  /** What owners say about themselves. */
  about: string;
  /** Where the profile picture lies on the media host; null without one. */
  picture: string | null;
  /** Those who do not reach it any more, save in groups; they are not told. */
  readonly blocked: Set<Account>;
  /** Who may see and do what: the value of each setting by its name. */
  readonly privacy: Map<string, string>;
  /** Changes of the settings that its devices share: encoded SyncdPatches by collection, oldest first. */
  readonly settings: Map<string, Uint8Array[]>;
  /** What a business says about itself; null for anybody else. */
  business: BusinessProfile | null;
  /** Without device, by number and by LID. */
  readonly jid: string;
  readonly lid: string;
  /** Device 0; null until the phone is switched on. */
  phone: Device | null;
  phoneKeys: KeyStore | null;
  /** The passkey that its links demand; null when they demand none. */
  passkey: AccountPasskey | null;
  /** Devices whose keys the network has lost, as happens to some. */
  readonly keyless: Set<number>;
  /** The link with a passkey whose exchange is under way: an account has one at a time. */
  passkeyExchange: object | null;
  /** By device id. */
  readonly companions: Map<number, Companion>;
  /** Never used twice, so that the address of an unlinked companion stays unused. */
  nextDeviceId: number;
  /** Numbers that asked for this account's devices, and so are notified when they change. */
  readonly watchers: Set<string>;
}

/** As its owner fills it in; what is left out is not shown. */
interface BusinessProfile {
  description?: string | undefined;
  category?: string | undefined;
  address?: string | undefined;
  email?: string | undefined;
  website?: string | undefined;
}

interface AccountPasskey {
  credential: PasskeyCredential;
  /** Whether the request options come with the notification, or only when the companion queries them. */
  options: "notification" | "query";
}

/** A linked device: a gateway's line. */
export interface Companion {
  readonly id: number;
  readonly account: Account;
  readonly jid: string;
  readonly lid: string;
  /** Hex; the login is by this key. */
  readonly noisePublic: string;
  readonly keyIndex: number;
  /** Encoded `ADVSignedDeviceIdentity` with both signatures, as others fetch it with the keys. */
  readonly identity: Uint8Array;
  readonly keys: KeyStore;
  readonly mailbox: Mailbox;
  readonly linkedAt: number;
  /** Whether it makes the account appear online. Right after linking it does, until it says otherwise. */
  available: boolean;
  /** How often it has logged in, as it states at each login; null where it does not. */
  logins: number | null;
  /** Whether the phone has sent it what a new companion has to know. */
  welcomed: boolean;
  /** The open session, if any. */
  session: CompanionSession | null;
}

/** What the rest of the network does to a companion's open session. */
export interface CompanionSession {
  /** Sends a stanza that nobody needs to acknowledge. */
  send(stanza: BinaryNode): void;
  /** Says why in a stream error, and closes. */
  end(reason: BinaryNode): void;
  /** Cuts the connection without a word. */
  cut(): void;
}

/** One device of one account; 0 is the phone. */
export interface Endpoint {
  account: Account;
  device: number;
}

/** Device id of an account's first companion. */
export const FIRST_DEVICE_ID = 1;

/** The collection of shared settings into which a phone of the sandbox writes. */
export const PHONE_SETTINGS = "regular_high";

/** What a fresh account has: everybody may see and write. */
const FRESH_PRIVACY = {
  readreceipts: "all",
  profile: "all",
  status: "all",
  online: "all",
  last: "all",
  groupadd: "all",
  calladd: "all",
  messages: "all",
};

export class Directory {
  #byNumber = new Map<string, Account>();
  #byLid = new Map<string, Account>();

  accounts(): Account[] {
    return [...this.#byNumber.values()];
  }

  account(number: string): Account | null {
    return this.#byNumber.get(number) ?? null;
  }

  /** Opens an account with a LID of its own. The number must be free. */
  open(number: string, options: { name: string; random: Random }): Account {
    let lid: string;
    do {
      lid = "1" + Array.from({ length: 14 }, () => options.random.between(0, 9)).join("");
    } while (this.#byLid.has(lid));
    const account: Account = {
      number,
      name: options.name,
      about: "",
      picture: null,
      blocked: new Set(),
      privacy: new Map(Object.entries(FRESH_PRIVACY)),
      settings: new Map(),
      business: null,
      jid: makeJid(number, "s.whatsapp.net"),
      lid: makeJid(lid, "lid"),
      phone: null,
      phoneKeys: null,
      passkey: null,
      keyless: new Set(),
      passkeyExchange: null,
      companions: new Map(),
      nextDeviceId: FIRST_DEVICE_ID,
      watchers: new Set(),
    };
    this.#byNumber.set(number, account);
    this.#byLid.set(lid, account);
    return account;
  }

  /** The device that a jid names, by number or LID; null when there is no such account or device. */
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

/** Every device of an account, the phone first. */
export function endpointsOf(account: Account): Endpoint[] {
  return [0, ...account.companions.keys()].map((device) => ({ account, device }));
}

/** An endpoint's address, by number or by LID. */
export function jidOf({ account, device }: Endpoint, form: "pn" | "lid"): string {
  const { user, server } = parseJid(form === "lid" ? account.lid : account.jid)!;
  return makeJid(user, server, device);
}

/** Delivers a stanza to a device: a phone takes it at once, a companion's mailbox keeps it until it is acknowledged. */
export function deliver({ account, device }: Endpoint, stanza: BinaryNode): void {
  if (device === 0) account.phone?.deliver(stanza);
  else account.companions.get(device)?.mailbox.put(stanza);
}

export function keysOf({ account, device }: Endpoint): KeyStore | null {
  return device === 0 ? account.phoneKeys : account.companions.get(device)?.keys ?? null;
}
