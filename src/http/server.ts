/**
 * The HTTP side of the gateway. A request passes, in this order: id, log and metrics; CORS; the route; then key, limits,
 * parameters, body, `Idempotency-Key`, handler. Whatever goes wrong on the way is rendered in one place.
 */
import { Hono, type MiddlewareHandler } from "@hono/hono";
import type { Caller } from "../account/account.ts";
import { requireScope } from "../account/keys.ts";
import { Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import { answerJson, problemOf, renderProblem } from "./api/answer.ts";
import type { ApiContext, ApiEnv } from "./api/context.ts";
import { idempotencyKey, repeatable } from "./api/idempotency.ts";
import { PathIndex } from "./api/path_index.ts";
import { type Answer, type Api, type ApiRequest, type Route, scopeOf } from "./api/route.ts";
import type { Services } from "./api/services.ts";
import { validate } from "./api/validation.ts";
import { checkContentType, checkLength, discardRest, MIB, parseJson, readBytes } from "./body/body.ts";
import { addDocs } from "./docs/docs.ts";
import { makeAuth } from "./edge/auth.ts";
import { makeClientAddress } from "./edge/client_address.ts";
import { cors } from "./edge/cors.ts";
import { makeHoldRefusal } from "./edge/refusals.ts";
import { makeLimitRate } from "./edge/limits.ts";
import { addHealth } from "./resources/health.ts";
import { addResources } from "./resources/resources.ts";

const DEFAULT_MAX_BYTES = MIB;
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]);
const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

/** The app with every resource on it. Starts nothing: `listen.ts` gives it a port, tests call `app.request`. */
export function createApi(services: Services): Hono<ApiEnv> {
  const app = new Hono<ApiEnv>();
  const paths = new PathIndex();
  app.use(observe(services));
  app.use("/v1/*", cors((path) => paths.methodsOf(path)));
  const { clock } = services.runtime;
  app.onError((error, c) => refuse(c, problemOf(error), clock));
  app.notFound((c) => refuse(c, noRoute(c, paths), clock));

  addResources(makeApi(app, { services, paths }), services);
  addDocs(app, paths);
  return app;
}

/** What a process without an API answers: whether it is alive and ready, and how busy it is. */
export function createHealth(services: Pick<Services, "runtime" | "metrics" | "probe" | "stopping">): Hono<ApiEnv> {
  const app = new Hono<ApiEnv>();
  const paths = new PathIndex();
  const { clock } = services.runtime;
  app.use(observe(services));
  app.onError((error, c) => refuse(c, problemOf(error), clock));
  app.notFound((c) => refuse(c, noRoute(c, paths), clock));
  addHealth({ onOpen: makeOnOpen(app, { clock, paths }) }, services);
  return app;
}

/** Gives the request its id, and tells log and metrics how it went. */
function observe({ runtime, metrics }: Pick<Services, "runtime" | "metrics">): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const begun = runtime.clock.now();
    const requestId = runtime.ids.next("req");
    c.set("requestId", requestId);
    // A body where none belongs cannot be read.
    c.set("headers", { "x-request-id": requestId, ...(isSafe(c) && hasBody(c) ? { connection: "close" } : {}) });
    await next();
    const tookMs = runtime.clock.now() - begun;
    const route = c.get("route") ?? "(none)";
    const status = c.get("written") ?? statusWithHeaders(c);
    // Some runtimes take any word for a method; each would be a series of its own.
    const method = METHODS.has(c.req.method) ? c.req.method : "OTHER";
    metrics.requests.inc({ method, route, status: String(status) });
    metrics.requestSeconds.observe(tookMs / 1000);
    const line = { requestId, method, route, status, tookMs, accountId: c.get("caller")?.account.id };
    const failure = c.get("failure");
    if (status < 500) runtime.log.debug(line, "request");
    else runtime.log.error({ ...line, err: failure }, "request failed");
  };
}

/** A Response takes along what was earned on the way. */
function statusWithHeaders(c: ApiContext): number {
  for (const [name, value] of Object.entries(c.get("headers"))) c.res.headers.set(name, value);
  return c.res.status;
}

function noRoute(c: ApiContext, paths: PathIndex): Problem {
  const methods = paths.methodsOf(c.req.path);
  if (methods.length === 0) {
    return new Problem("not_found", "There is nothing here; /docs lists what there is.");
  }
  c.get("headers").allow = methods.join(", ");
  return new Problem("method_not_allowed", `${c.req.path} takes ${methods.join(", ")}.`);
}

/** The answer to what cannot be done, once the client has sent what it had begun to send. */
async function refuse(c: ApiContext, problem: Problem, clock: Clock): Promise<Response> {
  await endBody(c, clock);
  return renderProblem(c, problem);
}

/** Ends the body of a request that needs none (any more); where that cannot be, the connection ends with the answer. */
async function endBody(c: ApiContext, clock: Clock): Promise<void> {
  if (isSafe(c)) return;
  if (waitsToSend(c) || !await discardRest(c.req.raw, clock)) c.get("headers").connection = "close";
}

function isSafe({ req: { method } }: ApiContext): boolean {
  return method === "GET" || method === "HEAD";
}

function hasBody({ req }: ApiContext): boolean {
  return req.header("transfer-encoding") !== undefined || Number(req.header("content-length") ?? 0) > 0;
}

/** Whether the client sends its body only when asked to, by reading it; `node:http` has asked already. */
function waitsToSend(c: ApiContext): boolean {
  return c.req.header("expect") !== undefined && !c.req.raw.bodyUsed && c.env?.outgoing === undefined;
}

type Register = (route: Route, handle: (c: ApiContext) => Promise<Response>) => void;

/** Routes on the app, which render what is thrown. */
function makeRegister(app: Hono<ApiEnv>, { clock, paths }: { clock: Clock; paths: PathIndex }): Register {
  return (route, handle) => {
    paths.add(route.method.toUpperCase(), route.path, route.params);
    app.on(route.method.toUpperCase(), route.path.replaceAll(/\{(\w+)\}/g, ":$1"), async (c) => {
      c.set("route", route.path);
      try {
        return await handle(c);
      } catch (error) {
        // Here and not in `onError`, which is not told what is thrown without being an Error.
        return await refuse(c, problemOf(error), clock);
      }
    });
  };
}

function makeOnOpen(app: Hono<ApiEnv>, { clock, paths }: { clock: Clock; paths: PathIndex }): Api["onOpen"] {
  const register = makeRegister(app, { clock, paths });
  return (route, handle) =>
    register(route, async (c) => {
      const parameters = readParameters(c, route, paths);
      return send(c, await handle({ c, ...parameters } as Parameters<typeof handle>[0]));
    });
}

function makeApi(app: Hono<ApiEnv>, { services, paths }: { services: Services; paths: PathIndex }): Api {
  const { accounts, keys, idempotency, budgets, runtime: { clock } } = services;
  const clientAddress = makeClientAddress(services.trustedProxies);
  const auth = makeAuth({ accounts, keys, clock, clientAddress });
  const limitRate = makeLimitRate(clock);

  const holdRefusal = makeHoldRefusal(clock);

  /** What a check gives; a refusal of the party waits where it has had many. */
  async function held<T>(party: string, check: () => T | Promise<T>): Promise<T> {
    try {
      return await check();
    } catch (error) {
      await holdRefusal(party);
      throw error;
    }
  }

  function addressOf(c: ApiContext): string {
    return clientAddress(c.env?.incoming?.socket.remoteAddress ?? "", c.req.header("x-forwarded-for") ?? null);
  }

  const register = makeRegister(app, { clock, paths });

  return {
    on(route, handle) {
      type Handled = Parameters<typeof handle>[0];
      const form = route.access === "key_or_bearer" ? "bearer" : "header";

      async function serve(c: ApiContext, caller: Caller): Promise<Response> {
        c.set("caller", caller);
        const accountId = caller.account.id;
        requireScope(caller, scopeOf(route));
        await held(accountId, () => limitRate(c, caller));
        const parameters = readParameters(c, route, paths);
        using inMemory = budgets.bodies.open(accountId);
        const bytes = await readBody(c, route, (bytes) => inMemory.add(bytes));
        if (!route.upload && !route.body) await endBody(c, clock);
        const repeat = route.upload ? null : repeatable(c, { accountId, parts: [bytes] });
        const checkKey = async () => void await auth.authenticate(c, form);
        const work = async () => {
          const body = route.body && validate(route.body, parseJson(bytes));
          const request = { c, caller, ...parameters, body, repeat, checkKey } as Handled;
          if (repeat === null || route.repeats === "handler") return send(c, await handle(request));
          return send(c, await idempotency.once(repeat, async () => plainAnswer(await handle(request))));
        };
        return await (route.inTurn ? budgets.bulks.run({ party: accountId }, work) : work());
      }

      register(route, async (c) => {
        // The answer to a repetition comes without a commit, so its key is read.
        const inCommit = route.checksKey && c.req.header("idempotency-key") === undefined;
        const who = inCommit ? auth.recognise : auth.authenticate;
        const caller = await held(addressOf(c), () => who(c, form));
        try {
          return await serve(c, caller);
        } catch (error) {
          // A key that is no more is told that, and not what is wrong with its request.
          if (caller.keyRow) await auth.authenticate(c, form);
          throw error;
        }
      });
    },

    onOpen: makeOnOpen(app, { clock, paths }),
  };
}

/** A path whose parameters cannot be anybody's is no path of this route. */
function readParameters(
  c: ApiContext,
  route: Route,
  paths: PathIndex,
): Pick<ApiRequest<unknown, unknown, unknown>, "params" | "query"> {
  const params = route.params?.safeParse(c.req.param());
  if (params?.success === false) throw noRoute(c, paths);
  return { params: params?.data, query: route.query && validate(route.query, c.req.query()) };
}

/** The body's bytes; none for a route that takes no body, and for an upload, whose handler reads it. */
async function readBody(c: ApiContext, route: Route, count: (bytes: number) => void): Promise<Uint8Array> {
  const maxBytes = route.maxBytes ?? DEFAULT_MAX_BYTES;
  if (route.upload) {
    idempotencyKey(c);
    checkContentType(c.req.raw, route.upload.contentType);
    checkLength(c.req.raw, maxBytes);
  } else if (route.body) {
    checkContentType(c.req.raw, "application/json");
    return await readBytes(c.req.raw, { maxBytes, count });
  }
  return new Uint8Array();
}

function plainAnswer(answer: Answer | Response): Answer {
  if (answer instanceof Response) throw new Error("an answer that is kept must be JSON");
  return answer;
}

function send(c: ApiContext, answer: Answer | Response): Response {
  if (answer instanceof Response) return answer;
  return answerJson(c, { ...answer, headers: { ...JSON_HEADERS, ...answer.headers } });
}
