/** Queries of `w:g2`: reading, creating and changing groups, and joining by an invite. */
import type { Account, Directory } from "../world/directory.ts";
import type { MemberResult } from "../world/group_changes.ts";
import { addressIn, approvalNode, type Group, groupNode, participantNode } from "../world/groups.ts";
import {
  type BinaryNode,
  bytesOf,
  child,
  childrenOf,
  element,
  elements,
  refusal,
  result,
  seconds,
  textOf,
} from "../world/stanza.ts";
import type { QueryContext } from "../world/switchboard.ts";

/** The code with which the network keeps the invite from those who are not admins. */
const NO_ADMIN = "401";
/** The code for somebody who lets only their contacts add them. */
const UNWILLING = "403";

export function answerGroups(query: BinaryNode, context: QueryContext): BinaryNode | null {
  const [asked] = elements(query);
  if (!asked) return null;
  const { groups } = context.network;
  const group = groups.get(query.attrs.to ?? "");
  if (!group && /^[^@]+@g\.us$/.test(query.attrs.to ?? "")) return refusal(query, "404");
  if (query.attrs.type === "get") return group ? read(query, group, context) : readAny(query, context);
  return group ? change(query, asked, { group, ...context }) : changeAny(query, asked, context);
}

/** Answers queries that are not addressed to a group: the account's own groups, and the group of an invite. */
function readAny(query: BinaryNode, { companion, network }: QueryContext): BinaryNode | null {
  if (child(query, "participating")) {
    return result(query, [element("groups", {}, network.groups.of(companion.account).map(groupNode))]);
  }
  const code = child(query, "invite")?.attrs.code;
  if (code !== undefined) {
    const invited = network.groups.byInvite(code);
    return "error" in invited ? refusal(query, invited.error) : result(query, [groupNode(invited.group)]);
  }
  return null;
}

function read(query: BinaryNode, group: Group, { companion }: QueryContext): BinaryNode | null {
  const { account } = companion;
  if (!group.participants.includes(account)) return refusal(query, "403");
  if (child(query, "query")) return result(query, [groupNode(group)]);
  const isAdmin = group.admins.has(account);
  if (child(query, "invite")) {
    return isAdmin ? result(query, [element("invite", { code: group.invite })]) : refusal(query, NO_ADMIN);
  }
  if (!isAdmin) return refusal(query, "403");
  if (!child(query, "membership_approval_requests")) return null;
  const requests = [...group.requests].map(([account, at]) =>
    element("membership_approval_request", {
      jid: addressIn(group, { account, device: 0 }),
      phone_number: account.jid,
      request_method: "invite_link",
      request_time: seconds(at),
    })
  );
  return result(query, [element("membership_approval_requests", {}, requests)]);
}

function changeAny(query: BinaryNode, asked: BinaryNode, { companion, network }: QueryContext): BinaryNode | null {
  const { account } = companion;
  switch (asked.tag) {
    case "create": {
      const { subject } = asked.attrs;
      if (!subject) return refusal(query, "400");
      const { willing, unwilling } = admitted(asked, { companion, network });
      const participants = [account, ...willing.filter((other) => other !== account)];
      const group = network.groupChanges.create({ subject, participants, addressing: "lid" });
      const made = groupNode(group);
      const refused = unwilling.map((other) => participantNode(group, other, { error: UNWILLING }));
      const unknown = unknownNodes(asked, [...participants, ...unwilling]);
      return result(query, [{ ...made, content: [...elements(made), ...refused, ...unknown] }]);
    }
    case "leave": {
      const left = childrenOf(asked, "group").map(({ attrs: { id = "" } }) => {
        const group = network.groups.get(id);
        const isMember = group?.participants.includes(account);
        if (group && isMember) network.groupChanges.leave(group, account);
        return element("group", isMember ? { id } : { id, error: "404" });
      });
      return result(query, [element("leave", {}, left)]);
    }
    case "invite": {
      const joined = network.groupChanges.join(asked.attrs.code ?? "", account);
      if ("error" in joined) return refusal(query, joined.error);
      const { jid } = joined.group;
      return result(query, [
        joined.waits ? element("membership_approval_request", { jid }) : element("group", { jid }),
      ]);
    }
    default:
      return refusal(query, "404");
  }
}

interface ChangeContext extends QueryContext {
  group: Group;
}

function change(query: BinaryNode, asked: BinaryNode, context: ChangeContext): BinaryNode | null {
  const { group, companion: { account }, network: { groupChanges, directory } } = context;
  const set = (changed: Parameters<typeof groupChanges.set>[2], notice: BinaryNode) =>
    groupChanges.set(group, account, changed, notice) ? result(query) : refusal(query, "403");
  switch (asked.tag) {
    case "add": {
      const { willing, unwilling } = admitted(asked, context);
      const added = groupChanges.change(group, account, "add", willing);
      if (!added) return refusal(query, "403");
      const results = [...added, ...unwilling.map((other) => ({ account: other, error: UNWILLING }))];
      return result(query, [element("add", {}, resultNodes(group, asked, results))]);
    }
    case "remove":
    case "promote":
    case "demote": {
      const results = groupChanges.change(group, account, asked.tag, accountsOf(asked, directory));
      return results
        ? result(query, [element(asked.tag, {}, resultNodes(group, asked, results))])
        : refusal(query, "403");
    }
    case "subject": {
      const subject = textOf(asked);
      const s_t = seconds(context.network.runtime.clock.now());
      const by = { s_t, s_o: addressIn(group, { account, device: 0 }), s_o_pn: account.jid };
      return subject ? set({ subject }, element("subject", { subject, ...by })) : refusal(query, "400");
    }
    case "description": {
      const text = textOf(child(asked, "body"));
      const id = asked.attrs.id ?? "";
      const body = element("description", { id }, [element("body", {}, bytesOf(child(asked, "body")))]);
      return set({ description: text ? { id, text } : null }, body);
    }
    case "announcement":
    case "not_announcement":
      return set(
        { announce: asked.tag === "announcement" },
        element(asked.tag, { v_id: context.network.notices.stanzaId() }),
      );
    case "locked":
    case "unlocked":
      return set({ locked: asked.tag === "locked" }, element(asked.tag));
    case "ephemeral":
    case "not_ephemeral": {
      const { expiration } = asked.attrs;
      return set({ ephemeral: Number(expiration ?? 0) }, element(asked.tag, { expiration }));
    }
    case "membership_approval_mode": {
      const approval = child(asked, "group_join")?.attrs.state === "on";
      return set({ approval }, approvalNode(approval));
    }
    case "invite": {
      const code = groupChanges.renewInvite(group, account);
      return code === null ? refusal(query, NO_ADMIN) : result(query, [element("invite", { code })]);
    }
    case "membership_requests_action": {
      const [decision] = elements(asked);
      if (!decision) return refusal(query, "400");
      const accounts = accountsOf(decision, directory);
      const results = groupChanges.decide(group, account, decision.tag === "approve", accounts);
      if (!results) return refusal(query, "403");
      const decided = element(decision.tag, {}, resultNodes(group, decision, results));
      return result(query, [element(asked.tag, {}, [decided])]);
    }
    default:
      return null;
  }
}

/**
 * Returns the accounts that are to be in a group by whether they let the companion's account add them: everybody's, or
 * by a token that they gave it.
 */
function admitted(asked: BinaryNode, { companion, network: { directory, trust } }: QueryContext) {
  const mayAdd = new Set(
    childrenOf(asked, "participant").flatMap((node) => {
      const account = directory.resolve(node.attrs.jid)?.account;
      if (!account) return [];
      const isOpen = account.privacy.get("groupadd") === "all" || account === companion.account;
      return isOpen || trust.isGiven(account, companion.account, bytesOf(child(node, "privacy"))) ? [account] : [];
    }),
  );
  const all = accountsOf(asked, directory);
  return { willing: all.filter((one) => mayAdd.has(one)), unwilling: all.filter((one) => !mayAdd.has(one)) };
}

/** Returns the accounts of the participants in a node, without those that do not exist. */
function accountsOf(node: BinaryNode, directory: Directory): Account[] {
  const accounts = childrenOf(node, "participant").flatMap(({ attrs }) => directory.resolve(attrs.jid)?.account ?? []);
  return [...new Set(accounts)];
}

/** Returns one result per participant. */
function resultNodes(group: Group, asked: BinaryNode, results: readonly MemberResult[]): BinaryNode[] {
  const known = results.map(({ account, error }) => participantNode(group, account, { error }));
  return [...known, ...unknownNodes(asked, results.map(({ account }) => account))];
}

/** Returns the results of participants who are not on the network: a 404 under the requested address. */
function unknownNodes(asked: BinaryNode, known: readonly Account[]): BinaryNode[] {
  const named = new Set(known.flatMap(({ jid, lid }) => [jid, lid]));
  const unknown = childrenOf(asked, "participant").filter(({ attrs }) => !named.has(attrs.jid ?? ""));
  return unknown.map(({ attrs }) => element("participant", { jid: attrs.jid, error: "404" }));
}
