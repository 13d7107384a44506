/** `/phones/{number}/messages`, and the other actions of a phone in its chats. */
import { Hono } from "@hono/hono";
import type { Context } from "@hono/hono";
import { z } from "zod";
import { FILE_KINDS } from "../phone/attachment.ts";
import type { PhoneMessage } from "../phone/compose.ts";
import type { Phone } from "../phone/phone.ts";
import type { ControlledNetwork } from "./network.ts";
import { body, parse, phoneOf, readJson } from "./request.ts";

const addressed = { to: z.string().min(1), hideNumber: z.boolean().optional() };
const textMessage = z.strictObject({ ...addressed, text: z.string().min(1) });
const fileMessage = z.strictObject({
  ...addressed,
  file: z.string().min(1),
  filename: z.string().optional(),
  mimetype: z.string().optional(),
  caption: z.string().optional(),
  kind: z.enum(FILE_KINDS).optional(),
});
const rawMessage = z.strictObject({ ...addressed, message: z.record(z.string(), z.unknown()) });

/** Selects a message: of the phone's inbox, or one that it sent. */
const named = { id: z.string().min(1) };
const to = z.string().min(1);
const typing = z.strictObject({ to, state: z.enum(["typing", "recording", "paused"]).default("typing") });

export function messageRoutes(network: ControlledNetwork): Hono {
  const app = new Hono();

  /** Adds a route for an action of a phone; answers with the action's result, or with the request if it has none. */
  const does = <T extends z.ZodType>(
    action: string,
    schema: T,
    act: (phone: Phone, asked: z.infer<T>) => unknown,
    status: 200 | 201 = 201,
  ) =>
    app.post(`/:number/${action}`, async (c) => {
      const phone = phoneOf(c, network);
      const asked = await body(c, schema);
      return c.json(await act(phone, asked) ?? asked, status);
    });

  app.post("/:number/messages", async (c) => {
    const phone = phoneOf(c, network);
    return c.json(await phone.sendMessage(await messageOf(c)), 201);
  });
  app.get("/:number/messages", async (c) => {
    const phone = phoneOf(c, network);
    await phone.idle();
    return c.json(phone.inbox());
  });
  does("read", z.strictObject(named), (phone, { id }) => phone.read(id), 200);
  does(
    "vote",
    z.strictObject({ ...named, options: z.array(z.string()) }),
    (phone, { id, options }) => phone.vote(id, options),
  );
  does("react", z.strictObject({ ...named, emoji: z.string() }), (phone, { id, emoji }) => phone.react(id, emoji));
  does("edit", z.strictObject({ ...named, text: z.string().min(1) }), (phone, { id, text }) => phone.edit(id, text));
  does("revoke", z.strictObject(named), (phone, { id }) => phone.revoke(id));
  does("typing", typing, (phone, { to, state }) => phone.setTyping(to, state));
  does(
    "call",
    z.strictObject({ to, video: z.boolean().default(false) }),
    (phone, { to, video }) => phone.call(to, { video }),
  );
  app.get("/:number/chat-states", async (c) => {
    const phone = phoneOf(c, network);
    await phone.idle();
    return c.json(phone.chatStates());
  });
  return app;
}

/**
 * Reads a message, which has one of three forms. The field that identifies the form decides how the rest is validated.
 */
async function messageOf(c: Context): Promise<PhoneMessage> {
  const json = await readJson(c);
  const fields = typeof json === "object" && json !== null ? json : {};
  if ("file" in fields) return parse(fileMessage, json);
  if ("message" in fields) return parse(rawMessage, json);
  return parse(textMessage, json);
}
