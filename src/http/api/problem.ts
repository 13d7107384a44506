/** The renderer of errors: every failure becomes RFC 9457 problem+json with a code of the catalogue. */
import { CATALOGUE, Problem } from "../../errors.ts";
import { StoreError } from "../../store/kv.ts";
import { NetworkRefusal, NetworkTimeout } from "../../whatsapp/connection.ts";
import type { ApiContext } from "./context.ts";
import { answerJson } from "./json_answer.ts";

/** Seconds after which it makes sense to try again when the storage is in trouble. */
const STORAGE_RETRY_SECONDS = 5;

/** The problem that an error is; whatever nobody foresaw is `internal_error` and tells the client nothing. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof StoreError) {
    return new Problem("storage_unavailable", "The request was not carried out; try again later.", {
      retryAfterSeconds: STORAGE_RETRY_SECONDS,
      cause: error,
    });
  }
  if (error instanceof NetworkRefusal) return new Problem("network_error", error.message, { cause: error });
  if (error instanceof NetworkTimeout) return new Problem("network_timeout", error.message, { cause: error });
  return new Problem("internal_error", "The request failed; its requestId finds the reason in the gateway's log.", {
    cause: error,
  });
}

/** The answer for a problem. */
export function renderProblem(c: ApiContext, problem: Problem): Response {
  const { status, extras } = problem;
  const headers: Record<string, string> = { "content-type": "application/problem+json" };
  if (extras.retryAfterSeconds !== undefined) headers["retry-after"] = String(extras.retryAfterSeconds);
  if (status === 401) headers["www-authenticate"] = 'ApiKey realm="paloma", header="x-api-key"';
  if (status >= 500) c.set("failure", problem.cause ?? problem);
  return answerJson(c, { status, body: problemDocument(problem, c.get("requestId")), headers });
}

/** RFC 9457, with this API's own members. */
export function problemDocument({ code, status, message: detail, extras }: Problem, requestId: string): object {
  return {
    type: `/docs#error-${code}`,
    title: CATALOGUE[code].title,
    status,
    detail,
    code,
    requestId,
    ...(extras.errors ? { errors: extras.errors } : {}),
    ...extras.members,
  };
}
