/** What is asked of the network through a line: what these routes share, and answers that are kept for a while. */
import { z } from "@hono/zod-openapi";
import type { ProblemCode } from "../../errors.ts";
import type { Lookups } from "../../line/lookups.ts";
import { type Answer, ok } from "../api/route.ts";
import { GroupJid, idOf, idParams } from "../api/schemas.ts";

const problems: ProblemCode[] = [
  "not_found",
  "session_not_connected",
  "network_forbidden",
  "network_conflict",
  "network_error",
  "network_timeout",
];

/** A route about a line, and one about a group that it is in. */
export const ofSession = { access: "key", params: idParams("session", "ses"), problems } as const;
export const ofGroup = { ...ofSession, params: z.object({ id: idOf("session", "ses"), gid: GroupJid }) } as const;

/** What a route declares whose answer is kept: `keptAnswer` makes it. */
export function kept(description: string, data: z.ZodType) {
  const headers = { age: "Seconds since the network was asked" };
  return {
    answers: { 200: { description, schema: z.object({ data }), headers } },
    problems: [...problems, "rate_limited"] satisfies ProblemCode[],
  };
}

/** The answer that is kept, or a new one. Throws as `Lookups.answer`. */
export async function keptAnswer(
  lookups: Pick<Lookups, "answer">,
  question: Parameters<Lookups["answer"]>[0],
): Promise<Answer> {
  const { value, ageSeconds } = await lookups.answer(question);
  return ok({ data: value }, { age: String(ageSeconds) });
}
