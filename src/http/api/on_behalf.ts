/** Requests to the API that the process makes for a caller: what is asked through another interface. */
import type { ApiContext } from "./route.ts";

/** The headers that tell whose request it is, and which it repeats. */
const OF_CALLER = ["x-api-key", "x-forwarded-for", "origin", "referer", "idempotency-key"];

/** Returns headers of a JSON request with the caller's own key, which may be a bearer. */
export function headersOnBehalf(c: ApiContext): Headers {
  const headers = new Headers({ "content-type": "application/json" });
  for (const name of OF_CALLER) {
    const value = c.req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  const bearer = /^Bearer +(\S+)\s*$/i.exec(c.req.header("authorization") ?? "")?.[1];
  if (bearer && !headers.has("x-api-key")) headers.set("x-api-key", bearer);
  return headers;
}
