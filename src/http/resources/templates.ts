/** Templates: texts with variables, in one or several languages. */
import { z } from "@hono/zod-openapi";
import { choicesFault } from "../../message/kinds/choices.ts";
import type { Template as Made } from "../../message/templates/template.ts";
import { type Api, created, ok, routesOf } from "../api/route.ts";
import { data, isoTimes, pageOf, pageQuery, rare, shownAs, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { Footer, Options, optionsOf } from "./sends/choices.ts";
import { label, Text } from "./sends/fields.ts";
import { Language, TemplateName } from "./sends/template.ts";

const DEFAULT_LANGUAGE = "en";

const texts = {
  text: Text.meta({
    description: "The text. `{{name}}`, or `{{1}}`, is a variable.",
    example: "Hello {{name}}, invoice {{number}} is due on {{date}}.",
  }),
  header: label(255).nullish().meta(rare("Heading, shown in bold.")),
  footer: Footer.nullish(),
  options: Options.nullish().openapi(rare("Options to choose from: the template is then sent as choices.")),
};

type Texts = z.infer<z.ZodObject<typeof texts>>;

function refuseOptions({ text, footer, options }: Texts, context: z.core.$RefinementCtx<unknown>): void {
  const fault = options &&
    choicesFault({ style: "numbers", text, footer: footer ?? null, options: optionsOf(options) });
  if (fault) context.addIssue({ code: "custom", path: fault.path.split("."), message: fault.message });
}

export const TemplateCreation = z.strictObject({
  name: TemplateName,
  language: Language.nullish().openapi({ description: `Defaults to \`${DEFAULT_LANGUAGE}\`.` }),
  ...texts,
}).superRefine(refuseOptions).openapi("TemplateCreation");
const TemplateTexts = z.strictObject(texts).superRefine(refuseOptions).openapi("TemplateTexts");

const ChoiceOption = z.object({ id: z.string(), label: z.string(), description: z.string().nullable() })
  .openapi("Choice");
const Template = z.object({
  name: z.string(),
  language: z.string(),
  text: z.string(),
  header: z.string().nullable(),
  footer: z.string().nullable(),
  options: z.array(ChoiceOption),
  variables: z.array(z.string()).openapi({
    description: "Names of the variables, in the order of their first use.",
    example: ["name", "number", "date"],
  }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
}).openapi("Template");

const ofOne = {
  params: z.object({ name: TemplateName }),
  query: z.object({
    language: Language.optional().openapi(rare("Language of the template. Defaults to the one that was made first.")),
  }),
};

const routes = routesOf("Templates", {
  listTemplates: {
    at: "GET /v1/templates",
    summary: "List templates",
    description: "Sorted by name; those of one name in the order in which they were made.",
    query: z.object(pageQuery),
    answers: { 200: pageOf(Template) },
  },

  createTemplate: {
    at: "POST /v1/templates",
    summary: "Create a template",
    description: "A template is its name and its language: one name may have several languages.",
    body: TemplateCreation,
    answers: { 201: data("The template", Template) },
    problems: ["template_exists", "limit_reached"],
  },

  getTemplate: {
    at: "GET /v1/templates/{name}",
    ...ofOne,
    summary: "Get a template",
    answers: { 200: data("The template", Template) },
  },

  putTemplate: {
    at: "PUT /v1/templates/{name}",
    ...ofOne,
    summary: "Replace the texts of a template",
    description: "Messages that were accepted before are sent with the old texts.",
    body: TemplateTexts,
    answers: { 200: data("The template", Template) },
  },

  deleteTemplate: {
    at: "DELETE /v1/templates/{name}",
    ...ofOne,
    summary: "Delete a template",
    description: "Without a language, in all its languages. Messages that were accepted before are sent nevertheless.",
    query: z.object({
      language: Language.optional().openapi(rare("Language of the template. Defaults to all.")),
    }),
    answers: { 200: data("The deleted templates", z.array(Template)) },
  },
});

export const templateResource = { routes: Object.values(routes), add: addTemplates };

function addTemplates(api: Api, { templates }: Services): void {
  api.on(routes.listTemplates, async ({ accountId, query: { page, limit } }) => {
    const { some, total } = await templates.page(accountId, { page, limit });
    return ok({ data: some.map(shown), pagination: { page, limit, total } });
  });

  api.on(routes.createTemplate, async ({ caller, body: { name, language, ...given } }) => {
    const named = { name, language: language ?? DEFAULT_LANGUAGE };
    return created({ data: shown(await templates.create(caller, { ...named, ...bodyOf(given) })) });
  });

  api.answer(routes.getTemplate, async ({ accountId, params: { name }, query: { language = null } }) => {
    return shown(await templates.get(accountId, name, language));
  });

  api.answer(routes.putTemplate, async ({ accountId, params: { name }, query: { language = null }, body }) => {
    return shown(await templates.replace(accountId, name, language, bodyOf(body)));
  });

  api.answer(routes.deleteTemplate, async ({ accountId, params: { name }, query: { language = null } }) => {
    return (await templates.remove(accountId, name, language)).map(shown);
  });
}

/** Returns the texts as they are stored. */
export function bodyOf({ text, header, footer, options }: Texts) {
  return { text, header: header ?? null, footer: footer ?? null, options: optionsOf(options ?? []) };
}

function shown(template: Made): z.infer<typeof Template> {
  const { createdAt, updatedAt } = template;
  return shownAs(Template, template, isoTimes({ createdAt, updatedAt }));
}
