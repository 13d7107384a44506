/**
 * The sandbox's control API: HTTP on loopback by which a person or a test works the simulated phones, makes
 * groups, causes faults and reads what passed over the wire. It stands for the world outside the gateway.
 */
import { Hono } from "@hono/hono";
import type { Context } from "@hono/hono";
import { z } from "zod";
import { FILE_KINDS, type LinkAnswer, type Phone, type PhoneMessage } from "./world/device.ts";
import type { Account } from "./world/directory.ts";
import { COUNTED_FAULTS, STREAM_FAULTS, TIMED_FAULTS, UPLOAD_FAULT } from "./world/faults.ts";
import type { MediaHost } from "./media/host.ts";
import type { Switchboard } from "./world/switchboard.ts";
import { invalid, notFound, Problem } from "../errors.ts";

const DEFAULT_FAULT_SECONDS = 30;
/** What a nack says when no code is asked for: the server could not handle the stanza. */
const DEFAULT_NACK_CODE = 500;

const number = z.string().regex(/^\d{7,15}$/, "must be 7 to 15 digits");
const seconds = z.number().positive().max(3600).default(DEFAULT_FAULT_SECONDS);
const count = z.int().positive().max(10_000).default(1);
const newPhone = z.object({
  number,
  name: z.string().min(1).max(100).optional(),
  passkey: z.boolean().optional(),
  /** Whether the request for a passkey brings its options, or the companion has to query them. */
  passkeyOptions: z.enum(["notification", "query"]).optional(),
});
const newGroup = z.object({
  subject: z.string().min(1).max(100),
  participants: z.array(number).min(1).max(1024),
  addressingMode: z.enum(["lid", "pn"]).default("lid"),
});
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
const fault = z.discriminatedUnion("kind", [
  z.object({ line: number, kind: z.enum(STREAM_FAULTS) }),
  z.object({ line: number, kind: z.enum(TIMED_FAULTS), seconds }),
  z.object({ line: number, kind: z.literal(UPLOAD_FAULT), seconds, count }),
  z.object({
    line: number,
    kind: z.enum(COUNTED_FAULTS),
    count,
    code: z.coerce.number().int().min(400).max(599).default(DEFAULT_NACK_CODE),
  }),
]);

export type NewPhone = Omit<z.infer<typeof newPhone>, "number">;

/** A running network, as its control API works it. */
export interface ControlledNetwork {
  /** The WebSocket's address. */
  readonly url: string;
  /** Hex of the Noise root key that a client has to pin. */
  readonly rootKey: string;
  /** Base address of the media host, and the authority that vouches for its certificate. */
  readonly mediaUrl: string;
  readonly caPem: string;
  readonly switchboard: Switchboard;
  readonly media: MediaHost;
  /** Opens an account and switches its phone on. Throws Problem validation_failed when the number is taken. */
  addPhone(number: string, options?: NewPhone): Phone;
  phone(number: string): Phone | null;
}

/** The routes, for one network. */
export function controlApp(network: ControlledNetwork): Hono {
  const app = new Hono();
  const { switchboard } = network;
  const phoneOf = (c: Context): Phone => {
    const phone = network.phone(c.req.param("number") ?? "");
    if (!phone) throw notFound("phone");
    return phone;
  };

  app.get("/network", (c) => {
    const { url, rootKey, mediaUrl, caPem } = network;
    return c.json({ url, rootKey, mediaUrl, ca: caPem });
  });

  app.get("/phones", (c) => c.json(switchboard.directory.accounts().map(describeAccount)));
  app.post("/phones", async (c) => {
    const { number, ...options } = await body(c, newPhone);
    const phone = network.addPhone(number, options);
    return c.json(describePhone(switchboard, phone), 201);
  });
  app.get("/phones/:number", (c) => c.json(describePhone(switchboard, phoneOf(c))));

  app.post("/phones/:number/scan", async (c) => {
    const { qr } = await body(c, z.object({ qr: z.string().min(1) }));
    return c.json(await linkResult(network, await phoneOf(c).scan(qr)));
  });
  app.post("/phones/:number/enter-code", async (c) => {
    const { code } = await body(c, z.object({ code: z.string().min(1) }));
    const answer = await phoneOf(c).enterCode(code);
    if (answer.kind === "no_request") throw notFound("device that waits for a code on this number");
    if (answer.kind === "wrong_code") throw invalid("code", "is not the code that the device shows");
    return c.json(await linkResult(network, answer));
  });

  app.post("/phones/:number/passkey/sign", async (c) => {
    const phone = phoneOf(c);
    const { options } = await body(c, z.object({ options: z.unknown() }));
    return c.json({ assertion: phone.signPasskey(options) });
  });
  app.post("/phones/:number/passkey/confirm", (c) => {
    const phone = phoneOf(c);
    phone.confirmPasskey();
    return c.json(describePhone(switchboard, phone));
  });

  app.post("/phones/:number/messages", async (c) => {
    const phone = phoneOf(c);
    return c.json(await phone.sendMessage(await messageOf(c)), 201);
  });
  app.get("/phones/:number/messages", async (c) => {
    const phone = phoneOf(c);
    await phone.idle();
    return c.json(phone.inbox());
  });
  app.post("/phones/:number/read", async (c) => {
    const phone = phoneOf(c);
    const { id } = await body(c, z.object({ id: z.string().min(1) }));
    phone.read(id);
    return c.json({ id });
  });

  app.post("/groups", async (c) => {
    const { subject, participants, addressingMode } = await body(c, newGroup);
    const accounts = participants.map((one, index) => {
      const account = switchboard.directory.account(one);
      if (!account) throw invalid(`participants.${index}`, "is no phone of this network");
      if (participants.indexOf(one) < index) throw invalid(`participants.${index}`, "is named twice");
      return account;
    });
    const group = switchboard.createGroup({ subject, participants: accounts, addressing: addressingMode });
    return c.json({ id: group.jid, jid: group.jid, subject, participants, size: participants.length }, 201);
  });

  app.post("/faults", async (c) => {
    const asked = await body(c, fault);
    const account = switchboard.directory.account(asked.line);
    if (!account) throw notFound("line");
    cause(network, account, asked);
    return c.json(asked, 201);
  });

  app.get("/wire", (c) => c.json(switchboard.wire.entries(c.req.query("line"))));

  app.notFound((c) => render(c, notFound("address")));
  app.onError((error, c) => {
    if (error instanceof Problem) return render(c, error);
    switchboard.runtime.log.error({ err: error }, "the sandbox's control API failed");
    return render(c, new Problem("internal_error", "The sandbox could not do that; its log says why."));
  });
  return app;
}

function cause({ switchboard }: ControlledNetwork, account: Account, asked: z.infer<typeof fault>): void {
  const { faults } = switchboard;
  switch (asked.kind) {
    case "silence":
    case "hold_acks":
      return faults.hold(account.number, asked.kind, asked.seconds * 1000);
    case "nack":
      return faults.nack(account.number, { code: String(asked.code), count: asked.count });
    case "duplicate":
      return faults.duplicate(account.number, asked.count);
    case UPLOAD_FAULT:
      return faults.slowUpload(account.number, { durationMs: asked.seconds * 1000, count: asked.count });
    default:
      return switchboard.breakSessions(account, asked.kind);
  }
}

/** Waits until the companion has proved its side, so that "linked" is true when it is read. */
async function linkResult({ switchboard }: ControlledNetwork, answer: LinkAnswer) {
  if (answer.kind === "unknown_ref") throw notFound("device that shows this QR any more");
  if (answer.kind !== "linked") return { status: answer.kind };
  const linked = await switchboard.linkings.get(answer.deviceJid);
  return { status: linked ? "linked" as const : "refused" as const, deviceJid: answer.deviceJid };
}

function describePhone({ directory }: Switchboard, phone: Phone) {
  return { ...describeAccount(directory.account(phone.number)!), passkey: phone.passkeyState() };
}

function describeAccount({ number, lid, name, companions }: Account) {
  const devices = [...companions.values()].map(({ id, jid, linkedAt }) => ({ id, jid, linkedAt }));
  return { number, lid, name, devices };
}

/** A message is one of three forms; the field that names its form decides what else is wrong with it. */
async function messageOf(c: Context): Promise<PhoneMessage> {
  const json = await readJson(c);
  const fields = typeof json === "object" && json !== null ? json : {};
  if ("file" in fields) return parse(fileMessage, json);
  if ("message" in fields) return parse(rawMessage, json);
  return parse(textMessage, json);
}

async function body<T extends z.ZodType>(c: Context, schema: T): Promise<z.infer<T>> {
  return parse(schema, await readJson(c));
}

async function readJson(c: Context): Promise<unknown> {
  try {
    return await c.req.json();
  } catch {
    throw new Problem("malformed_json", "The body must be JSON.");
  }
}

function parse<T extends z.ZodType>(schema: T, json: unknown): z.infer<T> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  const [first] = errors;
  throw new Problem("validation_failed", `${first?.path || "body"}: ${first?.message}`, { errors });
}

function render(c: Context, { code, status, message, extras }: Problem): Response {
  const problem = { code, status, detail: message, errors: extras.errors };
  return c.body(JSON.stringify(problem), status as 400, { "content-type": "application/problem+json" });
}
