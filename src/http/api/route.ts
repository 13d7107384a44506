/**
 * A route as a value: what validates it is also what documents it. Resources declare routes at the top of their file and
 * attach handlers below; `openapi.ts` needs the declarations alone.
 *
 * The schemas are those of `@hono/zod-openapi`, but its `app.openapi()` is not used: its validators read bodies without
 * a limit, and could neither stream an upload nor hash what came for an `Idempotency-Key`. A start loads this file
 * without them (decision 0024).
 */
import type { z } from "@hono/zod-openapi";
import type { Caller, Scope } from "../../account/account.ts";
import type { RepeatableRequest } from "../../account/idempotency.ts";
import type { ProblemCode } from "../../errors.ts";
import type { ApiContext } from "./context.ts";
import type { LongList } from "./validation.ts";

export interface Route<Params = unknown, Query = unknown, Body = unknown> {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** From the root, parameters as `{id}`. */
  path: string;
  operationId: string;
  tag: Tag;
  summary: string;
  description?: string;
  /** How the key comes; `open`: the route needs none. */
  access: "key" | "key_or_bearer" | "open";
  params?: z.ZodType<Params>;
  query?: z.ZodType<Query>;
  /** Header parameters, for the reference alone. */
  headers?: z.ZodType;
  /** A JSON body that is read whole and validated before the handler runs; where it is optional it may be left out. */
  body?: z.ZodType<Body>;
  /** A body that the handler reads as it arrives; the schema describes it. */
  upload?: { contentType: "application/json" | "multipart/form-data"; schema: z.ZodType };
  /** Largest body; 1 MiB if left out. */
  maxBytes?: number;
  /**
   * Who honours `Idempotency-Key` of a POST. `server` (if left out): the answer is kept after the handler. `handler`: it
   * passes `request.repeat` on to the commit that does the work.
   */
  repeats?: "server" | "handler";
  /** Much work, because of a long list in its body: it waits for the account's turn (`edge/budgets.ts`). */
  longList?: LongList;
  /** The handler's commit checks that the key is valid still (`Caller.keyRow`), so that it need not be read first. */
  checksKey?: true;
  answers: Readonly<Record<number, RouteAnswer>>;
  /** Errors of this route beside those that its access and its body bring along. */
  problems: readonly ProblemCode[];
}

interface RouteAnswer {
  description: string;
  /** Of a JSON body; null: see `contentType`. */
  schema: z.ZodType | null;
  contentType?: string;
  example?: unknown;
  /** Response headers beside the common ones: name and description. */
  headers?: Readonly<Record<string, string>>;
}

export const TAGS = {
  Sessions: "Lines of the account: one phone number each, linked by QR or by pairing code.",
  Groups: "Groups of a line: made, changed, joined and left.",
  Chats: "What the other side of a chat sees of a line.",
  Contacts: "What the network tells of people, who is blocked, and the line's own profile.",
  Messages: "Sending, and what became of it.",
  Webhooks: "Where events are posted, what was delivered, and sending it again.",
  Events: "Every event, to be read by cursor or as a stream: what a client that was down has missed.",
  Files: "Files of incoming messages.",
  Account: "Your own account: its plan, and what is left of its quota.",
  Operations: "Health and metrics of the gateway.",
} as const;
type Tag = keyof typeof TAGS;

/** What a key must be allowed for the route: to read, to send what goes out as a message, or to manage the rest. */
export function scopeOf({ method, tag }: Pick<Route, "method" | "tag">): Scope {
  if (method === "get") return "read";
  return tag === "Messages" ? "send" : "manage";
}

/** Infers the types that the handler of the route sees. */
export function route<Params = undefined, Query = undefined, Body = undefined>(
  declared: Route<Params, Query, Body>,
): Route<Params, Query, Body> {
  return declared;
}

/** What a handler is given: everything checked. */
export interface ApiRequest<Params, Query, Body> {
  c: ApiContext;
  caller: Caller;
  params: Params;
  query: Query;
  body: Body;
  /** With a valid `Idempotency-Key`, on routes whose body the server reads. */
  repeat: RepeatableRequest | null;
  /** For an answer that goes on: throws what would refuse a new request with its key now. */
  checkKey(): Promise<void>;
}

/** What a handler answers; a `Response` where it is not JSON. */
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

/** Attaches handlers. Implemented by `server.ts`. */
export interface Api {
  on<Params, Query, Body>(
    route: Route<Params, Query, Body>,
    handle: (request: ApiRequest<Params, Query, Body>) => Promise<Answer | Response>,
  ): void;
  /** For routes with access `open`. */
  onOpen<Params, Query>(
    route: Route<Params, Query, undefined>,
    handle: (
      request: Pick<ApiRequest<Params, Query, undefined>, "c" | "params" | "query">,
    ) => Promise<Answer | Response>,
  ): void;
}
