/** Parameters, bodies and problems, handled the same way in all routes of the control API. */
import type { Context } from "@hono/hono";
import { z } from "zod";
import { notFound, Problem } from "../../errors.ts";
import type { Phone } from "../phone/phone.ts";

export const number = z.string().regex(/^\d{7,15}$/, "must be 7 to 15 digits");

/** Returns the phone in the request's path. Throws Problem not_found. */
export function phoneOf(c: Context, network: { phone(number: string): Phone | null }): Phone {
  const phone = network.phone(c.req.param("number") ?? "");
  if (!phone) throw notFound("phone");
  return phone;
}

/** Parses the body with the schema. Throws Problem malformed_json or validation_failed. */
export async function body<T extends z.ZodType>(c: Context, schema: T): Promise<z.infer<T>> {
  return parse(schema, await readJson(c));
}

export async function readJson(c: Context): Promise<unknown> {
  try {
    return await c.req.json();
  } catch {
    throw new Problem("malformed_json", "The body must be JSON.");
  }
}

export function parse<T extends z.ZodType>(schema: T, json: unknown): z.infer<T> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  const [first] = errors;
  throw new Problem("validation_failed", `${first?.path || "body"}: ${first?.message}`, { errors });
}

export function render({ code, status, message, extras }: Problem): Response {
  const problem = { code, status, detail: message, errors: extras.errors };
  return Response.json(problem, { status, headers: { "content-type": "application/problem+json" } });
}
