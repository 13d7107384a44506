/** Additional keys of the account, each with its own name, scopes and limits. */
import { z } from "@hono/zod-openapi";
import { type Caller, SCOPES } from "../../account/account.ts";
import { type AccountKey, isForPages, type MadeKey, requireScope } from "../../account/keys.ts";
import { Problem } from "../../errors.ts";
import { madeOnce } from "../api/idempotency.ts";
import { type Api, created, routesOf } from "../api/route.ts";
import { data, idOf, idParams, isoTime, isoTimeOrNull, oneLine, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { places } from "./account.ts";

/** Limits the work per request: each request with the key checks all entries. */
const MAX_PLACES = 100;

const scopes = z.array(z.enum(SCOPES).openapi("Scope")).min(1).max(10).openapi({
  description: "`send`: send messages. `read`: all GET requests but the list of keys. `manage`: everything else. " +
    "`propose`: send messages that wait until a person, or a key with `send`, approves them.",
  example: ["send", "read"],
});

const shape = {
  id: idOf("key", "key"),
  name: z.string(),
  scopes,
  ...places,
  createdAt: Timestamp,
  lastUsedAt: Timestamp.nullable().describe("When the key was last used, to the minute; null for never."),
};
const Key = z.object(shape).openapi("Key");
const KeyWithSecret = z.object({ ...shape, key: z.string() }).openapi("KeyWithSecret");

const KeyCreation = z.strictObject({
  name: oneLine(z.string().trim().min(1).max(100)).openapi({ example: "shop" }),
  scopes,
  allowedIps: z.array(z.string().max(255)).max(MAX_PLACES).nullish(),
  allowedDomains: z.array(z.string().max(255)).max(MAX_PLACES).nullish(),
}).openapi("KeyCreation");

const routes = routesOf("Account", {
  listKeys: {
    at: "GET /v1/account/keys",
    scope: "manage",
    summary: "List API keys",
    description: "Oldest first. Requires the scope `manage` and a key that is not restricted to domains. The " +
      "account's own key, which has every scope and is managed in the panel, is not listed.",
    answers: { 200: data("The keys, without their secret values", z.array(Key)) },
  },

  createKey: {
    at: "POST /v1/account/keys",
    scope: "manage",
    summary: "Create an API key",
    description: "Requires the scope `manage` and a key that is not restricted to domains. A key can grant only " +
      "scopes that it has.",
    body: KeyCreation,
    repeats: "handler",
    answers: { 201: data("The new key; `key` is shown only in this response", KeyWithSecret) },
  },

  deleteKey: {
    at: "DELETE /v1/account/keys/{id}",
    scope: "manage",
    summary: "Delete an API key",
    params: idParams("key", "key"),
    answers: { 200: data("The deleted key, which no longer works", Key) },
  },
});

export const keyResource = { routes: Object.values(routes), add: addKeys };

function addKeys(api: Api, { keys, idempotency }: Services): void {
  api.answer(routes.listKeys, async ({ caller }) => {
    forbidPages(caller);
    return (await keys.list(caller.account.id)).map(shown);
  });

  api.on(routes.createKey, async ({ caller, body: { name, scopes, allowedIps, allowedDomains }, repeat }) => {
    forbidPages(caller);
    // A key that sends may let another one propose.
    for (const scope of scopes) requireScope(caller, scope, ...scope === "propose" ? ["send" as const] : []);
    const wanted = { name, scopes, allowedIps: allowedIps ?? [], allowedDomains: allowedDomains ?? [] };
    const answerTo = ({ key, apiKey }: MadeKey) => created({ data: { ...shown(key), key: apiKey } });
    return await madeOnce({ idempotency, repeat, answerTo }, (keep) => {
      return keys.create(caller.account.id, { ...wanted, commitWith: keep });
    });
  });

  api.answer(routes.deleteKey, async ({ caller, params: { id } }) => {
    forbidPages(caller);
    return shown(await keys.remove(caller.account.id, id));
  });
}

/** Throws Problem scope_missing for a key for pages, which all visitors know and whose Origin is easily forged. */
function forbidPages(caller: Caller): void {
  if (isForPages(caller)) throw new Problem("scope_missing", "A key that is restricted to domains cannot manage keys.");
}

function shown({ createdAt, lastUsedAt, ...key }: AccountKey): z.infer<typeof Key> {
  return { ...key, createdAt: isoTime(createdAt), lastUsedAt: isoTimeOrNull(lastUsedAt) };
}
