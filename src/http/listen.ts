/**
 * Gives the app a port. On `node:http`, because it ends connections whose headers or bodies do not come; Deno.serve
 * waits for ever. (Deno 2.4's `node:http` ignores these time-outs; a gateway compiled with it needs a proxy that has them.)
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "@hono/hono";
import { Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import type { ApiEnv } from "./context.ts";
import { problemDocument, problemOf } from "./problem.ts";

/** A client on a slow line has its headers through long before. */
const HEADERS_TIMEOUT_MS = 15_000;
/** For the whole request: 100 MiB at 3 Mbit/s. */
const REQUEST_TIMEOUT_MS = 300_000;
/** Between requests; longer than proxies keep theirs, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
const CHECK_EVERY_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;
/** What is on its way when the gateway stops may take this long to end. */
const GRACE_MS = 5_000;

export interface ListenOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  runtime: Pick<Runtime, "clock" | "ids">;
  /** Shorter ones for tests. */
  timeouts?: { headersMs: number; requestMs: number; checkEveryMs: number };
}

export interface Listening {
  /** `http://HOST:PORT`, as a client on this machine reaches it. */
  url: string;
  port: number;
  /** Takes no new request, ends idle connections, and resolves when the others have ended or `graceMs` is over. */
  stop(graceMs?: number): Promise<void>;
}

/** The address cannot be had: something else listens there, it is not this machine's, or the port needs more rights. */
export class CannotListen extends Error {
  override name = "CannotListen";

  constructor(address: string, cause: Error & { code?: string }) {
    const why = cause.code === "EADDRINUSE"
      ? "is in use: stop what listens there, or choose another with PALOMA_PORT"
      : `cannot be listened on: ${cause.message}`;
    super(`${address} ${why}`, { cause });
  }
}

/**
 * Resolves when requests are taken. Throws CannotListen. Globals stay as Deno made them: the library's own
 * Response would save 10 of 30 µs a request, but is none to `fetch` and `Deno.serve` in the same process.
 */
export async function listen(app: Hono<ApiEnv>, options: ListenOptions): Promise<Listening> {
  const { host, port, timeouts, runtime: { clock, ids } } = options;
  const server = createServer(
    {
      headersTimeout: timeouts?.headersMs ?? HEADERS_TIMEOUT_MS,
      requestTimeout: timeouts?.requestMs ?? REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: timeouts?.checkEveryMs ?? CHECK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    getRequestListener(app.fetch, {
      hostname: reachable(host),
      errorHandler: (error) => unreadable(error, ids.next("req")),
      overrideGlobalObjects: false,
    }),
  );
  await new Promise<void>((resolve, reject) => {
    const fail = (error: Error) => reject(new CannotListen(`${bracketed(host)}:${port}`, error));
    server.once("error", fail);
    server.listen(port, host, () => {
      server.off("error", fail);
      resolve();
    });
  });
  const address = server.address() as AddressInfo;
  return {
    url: `http://${reachable(host)}:${address.port}`,
    port: address.port,
    stop(graceMs = GRACE_MS) {
      return new Promise((resolve) => {
        const cancel = clock.after(graceMs, () => server.closeAllConnections());
        server.close(() => {
          cancel();
          resolve();
        });
        server.closeIdleConnections();
      });
    },
  };
}

/** The answer to a request that has no URL (a broken Host header, say) and so never reached the app. */
function unreadable(error: unknown, requestId: string): Response {
  const problem = (error as Error | null)?.name === "RequestError"
    ? new Problem("validation_failed", "The request line or the Host header is not valid.")
    : problemOf(error);
  return Response.json(problemDocument(problem, requestId), {
    status: problem.status,
    headers: { "content-type": "application/problem+json", "x-request-id": requestId },
  });
}

function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return bracketed(host);
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
