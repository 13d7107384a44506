/** What `listen.ts` needs of a server, whichever it is. */
import type { Hono } from "@hono/hono";
import { urlHost } from "../../base/addresses.ts";
import type { Clock } from "../../runtime.ts";
import type { ApiEnv } from "../api/context.ts";
import type { Seats } from "./seats.ts";

/** What gives each request its answer. */
export type Answers = Pick<Hono<ApiEnv>, "fetch">;

interface Limits {
  /** For the headers of a connection's first request. */
  headersMs: number;
  /** From one answer to the next headers. */
  keepAliveMs: number;
  /** For a request with a body. */
  requestMs: number;
  /** How often expired connections are looked for, where they have no timer of their own. */
  checkEveryMs: number;
  maxHeaderBytes: number;
  /** Of answers in memory; past it those go that have waited longest for their clients. */
  maxUnreadBytes: number;
}

export interface ServeOptions {
  host: string;
  port: number;
  clock: Clock;
  limits: Limits;
  seats: Seats;
  /** The answer to a request that cannot be read (RequestError), or that made the app throw. */
  unreadable(error: unknown): Response;
}

export interface HttpServer {
  port: number;
  /** Takes no new request, ends idle connections, and resolves when the others have ended or `graceMs` is over. */
  stop(graceMs: number): Promise<void>;
}

/** Resolves when requests are taken; rejects with what the runtime says when the address cannot be had. */
export type Serve = (app: Answers, options: ServeOptions) => Promise<HttpServer>;

/** The host as a client on this machine reaches it, for a URL. */
export function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return urlHost(host);
}
