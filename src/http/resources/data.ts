/** Erasing the data stored about a person. */
import { z } from "@hono/zod-openapi";
import type { ErasureRecord } from "../../erasure/rows.ts";
import { type Api, ok, routesOf } from "../api/route.ts";
import { data, idOf, idParams, isoTimes, NumberOrLid, pageOf, pageQuery, shownAs, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const Erasure = z.object({
  id: idOf("erasure", "era"),
  status: z.enum(["running", "done"]),
  messages: z.int().describe("Messages that were emptied or no longer mention the number."),
  events: z.int().describe("Events removed."),
  files: z.int().describe("Received files removed."),
  keyId: z.string().nullable().describe(
    "Id of the key that requested the erasure; null for the account's own key or the panel.",
  ),
  askedAt: Timestamp,
  doneAt: Timestamp.nullable(),
}).openapi("Erasure");

const routes = routesOf("Account", {
  eraseNumber: {
    at: "DELETE /v1/data/{number}",
    summary: "Erase a number's data",
    description: "Queued messages to the number are cancelled. Messages to it remain as empty records with " +
      "`erasedAt`, so that totals stay correct; mentions in messages to others and to groups are removed. Events " +
      "about it are deleted, along with received files, receipts, votes, and the sessions' data about its chats, " +
      "including those under its `@lid`. An opt-out is kept. Repeating the request while the erasure runs returns " +
      "its progress. Requires the scope `manage`.",
    params: z.object({ number: NumberOrLid }),
    answers: {
      200: data("The erasure is complete", Erasure),
      202: data("The erasure continues in the background, even after a restart; get it by its `id`", Erasure),
    },
    problems: ["validation_failed"],
  },

  listErasures: {
    at: "GET /v1/erasures",
    summary: "List erasures",
    description: "Running erasures first, then completed ones, newest first. None of them contains the erased number.",
    query: z.object(pageQuery),
    answers: { 200: pageOf(Erasure) },
  },

  getErasure: {
    at: "GET /v1/erasures/{id}",
    summary: "Get an erasure",
    params: idParams("erasure", "era"),
    answers: { 200: data("The erasure and its progress", Erasure) },
  },
});

export const dataResource = { routes: Object.values(routes), add: addData };

function addData(api: Api, { erasures, budgets }: Services): void {
  api.on(routes.eraseNumber, async ({ caller, params: { number } }) => {
    const erasure = await erasures.begin(caller.account.id, { name: number, keyId: caller.key?.id ?? null });
    return { status: erasure.doneAt === null ? 202 : 200, body: { data: shown(erasure) } };
  });
  api.on(routes.listErasures, async ({ accountId, query }) => {
    const { erasures: found, total } = await budgets.read(accountId, () => erasures.page(accountId, query));
    return ok({ data: found.map(shown), pagination: { ...query, total } });
  });
  api.answer(routes.getErasure, ({ accountId, params: { id } }) => erasures.get(accountId, id), shown);
}

function shown(erasure: ErasureRecord): z.infer<typeof Erasure> {
  const { askedAt, doneAt } = erasure;
  return shownAs(Erasure, erasure, { status: doneAt === null ? "running" : "done", ...isoTimes({ askedAt, doneAt }) });
}
