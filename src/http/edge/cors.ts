/**
 * Lets pages of an allowed domain call the API from the browser. The preflight carries no key, so it is answered for
 * every origin; the request itself is then refused by `auth.ts` when the key is not for that domain. No cookies.
 */
import type { ApiContext } from "../api/context.ts";

const REQUEST_HEADERS = "x-api-key, authorization, content-type, idempotency-key, last-event-id";
const RESPONSE_HEADERS = [
  "x-request-id",
  "x-quota-daily-remaining",
  "x-quota-monthly-remaining",
  "retry-after",
  "ratelimit",
  "ratelimit-policy",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
].join(", ");
const PREFLIGHT_SECONDS = "600";

/**
 * Lets the page that asks, if it is one, read the answer; gives the answer to a preflight, which comes where there is no
 * route for OPTIONS. `methodsOf` says which methods a path has; empty for an unknown path.
 */
export function answerOrigin(c: ApiContext, methodsOf?: (path: string) => readonly string[]): Response | null {
  const origin = c.req.header("origin");
  if (origin === undefined) return null;
  const headers = c.get("headers");
  headers["access-control-allow-origin"] = origin;
  headers["vary"] = "origin";
  const isPreflight = c.req.method === "OPTIONS" && c.req.header("access-control-request-method") !== undefined;
  if (!isPreflight || !methodsOf) {
    headers["access-control-expose-headers"] = RESPONSE_HEADERS;
    return null;
  }
  headers["access-control-allow-methods"] = methodsOf(c.req.path).join(", ");
  headers["access-control-allow-headers"] = REQUEST_HEADERS;
  headers["access-control-max-age"] = PREFLIGHT_SECONDS;
  return c.body(null, 204);
}
