/** `/groups`: making groups, and looking at them. */
import { Hono } from "@hono/hono";
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import type { Group } from "../world/groups.ts";
import type { Switchboard } from "../world/switchboard.ts";
import { body, number } from "./request.ts";

const newGroup = z.object({
  subject: z.string().min(1).max(100),
  participants: z.array(number).min(1).max(1024),
  addressingMode: z.enum(["lid", "pn"]).default("lid"),
});

export function groupRoutes(network: Switchboard): Hono {
  const app = new Hono();

  app.post("/", async (c) => {
    const { subject, participants, addressingMode } = await body(c, newGroup);
    const accounts = participants.map((one, index) => {
      const account = network.directory.account(one);
      if (!account) throw invalid(`participants.${index}`, "is no phone of this network");
      if (participants.indexOf(one) < index) throw invalid(`participants.${index}`, "is named twice");
      return account;
    });
    const group = network.groupChanges.create({ subject, participants: accounts, addressing: addressingMode });
    return c.json({ id: group.jid, jid: group.jid, subject, participants, size: participants.length }, 201);
  });
  app.get("/:gid", (c) => {
    const group = network.groups.get(c.req.param("gid"));
    if (!group) throw notFound("group");
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
