/** What an endpoint of `/cloud` is: a row by method and path, with the scope that it needs. */
import type { Caller, Scope } from "../account/account.ts";
import type { ApiContext } from "../http/api/route.ts";
import type { Line } from "../line/line.ts";
import type { Fields } from "./fields.ts";

/** A request to an endpoint. */
export interface Asked {
  c: ApiContext;
  caller: Caller;
  query(name: string): string | undefined;
  /** Reads the body, which is JSON, or a form as some clients send. Throws CloudError, Problem. */
  body(): Promise<Fields>;
  /** Throws if the key is no longer valid; of sends the commit checks that. */
  checkKey(): Promise<unknown>;
  /** Calls a route of the API on the caller's behalf. Throws CloudError. */
  call(method: string, path: string, body?: Fields): Promise<Fields>;
}

type Handle<Named> = (asked: Asked & Named) => Promise<Fields | Response>;

interface Endpoint<Named> {
  /** Null: that of the routes which it calls. */
  scope: Scope | null;
  handle: Handle<Named>;
}

/** Endpoints by method and what follows the id in the path, such as `POST messages`. */
export type Endpoints<Named> = Readonly<Record<string, Endpoint<Named>>>;

export type OfPhone = Endpoints<{ line: Line }>;
export type OfAccount = Endpoints<unknown>;
export type OfMedia = Endpoints<{ mediaId: string }>;

export const SUCCESS: Fields = { success: true };
