/** The renderer of errors: every failure becomes RFC 9457 problem+json with a code of the catalogue. */
import { CATALOGUE, Problem } from "../errors.ts";
import { StoreError } from "../store/kv.ts";
import type { ApiContext } from "./context.ts";

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
  return new Problem("internal_error", "The request failed; its requestId finds the reason in the gateway's log.", {
    cause: error,
  });
}

/** The answer for a problem; `headers` that the request has earned so far (CORS, limits) stay. */
export function renderProblem(c: ApiContext, problem: Problem): Response {
  const { code, status, message: detail, extras } = problem;
  if (extras.retryAfterSeconds !== undefined) c.header("retry-after", String(extras.retryAfterSeconds));
  if (status === 401) c.header("www-authenticate", 'ApiKey realm="paloma", header="x-api-key"');
  if (status >= 500) c.set("failure", problem.cause ?? problem);
  const document = {
    type: `/docs#error-${code}`,
    title: CATALOGUE[code].title,
    status,
    detail,
    code,
    requestId: c.get("requestId"),
    ...(extras.errors ? { errors: extras.errors } : {}),
    ...extras.members,
  };
  return c.body(JSON.stringify(document), CATALOGUE[code].status, { "content-type": "application/problem+json" });
}
