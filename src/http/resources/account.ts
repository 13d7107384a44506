/**
 * The caller's own account (spec, "Authentication" 1, 4 and 6). Reading it is part of the interface. Managing its key is
 * for the panel, a person's tool: those routes stand under `/panel`, outside the reference, where no page of another
 * origin can read an answer.
 */
import { z } from "@hono/zod-openapi";
import type { Caller } from "../../account/account.ts";
import { parseAllowedDomains, parseAllowedIps } from "../../account/restrictions.ts";
import { invalid, Problem } from "../../errors.ts";
import type { QuotaState } from "../../message/history/counts.ts";
import { makeCheckPlace, readKey } from "../edge/auth.ts";
import { makeClientAddress } from "../edge/client_address.ts";
import { type Api, ok, route } from "../api/route.ts";
import { idOf, isoTime, isoTimeOrNull, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

/** Each request with the key goes through them. */
const MAX_RESTRICTIONS = 100;

const limit = (what: string) => z.int().nullable().openapi({ description: `${what}; null: no limit` });

const AccountRecord = z.object({
  id: idOf("account", "acc"),
  name: z.string(),
  plan: z.object({
    name: z.string().openapi({ example: "free" }),
    sessions: z.int().openapi({ description: "Sessions the account may have" }),
    daily: limit("Messages a UTC day"),
    monthly: limit("Messages a UTC month"),
    delayMinMs: z.int().openapi({ description: "Shortest pause between two messages of a session, milliseconds" }),
    delayMaxMs: z.int().openapi({ description: "Longest pause between two messages of a session, milliseconds" }),
    requestsPerMinute: limit("Requests a minute"),
  }),
  used: z.object({
    daily: z.int().openapi({ description: "Messages accepted this UTC day" }),
    monthly: z.int().openapi({ description: "Messages accepted this UTC month" }),
  }),
  remaining: z.object({ daily: limit("Messages left this UTC day"), monthly: limit("Messages left this UTC month") }),
  allowedIps: z.array(z.string()).openapi({ description: "Addresses and CIDRs that may use the key; empty: any" }),
  allowedDomains: z.array(z.string()).openapi({
    description: "Hosts, subdomains included, whose pages may use the key; empty: any",
  }),
  expiresAt: Timestamp.nullable().openapi({ description: "When the subscription ends; null: never" }),
  createdAt: Timestamp,
}).openapi("Account");

const base = { tag: "Account", access: "key", problems: [] } as const;
const one = z.object({ data: AccountRecord });

const getAccount = route({
  ...base,
  method: "get",
  path: "/v1/account",
  operationId: "getAccount",
  summary: "Read your account",
  description: "Its plan, what is left of the quota, and where the key may be used. The key is managed in the panel.",
  answers: { 200: { description: "The account", schema: one } },
});

const restrictions = z.array(z.string().max(255)).max(MAX_RESTRICTIONS).optional();

const restrictKey = route({
  ...base,
  method: "put",
  path: "/panel/account",
  operationId: "restrictKey",
  summary: "Set where the key may be used",
  body: z.strictObject({ allowedIps: restrictions, allowedDomains: restrictions }),
  answers: { 200: { description: "The account after the change", schema: one } },
});

const regenerateKey = route({
  ...base,
  method: "post",
  path: "/panel/account/regenerate-key",
  operationId: "regenerateKey",
  summary: "Make a new key; this one stops working at once",
  // Nothing is kept for a repetition: it would come with a key that is no more.
  repeats: "handler",
  answers: { 200: { description: "The new key", schema: z.object({ data: z.object({ apiKey: z.string() }) }) } },
});

export const accountRoutes = [getAccount];

export function addAccount(
  api: Api,
  { accounts, quotaView, trustedProxies }: Pick<Services, "accounts" | "quotaView" | "trustedProxies">,
): void {
  const checkPlace = makeCheckPlace(makeClientAddress(trustedProxies));

  api.on(getAccount, async ({ caller }) => ok({ data: recordOf(caller, await quotaView(caller)) }));

  api.on(restrictKey, async ({ c, caller, body }) => {
    const allowedIps = parseAllowedIps(body.allowedIps ?? caller.account.allowedIps);
    const allowedDomains = parseAllowedDomains(body.allowedDomains ?? caller.account.allowedDomains);
    try {
      checkPlace(c, { allowedIps, allowedDomains });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const path = error.code === "ip_not_allowed" ? "allowedIps" : "allowedDomains";
      throw invalid(path, `This would lock you out, from here. ${error.message}`);
    }
    const account = await accounts.update(caller.account.id, body);
    return ok({ data: recordOf({ ...caller, account }, await quotaView(caller)) });
  });

  api.on(regenerateKey, async ({ c }) => ok({ data: { apiKey: await accounts.replaceKey(readKey(c, "header")) } }));
}

function recordOf({ account, plan }: Caller, { used, remaining }: QuotaState): z.infer<typeof AccountRecord> {
  const { id, name, allowedIps, allowedDomains, expiresAt, createdAt } = account;
  const { sessions, daily, monthly, delayMinMs, delayMaxMs, requestsPerMinute } = plan;
  return {
    id,
    name,
    plan: { name: plan.name, sessions, daily, monthly, delayMinMs, delayMaxMs, requestsPerMinute },
    used,
    remaining,
    allowedIps,
    allowedDomains,
    expiresAt: isoTimeOrNull(expiresAt),
    createdAt: isoTime(createdAt),
  };
}
