/** Templates: texts with variables, `{{name}}` or `{{1}}`, that are filled in for each recipient. */
import { type FieldError, Problem } from "../../errors.ts";
import { type Choice, joined } from "../kinds/choices.ts";

/** What people wrote; each text may hold variables. */
export interface TemplateBody {
  text: string;
  header: string | null;
  footer: string | null;
  options: Choice[];
}

/** One version of a template, which never changes: messages that wait refer to it. */
export interface TemplateVersion extends TemplateBody {
  id: string;
  accountId: string;
  /** When it was replaced or deleted, Unix ms; absent while it is the current one. */
  retiredAt?: number;
}

/** A template's name and language, and its current version. */
export interface TemplateRow {
  accountId: string;
  name: string;
  language: string;
  versionId: string;
  createdAt: number;
  updatedAt: number;
  /** What the official API's shape calls it, if it was created there. */
  category?: string;
}

export interface Template extends TemplateBody, TemplateRow {
  /** In the order of their first use. */
  variables: string[];
}

export type Variables = Readonly<Record<string, string>>;

const VARIABLE = /\{\{ {0,9}([A-Za-z_][A-Za-z0-9_]{0,63}|[1-9][0-9]?) {0,9}\}\}/g;

/** Returns the names of the variables, in the order of their first use. */
export function variablesOf({ header, text, footer, options }: TemplateBody): string[] {
  const texts = [header, text, footer, ...options.flatMap(({ label, description }) => [label, description])];
  return [...new Set(texts.flatMap(variablesIn))];
}

/** As `variablesOf`, of one text. */
export function variablesIn(text: string | null): string[] {
  return [...new Set([...(text ?? "").matchAll(VARIABLE)].map(([, name]) => name!))];
}

/** Throws Problem validation_failed, with the path below `path`, unless the variables are exactly the template's. */
export function checkVariables(wanted: readonly string[], given: Variables, path: string): void {
  const errors: FieldError[] = [
    ...wanted.filter((name) => !Object.hasOwn(given, name)).map((name) => ({ name, message: "is required" })),
    ...Object.keys(given).filter((name) => !wanted.includes(name))
      .map((name) => ({ name, message: "is not a variable of the template" })),
  ].map(({ name, message }) => ({ path: `${path}.${name}`, message }));
  if (errors.length === 0) return;
  const [{ path: first, message }] = errors as [FieldError];
  throw new Problem("validation_failed", `${first}: ${message}`, { errors });
}

/** Returns the texts with the variables filled in. */
export function render(body: TemplateBody, variables: Variables): Pick<TemplateBody, "text" | "footer" | "options"> {
  const filled = (text: string) => text.replace(VARIABLE, (_, name: string) => variables[name] ?? "");
  const header = body.header && filled(body.header);
  return {
    // WhatsApp shows a heading of a plain text in bold.
    text: joined(header && `*${header}*`, filled(body.text)),
    footer: body.footer && filled(body.footer),
    options: body.options.map(({ id, label, description }) => ({
      id,
      label: filled(label),
      description: description && filled(description),
    })),
  };
}
