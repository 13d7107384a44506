/** `/phones`: creates phones, links companions to them by QR, code and passkey, and acts in their chats. */
import { type Context, Hono } from "@hono/hono";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { invalid, notFound, Problem } from "../../errors.ts";
import { FILE_KINDS } from "../phone/attachment.ts";
import type { PhoneMessage } from "../phone/compose.ts";
import type { Phone } from "../phone/phone.ts";
import type { Account } from "../world/directory.ts";
import { type BinaryNode, element } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";
import type { LinkAnswer } from "../world/uplink.ts";
import { body, type ControlledNetwork, newPhone, number, username } from "./request.ts";

const filled = z.string().min(1);
const addressed = { to: filled, hideNumber: z.boolean().optional() };
const textMessage = z.strictObject({ ...addressed, text: filled });
const fileMessage = z.strictObject({
  ...addressed,
  file: filled,
  filename: z.string().optional(),
  mimetype: z.string().optional(),
  caption: z.string().optional(),
  kind: z.enum(FILE_KINDS).optional(),
});
const rawMessage = z.strictObject({ ...addressed, message: z.record(z.string(), z.unknown()) });

/** A stanza of the wire; `content` is a list of such, or bytes in base64. */
interface StanzaForm {
  tag: string;
  attrs?: Record<string, string> | undefined;
  content?: StanzaForm[] | string | undefined;
}
const Stanza: z.ZodType<StanzaForm> = z.lazy(() =>
  z.strictObject({
    tag: filled,
    attrs: z.record(z.string(), z.string()).optional(),
    content: z.union([z.array(Stanza), z.base64()]).optional(),
  })
);

function nodeOf({ tag, attrs = {}, content }: StanzaForm): BinaryNode {
  return element(tag, attrs, typeof content === "string" ? Buffer.from(content, "base64") : content?.map(nodeOf));
}

/** Selects a message: of the phone's inbox, or one that it sent. */
const named = { id: filled };

export function phoneRoutes(network: ControlledNetwork): Hono {
  const app = new Hono();
  const { switchboard } = network;

  const phoneOf = (c: Context) => {
    const phone = network.phone(c.req.param("number") ?? "");
    if (!phone) throw notFound("phone");
    return phone;
  };
  /** Adds a route for an action of a phone; answers with the action's result, or with the request if it has none. */
  const does = <T extends z.ZodRawShape>(
    action: string,
    shape: T,
    act: (phone: Phone, asked: z.infer<z.ZodObject<T>>) => unknown,
    status: 200 | 201 = 201,
  ) =>
    app.post(`/:number/${action}`, async (c) => {
      const phone = phoneOf(c);
      const asked = await body(c, z.strictObject(shape));
      return c.json(await act(phone, asked) ?? asked, status);
    });
  /** Adds a route that lists what the phone has seen, once it has processed everything delivered to it. */
  const lists = (what: string, list: (phone: Phone) => unknown[]) =>
    app.get(`/:number/${what}`, async (c) => {
      const phone = phoneOf(c);
      await phone.idle();
      return c.json(list(phone));
    });

  app.get("/", (c) => c.json(switchboard.directory.accounts().map(describeAccount)));
  app.post("/", async (c) => {
    const { number, ...options } = await body(c, newPhone);
    return c.json(describePhone(switchboard, network.addPhone(number, options)), 201);
  });
  app.get("/:number", (c) => c.json(describePhone(switchboard, phoneOf(c))));

  does("scan", { qr: filled }, async (phone, { qr }) => linkResult(switchboard, await phone.scan(qr)), 200);
  does("enter-code", { code: filled }, async (phone, { code }) => {
    const answer = await phone.enterCode(code);
    if (answer.kind === "no_request") throw new Problem("not_found", "No device waits for a code on this number.");
    if (answer.kind === "wrong_code") throw invalid("code", "is not the code that the device shows");
    return linkResult(switchboard, answer);
  }, 200);
  const signed = (phone: Phone, { options }: { options: unknown }) => ({ assertion: phone.signPasskey(options) });
  does("passkey/sign", { options: z.unknown() }, signed, 200);
  app.post("/:number/passkey/confirm", (c) => {
    const phone = phoneOf(c);
    phone.confirmPasskey();
    return c.json(describePhone(switchboard, phone));
  });

  app.post("/:number/messages", async (c) => {
    const phone = phoneOf(c);
    return c.json(await phone.sendMessage(await body(c, messageForm)), 201);
  });
  does("stanzas", { to: number, stanza: Stanza }, (phone, { to, stanza }) => {
    const account = switchboard.directory.account(to);
    if (!account) throw invalid("to", "is not on the network");
    return { id: switchboard.handOver(switchboard.directory.account(phone.number)!, account, nodeOf(stanza)) };
  });
  lists("messages", (phone) => phone.inbox());
  lists("chat-states", (phone) => phone.chatStates());
  does("read", named, (phone, { id }) => phone.read(id), 200);
  does("vote", { ...named, options: z.array(z.string()) }, (phone, { id, options }) => phone.vote(id, options));
  does("tap", { ...named, choice: filled }, (phone, { id, choice }) => phone.tap(id, choice));
  does("react", { ...named, emoji: z.string() }, (phone, { id, emoji }) => phone.react(id, emoji));
  const edited = { ...named, text: filled, plain: z.boolean().default(false) };
  does("edit", edited, (phone, { id, text, plain }) => phone.edit(id, { text, plain }));
  does("revoke", named, (phone, { id }) => phone.revoke(id));
  const state = z.enum(["typing", "recording", "paused"]).default("typing");
  does("typing", { to: filled, state }, (phone, { to, state }) => phone.setTyping(to, state));
  does("username", { username: username.nullable() }, (phone, { username }) => {
    const account = switchboard.directory.account(phone.number)!;
    const owner = username === null ? null : switchboard.directory.named(username);
    if (owner !== null && owner !== account) throw invalid("username", "is taken");
    account.username = username === null ? null : { name: username, pin: null };
    switchboard.notices.username(account);
  }, 200);
  does("call", { to: filled, video: z.boolean().default(false) }, (phone, { to, video }) => phone.call(to, { video }));
  does("join", { invite: filled }, (phone, { invite }) => {
    const [link = ""] = invite.split("?");
    const code = link.slice(link.lastIndexOf("/") + 1);
    const joined = switchboard.groupChanges.join(code, switchboard.directory.account(phone.number)!);
    if ("error" in joined) throw invalid("invite", `is refused by the network (${joined.error})`);
    return { gid: joined.group.jid, status: joined.waits ? "requested" : "joined" };
  });
  return app;
}

/** A message has one of three forms. The field that identifies the form decides how the rest is validated. */
function messageForm(json: unknown): z.ZodType<PhoneMessage> {
  const fields = typeof json === "object" && json !== null ? json : {};
  return "file" in fields ? fileMessage : "message" in fields ? rawMessage : textMessage;
}

/** Waits for the companion's proof of identity, so that "linked" is true when the caller reads it. */
async function linkResult({ linkings }: Switchboard, answer: LinkAnswer) {
  if (answer.kind === "unknown_ref") throw new Problem("not_found", "No device waits for this phone any longer.");
  if (answer.kind !== "linked") return { status: answer.kind };
  const linked = await linkings.get(answer.deviceJid);
  return { status: linked ? "linked" as const : "refused" as const, deviceJid: answer.deviceJid };
}

function describePhone({ directory }: Switchboard, phone: Phone) {
  return { ...describeAccount(directory.account(phone.number)!), passkey: phone.passkeyState() };
}

function describeAccount({ number, lid, name, companions }: Account) {
  const devices = [...companions.values()].map(({ id, jid, linkedAt, available }) => ({
    id,
    jid,
    linkedAt,
    available,
  }));
  return { number, lid, name, devices };
}
