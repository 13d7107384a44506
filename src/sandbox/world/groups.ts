/** The groups of the network: their members, admins and settings. */
import { Buffer } from "node:buffer";
import { type Account, type Endpoint, jidOf } from "./directory.ts";
import { type AddressForm, type BinaryNode, element, makeJid, seconds } from "./stanza.ts";
import type { Random, Runtime } from "../../runtime.ts";

const INVITE_BYTES = 16;

export class Group {
  readonly jid: string;
  /** How its members are addressed: by LID (today's groups) or by phone number (older ones). */
  readonly addressing: AddressForm;
  /** Unix ms. */
  readonly createdAt: number;
  /** The first of the initial participants. */
  readonly creator: Account;
  /** The creator, whom no admin can remove or demote; null once they have left. */
  superadmin: Account | null;
  participants: readonly Account[];
  readonly admins: Set<Account>;
  subject: string;
  description: { id: string; text: string } | null = null;
  /** Whether only admins may write. */
  announce = false;
  /** Whether only admins may change the group's info. */
  locked = false;
  /** Seconds after which messages disappear; 0 for never. */
  ephemeral = 0;
  /** Whether an admin must approve those who join by the invite. */
  approval = false;
  /** The part of the invite link after `https://chat.whatsapp.com/`. */
  invite: string;
  /** URL of the group's picture on the media host; null if there is none. */
  picture: string | null = null;
  /** Accounts that have requested to join, and when (Unix ms). */
  readonly requests = new Map<Account, number>();

  constructor(jid: string, { subject, participants, addressing }: NewGroup, { clock, random }: Runtime) {
    this.jid = jid;
    this.subject = subject;
    this.participants = participants;
    this.addressing = addressing;
    this.creator = this.superadmin = participants[0]!;
    this.admins = new Set([this.creator]);
    this.createdAt = clock.now();
    this.invite = newInvite(random);
  }
}

/** `participants` must not be empty. */
type NewGroup = Pick<Group, "subject" | "participants" | "addressing">;

export class Groups {
  #byJid = new Map<string, Group>();
  /** Invites that were replaced. */
  #revoked = new Set<string>();

  create(details: NewGroup, runtime: Runtime): Group {
    let jid: string;
    do {
      const digits = Array.from({ length: 17 }, () => runtime.random.between(0, 9)).join("");
      jid = makeJid(`1${digits}`, "g.us");
    } while (this.#byJid.has(jid));
    const group = new Group(jid, details, runtime);
    this.#byJid.set(jid, group);
    return group;
  }

  get(jid: string): Group | null {
    return this.#byJid.get(jid) ?? null;
  }

  /** Returns the group of an invite, or the code with which the network refuses one that is revoked or made up. */
  byInvite(code: string): { group: Group } | { error: string } {
    const group = [...this.#byJid.values()].find(({ invite }) => invite === code);
    return group ? { group } : { error: this.#revoked.has(code) ? "410" : "406" };
  }

  /** Replaces a group's invite; returns the new one. */
  renewInvite(group: Group, random: Random): string {
    this.#revoked.add(group.invite);
    return group.invite = newInvite(random);
  }

  /** Returns the groups of an account, oldest first. */
  of(account: Account): Group[] {
    return [...this.#byJid.values()].filter((group) => group.participants.includes(account));
  }
}

function newInvite(random: Random): string {
  return Buffer.from(random.bytes(INVITE_BYTES)).toString("base64url");
}

/** Returns a group in the form of `w:g2` queries and notifications. */
export function groupNode(group: Group): BinaryNode {
  const created = seconds(group.createdAt);
  const { creator, description } = group;
  const lidMode = group.addressing === "lid";
  return element("group", {
    id: group.jid.split("@")[0],
    subject: group.subject,
    s_t: created,
    s_o: addressIn(group, { account: creator, device: 0 }),
    s_o_pn: lidMode ? creator.jid : undefined,
    creation: created,
    creator: addressIn(group, { account: creator, device: 0 }),
    creator_pn: lidMode ? creator.jid : undefined,
    size: String(group.participants.length),
    addressing_mode: group.addressing,
  }, [
    ...(description
      ? [element("description", { id: description.id, t: created }, [
        element("body", {}, Buffer.from(description.text)),
      ])]
      : []),
    ...(group.announce ? [element("announcement")] : []),
    ...(group.locked ? [element("locked")] : []),
    ...(group.ephemeral ? [element("ephemeral", { expiration: String(group.ephemeral) })] : []),
    ...(group.approval ? [approvalNode(true)] : []),
    ...group.participants.map((account) => participantNode(group, account)),
  ]);
}

export function approvalNode(on: boolean): BinaryNode {
  return element("membership_approval_mode", {}, [element("group_join", { state: on ? "on" : "off" })]);
}

/** Returns a member as other members see it, with both of its addresses. */
export function participantNode(group: Group, account: Account, { error }: { error?: string } = {}): BinaryNode {
  const lidMode = group.addressing === "lid";
  const type = account === group.superadmin ? "superadmin" : "admin";
  return element("participant", {
    jid: addressIn(group, { account, device: 0 }),
    phone_number: lidMode ? account.jid : undefined,
    lid: lidMode ? undefined : account.lid,
    username: account.username?.name,
    type: group.admins.has(account) ? type : undefined,
    error,
  });
}

/** Returns the address of a member's device in the form that the group uses. */
export function addressIn(group: Group, endpoint: Endpoint): string {
  return jidOf(endpoint, group.addressing);
}
