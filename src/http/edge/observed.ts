/** Gives each request an id, and reports its outcome to log and metrics. */
import type { ApiContext } from "../api/context.ts";
import type { Services } from "../api/services.ts";

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]);

export type Handle = (c: ApiContext) => Promise<Response>;
/** Wraps a handler so that its requests are observed. */
export type Observed = (handle: Handle) => Handle;

export function makeObserved({ runtime, metrics }: Pick<Services, "runtime" | "metrics">): Observed {
  const { clock, ids, log } = runtime;
  return (handle) => async (c) => {
    const begun = clock.now();
    const requestId = ids.next("req");
    const headers: Record<string, string> = { "x-request-id": requestId };
    // A GET or HEAD with a body: the body is not read, so the connection cannot be reused.
    if (isSafe(c) && hasBody(c)) headers.connection = "close";
    c.set("requestId", requestId);
    c.set("headers", headers);
    const response = await handle(c);
    const tookMs = clock.now() - begun;
    const route = c.get("route") ?? "(none)";
    const status = c.get("written") ?? statusWithHeaders(c, response);
    // Some runtimes accept any word as a method, and each would become its own series of the metric.
    const method = METHODS.has(c.req.method) ? c.req.method : "OTHER";
    metrics.requests.inc({ method, route, status: String(status) });
    metrics.requestSeconds.observe(tookMs / 1000);
    const line = { requestId, method, route, status, tookMs, accountId: c.get("caller")?.account.id };
    if (status < 500) log.debug(line, "request");
    else log.error({ ...line, err: c.get("failure") }, "request failed");
    return response;
  };
}

/** Adds the headers collected in the context to the response; returns its status. */
function statusWithHeaders(c: ApiContext, { headers, status }: Response): number {
  for (const [name, value] of Object.entries(c.get("headers"))) headers.set(name, value);
  return status;
}

export function isSafe({ req: { method } }: ApiContext): boolean {
  return method === "GET" || method === "HEAD";
}

function hasBody({ req }: ApiContext): boolean {
  return req.header("transfer-encoding") !== undefined || Number(req.header("content-length") ?? 0) > 0;
}
