/** The caller's own account. Its key is managed by people in the panel (spec, "Authentication" 1, 4 and 6). */
import { z } from "@hono/zod-openapi";
import type { Caller } from "../../account/account.ts";
import { WEEKDAYS } from "../../account/hours.ts";
import type { QuotaView } from "../../message/history/counts.ts";
import { type Api, ok, route } from "../api/route.ts";
import { data, idOf, isoTime, isoTimeOrNull, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const limit = (what: string) => z.int().nullable().openapi({ description: `${what}; null: no limit` });

/** Where a key may be used. */
export const places = {
  allowedIps: z.array(z.string()).openapi({ description: "Addresses and CIDRs that may use the key; empty: any" }),
  allowedDomains: z.array(z.string()).openapi({
    description: "Hosts, subdomains included, whose pages may use the key; empty: any",
  }),
};

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
    webhooks: z.int().openapi({ description: "Webhooks" }),
    eventStreams: z.int().openapi({ description: "Event streams open at a time" }),
    hours: z.object({
      days: z.array(z.enum(WEEKDAYS)),
      from: z.string().openapi({ example: "09:00" }),
      to: z.string().openapi({ description: "Not included", example: "18:00" }),
      timeZone: z.string().openapi({ example: "Europe/Madrid" }),
    }).nullable().openapi({ description: "Nothing leaves outside of them; null: at any time", example: null }),
    newChatsDaily: limit("New chats that a session may start a day"),
    warmUp: z.boolean().openapi({ description: "Whether a session may start fewer in its first four weeks" }),
    typingMs: z.int().openapi({ description: 'How long "typing" is shown before a message that does not say so' }),
  }),
  used: z.object({
    daily: z.int().openapi({ description: "Messages accepted this UTC day" }),
    monthly: z.int().openapi({ description: "Messages accepted this UTC month" }),
  }),
  remaining: z.object({ daily: limit("Messages left this UTC day"), monthly: limit("Messages left this UTC month") }),
  ...places,
  expiresAt: Timestamp.nullable().openapi({ description: "When the subscription ends; null: never" }),
  createdAt: Timestamp,
  optOutWords: z.array(z.string()).openapi({
    description: "Whoever writes one of them, and nothing else, is put on the list of opt-outs",
    example: ["STOP"],
  }),
}).openapi("Account");

const base = { tag: "Account", access: "key", problems: [] } as const;

const getAccount = route({
  ...base,
  method: "get",
  path: "/v1/account",
  operationId: "getAccount",
  summary: "Read your account",
  description: "Its plan, what is left of the quota, and where the key may be used. The key is managed in the panel.",
  answers: { 200: data("The account", AccountRecord) },
});

const editAccount = route({
  ...base,
  method: "patch",
  path: "/v1/account",
  operationId: "editAccount",
  summary: "Choose the words that opt a recipient out",
  description:
    "A word counts when somebody writes it alone to a session; neither capitals nor the signs around it matter.",
  body: z.strictObject({
    optOutWords: z.array(
      z.string().trim().min(1, { abort: true }).max(40).refine(
        (word) => /[\p{L}\p{N}]/u.test(word),
        "must have a letter or a digit",
      ),
    ).max(50).openapi({ example: ["STOP"] }),
  }).openapi("AccountEdit"),
  answers: { 200: data("The account", AccountRecord) },
  problems: ["scope_missing"],
});

export const accountResource = { routes: [getAccount, editAccount], add: addAccount };

function addAccount(api: Api, { quotaView, accounts }: Pick<Services, "quotaView" | "accounts">): void {
  api.on(editAccount, async ({ caller, body: { optOutWords } }) => {
    const account = await accounts.update(caller.account.id, { optOutWords });
    return ok({ data: recordOf({ ...caller, account }, await quotaView(caller)) });
  });

  api.on(getAccount, async ({ caller }) => ok({ data: recordOf(caller, await quotaView(caller)) }));
}

function recordOf(
  { account, plan }: Caller,
  { used, remaining }: Awaited<ReturnType<QuotaView>>,
): z.infer<typeof AccountRecord> {
  const { name: planName, sessions, daily, monthly, delayMinMs, delayMaxMs, requestsPerMinute, ...limits } = plan;
  const { id, name, allowedIps, allowedDomains, optOutWords, expiresAt, createdAt } = account;
  return {
    id,
    name,
    plan: { name: planName, sessions, daily, monthly, delayMinMs, delayMaxMs, requestsPerMinute, ...limits },
    used,
    remaining,
    allowedIps,
    allowedDomains,
    expiresAt: isoTimeOrNull(expiresAt),
    createdAt: isoTime(createdAt),
    optOutWords,
  };
}
