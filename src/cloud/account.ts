/** A business account's endpoints: its phone numbers and its templates. */
import type { Services } from "../http/api/services.ts";
import { bodyOf, TemplateCreation } from "../http/resources/templates.ts";
import { validate } from "../base/validation.ts";
import type { Emulation } from "./emulation.ts";
import type { Template } from "../message/templates/template.ts";
import { type OfAccount, SUCCESS } from "./endpoint.ts";
import { wrongParameter } from "./errors.ts";
import { type Fields, list, selected, textIn } from "./fields.ts";
import { phoneNumberOf } from "./phone.ts";
import { shownTemplate, textsOf } from "./template_components.ts";

const PAGE = 25;
const MOST_A_PAGE = 1_000;
const CATEGORIES = ["UTILITY", "MARKETING", "AUTHENTICATION"];

/** `emulation` tells the status of templates; on a linked line all are approved. */
export function accountEndpoints(
  { lines, templates }: Services,
  emulation: Pick<Emulation, "templateStatus"> | null,
): OfAccount {
  const shown = (template: Template): Fields => {
    const status = emulation?.templateStatus(template.name);
    return { ...shownTemplate(template), ...(status === undefined ? {} : { status }) };
  };
  const allOf = async (accountId: string) =>
    (await templates.page(accountId, { page: 1, limit: Number.MAX_SAFE_INTEGER })).some;

  return {
    "GET ": {
      scope: "read",
      handle: ({ caller: { account: { id, name } }, query }) =>
        Promise.resolve(selected({ id, name, currency: "USD", timezone_id: "1" }, query("fields"))),
    },
    "GET phone_numbers": {
      scope: "read",
      async handle({ caller, query }) {
        const numbers = (await lines.list(caller.account.id)).filter(({ phone }) => phone !== null);
        return { data: numbers.map((line) => selected(phoneNumberOf(line), query("fields"))) };
      },
    },
    "GET message_templates": {
      scope: "read",
      async handle({ caller, query }) {
        const all = (await allOf(caller.account.id)).map(shown);
        const wanted = ["name", "language", "status", "category"].filter((name) => query(name) !== undefined);
        const found = all.filter((template) => wanted.every((name) => template[name] === query(name)));
        const limit = Math.min(Number(query("limit") ?? PAGE), MOST_A_PAGE);
        const from = found.findIndex(({ id }) => id === query("after")) + 1;
        if (!Number.isInteger(limit) || limit < 1) throw wrongParameter("limit must be a whole number above 0");
        const page = found.slice(from, from + limit);
        const cursors = { before: page[0]?.id ?? "", after: page.at(-1)?.id ?? "" };
        const isLast = from + limit >= found.length;
        const summary = {
          total_count: found.length,
          message_template_count: all.length,
          message_template_limit: caller.plan.templates,
          are_translations_complete: true,
        };
        return {
          data: page.map((template) => selected(template, query("fields"))),
          ...(page.length === 0
            ? {}
            : { paging: { cursors, ...(isLast ? {} : { next: nextPage(query, cursors.after) }) } }),
          ...(query("summary") === undefined ? {} : { summary: selected(summary, query("summary")) }),
        };
      },
    },
    "POST message_templates": {
      scope: "manage",
      async handle({ caller, body }) {
        const given = await body();
        const category = String(given.category ?? "UTILITY").toUpperCase();
        if (!CATEGORIES.includes(category)) throw wrongParameter(`category must be one of ${CATEGORIES.join(", ")}`);
        const texts = { name: given.name, language: given.language, ...textsOf(list(given, "components")) };
        const { name, language, ...rest } = validate(TemplateCreation, texts);
        if (!language) throw wrongParameter("language is required");
        const made = await templates.create(caller, { name, language, category, ...bodyOf(rest) });
        const { id, status } = shown(made);
        return { id, status, category };
      },
    },
    "DELETE message_templates": {
      scope: "manage",
      async handle({ caller, query }) {
        const name = textIn({ name: query("name") }, "name");
        if (!name) throw wrongParameter("name is required");
        const id = query("hsm_id");
        const named = (await allOf(caller.account.id)).filter((template) => template.name === name);
        const one = id === undefined ? null : named.find((template) => shownTemplate(template).id === id);
        if (one === undefined) throw wrongParameter("hsm_id is no template of this name");
        await templates.remove(caller.account.id, name, one?.language ?? null);
        return SUCCESS;
      },
    },
  };
}

function nextPage(query: (name: string) => string | undefined, after: unknown): string {
  const names = ["fields", "limit", "name", "language", "status", "category", "summary"];
  const given = names.flatMap((name) => query(name) === undefined ? [] : [[name, query(name)!] as [string, string]]);
  return `?${new URLSearchParams([...given, ["after", String(after)]])}`;
}
