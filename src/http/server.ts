/**
 * The HTTP API of the gateway. A request passes, in this order: the route; id, log and metrics; CORS; key, limits,
 * parameters, body, `Idempotency-Key`; the handler. All errors are rendered in one place.
 */
import type { Hono } from "@hono/hono";
import { z } from "@hono/zod-openapi";
import type { Caller } from "../account/account.ts";
import { requireScope } from "../account/keys.ts";
import { invalid } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import { idempotencyKey, repeatable } from "./api/idempotency.ts";
import {
  type Answer,
  type Api,
  type ApiContext,
  type ApiEnv,
  type ApiRequest,
  ok,
  type Route,
  scopeOf,
} from "./api/route.ts";
import { homeCountry } from "./api/schemas.ts";
import type { Services } from "./api/services.ts";
import { validate, validateInPieces } from "../base/validation.ts";
import { isSafe, makeApp, noRoute, type PathIndex, send } from "./app.ts";
import { checkContentType, checkLength, MIB, parseJson, readBytes } from "./body/body.ts";
import { addDocs } from "./docs/docs.ts";
import { addResources } from "./resources/resources.ts";

const DEFAULT_MAX_BYTES = MIB;

/** Paths of pages, which are not part of the API. */
const PAGES = ["/", "/openapi.json", "/docs/*", "/panel/*", "/mcp", "/cloud/*"];

/** Makes the app with every resource. Starts nothing: `listen.ts` binds it to a port, tests call `app.request`. */
export function createApi(services: Services): Hono<ApiEnv> {
  const made = makeApp(services);
  const { app, paths, observed } = made;
  const page = (c: ApiContext, next: () => Promise<void>) =>
    observed(async () => {
      await next();
      return c.res;
    })(c);
  for (const path of PAGES) app.use(path, page);
  addResources(makeRouting(made, services), services);
  addDocs(app, paths, services.publicUrl);
  return app;
}

function makeRouting(
  { paths, register }: ReturnType<typeof makeApp>,
  { admission, idempotency, budgets, runtime: { clock } }: Services,
): Api {
  const api: Api = {
    on(route, handle) {
      type Handled = Parameters<typeof handle>[0];
      const form = route.access === "key_or_bearer" ? "bearer" : "header";
      const scope = scopeOf(route);

      async function serve(c: ApiContext, caller: Caller): Promise<Response> {
        c.set("caller", caller);
        const accountId = caller.account.id;
        await admission.count(c, caller);
        requireScope(caller, scope, ...route.proposals ? ["propose" as const] : []);
        const parameters = readParameters(c, route, paths);
        using inMemory = budgets.bodies.open(accountId);
        const bytes = await readBody(c, route, (bytes) => inMemory.add(bytes));
        const checkKey = async () => void await admission.authenticate(c, form);
        const work = async () => {
          const repeat = route.upload ? null : repeatable(c, { accountId, parts: [bytes] });
          const body = await readFields(route, bytes, clock);
          const request = { c, caller, accountId, ...parameters, body, repeat, checkKey } as Handled;
          if (repeat === null || route.repeats === "handler") return await handle(request);
          return await idempotency.once(repeat, async () => plainAnswer(await handle(request)));
        };
        if (!route.longList) return send(c, await work());
        return await budgets.bulks.run({ tenant: accountId }, async () => send(c, await work()));
      }

      register(route, async (c) => {
        // With an `Idempotency-Key` the answer may be a replay, without a commit that checks the key: it is read first.
        const inCommit = route.checksKey && c.req.header("idempotency-key") === undefined;
        const caller = await (inCommit ? admission.recognise : admission.authenticate)(c, form);
        try {
          const { country } = caller.account;
          return await (country ? homeCountry.run(country, () => serve(c, caller)) : serve(c, caller));
        } catch (error) {
          // If the key was revoked, the caller is told that instead of what is wrong with the request.
          if (caller.keyRow) await admission.authenticate(c, form);
          throw error;
        }
      });
    },

    answer(route, make, shown = (made) => made) {
      api.on(route, async (request) => ok({ data: await shown(await make(request)) }));
    },

    onOpen(route, handle) {
      register(route, async (c) => {
        const parameters = readParameters(c, route, paths);
        return send(c, await handle({ c, ...parameters } as Parameters<typeof handle>[0]));
      });
    },
  };
  return api;
}

/** Throws Problem not_found (or method_not_allowed) for invalid path parameters, validation_failed for the query. */
function readParameters(
  c: ApiContext,
  route: Route,
  paths: PathIndex,
): Pick<ApiRequest<unknown, unknown, unknown>, "params" | "query"> {
  const params = route.params?.safeParse(c.req.param());
  if (params?.success === false) {
    const { path: [name], message } = params.error.issues[0]!;
    throw noRoute(c, paths, `"${String(name)}" in the path ${message}.`);
  }
  return { params: params?.data, query: route.query && readQuery(c, route.query) };
}

/** Throws Problem validation_failed; also for a parameter that is given twice, of which one would be ignored. */
function readQuery(c: ApiContext, query: NonNullable<Route["query"]>): unknown {
  const twice = Object.keys(query.shape).find((name) => (c.req.queries(name)?.length ?? 0) > 1);
  if (twice !== undefined) throw invalid(twice, "is given twice");
  return validate(query, c.req.query());
}

/** Returns the body's bytes; none for a GET, or for an upload, which its handler reads. */
function readBody(
  c: ApiContext,
  route: Route,
  count: (bytes: number) => void,
): Uint8Array | Promise<Uint8Array> {
  const maxBytes = route.maxBytes ?? DEFAULT_MAX_BYTES;
  if (route.upload) {
    idempotencyKey(c);
    checkContentType(c.req.raw, route.upload.contentType);
    checkLength(c.req.raw, maxBytes);
    return new Uint8Array();
  }
  if (route.body && !isLeftOut(c, route.body)) checkContentType(c.req.raw, "application/json");
  return isSafe(c) ? new Uint8Array() : readBytes(c.req.raw, { maxBytes, count });
}

/** Whether an optional body has no content type: then it is absent, or taken to be JSON. */
function isLeftOut(c: ApiContext, body: z.ZodType): boolean {
  return c.req.header("content-type") === undefined && body.isOptional();
}

/** Some clients send an empty object or null where no body is needed. */
const NO_FIELDS = z.strictObject({}).nullable();

/** Returns the validated body; undefined if there is none and none is required. Throws Problem. */
function readFields({ body, longList: list }: Route, bytes: Uint8Array, clock: Clock): unknown {
  if (bytes.length === 0 && (!body || body.isOptional())) return undefined;
  const value = parseJson(bytes);
  if (!body) return void validate(NO_FIELDS, value);
  return list ? validateInPieces(body, value, { list, clock }) : validate(body, value);
}

function plainAnswer(answer: Answer | Response): Answer {
  if (answer instanceof Response) throw new Error("an answer that is kept must be JSON");
  return answer;
}
