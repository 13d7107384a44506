/** Schemas that several resources share. */
import { z } from "@hono/zod-openapi";
import type { IdPrefix } from "../../runtime.ts";

export const Timestamp = z.iso.datetime().openapi({ description: "ISO 8601 UTC", example: "2026-01-15T12:00:00.000Z" });

/** A phone number as the API takes it: what most people type beside the digits is named in the refusal. */
export const PhoneNumber = z.string().regex(
  /^\d{7,15}$/,
  "must be 7 to 15 digits with the country code, without +, spaces or other signs, like 34600111222",
).openapi({ example: "34600111222" });

/** Who a message goes to. */
export const Recipient = z.string().regex(
  /^(\d{7,15}(@s\.whatsapp\.net)?|\d{5,20}@lid|\d{5,25}(-\d{5,25})?@g\.us)$/,
  "must be a number of 7 to 15 digits with the country code, without + or spaces, like 34600111222; " +
    "or a group JID (…@g.us), or a JID that came in an event (…@s.whatsapp.net, …@lid)",
).openapi({
  description: "Number with country code and no `+`, a group JID ending in `@g.us`, or a JID that came in an event",
  example: "34600111222",
});

/** Path parameter `{id}`. What does not look like an id is answered with 404, as any unknown id. */
export function idParams(what: string, prefix: IdPrefix) {
  return z.object({ id: idOf(what, prefix) });
}

export function idOf(what: string, prefix: IdPrefix) {
  return z.string().regex(new RegExp(`^${prefix}_[0-9a-z]{26}$`)).openapi({
    description: `Id of the ${what}`,
    example: `${prefix}_01kf0m3e4v8s2q6w9x1y5z7abc`,
  });
}

/** Query parameter: a whole number. */
export function queryInt(options: { minimum: number; maximum: number; fallback: number }) {
  const { minimum, maximum, fallback } = options;
  return z.string().regex(/^\d{1,10}$/, "must be a whole number").default(String(fallback)).transform(Number)
    .pipe(z.number().min(minimum, `must be at least ${minimum}`).max(maximum, `must be at most ${maximum}`))
    .openapi({ type: "integer", minimum, maximum, default: fallback, example: fallback });
}

/** A time of a record, ISO 8601 UTC. */
export function isoTime(at: number): string {
  return new Date(at).toISOString();
}

export function isoTimeOrNull(at: number | null): string | null {
  return at === null ? null : isoTime(at);
}
