/** What Hono carries along with one request. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "@hono/hono";
import type { Caller } from "../account/account.ts";

export interface ApiEnv {
  /** Node's request and response; absent when a test calls the app in the same process. */
  Bindings: Partial<Pick<HttpBindings, "incoming">>;
  Variables: {
    requestId: string;
    /** Set once the key is known to be valid. */
    caller?: Caller;
    /** The declared path, `/v1/sessions/{id}`: what logs and metrics name instead of the URL. */
    route?: string;
    /** Why the answer is a 500; for the log alone. */
    failure?: unknown;
  };
}

export type ApiContext = Context<ApiEnv>;
