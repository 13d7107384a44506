/** Schemas shared by several resources. */
import { AsyncLocalStorage } from "node:async_hooks";
import { z } from "@hono/zod-openapi";
import { readNumber } from "../../base/phone_number.ts";
import { HOLDS, type WaitsFor as Waits } from "../../line/waiting.ts";
import type { IdPrefix } from "../../runtime.ts";

/** Documentation of optional fields. They have no example, because the reference's form sends the examples. */
export const rare = (description: string) => ({ description, example: undefined });

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

/** The country of the account whose request is read, which completes national numbers. */
export const homeCountry = new AsyncLocalStorage<string>();

const PERSON_JID = /^(\d{7,15}@(s\.whatsapp\.net|c\.us)|\d{5,20}@lid)$/;
const GROUP_JID = /^\d{5,25}(-\d{5,25})?@g\.us$/;
const USERNAME = /^@?[a-zA-Z0-9_.]{3,35}$/;
const AT_USERNAME = /^@[a-zA-Z0-9_.]{3,35}$/;
const LID = /^\d{5,20}@lid$/;

/** A number as people write it, or one of these JIDs; the value is digits or the JID. */
function numberOr(jids: RegExp | null, { refusal, description }: { refusal: string; description: string }) {
  return z.string().max(100).transform((text, { issues }) => {
    const { value, why } = /[\p{L}@]/u.test(text) ? readJid(text.trim()) : readDigits(text);
    // A union that this is a part of reports the issue only if the value is said to be of the right kind.
    if (why !== null) issues.push({ code: "custom", message: why, input: text, continue: true });
    return value;
  }).openapi({ description, example: "447700900123" });

  function readDigits(text: string) {
    const { digits, why } = readNumber(text, homeCountry.getStore() ?? null);
    return { value: digits ?? text, why };
  }

  function readJid(text: string) {
    if (!jids?.test(text)) return { value: text, why: refusal };
    return { value: text.replace(/@c\.us$/, "@s.whatsapp.net"), why: null };
  }
}

const WRITTEN = "Phone number with country code. Signs that people write in numbers are dropped.";

export const PhoneNumber = numberOr(null, {
  refusal: "must be a phone number with its country code, like 447700900123",
  description: WRITTEN,
});

/** A person, whose number the network may never have revealed. */
export const NumberOrLid = numberOr(LID, {
  refusal: "must be a phone number with its country code, or an …@lid",
  description: `${WRITTEN} Or a JID ending in \`@lid\`.`,
});

export const Person = numberOr(PERSON_JID, {
  refusal: "must be a phone number with its country code, or a person's JID (…@s.whatsapp.net, …@lid)",
  description: `${WRITTEN} Or a person's JID.`,
});

/** A chat. */
export const Recipient = numberOr(new RegExp(`${PERSON_JID.source}|${GROUP_JID.source}`), {
  refusal: "must be a phone number with its country code, a group JID (…@g.us), or a JID that came in an event " +
    "(…@s.whatsapp.net, …@lid)",
  description: `${WRITTEN} Or a group JID ending in \`@g.us\`, or a JID from an event.`,
});

/** A username, with or without an @ before it. */
export const Username = z.string().regex(USERNAME, "is no username").openapi({ example: "joao" });

/** The recipient of a message: a username too. */
export const Addressee = numberOr(new RegExp(`${PERSON_JID.source}|${GROUP_JID.source}|${AT_USERNAME.source}`), {
  refusal: "must be a phone number with its country code, a group JID (…@g.us), a JID that came in an event " +
    "(…@s.whatsapp.net, …@lid), or a username after an @",
  description: `${WRITTEN} Or a group JID ending in \`@g.us\`, a JID from an event, or a username like \`@joao\`.`,
});

/** Path parameter: a group. Anything that does not look like a group's JID is answered with 404. */
export const GroupJid = z.string().regex(GROUP_JID, "is not the JID of a group (…@g.us)").openapi({
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
  total: z.int().describe("Number of items on all pages."),
}).openapi("Pagination");

/** Returns the answer with a page of a list. */
export function pageOf(item: z.ZodType, pagination: z.ZodType = Pagination) {
  return { description: "A page of results", schema: z.object({ data: z.array(item), pagination }) };
}

/** Returns the answer with a page of a list that is read by cursor. */
export function pageBy(description: string, item: z.ZodType, next = "Leads to the next page; null on the last one.") {
  return { description, schema: z.object({ data: z.array(item), next: z.string().nullable().describe(next) }) };
}

/** Returns a time, Unix ms, as ISO 8601 UTC. */
export function isoTime(at: number): string {
  return new Date(at).toISOString();
}

export function isoTimeOrNull(at: number | null): string | null {
  return at === null ? null : isoTime(at);
}

type IsoTimes<Times> = { [Name in keyof Times]: Times[Name] extends number ? string : string | null };

/** Returns the times, Unix ms, as ISO 8601 UTC. */
export function isoTimes<Times extends Record<string, number | null>>(times: Times): IsoTimes<Times> {
  return Object.fromEntries(Object.entries(times).map(([name, at]) => [name, isoTimeOrNull(at)])) as IsoTimes<Times>;
}

/** Returns the record in the form of the schema: the fields of `own`, and the record's for all others. */
export function shownAs<Schema extends z.ZodObject, Own extends Partial<z.infer<Schema>>>(
  { shape }: Schema,
  record: Omit<z.infer<Schema>, keyof Own>,
  own: Own,
): z.infer<Schema> {
  const all: Record<string, unknown> = { ...record, ...own };
  return Object.fromEntries(Object.keys(shape).map((name) => [name, all[name]])) as z.infer<Schema>;
}

/** What a message, or a whole queue, waits for besides its turn. */
export const WaitsFor = z.object({
  kind: z.enum(HOLDS).describe(
    "`approval`: a person has to approve it. `schedule`: waits for its `sendAt`. `paused`: the queue is paused. `line`: the session is not connected. " +
      "`hours`: outside the plan's sending hours. `new_chats`: the plan or WhatsApp does not allow the session to start more chats for now.",
  ),
  until: Timestamp.nullable().describe("When sending resumes; null if no time is known."),
}).openapi("WaitsFor", {
  description: "What holds the message or queue back, apart from its turn. Absent or null if nothing does.",
});

export function waitsForOf({ kind, until }: Waits): z.infer<typeof WaitsFor> {
  return { kind, until: isoTimeOrNull(until) };
}
