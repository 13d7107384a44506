/** Turns what a schema complains about into `validation_failed` with paths like `messages.2.to`. */
import type { z } from "@hono/zod-openapi";
import { type FieldError, Problem } from "../../errors.ts";

/** A request with a thousand mistakes is told the first of them. */
const MAX_ERRORS = 50;

/** The parsed value. Throws Problem validation_failed. */
export function validate<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors: FieldError[] = result.error.issues.slice(0, MAX_ERRORS).map((issue) => ({
    path: issue.path.join(".") || "body",
    message: /received undefined$/.test(issue.message) ? "is required" : issue.message,
  }));
  const more = result.error.issues.length - 1;
  const first = `${errors[0]!.path}: ${errors[0]!.message}`;
  throw new Problem("validation_failed", more > 0 ? `${first} (and ${more} more)` : first, { errors });
}
