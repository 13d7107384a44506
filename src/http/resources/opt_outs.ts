/** Opt-outs: numbers to which no message may be sent. */
import { z } from "@hono/zod-openapi";
import type { OptOut } from "../../message/rows.ts";
import { type Api, ok, routesOf } from "../api/route.ts";
import { data, isoTime, NumberOrLid, pageOf, pageQuery, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const Record = z.object({
  number: z.string().openapi({
    description: "Phone number, digits only, or a JID ending in `@lid` if WhatsApp never revealed the number.",
    example: "447700900123",
  }),
  word: z.string().nullable().openapi({
    description: "The word the person sent; null if the number was added through the API.",
    example: "STOP",
  }),
  createdAt: Timestamp,
}).openapi("OptOut");

const ofOne = { params: z.object({ number: NumberOrLid }) };

const routes = routesOf("Account", {
  listOptOuts: {
    at: "GET /v1/optouts",
    summary: "List opt-outs",
    description: "Sorted by number.",
    query: z.object(pageQuery),
    answers: { 200: pageOf(Record) },
  },

  getOptOut: {
    at: "GET /v1/optouts/{number}",
    ...ofOne,
    summary: "Get an opt-out",
    answers: { 200: data("The opt-out; 404 if the number has not opted out", Record) },
  },

  putOptOut: {
    at: "PUT /v1/optouts/{number}",
    ...ofOne,
    summary: "Opt a number out",
    description: "From now on, messages to the number are refused with `recipient_opted_out`, and queued ones fail " +
      "with the same code. An existing opt-out stays unchanged.",
    answers: { 200: data("The opt-out", Record) },
  },

  deleteOptOut: {
    at: "DELETE /v1/optouts/{number}",
    ...ofOne,
    summary: "Remove an opt-out",
    answers: { 200: data("The removed opt-out", Record) },
  },
});

export const optOutResource = { routes: Object.values(routes), add: addOptOuts };

function addOptOuts(api: Api, { optOuts, budgets }: Services): void {
  api.on(routes.listOptOuts, async ({ accountId, query }) => {
    const { optOuts: found, total } = await budgets.read(accountId, () => optOuts.page(accountId, query));
    return ok({ data: found.map(shown), pagination: { ...query, total } });
  });
  api.answer(routes.getOptOut, ({ accountId, params: { number } }) => optOuts.get(accountId, number), shown);
  api.answer(routes.putOptOut, ({ accountId, params: { number } }) => optOuts.add(accountId, number), shown);
  api.answer(routes.deleteOptOut, ({ accountId, params: { number } }) => optOuts.remove(accountId, number), shown);
}

function shown({ number, word, createdAt }: OptOut): z.infer<typeof Record> {
  return { number, word, createdAt: isoTime(createdAt) };
}
