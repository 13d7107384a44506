/** Shared parts of routes that query the network through a line, and cached answers. */
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

/** Common fields of routes about a line, and of routes about a group of a line. */
export const ofSession = { access: "key", params: idParams("session", "ses"), problems } as const;
export const ofGroup = { ...ofSession, params: z.object({ id: idOf("session", "ses"), gid: GroupJid }) } as const;

/** Returns the declarations of a route whose answer is cached (`keptAnswer`). */
export function kept(description: string, data: z.ZodType) {
  const headers = { age: "Seconds since the network was asked" };
  return {
    answers: { 200: { description, schema: z.object({ data }), headers } },
    problems: [...problems, "rate_limited"] satisfies ProblemCode[],
  };
}

/** Answers from the cache, or with a new answer. Throws as `Lookups.answer` does. */
export async function keptAnswer(
  lookups: Pick<Lookups, "answer">,
  question: Parameters<Lookups["answer"]>[0],
): Promise<Answer> {
  const { value, ageSeconds } = await lookups.answer(question);
  return ok({ data: value }, { age: String(ageSeconds) });
}
