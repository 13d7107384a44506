/**
 * Routes as values: the same schemas validate and document them. Resources declare routes at the top of their file and
 * attach handlers below; `openapi.ts` needs only the declarations.
 *
 * The schemas are those of `@hono/zod-openapi`, but its `app.openapi()` is not used: its validators read bodies without
 * a limit, and can neither stream an upload nor hash the body for an `Idempotency-Key`. This file imports only types of
 * it, because it is loaded at every start (decision 0024).
 */
import type { Context } from "@hono/hono";
import type { HttpBindings } from "@hono/node-server";
import type { z } from "@hono/zod-openapi";
import type { Caller, Scope } from "../../account/account.ts";
import type { RepeatableRequest } from "../../account/idempotency.ts";
import type { ProblemCode } from "../../errors.ts";
import type { LongList } from "../../base/validation.ts";

export interface Route<Params = unknown, Query = unknown, Body = unknown> {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** Absolute, with parameters as `{id}`. */
  path: string;
  operationId: string;
  tag: Tag;
  summary: string;
  description?: string;
  /** The scope that a key needs, if not the usual one (`scopeOf`). */
  scope?: Scope;
  /** Whether a key with the scope `propose` will do: its sends wait for approval, and it changes only those. */
  proposals?: true;
  /** How the key is sent, by its header unless declared otherwise; `open`: the route needs none. */
  access: "key" | "key_or_bearer" | "open";
  params?: z.ZodType<Params> & z.ZodObject;
  query?: z.ZodType<Query> & z.ZodObject;
  /** Header parameters, only for the reference. */
  headers?: z.ZodObject;
  /** A JSON body, read and validated before the handler runs; clients may omit it if the schema is optional. */
  body?: z.ZodType<Body>;
  /** A body that the handler reads as it arrives; the schema describes it. */
  upload?: { contentType: "application/json" | "multipart/form-data"; schema: z.ZodType };
  /** Largest body; 1 MiB if omitted. */
  maxBytes?: number;
  /**
   * Who implements `Idempotency-Key` for a POST. `server` (the default): the answer is kept after the handler has run;
   * on a shared store the key is claimed before. `handler`: the handler passes `request.repeat` to the commit that does the work.
   */
  repeats?: "server" | "handler";
  /** Set if a long list in the body means much work: requests wait for their account's turn (`edge/budgets.ts`). */
  longList?: LongList;
  /**
   * Set if the handler's commit checks that the key is still valid (`Caller.keyRow`): then it need not be read first.
   */
  checksKey?: true;
  answers: Readonly<Record<number, RouteAnswer>>;
  /** Errors of this route, in addition to those that follow from its access, parameters and body. */
  problems: readonly ProblemCode[];
}

interface RouteAnswer {
  description: string;
  /** Schema of the body, or of each event of a stream; null: the body is none of these, or there is none. */
  schema: z.ZodType | null;
  /** JSON if omitted. */
  contentType?: string;
  example?: unknown;
  /** Additional response headers: name and description. */
  headers?: Readonly<Record<string, string>>;
}

export const TAGS = {
  Sessions: "A session is one WhatsApp number, or line, linked by QR or pairing code.",
  Groups: "Create, join, manage and leave groups.",
  Chats: "What was said in each chat, what is unread, typing indicators and read receipts.",
  Contacts: "Look up and block numbers, and manage the session's own profile.",
  Messages: "Send messages, follow their status, and edit or cancel them.",
  Templates: "Texts with variables, written once and filled in for each message.",
  Verifications: "Ask a person to prove that a number is theirs, by a message from it.",
  Webhooks: "Have events posted to your server, inspect deliveries, and redeliver them.",
  Events: "Read all events by cursor or as a stream, for example to catch up after downtime.",
  Files: "Download the files of incoming messages.",
  Account: "Your account: plan and quota, API keys, opt-outs, and data erasure.",
  Operations: "Health checks and metrics for operators.",
} as const;
type Tag = keyof typeof TAGS;

/**
 * Returns the scope that the route requires of a key: its own, or read, send (anything that sends messages), or manage
 * the rest.
 */
export function scopeOf({ method, tag, scope }: Pick<Route, "method" | "tag" | "scope">): Scope {
  if (scope) return scope;
  if (method === "get") return "read";
  return tag === "Messages" ? "send" : "manage";
}

type Optional = "access" | "problems";

/** A route as its resource declares it: `at` is method and path, such as `GET /v1/webhooks/{id}`. */
interface Declaration
  extends Omit<Route, "method" | "path" | "operationId" | "tag" | Optional>, Partial<Pick<Route, Optional | "tag">> {
  at: `${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} ${string}`;
}

type Output<Declared, Part extends string> = Declared extends Record<Part, z.ZodType<infer Value>> ? Value : undefined;

type RouteOf<Declared> = Route<Output<Declared, "params">, Output<Declared, "query">, Output<Declared, "body">>;

/** Returns the route, with the types of its handler's request inferred. */
export function route<Declared extends Declaration>(tag: Tag, operationId: string, declared: Declared) {
  const { at, ...rest } = declared;
  const [method, path] = at.split(" ");
  const whole = { tag, access: "key", problems: [], ...rest, operationId, method: method!.toLowerCase(), path };
  return whole as unknown as RouteOf<Declared>;
}

/** Returns the routes of a resource, declared by their `operationId`. */
export function routesOf<Declared extends Readonly<Record<string, Declaration>>>(tag: Tag, declared: Declared) {
  const routes = Object.entries(declared).map(([operationId, one]) => [operationId, route(tag, operationId, one)]);
  return Object.fromEntries(routes) as { [Id in keyof Declared]: RouteOf<Declared[Id]> };
}

/** A request made inside the process, by the panel or another interface: it needs no key and is not counted again. */
interface Admitted {
  /** As `authenticate` for a key (`edge/auth.ts`); streams call it repeatedly. Throws Problem. */
  caller(): Promise<Caller>;
}

export interface ApiEnv {
  /** Node's request and response; absent when a test calls the app in the same process. */
  Bindings: Partial<HttpBindings> & { admitted?: Admitted };
  Variables: {
    requestId: string;
    /** Headers for the answer, whatever its status: CORS, limits, the request id. */
    headers: Record<string, string>;
    /** Status of an answer that has already been written (`answer.ts`). */
    written?: number;
    /** Set once the key is known to be valid. */
    caller?: Caller;
    /** The declared path, such as `/v1/sessions/{id}`, which logs and metrics name instead of the URL. */
    route?: string;
    /** Cause of a status of 500 or above; only for the log. */
    failure?: unknown;
  };
}

/** The context of a request, as Hono passes it along. */
export type ApiContext = Context<ApiEnv>;

/** A checked request, as handlers get it. */
export interface ApiRequest<Params, Query, Body> {
  c: ApiContext;
  caller: Caller;
  /** The caller's. */
  accountId: string;
  params: Params;
  query: Query;
  body: Body;
  /** Set for a request with a valid `Idempotency-Key`, on routes whose body the server reads; otherwise null. */
  repeat: RepeatableRequest | null;
  /** For streams: throws if a new request with this key would now be refused. */
  checkKey(): Promise<void>;
}

/** A handler's answer in JSON; for anything else handlers return a `Response`. */
export interface Answer {
  status: 200 | 201 | 202 | 503;
  body: unknown;
  headers?: Readonly<Record<string, string>>;
}

export function ok(body: unknown, headers?: Answer["headers"]): Answer {
  return headers ? { status: 200, body, headers } : { status: 200, body };
}

export function created(body: unknown): Answer {
  return { status: 201, body };
}

/** Attaches handlers to routes. Implemented by `server.ts`. */
export interface Api {
  on<Params, Query, Body>(
    route: Route<Params, Query, Body>,
    handle: (request: ApiRequest<Params, Query, Body>) => Promise<Answer | Response>,
  ): void;
  /** As `on`, for a handler that resolves to the `data` of a 200, which `shown` brings into the form of the API. */
  answer<Params, Query, Body, Made>(
    route: Route<Params, Query, Body>,
    make: (request: ApiRequest<Params, Query, Body>) => Promise<Made>,
    shown?: (made: Made) => unknown,
  ): void;
  /** For routes with access `open`. */
  onOpen<Params, Query>(
    route: Route<Params, Query, undefined>,
    handle: (
      request: Pick<ApiRequest<Params, Query, undefined>, "c" | "params" | "query">,
    ) => Promise<Answer | Response>,
  ): void;
}
