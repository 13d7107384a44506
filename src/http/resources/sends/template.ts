/** Sends from a template: its name, and the values of its variables. */
import { z } from "@hono/zod-openapi";
import { invalid, Problem } from "../../../errors.ts";
import { choicesFault } from "../../../message/kinds/choices.ts";
import type { TemplateContent } from "../../../message/kinds/template.ts";
import { contentFrom } from "../../../message/templates/filled.ts";
import { checkVariables, type Template, type Variables } from "../../../message/templates/template.ts";
import type { Templates } from "../../../message/templates/templates.ts";
import { route } from "../../api/route.ts";
import { Addressee, rare } from "../../api/schemas.ts";
import { styleOf } from "./choices.ts";
import { label, manner, MAX_TEXT, options, sessionId, single } from "./fields.ts";

const MAX_VALUE = 4_096;

/** A name that stands in a path, in any of the forms that people have. */
export const TemplateName = z.string().regex(
  /^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$/,
  "must be 1 to 200 of A-Z, a-z, 0-9, _, . and -, and begin with a letter or digit",
).openapi({ description: "Name of the template.", example: "reminder" });

export const Language = z.string().regex(
  /^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8}){0,3}$/,
  "must be a language such as en or es_MX",
).openapi({ description: "Language of the template, such as `en` or `es_MX`.", example: "en" });

const Value = z.string().max(MAX_VALUE);
/** A list is taken too, but documented as an object: hardly any generator of clients can read a choice of the two. */
const VariableValues = z.preprocess(
  (given) => Array.isArray(given) ? Object.fromEntries(given.map((value, i) => [String(i + 1), value])) : given,
  z.record(z.string(), Value),
).nullish().openapi({
  type: ["object", "null"],
  additionalProperties: { type: "string", maxLength: MAX_VALUE },
  description: "The value of each variable by its name. For `{{1}}`, `{{2}}`, … a list is taken too.",
  example: { name: "Anna" },
});

/** What a message takes from a template. */
export const templated = {
  template: TemplateName,
  language: Language.nullish().openapi(
    rare(
      "Language of the recipient. Without a template in it, the one in its main language is sent (`es` for " +
        "`es_MX`), or else the one that was made first.",
    ),
  ),
  variables: VariableValues,
};

export const sendTemplate = route("Messages", "sendTemplate", {
  at: "POST /v1/messages/send/template",
  ...single,
  summary: "Send a template",
  description: "Fills in the variables of a template. What was accepted is sent as it was, also if the template is " +
    "changed before. In the history it is a `text`, or `choices` if the template has options.",
  body: z.strictObject({ sessionId, to: Addressee, ...templated, ...manner, ...options }).openapi("TemplateMessage"),
});

interface Asked {
  template: string;
  language?: string | null | undefined;
  variables?: Variables | null | undefined;
}

/**
 * Returns what makes the contents of a send, reading each template once. It throws Problem not_found for an unknown
 * template, in an item of a bulk validation_failed with the item's path; and validation_failed for the variables.
 */
export function makeContentOf(templates: Pick<Templates, "for">, accountId: string) {
  const read = new Map<string, Promise<Template>>();
  return async (
    { template: name, language = null, variables }: Asked,
    { to, path }: { to: string; path: string },
  ): Promise<TemplateContent> => {
    const place = `${name} ${language}`;
    const reading = read.get(place) ?? templates.for(accountId, name, language);
    read.set(place, reading);
    const template = await reading.catch((error) => {
      if (path === "" || !(error instanceof Problem)) throw error;
      throw invalid(`${path}template`, "is not the name of a template");
    });
    return fill(template, variables ?? {}, { to, path });
  };
}

/** Throws Problem validation_failed if the variables do not fit, or what they make cannot be sent. */
function fill(template: Template, variables: Variables, { to, path }: { to: string; path: string }): TemplateContent {
  checkVariables(template.variables, variables, `${path}variables`);
  const isOfChoices = template.options.length > 0;
  const content: TemplateContent = {
    kind: "template",
    of: isOfChoices ? "choices" : "text",
    version: template.versionId,
    variables,
  };
  const made = contentFrom(template, content);
  if (made.kind === "choices") {
    for (const [i, option] of made.options.entries()) {
      if (!label(100).safeParse(option.label).success) {
        throw invalid(`${path}variables`, `make the label of option ${i + 1} blank or longer than 100 characters`);
      }
    }
    content.style = styleOf("auto", made, to);
    const fault = choicesFault({ ...made, style: content.style });
    if (fault) throw invalid(`${path}variables`, `make choices that cannot be sent: ${fault.path} ${fault.message}`);
  } else if (made.kind === "text" && (made.text.trim() === "" || made.text.length > MAX_TEXT)) {
    throw invalid(`${path}variables`, "make a text that is empty or too long");
  }
  return content;
}
