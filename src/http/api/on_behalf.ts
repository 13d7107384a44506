/** Requests to the API that the process makes for a caller: what is asked through another interface. */
import type { Hono } from "@hono/hono";
import type { Caller } from "../../account/account.ts";
import type { ApiContext, ApiEnv } from "./route.ts";

/**
 * Makes the request for a caller who is admitted and counted already. The `Idempotency-Key` of the request being served
 * is passed on.
 */
export async function onBehalf(
  app: Hono<ApiEnv>,
  { c, caller }: { c: ApiContext; caller: Caller },
  request: Request,
): Promise<Response> {
  const key = c.req.header("idempotency-key");
  if (key !== undefined) request.headers.set("idempotency-key", key);
  const admitted = { caller: () => Promise.resolve(caller) };
  return await app.fetch(request, { admitted });
}
