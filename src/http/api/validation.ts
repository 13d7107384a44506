/** Holds what came against a schema, and says what is wrong where. */
import type { z } from "@hono/zod-openapi";
import { type FieldError, Problem } from "../../errors.ts";

/** A request with a thousand mistakes is told the first of them. */
const MAX_ERRORS = 50;
/** Of the name of an unknown field, which may be as long as the body. */
const MAX_NAME = 100;

/** The parsed value. Throws Problem validation_failed. */
export function validate<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.flatMap(errorsOf);
  const first = `${errors[0]!.path}: ${errors[0]!.message}`;
  const more = errors.length - 1;
  throw new Problem("validation_failed", more > 0 ? `${first} (and ${more} more)` : first, {
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
  return [{
    path: issue.path.join(".") || "body",
    message: /received undefined$/.test(issue.message) ? "is required" : issue.message,
  }];
}
