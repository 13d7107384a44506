/** A message made from a template: the row holds its variables alone, and is filled in where it is read as a text. */
import type { Variables } from "../templates/template.ts";
import type { ChoiceStyle } from "./choices.ts";
import type { Kind } from "./plain.ts";

export interface TemplateContent {
  kind: "template";
  /** The kind as which it is shown. */
  of: "text" | "choices";
  /** The id of the template's version. */
  version: string;
  variables: Variables;
  /** Of choices. */
  style?: ChoiceStyle;
  /** Ids that stand for those of the options, by place. */
  optionIds?: Readonly<Record<number, string>>;
}

/** What a row has in place of its texts until `filled` puts them in (`templates/filled.ts`). */
export const template: Kind<TemplateContent> = {
  preview: () => ({ text: null, caption: null, filename: null }),
  characters: ({ version, variables, optionIds = {} }) =>
    Object.entries<string>({ ...variables, ...optionIds })
      .reduce((sum, [name, value]) => sum + name.length + value.length, version.length),
  body: () => {
    throw new Error("a message from a template must be filled in before it is sent");
  },
};
