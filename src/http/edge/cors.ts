/**
 * Lets pages of an allowed domain call the API from the browser. The preflight carries no key, so it is answered for
 * every origin; the request itself is then refused by `auth.ts` when the key is not for that domain. No cookies.
 */
import type { MiddlewareHandler } from "@hono/hono";
import type { ApiEnv } from "../api/context.ts";

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

/** `methodsOf` says which methods a path has; empty for an unknown path. */
export function cors(methodsOf: (path: string) => readonly string[]): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const origin = c.req.header("origin");
    if (origin === undefined) return void await next();
    const headers = c.get("headers");
    headers["access-control-allow-origin"] = origin;
    headers["vary"] = "origin";
    if (c.req.method !== "OPTIONS" || c.req.header("access-control-request-method") === undefined) {
      headers["access-control-expose-headers"] = RESPONSE_HEADERS;
      return void await next();
    }
    headers["access-control-allow-methods"] = methodsOf(c.req.path).join(", ");
    headers["access-control-allow-headers"] = REQUEST_HEADERS;
    headers["access-control-max-age"] = PREFLIGHT_SECONDS;
    return c.body(null, 204);
  };
}
