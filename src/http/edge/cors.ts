/**
 * Lets pages of an allowed domain call the API from a browser. A preflight carries no key, so it succeeds for every
 * origin; `auth.ts` refuses the request itself if the key is not for that domain. Cookies are not used.
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
 * Sets the headers that let the calling page, if there is one, read the answer. Given `methodsOf`, also returns the
 * answer to a preflight, which reaches the app as a request without a route. `methodsOf` returns the methods of a path;
 * none if it is unknown.
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
