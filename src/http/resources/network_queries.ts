/** Shared parts of routes that query the network through a line: cached answers, bodies of changes, pictures. */
import { Buffer } from "node:buffer";
import { z } from "@hono/zod-openapi";
import { invalid, type ProblemCode } from "../../errors.ts";
import type { LiveConnection } from "../../line/live.ts";
import { type Api, ok, type Route } from "../api/route.ts";
import { GroupJid, idParams } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const MOST_PICTURE_BYTES = 1024 * 1024;

const problems: ProblemCode[] = [
  "not_found",
  "session_not_connected",
  "network_forbidden",
  "network_conflict",
  "network_error",
  "network_timeout",
];

/** Common fields of routes about a line, and of routes about a group of a line. */
export const ofSession = { params: idParams("session", "ses"), problems };
export const ofGroup = { ...ofSession, params: ofSession.params.extend({ gid: GroupJid }) };

/** Returns the declarations of a route whose answer is cached (`makeKept`). */
export function kept(description: string, data: z.ZodType) {
  const headers = { age: "Age of a cached answer, in seconds." };
  return {
    answers: { 200: { description, schema: z.object({ data }), headers } },
    problems: [...problems, "rate_limited"] satisfies ProblemCode[],
  };
}

/**
 * Returns what attaches the handler of such a route, which asks the line of the path: about what, and how. Answers are
 * cached for `maxAgeMs`. Throws as `Lookups.answer` does.
 */
export function makeKept(api: Api, { lines, lookups }: Services, maxAgeMs: number) {
  return <Params extends { id: string }>(
    route: Route<Params, undefined, undefined>,
    about: (params: Params) => string,
    ask: (connection: LiveConnection, params: Params) => Promise<unknown>,
  ): void =>
    api.on(route, async ({ accountId, params }) => {
      const connection = await lines.connection(accountId, params.id);
      const question = { lineId: params.id, about: about(params), maxAgeMs, ask: () => ask(connection, params) };
      const { value, ageSeconds } = await lookups.answer(question);
      return ok({ data: value }, { age: String(ageSeconds) });
    });
}

/** Returns the schema of a body of changes. Each may be omitted or null, but not all. */
export function changes<T extends z.ZodRawShape>(name: string, shape: T) {
  return z.strictObject(shape).transform(given)
    .refine((fields) => Object.keys(fields).length > 0, "holds nothing to change")
    .openapi(name, { minProperties: 1 });
}

/** Returns the fields that are not null. */
export function given<T extends object>(fields: T): { [Name in keyof T]: Exclude<T[Name], null> } {
  const some = Object.entries(fields).filter(([, value]) => value !== null);
  return Object.fromEntries(some) as { [Name in keyof T]: Exclude<T[Name], null> };
}

/** A picture in a body, for `jpegOf`. */
export const Jpeg = z.string().max(1_500_000).describe(
  "A square JPEG of at most 1 MiB, in base64, optionally with the prefix `data:image/jpeg;base64,`. An " +
    "empty string removes the picture.",
);

/**
 * Returns the bytes of a `picture`; null: remove it; undefined: leave it as it is. Throws Problem validation_failed.
 */
export function jpegOf(picture: string | undefined): Uint8Array | null | undefined {
  if (picture === undefined) return undefined;
  if (picture === "") return null;
  const text = picture.replace(/^data:image\/jpeg;base64,/, "");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw invalid("picture", "is not base64");
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  if (bytes.length > MOST_PICTURE_BYTES) throw invalid("picture", "is larger than 1 MiB");
  if (bytes[0] !== 0xff || bytes[1] !== 0xd8 || bytes[2] !== 0xff) throw invalid("picture", "is not a JPEG");
  return bytes;
}
