/** The official API's template components as our templates' texts, and back. */
import type { Template } from "../message/templates/template.ts";
import { wrongParameter } from "./errors.ts";
import { type Fields, list, text } from "./fields.ts";
import { mediaIdOf as digitsOf } from "./media_id.ts";

/** The header's numbered variables, which are counted apart from the body's, get this prefix. */
const OF_HEADER = "header_";

/** Returns the variable in the address of the button at the index. */
export function urlVariable(index: number): string {
  return `button_${index}`;
}

/** Returns the texts of the components, as `POST /v1/templates` takes them. Throws CloudError. */
export function textsOf(components: readonly Fields[]): Fields {
  const texts: Fields = {};
  const lines: string[] = [];
  for (const component of components) {
    switch (String(component.type).toUpperCase()) {
      case "HEADER":
        if (String(component.format ?? "TEXT").toUpperCase() !== "TEXT") {
          throw wrongParameter("components: a header must be a TEXT");
        }
        texts.header = text(component, "text").replaceAll(/\{\{ *(\d+) *\}\}/g, `{{${OF_HEADER}$1}}`);
        break;
      case "BODY":
        texts.text = text(component, "text");
        break;
      case "FOOTER":
        texts.footer = text(component, "text");
        break;
      case "BUTTONS":
        for (const [index, button] of list(component, "buttons").entries()) {
          if (String(button.type).toUpperCase() === "QUICK_REPLY") {
            const label = text(button, "text");
            texts.options = [...(texts.options as Fields[] ?? []), { id: label, label }];
          } else lines.push(lineOf(button, index));
        }
        break;
      default:
        throw wrongParameter("components: HEADER, BODY, FOOTER and BUTTONS are supported");
    }
  }
  if (lines.length > 0) texts.text = [texts.text, ...lines].join("\n\n");
  return texts;
}

/** A button that opens something is a line below the text. */
function lineOf(button: Fields, index: number): string {
  const label = text(button, "text");
  switch (String(button.type).toUpperCase()) {
    case "URL":
      return `${label}: ${text(button, "url").replaceAll(/\{\{ *1 *\}\}/g, `{{${urlVariable(index)}}}`)}`;
    case "PHONE_NUMBER":
      return `${label}: ${text(button, "phone_number")}`;
    default:
      throw wrongParameter("components: buttons are QUICK_REPLY, URL and PHONE_NUMBER");
  }
}

/** Returns the template as the official API lists it. */
export function shownTemplate(
  { name, language, category = "UTILITY", header, text, footer, options, variables, versionId }: Template,
): Fields {
  const isNumbered = variables.every((name) => /^(\d+|header_\d+|button_\d+)$/.test(name));
  const buttons = options.map(({ label }) => ({ type: "QUICK_REPLY", text: label }));
  return {
    id: digitsOf(versionId),
    name,
    language,
    status: "APPROVED",
    category,
    parameter_format: isNumbered ? "POSITIONAL" : "NAMED",
    components: [
      ...(header === null ? [] : [{ type: "HEADER", format: "TEXT", text: header.replaceAll(`{{${OF_HEADER}`, "{{") }]),
      { type: "BODY", text },
      ...(footer === null ? [] : [{ type: "FOOTER", text: footer }]),
      ...(buttons.length === 0 ? [] : [{ type: "BUTTONS", buttons }]),
    ],
  };
}
