/** The context of a request, as Hono passes it along. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "@hono/hono";
import type { Caller } from "../../account/account.ts";

/** A request from a person signed in to the panel: it needs no key and has no rate limit. */
interface SignedIn {
  /** As `authenticate` for a key (`edge/auth.ts`); streams call it repeatedly. Throws Problem. */
  caller(): Promise<Caller>;
}

export interface ApiEnv {
  /** Node's request and response; absent when a test calls the app in the same process. */
  Bindings: Partial<HttpBindings> & { person?: SignedIn };
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

export type ApiContext = Context<ApiEnv>;
