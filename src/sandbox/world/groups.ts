/** The groups of the network. They are made by the control API only; a group's size is its participants as given. */
import type { Account, Endpoint } from "./directory.ts";
import { jidOf } from "./directory.ts";
import { type BinaryNode, element } from "./stanza.ts";
import { makeJid } from "./address.ts";
import type { Runtime } from "../../runtime.ts";

/** How a group's members see each other: by LID (groups of today) or by phone number (older ones). */
export type AddressingMode = "lid" | "pn";

export interface Group {
  readonly jid: string;
  readonly subject: string;
  /** Unix ms. */
  readonly createdAt: number;
  readonly addressing: AddressingMode;
  /** The first one is admin and creator. */
  readonly participants: readonly Account[];
}

export class Groups {
  #byJid = new Map<string, Group>();

  /** A new group of at least one participant. */
  create(details: { subject: string; participants: readonly Account[]; addressing: AddressingMode }, runtime: Runtime) {
    let jid: string;
    do {
      const digits = Array.from({ length: 17 }, () => runtime.random.between(0, 9)).join("");
      jid = makeJid(`1${digits}`, "g.us");
    } while (this.#byJid.has(jid));
    const group: Group = { jid, createdAt: runtime.clock.now(), ...details };
    this.#byJid.set(jid, group);
    return group;
  }

  get(jid: string): Group | null {
    return this.#byJid.get(jid) ?? null;
  }

  /** The groups that an account takes part in, oldest first. */
  of(account: Account): Group[] {
    return [...this.#byJid.values()].filter((group) => group.participants.includes(account));
  }
}

/** A group as `w:g2` queries and notifications describe it. */
export function groupNode(group: Group): BinaryNode {
  const seconds = String(Math.floor(group.createdAt / 1000));
  const [creator] = group.participants;
  const lidMode = group.addressing === "lid";
  return element("group", {
    id: group.jid.split("@")[0],
    subject: group.subject,
    s_t: seconds,
    s_o: creator && addressIn(group, { account: creator, device: 0 }),
    s_o_pn: lidMode ? creator?.jid : undefined,
    creation: seconds,
    creator: creator && addressIn(group, { account: creator, device: 0 }),
    creator_pn: lidMode ? creator?.jid : undefined,
    size: String(group.participants.length),
    addressing_mode: group.addressing,
  }, [
    ...group.participants.map((account, index) =>
      element("participant", {
        jid: addressIn(group, { account, device: 0 }),
        phone_number: lidMode ? account.jid : undefined,
        lid: lidMode ? undefined : account.lid,
        type: index === 0 ? "superadmin" : undefined,
      })
    ),
  ]);
}

/** A member device's address as the group's members see it. */
export function addressIn(group: Group, endpoint: Endpoint): string {
  return jidOf(endpoint, group.addressing);
}
