/** Fields of choices, for sends and templates. */
import { z } from "@hono/zod-openapi";
import { invalid } from "../../../errors.ts";
import {
  type Choice,
  CHOICE_STYLES,
  type ChoicesContent,
  choicesFault,
  type ChoiceStyle,
  styleFor,
} from "../../../message/kinds/choices.ts";
import { rare } from "../../api/schemas.ts";
import { isGroup } from "../../../whatsapp/chats.ts";
import { label, Text } from "./fields.ts";

const MAX_OPTIONS = 12;

const Option = z.strictObject({
  id: label(256).nullish().meta({
    description: "Comes back in `choice.made`. Defaults to the option's number.",
    example: "delivery",
  }),
  label: label(100).meta({ example: "Delivery" }),
  description: label(100).nullish().meta({ example: "tomorrow, free of charge" }),
}).openapi("ChoiceOption");

export const Options = z.array(Option).min(1).max(MAX_OPTIONS);
export const Footer = label(1_024).meta(rare("Small print below."));

export const choiceFields = {
  text: Text.meta({ example: "How would you like your order?" }),
  footer: Footer.nullish(),
  options: Options,
  style: z.enum(["auto", ...CHOICE_STYLES]).openapi("ChoiceStyle").nullish().meta(rare("Defaults to `auto`.")),
};

/** Returns the options as they are stored. */
export function optionsOf(options: readonly z.infer<typeof Option>[]): Choice[] {
  return options.map(({ id, label, description }, i) => ({
    id: id ?? String(i + 1),
    label,
    description: description ?? null,
  }));
}

/** Returns the content. Throws Problem validation_failed if the style cannot show it. */
export function choicesOf(
  { text, footer, options, style }: z.infer<z.ZodObject<typeof choiceFields>>,
  to: string,
): ChoicesContent {
  const content = { text, footer: footer ?? null, options: optionsOf(options) };
  const made = { ...content, style: styleOf(style, content, to) };
  const fault = choicesFault(made);
  if (fault) throw invalid(fault.path, fault.message);
  return { kind: "choices", ...made };
}

/** Returns the style to send in; `auto` depends on the chat. */
export function styleOf(
  asked: ChoiceStyle | "auto" | null | undefined,
  content: Omit<ChoicesContent, "kind" | "style">,
  to: string,
): ChoiceStyle {
  return asked && asked !== "auto" ? asked : styleFor(isGroup(to), content);
}
