/**
 * The app without routes, the registration of routes, and the rendering of errors: shared by the API and by processes
 * that serve only health and metrics.
 */
import { Hono } from "@hono/hono/tiny";
import type { Result, Router } from "@hono/hono/router";
import { TrieRouter } from "@hono/hono/router/trie-router";
import { Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import { answerJson, problemOf, renderProblem } from "./api/answer.ts";
import type { ApiContext, ApiEnv } from "./api/context.ts";
import { PathIndex } from "./api/path_index.ts";
import type { Answer, Route } from "./api/route.ts";
import type { Services } from "./api/services.ts";
import { discardRest } from "./body/body.ts";
import { answerOrigin } from "./edge/cors.ts";
import { type Handle, isSafe, makeObserved, type Observed } from "./edge/observed.ts";

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

/** The parts of the app that routes need. */
export interface Ground {
  paths: PathIndex;
  observed: Observed;
  clock: Clock;
}

/** Makes an app without routes. It has no middleware, which would make each request of the API more expensive. */
export function makeApp(services: Pick<Services, "runtime" | "metrics">): { app: Hono<ApiEnv>; ground: Ground } {
  const app = new Hono<ApiEnv>();
  // The small Hono puts a router of its own in the place of one that its options give.
  app.router = new PathRouter();
  const paths = new PathIndex();
  const { clock } = services.runtime;
  const observed = makeObserved(services);
  const nothingHere = async (c: ApiContext) => {
    const isApi = c.req.path.startsWith("/v1/");
    const preflight = isApi ? answerOrigin(c, (path) => paths.methodsOf(path)) : null;
    return preflight ?? await refuse(c, noRoute(c, paths), clock);
  };
  const observedNothing = observed(nothingHere);
  app.onError((error, c) => refuse(c, problemOf(error), clock));
  // Below the paths of pages, the request is already observed.
  app.notFound((c) => c.get("requestId") === undefined ? observedNothing(c) : nothingHere(c));
  return { app, ground: { paths, observed, clock } };
}

/** Returns the Problem for a request without a route: not_found, with `why` as its detail, or method_not_allowed. */
export function noRoute(
  c: ApiContext,
  paths: PathIndex,
  why = "There is nothing here; /docs lists what there is.",
): Problem {
  const methods = paths.methodsOf(c.req.path);
  if (methods.length === 0) return new Problem("not_found", why);
  c.get("headers").allow = methods.join(", ");
  return new Problem("method_not_allowed", `${c.req.path} takes ${methods.join(", ")}.`);
}

/** Renders the problem once the rest of the request's body has been received. */
async function refuse(c: ApiContext, problem: Problem, clock: Clock): Promise<Response> {
  await endBody(c, clock);
  return renderProblem(c, problem);
}

/**
 * Reads the rest of a body that is no longer needed; if that is not possible, the connection closes with the answer.
 */
async function endBody(c: ApiContext, clock: Clock): Promise<void> {
  if (isSafe(c)) return;
  if (waitsToSend(c) || !await discardRest(c.req.raw, clock)) c.get("headers").connection = "close";
}

/**
 * Whether the client sends its body only once it is read (`Expect`); on `node:http` it has been told to send already.
 */
function waitsToSend(c: ApiContext): boolean {
  return c.req.header("expect") !== undefined && !c.req.raw.bodyUsed && c.env?.outgoing === undefined;
}

/** The parts of a route that the app needs. */
type Place = Pick<Route, "method" | "path" | "params">;

type Register = (route: Place, handle: Handle) => void;

/** Returns the function that adds routes to the app and renders the errors that they throw. */
export function makeRegister(app: Hono<ApiEnv>, { paths, observed, clock }: Ground): Register {
  return (route, handle) => {
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
        return await refuse(c, problemOf(error), clock);
      }
    };
    app.on(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), observed(answer));
  };
}

export function send(c: ApiContext, answer: Answer | Response): Response {
  if (answer instanceof Response) return answer;
  const { status, body, headers } = answer;
  return answerJson(c, { status, body, headers: { ...JSON_HEADERS, ...headers } });
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
