/** What Hono carries along with one request. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "@hono/hono";
import type { Caller } from "../../account/account.ts";

/** A request that the panel makes for somebody who has signed in there: it needs no key, and is on no rate limit. */
interface SignedIn {
  /** As `authenticate` of a key (`edge/auth.ts`), asked anew whenever a stream wants to know. Throws Problem. */
  caller(): Promise<Caller>;
}

export interface ApiEnv {
  /** Node's request and response; absent when a test calls the app in the same process. */
  Bindings: Partial<HttpBindings> & { person?: SignedIn };
  Variables: {
    requestId: string;
    /** What the request has earned for the head of its answer, whatever that will be: CORS, limits, its id. */
    headers: Record<string, string>;
    /** The status of an answer that is written already (`answer.ts`). */
    written?: number;
    /** Set once the key is known to be valid. */
    caller?: Caller;
    /** The declared path, `/v1/sessions/{id}`: what logs and metrics name instead of the URL. */
    route?: string;
    /** Why the answer is a 500; for the log alone. */
    failure?: unknown;
  };
}

export type ApiContext = Context<ApiEnv>;
