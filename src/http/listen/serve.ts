/** The port between `listen.ts` and its two servers. */
import type { Hono } from "@hono/hono";
import { urlHost } from "../../base/addresses.ts";
import type { Clock } from "../../runtime.ts";
import type { ApiEnv } from "../api/route.ts";
import type { Slots } from "./slots.ts";

/** Answers requests. */
export type Answers = Pick<Hono<ApiEnv>, "fetch">;

interface Limits {
  /** Time for the headers of a connection's first request. */
  headersMs: number;
  /** Time from one answer to the headers of the next request. */
  keepAliveMs: number;
  /** Time for a request with a body. */
  requestMs: number;
  /** How often to check for expired connections, if they have no timer of their own. */
  checkEveryMs: number;
  maxHeaderBytes: number;
  /** Limit for unread answers in memory; beyond it, connections whose answers have waited longest are closed. */
  maxUnreadBytes: number;
}

export interface ServeOptions {
  host: string;
  port: number;
  clock: Clock;
  limits: Limits;
  slots: Slots;
  /** Returns the answer to a request that cannot be read (RequestError) or that made the app throw. */
  unreadable(error: unknown): Response;
}

export interface HttpServer {
  port: number;
  /**
   * Accepts no more requests, closes idle connections, and resolves when the others have closed or `graceMs` has
   * passed.
   */
  stop(graceMs: number): Promise<void>;
}

/** Resolves once requests are accepted; rejects with the runtime's error if the address cannot be used. */
export type Serve = (app: Answers, options: ServeOptions) => Promise<HttpServer>;

/** Returns the host, in the form for a URL, under which clients on this machine reach it. */
export function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return urlHost(host);
}
