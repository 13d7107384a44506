/** Choices: a question with options, in the style in which the recipient's app shows them. */
import type { FieldError } from "../../errors.ts";
import type { Kind, Preview } from "./plain.ts";

export const CHOICE_STYLES = ["numbers", "poll", "buttons", "list"] as const;
export type ChoiceStyle = (typeof CHOICE_STYLES)[number];

export interface Choice {
  id: string;
  label: string;
  description: string | null;
}

export interface ChoicesContent {
  kind: "choices";
  style: ChoiceStyle;
  text: string;
  footer: string | null;
  options: Choice[];
}

/** Limits of the network's polls. */
const POLL_QUESTION = 255;
const POLL_FEWEST = 2;

export const choices: Kind<ChoicesContent> = {
  preview: ({ text }): Preview => ({ text, caption: null, filename: null }),
  characters: ({ text, footer, options }) =>
    text.length + (footer ?? "").length +
    options.reduce((sum, { id, label, description }) => sum + id.length + label.length + (description ?? "").length, 0),
  body({ style, text, footer, options }) {
    switch (style) {
      case "numbers": {
        const lines = options.map(({ label, description }, i) =>
          `${i + 1}. ${label}${description ? ` – ${description}` : ""}`
        );
        return { kind: "text", text: joined(text, lines.join("\n"), footer) };
      }
      case "poll":
        return {
          kind: "poll",
          question: joined(text, footer),
          options: options.map(({ label }) => label),
          multiple: false,
        };
      case "buttons":
      case "list":
        return { kind: "menu", style, text, footer, options };
    }
  },
};

/** Joins the parts of a text, without those that are empty, by blank lines. */
export function joined(...parts: readonly (string | null)[]): string {
  return parts.filter((part) => part).join("\n\n");
}

/** Returns the style for a chat if none is asked for: a poll in a group that can hold it, else numbers. */
export function styleFor(
  isOfGroup: boolean,
  content: Pick<ChoicesContent, "text" | "footer" | "options">,
): ChoiceStyle {
  return isOfGroup && pollFault(content) === null ? "poll" : "numbers";
}

/** Returns the first thing for which the options cannot be sent in the style; null if they can. */
export function choicesFault(content: Omit<ChoicesContent, "kind">): FieldError | null {
  const labels = new Set<string>();
  const ids = new Set<string>();
  for (const [i, { id, label }] of content.options.entries()) {
    const folded = foldedLabel(label);
    if (labels.has(folded)) return { path: `options.${i}.label`, message: "is the label of another option" };
    if (ids.has(id)) return { path: `options.${i}.id`, message: "is the id of another option" };
    labels.add(folded);
    ids.add(id);
  }
  return content.style === "poll" ? pollFault(content) : null;
}

function pollFault({ text, footer, options }: Pick<ChoicesContent, "text" | "footer" | "options">): FieldError | null {
  if (options.length < POLL_FEWEST) return { path: "options", message: "of a poll must be at least two" };
  if (joined(text, footer).length <= POLL_QUESTION) return null;
  return { path: "text", message: `of a poll has, with its footer, at most ${POLL_QUESTION} characters` };
}

/** Returns the option that a text names: by its number, or by its label without regard to case and accents. */
export function chosenBy(text: string, options: readonly Choice[]): Choice | null {
  const number = /^(\d{1,2}) ?[.)]?$/.exec(text.trim())?.[1];
  const numbered = number === undefined ? undefined : options[Number(number) - 1];
  if (numbered) return numbered;
  const folded = foldedLabel(text);
  return options.find(({ label }) => foldedLabel(label) === folded) ?? null;
}

function foldedLabel(label: string): string {
  return label.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim().replace(/\s+/g, " ");
}
