/** `/groups`: making groups. */
import { Hono } from "@hono/hono";
import { z } from "zod";
import { invalid } from "../../errors.ts";
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
    const group = network.createGroup({ subject, participants: accounts, addressing: addressingMode });
    return c.json({ id: group.jid, jid: group.jid, subject, participants, size: participants.length }, 201);
  });
  return app;
}
