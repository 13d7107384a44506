/** `/phones/{number}/messages` and what else a phone does in its chats. */
import { Hono } from "@hono/hono";
import type { Context } from "@hono/hono";
import { z } from "zod";
import { FILE_KINDS, type PhoneMessage } from "../world/device.ts";
import type { ControlledNetwork } from "./network.ts";
import { body, parse, phoneOf, readJson } from "./request.ts";

const addressed = { to: z.string().min(1), hideNumber: z.boolean().optional() };
const textMessage = z.object({ ...addressed, text: z.string().min(1) });
const fileMessage = z.object({
  ...addressed,
  file: z.string().min(1),
  filename: z.string().optional(),
  mimetype: z.string().optional(),
  caption: z.string().optional(),
  kind: z.enum(FILE_KINDS).optional(),
});
const rawMessage = z.object({ ...addressed, message: z.record(z.string(), z.unknown()) });

export function messageRoutes(network: ControlledNetwork): Hono {
  const app = new Hono();

  app.post("/:number/messages", async (c) => {
    const phone = phoneOf(c, network);
    return c.json(await phone.sendMessage(await messageOf(c)), 201);
  });
  app.get("/:number/messages", async (c) => {
    const phone = phoneOf(c, network);
    await phone.idle();
    return c.json(phone.inbox());
  });
  app.post("/:number/read", async (c) => {
    const phone = phoneOf(c, network);
    const { id } = await body(c, z.object({ id: z.string().min(1) }));
    phone.read(id);
    return c.json({ id });
  });
  return app;
}

/** A message is one of three forms; the field that names its form decides what else is wrong with it. */
async function messageOf(c: Context): Promise<PhoneMessage> {
  const json = await readJson(c);
  const fields = typeof json === "object" && json !== null ? json : {};
  if ("file" in fields) return parse(fileMessage, json);
  if ("message" in fields) return parse(rawMessage, json);
  return parse(textMessage, json);
}
