/**
 * The app without routes, their registration, and what every request gets: an id, CORS, log and metrics, and errors
 * rendered. Shared by the API and by processes that serve only health and metrics.
 */
import { Hono } from "@hono/hono/tiny";
import type { Result, Router } from "@hono/hono/router";
import { TrieRouter } from "@hono/hono/router/trie-router";
import type { z } from "@hono/zod-openapi";
import { Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import { answerJson, problemOf, renderProblem } from "./api/answer.ts";
import type { Answer, ApiContext, ApiEnv, Route } from "./api/route.ts";
import type { Services } from "./api/services.ts";
import { discardRest } from "./body/body.ts";

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]);

type Handle = (c: ApiContext) => Promise<Response>;

/** Makes an app without routes. It has no middleware, which would make each request of the API more expensive. */
export function makeApp({ runtime, metrics }: Pick<Services, "runtime" | "metrics">) {
  const { clock, ids, log } = runtime;
  const app = new Hono<ApiEnv>();
  // The small Hono puts a router of its own in the place of one that its options give.
  app.router = new PathRouter();
  const paths = new PathIndex();

  /** Wraps a handler so that its requests get an id, and their outcome is reported to log and metrics. */
  function observed(handle: Handle): Handle {
    return async (c) => {
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

  /** Renders the problem once the rest of the request's body, which is no longer needed, has been received. */
  async function refuse(c: ApiContext, problem: Problem): Promise<Response> {
    await endBody(c, clock);
    return renderProblem(c, problem);
  }

  /** Adds a route, and renders the errors that its handler throws. */
  function register(route: Pick<Route, "method" | "path" | "params">, handle: Handle): void {
    const { path } = route;
    const method = route.method.toUpperCase();
    paths.add(method, path, route.params);
    const isApi = path.startsWith("/v1/");
    const answer: Handle = async (c) => {
      c.set("route", path);
      try {
        if (isApi) answerOrigin(c);
        return await handle(c);
      } catch (error) {
        // Here and not in `onError`, which is not called for thrown values that are not an Error.
        return await refuse(c, problemOf(error));
      }
    };
    app.on(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), observed(answer));
  }

  const nothingHere = async (c: ApiContext) => {
    const preflight = c.req.path.startsWith("/v1/") ? answerOrigin(c, paths) : null;
    return preflight ?? await refuse(c, noRoute(c, paths));
  };
  const observedNothing = observed(nothingHere);
  app.onError((error, c) => refuse(c, problemOf(error)));
  // Below the paths of pages, the request is already observed.
  app.notFound((c) => c.get("requestId") === undefined ? observedNothing(c) : nothingHere(c));
  return { app, paths, observed, register };
}

export function send(c: ApiContext, answer: Answer | Response): Response {
  if (answer instanceof Response) return answer;
  const { status, body, headers } = answer;
  return answerJson(c, { status, body, headers: { ...JSON_HEADERS, ...headers } });
}

/** Returns the Problem for a request without a route: not_found, with `why` as its detail, or method_not_allowed. */
export function noRoute(
  c: ApiContext,
  paths: PathIndex,
  why = "There is nothing at this path; see /docs.",
): Problem {
  const methods = paths.methodsOf(c.req.path);
  if (methods.length === 0 || methods.includes(c.req.method)) return new Problem("not_found", why);
  c.get("headers").allow = methods.join(", ");
  return new Problem("method_not_allowed", `${c.req.path} supports ${methods.join(", ")}.`);
}

export function isSafe({ req: { method } }: ApiContext): boolean {
  return method === "GET" || method === "HEAD";
}

/** Receives the rest of a body that is no longer needed; if it is too long, the connection ends with the answer. */
export async function endBody(c: ApiContext, clock: Clock): Promise<void> {
  const isRead = isSafe(c) || (!waitsToSend(c) && await discardRest(c.req.raw, clock));
  if (!isRead) c.get("headers").connection = "close";
}

function hasBody({ req }: ApiContext): boolean {
  return req.header("transfer-encoding") !== undefined || Number(req.header("content-length") ?? 0) > 0;
}

/**
 * Whether the client sends its body only once it is read (`Expect`); on `node:http` it has been told to send already.
 */
function waitsToSend(c: ApiContext): boolean {
  return c.req.header("expect") !== undefined && !c.req.raw.bodyUsed && c.env?.outgoing === undefined;
}

/** Adds the headers collected in the context to the response; returns its status. */
function statusWithHeaders(c: ApiContext, { headers, status }: Response): number {
  for (const [name, value] of Object.entries(c.get("headers"))) headers.set(name, value);
  return status;
}

const CORS_REQUEST_HEADERS = "x-api-key, authorization, content-type, idempotency-key, last-event-id";
const CORS_RESPONSE_HEADERS = [
  "x-request-id",
  "x-quota-daily-remaining",
  "x-quota-monthly-remaining",
  "retry-after",
  "ratelimit",
  "ratelimit-policy",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "age",
].join(", ");
const PREFLIGHT_SECONDS = "600";

/**
 * Sets the headers that let the calling page, if there is one, read the answer. Given `paths`, also returns the answer
 * to a preflight, which reaches the app as a request without a route. A preflight carries no key, so it succeeds for
 * every origin; `auth.ts` refuses the request itself if the key is not for that domain. Cookies are not used.
 */
function answerOrigin(c: ApiContext, paths?: PathIndex): Response | null {
  const origin = c.req.header("origin");
  if (origin === undefined) return null;
  const headers = c.get("headers");
  headers["access-control-allow-origin"] = origin;
  headers["vary"] = "origin";
  const isPreflight = c.req.method === "OPTIONS" && c.req.header("access-control-request-method") !== undefined;
  if (!isPreflight || !paths) {
    headers["access-control-expose-headers"] = CORS_RESPONSE_HEADERS;
    return null;
  }
  headers["access-control-allow-methods"] = paths.methodsOf(c.req.path).join(", ");
  headers["access-control-allow-headers"] = CORS_REQUEST_HEADERS;
  headers["access-control-max-age"] = PREFLIGHT_SECONDS;
  return c.body(null, 204);
}

/** An index of the methods of each path, for 405 with `Allow`, for OPTIONS and for CORS preflights. */
export class PathIndex {
  readonly #entries: { method: string; pattern: RegExp; params: z.ZodType | undefined }[] = [];

  /** Adds a route. `path` writes its parameters as `{id}`; `params` says which values they may have. */
  add(method: string, path: string, params?: z.ZodType): void {
    const source = path.replaceAll(".", "\\.").replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)");
    this.#entries.push({ method, pattern: new RegExp(`^${source}$`), params });
  }

  /**
   * Returns the path's methods in alphabetical order, without OPTIONS; empty if the path is unknown. Routes that refuse
   * the values of its parameters count only if there is no other.
   */
  methodsOf(path: string): string[] {
    const similar = this.#entries.filter(({ pattern }) => pattern.test(path));
    const fitting = similar.filter(({ pattern, params }) =>
      params?.safeParse(pattern.exec(path)?.groups).success ?? true
    );
    const methods = (fitting.length > 0 ? fitting : similar).map(({ method }) => method);
    if (methods.includes("GET")) methods.push("HEAD");
    return [...new Set(methods)].sort();
  }
}

/** Looks up paths with parameters in a tree; caches the result for fixed paths, such as those of the sends. */
class PathRouter<T> implements Router<T> {
  readonly name = "PathRouter";
  readonly #tree = new TrieRouter<T>();
  /** Paths without parameters. */
  readonly #fixed = new Set<string>();
  /** Results for the fixed paths, by method and path. */
  readonly #found = new Map<string, Result<T>>();

  add(method: string, path: string, handler: T): void {
    this.#tree.add(method, path, handler);
    this.#found.clear();
    if (!/[:*{]/.test(path)) this.#fixed.add(path);
  }

  match(method: string, path: string): Result<T> {
    if (!this.#fixed.has(path)) return this.#tree.match(method, path);
    const name = `${method} ${path}`;
    const known = this.#found.get(name);
    if (known) return known;
    const found = this.#tree.match(method, path);
    // Clients may send any word as a method: caching methods without a handler would be unbounded.
    if (found[0].length > 0) this.#found.set(name, found);
    return found;
  }
}
