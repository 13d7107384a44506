/** Erasing the data stored about a person. */
import { z } from "@hono/zod-openapi";
import type { ErasureRecord } from "../../erasure/rows.ts";
import { type Api, ok, route } from "../api/route.ts";
import {
  data,
  idOf,
  idParams,
  isoTime,
  isoTimeOrNull,
  NumberOrLid,
  pageQuery,
  Pagination,
  Timestamp,
} from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const Erasure = z.object({
  id: idOf("erasure", "era"),
  status: z.enum(["running", "done"]),
  messages: z.int().openapi({ description: "Messages that were emptied, or that named the number and no longer do" }),
  events: z.int().openapi({ description: "Events that were removed" }),
  files: z.int().openapi({ description: "Received files that were removed" }),
  keyId: z.string().nullable().openapi({ description: "The key that asked; null: the account's own, or the panel" }),
  askedAt: Timestamp,
  doneAt: Timestamp.nullable(),
}).openapi("Erasure");

const base = { tag: "Account", access: "key" } as const;

const eraseNumber = route({
  ...base,
  method: "delete",
  path: "/v1/data/{number}",
  operationId: "eraseNumber",
  summary: "Erase what is kept of a number",
  description:
    "What waits for it is cancelled. Messages to it stay as empty records (`erasedAt`), so that totals stay " +
    "right; messages to others, and to groups, lose its name. Events that name it go, with received files, receipts, " +
    "votes, and what the sessions keep of its chats, under its `@lid` too. An opt-out stays. Asked again while it runs, " +
    "it answers how far it is. Needs the scope `manage`.",
  params: z.object({ number: NumberOrLid }),
  answers: {
    200: data("It is done", Erasure),
    202: data("It takes longer, and goes on after a restart: ask for it by its `id`", Erasure),
  },
  problems: ["scope_missing", "validation_failed"],
});

const listErasures = route({
  ...base,
  method: "get",
  path: "/v1/erasures",
  operationId: "listErasures",
  summary: "List what was erased",
  description: "Those under way, then those done, newest first. None of them names whom it was about.",
  query: z.object(pageQuery),
  answers: { 200: { description: "A page", schema: z.object({ data: z.array(Erasure), pagination: Pagination }) } },
  problems: [],
});

const getErasure = route({
  ...base,
  method: "get",
  path: "/v1/erasures/{id}",
  operationId: "getErasure",
  summary: "Ask how far an erasure is",
  params: idParams("erasure", "era"),
  answers: { 200: data("How far it is", Erasure) },
  problems: ["not_found"],
});

export const dataResource = { routes: [eraseNumber, listErasures, getErasure], add: addData };

function addData(api: Api, { erasures, budgets }: Pick<Services, "erasures" | "budgets">): void {
  api.on(eraseNumber, async ({ caller, params: { number } }) => {
    const erasure = await erasures.begin(caller.account.id, { name: number, keyId: caller.key?.id ?? null });
    return { status: erasure.doneAt === null ? 202 : 200, body: { data: shown(erasure) } };
  });
  api.on(listErasures, async ({ caller, query }) => {
    const party = caller.account.id;
    const { erasures: found, total } = await budgets.reads.run({ party }, () => erasures.page(party, query));
    return ok({ data: found.map(shown), pagination: { ...query, total } });
  });
  api.on(getErasure, async ({ caller, params: { id } }) => {
    return ok({ data: shown(await erasures.get(caller.account.id, id)) });
  });
}

function shown({ id, messages, events, files, keyId, askedAt, doneAt }: ErasureRecord): z.infer<typeof Erasure> {
  const status = doneAt === null ? "running" : "done";
  return { id, status, messages, events, files, keyId, askedAt: isoTime(askedAt), doneAt: isoTimeOrNull(doneAt) };
}
