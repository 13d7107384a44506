/** The caller's own account. Its key is managed by people in the panel (spec, "Authentication" 1, 4 and 6). */
import { z } from "@hono/zod-openapi";
import type { Caller } from "../../account/account.ts";
import { WEEKDAYS } from "../../account/hours.ts";
import { isCountry } from "../../base/phone_number.ts";
import type { QuotaView } from "../../message/history/counts.ts";
import { type Api, routesOf } from "../api/route.ts";
import { data, idOf, isoTimes, shownAs, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const limit = (what: string) => z.int().nullable().describe(`${what}. Null for no limit.`);

/** Where a key may be used. */
export const places = {
  allowedIps: z.array(z.string()).describe("IP addresses and CIDR ranges that may use the key. Empty for any."),
  allowedDomains: z.array(z.string()).describe(
    "Domains, including their subdomains, whose pages may use the key. Empty for any.",
  ),
};

const AccountRecord = z.object({
  id: idOf("account", "acc"),
  name: z.string(),
  plan: z.object({
    name: z.string().openapi({ example: "free" }),
    sessions: z.int().describe("Maximum number of sessions."),
    daily: limit("Messages per UTC day"),
    monthly: limit("Messages per UTC month"),
    delayMinMs: z.int().describe("Shortest pause between two messages of a session, in milliseconds."),
    delayMaxMs: z.int().describe("Longest pause between two messages of a session, in milliseconds."),
    requestsPerMinute: limit("Requests per minute and key"),
    webhooks: z.int().describe("Maximum number of webhooks."),
    eventStreams: z.int().describe("Maximum number of concurrent event streams."),
    templates: z.int().describe("Maximum number of templates."),
    verifications: z.int().describe("Maximum number of open verifications."),
    hours: z.object({
      days: z.array(z.enum(WEEKDAYS).openapi("Weekday")),
      from: z.string().openapi({ example: "09:00" }),
      to: z.string().openapi({ description: "End of the hours, exclusive.", example: "18:00" }),
      timeZone: z.string().openapi({ example: "Europe/Madrid" }),
    }).nullable().openapi({ description: "Hours within which messages are sent; null for any time.", example: null }),
    newChatsDaily: limit("New chats that a session may start per day"),
    warmUp: z.boolean().describe("Whether a session may start fewer new chats in its first four weeks."),
    typingMs: z.int().openapi({ description: 'Milliseconds to show "typing…" before messages that set no `typing`.' }),
  }),
  used: z.object({
    daily: z.int().describe("Messages accepted this UTC day."),
    monthly: z.int().describe("Messages accepted this UTC month."),
  }),
  remaining: z.object({ daily: limit("Messages left this UTC day"), monthly: limit("Messages left this UTC month") }),
  ...places,
  expiresAt: Timestamp.nullable().describe("When the subscription ends; null for never."),
  createdAt: Timestamp,
  optOutWords: z.array(z.string()).openapi({
    description: "A person who sends one of these words, and nothing else, is opted out.",
    example: ["STOP"],
  }),
  country: z.string().nullable().openapi({
    description: "Country of numbers that are written in national form, with a 0 in front (ISO 3166). Null: they are " +
      "refused.",
    example: "DE",
  }),
}).openapi("Account");

const routes = routesOf("Account", {
  getAccount: {
    at: "GET /v1/account",
    summary: "Get the account",
    description: "Plan, remaining quota, and where the account's own key may be used. That key is managed in the " +
      "panel.",
    answers: { 200: data("The account", AccountRecord) },
  },

  editAccount: {
    at: "PATCH /v1/account",
    summary: "Update the account",
    description: "Fields that are left out stay as they are. An opt-out word counts when a person sends it to a " +
      "session and nothing else; case and surrounding punctuation are ignored.",
    body: z.strictObject({
      optOutWords: z.array(
        z.string().trim().min(1, { abort: true }).max(40).refine(
          (word) => /[\p{L}\p{N}]/u.test(word),
          "must have a letter or a digit",
        ),
      ).max(50).nullish().openapi({ example: ["STOP"] }),
      country: z.string().toUpperCase().refine(isCountry, "must be the code of a country, like DE").nullable()
        .optional()
        .openapi({ description: "ISO 3166; null for none.", example: "DE" }),
    }).openapi("AccountEdit"),
    answers: { 200: data("The account", AccountRecord) },
  },
});

export const accountResource = { routes: Object.values(routes), add: addAccount };

function addAccount(api: Api, { quotaView, accounts }: Services): void {
  api.answer(routes.editAccount, async ({ caller, body: { optOutWords, country } }) => {
    const change = { ...(optOutWords && { optOutWords }), ...(country !== undefined && { country }) };
    const account = await accounts.update(caller.account.id, change);
    return recordOf({ ...caller, account }, await quotaView(caller));
  });

  api.answer(routes.getAccount, async ({ caller }) => recordOf(caller, await quotaView(caller)));
}

function recordOf(
  { account, plan }: Caller,
  { used, remaining }: Awaited<ReturnType<QuotaView>>,
): z.infer<typeof AccountRecord> {
  const { expiresAt, createdAt } = account;
  return shownAs(AccountRecord, account, { plan, used, remaining, ...isoTimes({ expiresAt, createdAt }) });
}
