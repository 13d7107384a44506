/** `/phones/{number}/messages` and what else a phone does in its chats. */
import { Hono } from "@hono/hono";
import type { Context } from "@hono/hono";
import { z } from "zod";
import { FILE_KINDS, type PhoneMessage } from "../world/phone.ts";
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

/** A message of the phone's inbox, or one that it sent. */
const named = { id: z.string().min(1) };
const typing = z.object({ to: z.string().min(1), state: z.enum(["typing", "recording", "paused"]).default("typing") });

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
    const { id } = await body(c, z.object(named));
    phone.read(id);
    return c.json({ id });
  });
  app.post("/:number/vote", async (c) => {
    const phone = phoneOf(c, network);
    const { id, options } = await body(c, z.object({ ...named, options: z.array(z.string()) }));
    return c.json(await phone.vote(id, options), 201);
  });
  app.post("/:number/react", async (c) => {
    const phone = phoneOf(c, network);
    const { id, emoji } = await body(c, z.object({ ...named, emoji: z.string() }));
    return c.json(await phone.react(id, emoji), 201);
  });
  app.post("/:number/edit", async (c) => {
    const phone = phoneOf(c, network);
    const { id, text } = await body(c, z.object({ ...named, text: z.string().min(1) }));
    return c.json(await phone.edit(id, text), 201);
  });
  app.post("/:number/revoke", async (c) => {
    const phone = phoneOf(c, network);
    const { id } = await body(c, z.object(named));
    return c.json(await phone.revoke(id), 201);
  });
  app.post("/:number/typing", async (c) => {
    const phone = phoneOf(c, network);
    const { to, state } = await body(c, typing);
    phone.setTyping(to, state);
    return c.json({ to, state }, 201);
  });
  app.post("/:number/call", async (c) => {
    const phone = phoneOf(c, network);
    const { to, video } = await body(c, z.object({ to: z.string().min(1), video: z.boolean().default(false) }));
    return c.json(phone.call(to, { video }), 201);
  });
  app.get("/:number/chat-states", async (c) => {
    const phone = phoneOf(c, network);
    await phone.idle();
    return c.json(phone.chatStates());
  });
  return app;
}

/** A message has one of three forms; the field that names its form decides how the rest is validated. */
async function messageOf(c: Context): Promise<PhoneMessage> {
  const json = await readJson(c);
  const fields = typeof json === "object" && json !== null ? json : {};
  if ("file" in fields) return parse(fileMessage, json);
  if ("message" in fields) return parse(rawMessage, json);
  return parse(textMessage, json);
}
