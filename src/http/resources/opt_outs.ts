/** Opt-outs: numbers to which no message may be sent. */
import { z } from "@hono/zod-openapi";
import type { OptOut } from "../../message/rows.ts";
import { type Api, ok, route } from "../api/route.ts";
import { data, isoTime, NumberOrLid, pageQuery, Pagination, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const Record = z.object({
  number: z.string().openapi({
    description: "Digits; a JID ending in `@lid` where the network never revealed the number",
    example: "34600111222",
  }),
  word: z.string().nullable().openapi({
    description: "What they wrote; null: you put them on the list",
    example: "STOP",
  }),
  createdAt: Timestamp,
}).openapi("OptOut");

const base = { tag: "Account", access: "key" } as const;
const ofOne = { ...base, params: z.object({ number: NumberOrLid }), problems: ["not_found"] } as const;

const listOptOuts = route({
  ...base,
  method: "get",
  path: "/v1/optouts",
  operationId: "listOptOuts",
  summary: "List who has opted out",
  description: "In the order of their numbers.",
  query: z.object(pageQuery),
  answers: { 200: { description: "A page", schema: z.object({ data: z.array(Record), pagination: Pagination }) } },
  problems: [],
});

const getOptOut = route({
  ...ofOne,
  method: "get",
  path: "/v1/optouts/{number}",
  operationId: "getOptOut",
  summary: "Ask whether a number has opted out",
  answers: { 200: data("It has", Record) },
});

const putOptOut = route({
  ...ofOne,
  method: "put",
  path: "/v1/optouts/{number}",
  operationId: "putOptOut",
  summary: "Never write to a number again",
  description:
    "A send to it is refused from then on with `recipient_opted_out`; what waits for it ends as failed with " +
    "that code. One that is on the list stays as it is.",
  answers: { 200: data("It is on the list", Record) },
});

const deleteOptOut = route({
  ...ofOne,
  method: "delete",
  path: "/v1/optouts/{number}",
  operationId: "deleteOptOut",
  summary: "Let a number be written to again",
  answers: { 200: data("What was on the list", Record) },
});

export const optOutResource = { routes: [listOptOuts, getOptOut, putOptOut, deleteOptOut], add: addOptOuts };

function addOptOuts(api: Api, { optOuts, budgets }: Pick<Services, "optOuts" | "budgets">): void {
  api.on(listOptOuts, async ({ caller, query }) => {
    const party = caller.account.id;
    const { optOuts: found, total } = await budgets.reads.run({ party }, () => optOuts.page(party, query));
    return ok({ data: found.map(shown), pagination: { ...query, total } });
  });
  api.on(getOptOut, async ({ caller, params: { number } }) => {
    return ok({ data: shown(await optOuts.get(caller.account.id, number)) });
  });
  api.on(putOptOut, async ({ caller, params: { number } }) => {
    return ok({ data: shown(await optOuts.add(caller.account.id, number)) });
  });
  api.on(deleteOptOut, async ({ caller, params: { number } }) => {
    return ok({ data: shown(await optOuts.remove(caller.account.id, number)) });
  });
}

function shown({ number, word, createdAt }: OptOut): z.infer<typeof Record> {
  return { number, word, createdAt: isoTime(createdAt) };
}
