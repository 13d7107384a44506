/** Schemas shared by several resources. */
import { z } from "@hono/zod-openapi";
import { HOLDS, type WaitsFor as Waits } from "../../line/waiting.ts";
import type { IdPrefix } from "../../runtime.ts";

/** Returns the envelope of most answers: `{ data }`. */
export function data(description: string, schema: z.ZodType): { description: string; schema: z.ZodType } {
  return { description, schema: z.object({ data: schema }) };
}

export const Timestamp = z.iso.datetime().openapi({
  description: "ISO 8601, UTC.",
  example: "2026-01-15T12:00:00.000Z",
});

/** The schema, or null. Of a schema with a name, `nullable()` would make null a part. */
export function orNull<Schema extends z.ZodType>(schema: Schema): z.ZodUnion<[Schema, z.ZodNull]> {
  return z.union([schema, z.null()]);
}

/** Refuses line breaks and control characters, because names appear in tables, on terminals and in events. */
export function oneLine(name: z.ZodString): z.ZodString {
  return name.refine((text) => !/[\p{Cc}\p{Cs}]/u.test(text), "must be one line, without control characters");
}

/** A phone number. The refusal names what people commonly type besides digits. */
export const PhoneNumber = z.string().regex(
  /^\d{7,15}$/,
  "must be 7 to 15 digits with the country code, without +, spaces or other signs, like 34600111222",
).openapi({ example: "34600111222" });

/** Path parameter: a person, whose number the network may never have revealed. */
export const NumberOrLid = z.string().regex(/^(\d{7,15}|\d{5,20}@lid)$/, "must be 7 to 15 digits, or an …@lid").openapi(
  {
    description: "Phone number with country code, without `+`, or a JID ending in `@lid`.",
    example: "34600111222",
  },
);

/** The recipient of a message. */
export const Recipient = z.string().regex(
  /^(\d{7,15}(@s\.whatsapp\.net)?|\d{5,20}@lid|\d{5,25}(-\d{5,25})?@g\.us)$/,
  "must be a number of 7 to 15 digits with the country code, without + or spaces, like 34600111222; " +
    "or a group JID (…@g.us), or a JID that came in an event (…@s.whatsapp.net, …@lid)",
).openapi({
  description: "Phone number with country code, without `+`; a group JID ending in `@g.us`; or a JID from an event.",
  example: "34600111222",
});

/** Path parameter: a group. Anything that does not look like a group's JID is answered with 404. */
export const GroupJid = z.string().regex(/^\d{5,25}(-\d{5,25})?@g\.us$/, "is not the JID of a group (…@g.us)").openapi({
  description: "JID of the group.",
  example: "120363025246125486@g.us",
});

/** Path parameter `{id}`. Text that does not look like an id is answered with 404, as an unknown id is. */
export function idParams(what: string, prefix: IdPrefix) {
  return z.object({ id: idOf(what, prefix) });
}

export function idOf(what: string, prefix: IdPrefix) {
  return z.string().regex(
    new RegExp(`^${prefix}_[0-9a-z]{26}$`),
    `is not the id of ${/^[aeiou]/.test(what) ? "an" : "a"} ${what}`,
  ).openapi({
    description: `Id of the ${what}.`,
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

/** Query parameters of a paginated list. */
export const pageQuery = {
  page: queryInt({ minimum: 1, maximum: 1_000_000_000, fallback: 1 }),
  limit: queryInt({ minimum: 1, maximum: 100, fallback: 20 }),
};

/** The position of a page in its list. */
export const Pagination = z.object({
  page: z.int(),
  limit: z.int(),
  total: z.int().openapi({ description: "Number of items on all pages." }),
}).openapi("Pagination");

/** Returns the answer with a page of a list. */
export function pageOf(item: z.ZodType, pagination: z.ZodType = Pagination) {
  return { description: "A page of results", schema: z.object({ data: z.array(item), pagination }) };
}

/** Returns a time, Unix ms, as ISO 8601 UTC. */
export function isoTime(at: number): string {
  return new Date(at).toISOString();
}

export function isoTimeOrNull(at: number | null): string | null {
  return at === null ? null : isoTime(at);
}

/** What a message, or a whole queue, waits for besides its turn. */
export const WaitsFor = z.object({
  kind: z.enum(HOLDS).openapi({
    description: "`schedule`: waits for its `sendAt`. `paused`: the queue is paused. `hours`: outside the plan's " +
      "sending hours. `new_chats`: the plan or WhatsApp does not allow the session to start more chats for now.",
  }),
  until: Timestamp.nullable().openapi({ description: "When sending resumes; null if no time is known." }),
}).openapi("WaitsFor", {
  description: "What holds the message or queue back, apart from its turn. Absent or null if nothing does.",
});

export function waitsForOf({ kind, until }: Waits): z.infer<typeof WaitsFor> {
  return { kind, until: isoTimeOrNull(until) };
}
