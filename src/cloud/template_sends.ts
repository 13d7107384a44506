/** The official API's template messages: components whose parameters are given by place or by name. */
import type { Account } from "../account/account.ts";
import { Language, makeContentOf, TemplateName } from "../http/resources/sends/template.ts";
import { Problem } from "../errors.ts";
import type { TemplateContent } from "../message/kinds/template.ts";
import { type Template, variablesIn } from "../message/templates/template.ts";
import type { Templates } from "../message/templates/templates.ts";
import { CloudError, wrongParameter } from "./errors.ts";
import { type Fields, listIn, object, objectIn, text } from "./fields.ts";
import { urlVariable } from "./template_components.ts";

/** Returns the content. Throws CloudError, Problem. */
export async function templateOf(
  part: Fields,
  { account, to, templates }: { account: Pick<Account, "id">; to: string; templates: Pick<Templates, "for"> },
): Promise<TemplateContent> {
  const name = text(part, "name");
  const language = part.language === undefined ? null : String(object(part, "language").code);
  const missing = () => new CloudError(132001, `There is no template ${name.slice(0, 200)} in ${language}.`, 404);
  if (!TemplateName.safeParse(name).success) throw missing();
  if (language !== null && !Language.safeParse(language).success) throw missing();
  const template = await templates.for(account.id, name, language).catch((error) => {
    throw error instanceof Problem ? missing() : error;
  });
  const variables = new Map<string, string>();
  const optionIds: Record<number, string> = {};
  for (const component of listIn(part, "components")) {
    const parameters = listIn(component, "parameters");
    const type = String(component.type).toLowerCase();
    if (type === "button") {
      const [parameter = {}] = parameters;
      const index = Number(component.index);
      const kind = String(component.sub_type).toLowerCase();
      if (kind === "quick_reply" && index in template.options) optionIds[index] = text(parameter, "payload", 256);
      else if (kind === "url") set(variables, urlVariable(index), text(parameter, "text"));
      else throw wrongParameter("template.components: the template has no such button");
      continue;
    }
    const names = namesIn(template, type);
    for (const [i, parameter] of parameters.entries()) {
      const named = parameter.parameter_name ?? names[i];
      if (named === undefined) throw wrongParameter(`template.components: the ${type} has ${names.length} parameters`);
      set(variables, variableOf(template, type, String(named)), valueOf(parameter));
    }
  }
  const contentOf = makeContentOf({ for: () => Promise.resolve(template) }, account.id);
  const content = await contentOf({ template: name, variables: Object.fromEntries(variables) }, { to, path: "" });
  return Object.keys(optionIds).length > 0 ? { ...content, optionIds } : content;
}

/** Returns the variables of a part: numbers in their order, names in that of their use. */
function namesIn(template: Template, type: string): string[] {
  if (type !== "header" && type !== "body") {
    throw wrongParameter("template.components: header, body and button are supported");
  }
  const names = variablesIn(type === "header" ? template.header : template.text);
  return names.every((name) => /^\d+$/.test(name)) ? names.sort((a, b) => Number(a) - Number(b)) : names;
}

/** Returns the variable that a name of the official API means: the header's are told from the body's by a prefix. */
function variableOf({ variables }: Template, type: string, name: string): string {
  const prefixed = `${type}_${name}`;
  return type === "header" && variables.includes(prefixed) ? prefixed : name;
}

function set(variables: Map<string, string>, name: string, value: string): void {
  if (variables.has(name) && variables.get(name) !== value) {
    throw wrongParameter(`template.components give ${name} twice`);
  }
  variables.set(name, value);
}

function valueOf(parameter: Fields): string {
  switch (parameter.type ?? "text") {
    case "text":
      return text(parameter, "text");
    case "currency":
    case "date_time":
      return text(objectIn(parameter, String(parameter.type)), "fallback_value");
    default:
      throw wrongParameter("template.components: parameters are text, currency or date_time");
  }
}
