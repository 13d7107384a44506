/** Changes to groups: who may make them, what they do, and who is notified. */
import type { Runtime } from "../../runtime.ts";
import type { Account } from "./directory.ts";
import { addressIn, type Group, groupNode, type Groups, participantNode } from "./groups.ts";
import type { Notices } from "./notices.ts";
import { type BinaryNode, element } from "./stanza.ts";

/** Error codes of the network for refused changes. */
const FORBIDDEN = "403";
const NOT_FOUND = "404";
const ALREADY_IN = "409";

export type MemberRefusal = typeof FORBIDDEN | typeof NOT_FOUND | typeof ALREADY_IN;

type MemberAction = "add" | "remove" | "promote" | "demote";

/** The result of a change for one member; `error` is a code of the network. */
export interface MemberResult {
  account: Account;
  error?: string;
}

export class GroupChanges {
  #parts: { groups: Groups; notices: Notices; runtime: Runtime };

  constructor(parts: { groups: Groups; notices: Notices; runtime: Runtime }) {
    this.#parts = parts;
  }

  /** Creates a group. The first participant is its creator and admin. */
  create(details: Parameters<Groups["create"]>[0]): Group {
    const group = this.#parts.groups.create(details, this.#parts.runtime);
    this.#tell(group.participants, group, group.creator, element("create", { type: "new" }, [groupNode(group)]));
    return group;
  }

  /**
   * Returns one result per account, or null if the actor may not make the change. Every member may add to a group that
   * is not locked; everything else requires an admin.
   */
  change(group: Group, actor: Account, action: MemberAction, accounts: readonly Account[]): MemberResult[] | null {
    if (!group.participants.includes(actor)) return null;
    if (!group.admins.has(actor) && (action !== "add" || group.locked)) return null;
    const results = accounts.map((account): MemberResult => {
      const error = refusalOf(group, action, account);
      return error ? { account, error } : { account };
    });
    const allowed = results.filter(({ error }) => !error).map(({ account }) => account);
    if (allowed.length) this.#apply(group, actor, action, allowed);
    return results;
  }

  leave(group: Group, account: Account): void {
    if (!refusalOf(group, "leave", account)) this.#apply(group, account, "remove", [account]);
  }

  /** Changes the group's settings and notifies its members with `notice`; returns false if the actor may not. */
  set(group: Group, actor: Account, change: Partial<Settings>, notice: BinaryNode): boolean {
    if (!group.participants.includes(actor)) return false;
    const open = !group.locked && Object.keys(change).every((key) => OPEN_SETTINGS.has(key));
    if (!group.admins.has(actor) && !open) return false;
    Object.assign(group, change);
    this.#tell(group.participants, group, actor, notice);
    return true;
  }

  /** Replaces the invite; returns null if the actor is not an admin. */
  renewInvite(group: Group, actor: Account): string | null {
    if (!group.admins.has(actor)) return null;
    const code = this.#parts.groups.renewInvite(group, this.#parts.runtime.random);
    this.#tell(group.participants, group, actor, element("invite", { code }));
    return code;
  }

  /** Joins by an invite, or requests to join if admins must approve. Returns the group, or the code of a refusal. */
  join(code: string, account: Account): { group: Group; waits: boolean } | { error: string } {
    const invited = this.#parts.groups.byInvite(code);
    if ("error" in invited) return invited;
    const { group } = invited;
    if (group.participants.includes(account)) return { error: ALREADY_IN };
    if (group.approval) {
      group.requests.set(account, this.#parts.runtime.clock.now());
      const request = element("created_membership_requests", { request_method: "invite_link" }, [
        participantNode(group, account),
      ]);
      this.#tell(group.admins, group, account, request);
      return { group, waits: true };
    }
    this.#apply(group, account, "add", [account]);
    return { group, waits: false };
  }

  /** Approves or rejects requests to join; returns null if the actor is not an admin. */
  decide(group: Group, actor: Account, approve: boolean, accounts: readonly Account[]): MemberResult[] | null {
    if (!group.admins.has(actor)) return null;
    return accounts.map((account) => {
      if (!group.requests.delete(account)) return { account, error: NOT_FOUND };
      if (approve) this.#apply(group, actor, "add", [account]);
      return { account };
    });
  }

  /**
   * Makes a change that is allowed, and notifies old and new members, including those who were removed. When the last
   * admin has left, the network promotes a member: here the one who has been in the group the longest.
   */
  #apply(group: Group, actor: Account, action: MemberAction, accounts: readonly Account[]): void {
    const before = group.participants;
    for (const account of accounts) {
      if (action === "add") {
        group.requests.delete(account);
        group.participants = [...group.participants, account];
      }
      if (action === "remove") {
        group.participants = group.participants.filter((other) => other !== account);
        if (account === group.superadmin) group.superadmin = null;
      }
      if (action === "promote") group.admins.add(account);
      if (action === "remove" || action === "demote") group.admins.delete(account);
    }
    const nodes = accounts.map((account) => participantNode(group, account));
    this.#tell(new Set([...before, ...group.participants]), group, actor, element(action, {}, nodes));
    const [heir] = group.participants;
    if (action === "remove" && heir && group.admins.size === 0) this.#apply(group, heir, "promote", [heir]);
  }

  #tell(accounts: Iterable<Account>, group: Group, actor: Account, node: BinaryNode): void {
    const lidMode = group.addressing === "lid";
    this.#parts.notices.tell(accounts, {
      from: group.jid,
      type: "w:gp2",
      participant: addressIn(group, { account: actor, device: 0 }),
      participant_pn: lidMode ? actor.jid : undefined,
      notify: actor.name,
    }, [node]);
  }
}

/** Returns the code with which the network refuses a change of one member, whoever the actor; null if allowed. */
export function refusalOf(group: Group, action: MemberAction | "leave", account: Account): MemberRefusal | null {
  const member = group.participants.includes(account);
  if (action === "add") return member ? ALREADY_IN : null;
  if (!member) return NOT_FOUND;
  return account === group.superadmin && (action === "remove" || action === "demote") ? FORBIDDEN : null;
}

type Settings = Pick<Group, "subject" | "description" | "announce" | "locked" | "ephemeral" | "approval">;

/** Settings that every member may change while the group is not locked. */
const OPEN_SETTINGS = new Set<string>(["subject", "description", "ephemeral"]);
