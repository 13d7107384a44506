/** The least network that phones can talk through: it carries each ciphertext to its device, and tells who is who. */
import { type BinaryNode, getBinaryNodeChildren, jidDecode, jidNormalizedUser } from "@whiskeysockets/baileys";
import type {
  CodeRequest,
  CompanionFinish,
  Device,
  LinkAnswer,
  MediaAccess,
  PhoneUplink,
  PrimaryHello,
} from "../../../../src/sandbox/world/uplink.ts";
import type { KeyBundle } from "../../../../src/sandbox/world/key_store.ts";
import { Phone } from "../../../../src/sandbox/phone/phone.ts";
import { testRuntime } from "../../../support/runtime.ts";

// Phones encrypt in this process.

const NO_MEDIA: MediaAccess = {
  url: "https://127.0.0.1:1",
  host: "127.0.0.1:1",
  auth: "",
  caPem: "",
  keepPicture: () => "",
};

export class SmallNetwork implements PhoneUplink {
  readonly runtime = testRuntime();
  readonly media: MediaAccess;
  /** Every stanza that a phone sent. */
  readonly sent: BinaryNode[] = [];
  /** Answers of the companion side, as a test needs them. */
  acceptQr: (phone: Device, ref: string, signedIdentity: Uint8Array) => LinkAnswer = () => ({ kind: "unknown_ref" });
  codeRequest: (phone: Device) => CodeRequest | null = () => null;
  answerCode: (ref: string, hello: PrimaryHello) => Promise<CompanionFinish | null> = () => Promise.resolve(null);
  /** Changes a stanza on its way, or swallows it with null. */
  tamper: (stanza: BinaryNode) => BinaryNode | null = (stanza) => stanza;
  #devices = new Map<string, { device: Device; bundle: KeyBundle }>();
  #groups = new Map<string, string[]>();
  #phones: Phone[] = [];

  constructor(media: MediaAccess = NO_MEDIA) {
    this.media = media;
  }

  phone(number: string, name?: string): Phone {
    const phone = new Phone({ runtime: this.runtime, uplink: this, number, lid: `9${number}@lid`, name });
    this.#phones.push(phone);
    return phone;
  }

  /** A phone that lost everything and was set up again: same number, new keys. */
  reinstall(number: string): Phone {
    this.#phones = this.#phones.filter((phone) => phone.number !== number);
    return this.phone(number);
  }

  group(jid: string, ...phones: Phone[]): string {
    this.#groups.set(jid, phones.map((phone) => phone.jid));
    return jid;
  }

  /** Adds a device that is no phone of this process. */
  join(device: Device, bundle: KeyBundle): void {
    this.#devices.set(device.jid, { device, bundle });
  }

  /** Resolves when no phone has anything left to do. */
  async idle(): Promise<void> {
    for (let before = -1; before !== this.sent.length;) {
      before = this.sent.length;
      await Promise.all(this.#phones.map((phone) => phone.idle()));
    }
  }

  demandPasskey(): void {}

  publishKeys(device: Device, bundle: KeyBundle): void {
    const known = this.#devices.get(device.jid);
    const preKeys = known?.device === device ? [...known.bundle.preKeys, ...bundle.preKeys] : bundle.preKeys;
    this.#devices.set(device.jid, { device, bundle: { ...bundle, preKeys } });
  }

  takeBundle(jid: string): KeyBundle | null {
    const found = this.#devices.get(this.#pnDevice(jid));
    if (!found) return null;
    const preKey = found.bundle.preKeys.shift();
    return { ...found.bundle, preKeys: preKey ? [preKey] : [] };
  }

  devicesOf(user: string): string[] {
    const pn = this.#pn(user);
    return [...this.#devices.keys()].filter((jid) => jidNormalizedUser(jid) === pn);
  }

  changeSettings(): void {}

  beginSettings(): void {}

  chatsOf() {
    return { tokens: [], nctSalt: new Uint8Array(32) };
  }

  lidOf(pnJid: string): string | null {
    const found = [...this.#devices.values()].find(({ device }) => jidNormalizedUser(device.jid) === pnJid);
    return found ? jidNormalizedUser(found.device.lid) : null;
  }

  pnOf(lidJid: string): string | null {
    const found = [...this.#devices.values()].find(({ device }) => jidNormalizedUser(device.lid) === lidJid);
    return found ? jidNormalizedUser(found.device.jid) : null;
  }

  participantsOf(groupJid: string): string[] {
    return this.#groups.get(groupJid) ?? [];
  }

  submit(from: Device, message: BinaryNode): null {
    this.send(from, message);
    return null;
  }

  send(from: Device, original: BinaryNode): void {
    this.sent.push(original);
    const stanza = this.tamper(original);
    if (!stanza || stanza.tag === "ack") return;
    const { to = "", participant } = stanza.attrs;
    const group = this.#groups.has(to);
    const [participants] = getBinaryNodeChildren(stanza, "participants");
    const common = getBinaryNodeChildren(stanza, "enc");
    const direct = stanza.tag !== "message" || (!participants && (!group || participant));
    if (direct) {
      const target = group ? participant ?? "" : to;
      return this.#deliver(target, this.#arriving(from, stanza, { group: group ? to : null }));
    }
    const targets = group
      ? this.participantsOf(to).flatMap((member) => this.devicesOf(member)).filter((jid) => jid !== from.jid)
      : getBinaryNodeChildren(participants, "to").map((node) => node.attrs.jid ?? "");
    for (const jid of targets) {
      const own = getBinaryNodeChildren(participants, "to").find((node) => node.attrs.jid === jid);
      const encs = [...getBinaryNodeChildren(own, "enc"), ...common];
      this.#deliver(jid, this.#arriving(from, { ...stanza, content: encs }, { group: group ? to : null }));
    }
  }

  #arriving(from: Device, stanza: BinaryNode, { group }: { group: string | null }): BinaryNode {
    const { to: _to, participant: _participant, ...rest } = stanza.attrs;
    const author = rest.from ?? from.jid;
    const t = String(Math.floor(this.runtime.clock.now() / 1000));
    const attrs: BinaryNode["attrs"] = { ...rest, t, from: group ?? author };
    if (group) attrs.participant = author;
    if (!author.endsWith("@lid")) attrs.sender_lid = from.lid;
    return { ...stanza, attrs };
  }

  #deliver(jid: string, stanza: BinaryNode): void {
    this.#devices.get(this.#pnDevice(jid))?.device.deliver(stanza);
  }

  #pn(user: string): string {
    const plain = jidNormalizedUser(user);
    return this.pnOf(plain) ?? plain;
  }

  #pnDevice(jid: string): string {
    const device = jidDecode(jid)?.device;
    const [user, server] = this.#pn(jid).split("@");
    return device ? `${user}:${device}@${server}` : `${user}@${server}`;
  }
}
