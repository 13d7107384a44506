/** `/groups`: creates, reads and changes groups. */
import { Hono } from "@hono/hono";
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import { type MemberRefusal, refusalOf } from "../world/group_changes.ts";
import type { Group } from "../world/groups.ts";
import { element } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";
import { body, number } from "./request.ts";

const newGroup = z.strictObject({
  subject: z.string().min(1).max(100),
  participants: z.array(number).min(1).max(1024),
  addressingMode: z.enum(["lid", "pn"]).default("lid"),
});

const memberChange = z.strictObject({
  action: z.enum(["add", "remove", "promote", "demote", "leave"]),
  participants: z.array(number).min(1).max(1024),
});

const settings = z.union([
  z.strictObject({ subject: z.string().min(1).max(100) }),
  /** Seconds; 0: for ever. */
  z.strictObject({ ephemeral: z.int().min(0) }),
]);

/** Descriptions of the network's error codes for a participant. */
const REFUSALS: Record<MemberRefusal, string> = {
  "403": "created the group, and no admin can remove or demote them",
  "404": "is not in the group",
  "409": "is already in the group",
};

export function groupRoutes(network: Switchboard): Hono {
  const app = new Hono();

  const accountsOf = (participants: readonly string[]) =>
    participants.map((one, index) => {
      const account = network.directory.account(one);
      if (!account) throw invalid(`participants.${index}`, "has no phone on this network");
      if (participants.indexOf(one) < index) throw invalid(`participants.${index}`, "appears twice");
      return account;
    });
  const groupOf = (gid: string) => {
    const group = network.groups.get(gid);
    if (!group) throw notFound("group");
    return group;
  };

  /** Returns the member who makes a change: an admin, or any member if there is none. */
  const actorOf = ({ participants, admins }: Group) => {
    const actor = participants.find((account) => admins.has(account)) ?? participants[0];
    if (!actor) throw invalid("gid", "is a group without members");
    return actor;
  };
  const allowed = (done: unknown) => {
    if (!done) throw invalid("gid", "is a group without an admin, and only an admin may do that");
  };

  app.post("/", async (c) => {
    const { subject, participants, addressingMode } = await body(c, newGroup);
    const accounts = accountsOf(participants);
    const group = network.groupChanges.create({ subject, participants: accounts, addressing: addressingMode });
    return c.json({ id: group.jid, jid: group.jid, subject, participants, size: participants.length }, 201);
  });
  app.get("/:gid", (c) => c.json(describe(groupOf(c.req.param("gid")))));
  // Changes as made on the members' phones: by an admin, or by those who leave.
  app.post("/:gid/participants", async (c) => {
    const group = groupOf(c.req.param("gid"));
    const { action, participants } = await body(c, memberChange);
    const accounts = accountsOf(participants);
    for (const [index, account] of accounts.entries()) {
      const refused = refusalOf(group, action, account);
      if (refused) {
        throw invalid(`participants.${index}`, REFUSALS[refused]);
      }
    }
    if (action !== "leave") allowed(network.groupChanges.change(group, actorOf(group), action, accounts));
    else for (const account of accounts) network.groupChanges.leave(group, account);
    return c.json(describe(group));
  });
  app.patch("/:gid", async (c) => {
    const group = groupOf(c.req.param("gid"));
    const change = await body(c, settings);
    const node = "subject" in change
      ? element("subject", change)
      : change.ephemeral === 0
      ? element("not_ephemeral")
      : element("ephemeral", { expiration: String(change.ephemeral) });
    allowed(network.groupChanges.set(group, actorOf(group), change, node));
    return c.json(describe(group));
  });
  return app;
}

function describe({ jid, subject, description, announce, locked, ephemeral, approval, invite, ...group }: Group) {
  return {
    id: jid,
    jid,
    subject,
    description: description?.text ?? null,
    announce,
    locked,
    ephemeral,
    approval,
    invite,
    size: group.participants.length,
    participants: group.participants.map((account) => ({
      number: account.number,
      lid: account.lid,
      admin: group.admins.has(account),
    })),
    requests: [...group.requests.keys()].map(({ number }) => number),
  };
}
