/** `/phones`: creates phones, and links companions to them by QR, code and passkey. */
import { Hono } from "@hono/hono";
import { z } from "zod";
import { invalid, notFound } from "../../errors.ts";
import type { LinkAnswer } from "../world/linking.ts";
import type { Phone } from "../phone/phone.ts";
import type { Account } from "../world/directory.ts";
import type { Switchboard } from "../world/switchboard.ts";
import { type ControlledNetwork, newPhone } from "./network.ts";
import { body, phoneOf } from "./request.ts";

export function phoneRoutes(network: ControlledNetwork): Hono {
  const app = new Hono();
  const { switchboard } = network;

  app.get("/", (c) => c.json(switchboard.directory.accounts().map(describeAccount)));
  app.post("/", async (c) => {
    const { number, ...options } = await body(c, newPhone);
    const phone = network.addPhone(number, options);
    return c.json(describePhone(switchboard, phone), 201);
  });
  app.get("/:number", (c) => c.json(describePhone(switchboard, phoneOf(c, network))));

  app.post("/:number/scan", async (c) => {
    const { qr } = await body(c, z.strictObject({ qr: z.string().min(1) }));
    return c.json(await linkResult(switchboard, await phoneOf(c, network).scan(qr)));
  });
  app.post("/:number/enter-code", async (c) => {
    const { code } = await body(c, z.strictObject({ code: z.string().min(1) }));
    const answer = await phoneOf(c, network).enterCode(code);
    if (answer.kind === "no_request") throw notFound("device that waits for a code on this number");
    if (answer.kind === "wrong_code") throw invalid("code", "is not the code that the device shows");
    return c.json(await linkResult(switchboard, answer));
  });

  app.post("/:number/join", async (c) => {
    const phone = phoneOf(c, network);
    const { invite } = await body(c, z.strictObject({ invite: z.string().min(1) }));
    const [link = ""] = invite.split("?");
    const code = link.slice(link.lastIndexOf("/") + 1);
    const joined = switchboard.groupChanges.join(code, switchboard.directory.account(phone.number)!);
    if ("error" in joined) throw invalid("invite", `is refused by the network (${joined.error})`);
    return c.json({ gid: joined.group.jid, status: joined.waits ? "requested" : "joined" }, 201);
  });

  app.post("/:number/passkey/sign", async (c) => {
    const phone = phoneOf(c, network);
    const { options } = await body(c, z.strictObject({ options: z.unknown() }));
    return c.json({ assertion: phone.signPasskey(options) });
  });
  app.post("/:number/passkey/confirm", (c) => {
    const phone = phoneOf(c, network);
    phone.confirmPasskey();
    return c.json(describePhone(switchboard, phone));
  });
  return app;
}

/** Waits for the companion's proof of identity, so that "linked" is true when the caller reads it. */
async function linkResult({ linkings }: Switchboard, answer: LinkAnswer) {
  if (answer.kind === "unknown_ref") throw notFound("device that waits for this phone any more");
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
