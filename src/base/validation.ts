/** Validates values against schemas, and reports each error with its path. */
import type { z } from "@hono/zod-openapi";
import { yielding } from "./batches.ts";
import { type FieldError, Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";

/** Most errors reported for one request. */
const MAX_ERRORS = 50;
/** Most characters reported of an unknown field's name, which may be as long as the body. */
const MAX_NAME = 100;

/** Returns the parsed value. Throws Problem validation_failed. */
export function validate<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value, { error: words });
  if (result.success) return result.data;
  throw refusal(result.error.issues.flatMap(errorsOf));
}

/** The member of a body that is a long list, and the most items that its schema allows. */
export interface LongList {
  name: string;
  most: number;
}

/** Items validated at a time, which takes about a millisecond. */
const AT_ONCE = 100;

/**
 * As `validate`, but in batches between which the thread is free; stops once there are more errors than are reported.
 * The schema must validate each item of the list independently of the others.
 */
export async function validateInPieces(
  schema: z.ZodType,
  value: unknown,
  { list: { name, most }, clock }: { list: LongList; clock: Clock },
): Promise<unknown> {
  if (typeof value !== "object" || value === null) return validate(schema, value);
  const items: unknown = Reflect.get(value, name);
  if (!Array.isArray(items) || items.length <= AT_ONCE || items.length > most) return validate(schema, value);
  const starts = Array.from({ length: Math.ceil(items.length / AT_ONCE) }, (_, i) => i * AT_ONCE);
  const valid: unknown[] = [];
  const errors: FieldError[] = [];
  let last: unknown;
  for await (const first of yielding(starts, clock, 1)) {
    const result = schema.safeParse({ ...value, [name]: items.slice(first, first + AT_ONCE) }, {
      error: words,
    });
    if (result.success) {
      valid.push(...(result.data as Record<string, unknown[]>)[name]!);
      last = result.data;
      continue;
    }
    for (const issue of result.error.issues) {
      const [member, index, ...rest] = issue.path;
      const ofItem = member === name && typeof index === "number";
      // Errors in the rest of the body are found again with each batch.
      if (!ofItem && first > 0) continue;
      const path = ofItem
        ? [name, first + index, ...rest]
        : [member, index, ...rest].filter((part) => part !== undefined);
      errors.push(...errorsOf({ ...issue, path }));
    }
    if (errors.length > MAX_ERRORS) break;
  }
  if (errors.length > 0) throw refusal(errors);
  return { ...last as object, [name]: valid };
}

/** Returns the problem of a request with these faults. */
export function refusal(errors: readonly FieldError[]): Problem {
  const first = `${errors[0]!.path}: ${errors[0]!.message}`;
  const more = errors.length - 1;
  return new Problem("validation_failed", more > 0 ? `${first} (and ${more} more)` : first, {
    errors: errors.slice(0, MAX_ERRORS),
  });
}

/** Paths read like `messages.2.to`. Each unknown field is an error of its own. */
function errorsOf(issue: z.core.$ZodIssue): FieldError[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      path: [...issue.path, key.slice(0, MAX_NAME)].join("."),
      message: "is not a known field",
    }));
  }
  return [{ path: issue.path.join(".") || "body", message: issue.message }];
}

const KINDS: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a text",
};

const FORMATS: Record<string, string> = {
  date: "must be a day, like 2026-01-15",
  datetime: "must be a time with its zone, like 2026-01-15T12:00:00Z",
};

/** Returns our message for an issue for which the schema has none. */
const words: z.core.$ZodErrorMap = (issue) => {
  if (issue.input === undefined || issue.input === null) return "is required";
  switch (issue.code) {
    case "invalid_type":
      return `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.join(", ")}`;
    case "invalid_union":
      return Array.isArray(issue["options"]) ? `must be one of ${issue["options"].join(", ")}` : undefined;
    case "invalid_format":
      return FORMATS[issue.format];
    case "too_small":
      if (issue.origin === "array" || issue.origin === "string") {
        return issue.minimum === 1 ? "is empty" : `must have at least ${count(issue.minimum, issue.origin)}`;
      }
      return `must be at least ${issue.minimum}`;
    case "too_big":
      if (issue.origin === "array" || issue.origin === "string") {
        return `has more than ${count(issue.maximum, issue.origin)}`;
      }
      return `must be at most ${issue.maximum}`;
  }
};

function count(number: number | bigint, origin: string): string {
  return `${number.toLocaleString("en")} ${origin === "array" ? "items" : "characters"}`;
}
