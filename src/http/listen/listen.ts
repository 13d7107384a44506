/**
 * Binds the app to a port. Uses `node:http`, because it ends connections whose headers or bodies do not arrive, while
 * Deno.serve waits forever. If `node:http` waits as well, serves each connection itself (docs/decisions/0011).
 */
import { OperatorError, Problem } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { problemDocument, problemOf } from "../api/answer.ts";
import { errorCode } from "../../base/retry.ts";
import { isInNetworks, parseNetwork, urlHost } from "../../base/addresses.ts";
import { makeSlots, slotsForFiles } from "./slots.ts";
import { type Answers, reachable, type Serve } from "./serve.ts";
import { serveConnections, serveHttp } from "./serve_connections.ts";
import { NODE_HAS_TIMEOUTS, serveNode } from "./serve_node.ts";

/** Ample even for a client on a slow connection. */
const HEADERS_TIMEOUT_MS = 15_000;
/** For the whole request; enough for 100 MiB at 3 Mbit/s. */
const REQUEST_TIMEOUT_MS = 300_000;
/** Between requests; longer than the keep-alive timeout of common proxies, so that the proxy closes first. */
const KEEP_ALIVE_MS = 75_000;
const CHECK_EVERY_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;
/** Bytes of finished answers that wait in memory because their clients do not read them. */
const MAX_UNREAD_BYTES = 128 * 1024 ** 2;
/** How long requests in progress may still take when the gateway stops. */
const GRACE_MS = 5_000;

interface ListenOptions {
  host: string;
  /** 0: any free port. */
  port: number;
  runtime: Pick<Runtime, "clock" | "ids">;
  /** Tests set shorter ones. */
  timeouts?: { headersMs: number; requestMs: number; checkEveryMs: number };
  /** Most open connections; null: derived from the process's limit of open files. */
  maxConnections?: number | null;
  /** Most open connections from one address; null: half of all. */
  maxConnectionsPerAddress?: number | null;
  /** Tests set fewer. */
  maxUnreadBytes?: number;
  /** CIDRs of proxies, which the limit per address does not apply to. */
  trustedProxies?: readonly string[];
  /** The server to use; by default the one that suits this runtime. */
  serve?: Serve;
}

export interface Listening {
  /** `http://HOST:PORT`, as a client on this machine reaches it. */
  url: string;
  port: number;
  /** The number of open connections. */
  connections(): number;
  /**
   * Accepts no more requests, closes idle connections, and resolves when the others have closed or `graceMs` has
   * passed. Idempotent.
   */
  stop(graceMs?: number): Promise<void>;
}

/** The address cannot be used: it is in use, it does not belong to this machine, or the port needs privileges. */
function cannotListen(address: string, cause: unknown): OperatorError {
  const why = errorCode(cause) === "EADDRINUSE"
    ? "is in use: stop what listens there, or choose another with PALOMA_PORT (--port)"
    : `cannot be listened on (${cause instanceof Error ? cause.message : cause}): ` +
      "PALOMA_HOST (--host) and PALOMA_PORT (--port) choose another address";
  return new OperatorError("cannot_listen", `${address} ${why}`, { cause });
}

/** Deno 2.6's `node:http` silently ignores its timeouts. */
const suitable: Serve = NODE_HAS_TIMEOUTS || !serveHttp ? serveNode : serveConnections;

/** Resolves once requests are accepted. Throws OperatorError if the address cannot be used. */
export async function listen(app: Answers, options: ListenOptions): Promise<Listening> {
  const { host, port, timeouts, serve = suitable, runtime: { clock, ids } } = options;
  const limits = {
    headersMs: timeouts?.headersMs ?? HEADERS_TIMEOUT_MS,
    requestMs: timeouts?.requestMs ?? REQUEST_TIMEOUT_MS,
    checkEveryMs: timeouts?.checkEveryMs ?? CHECK_EVERY_MS,
    keepAliveMs: KEEP_ALIVE_MS,
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxUnreadBytes: options.maxUnreadBytes ?? MAX_UNREAD_BYTES,
  };
  const inAll = options.maxConnections ?? await slotsForFiles();
  const proxies = (options.trustedProxies ?? []).map(parseNetwork);
  const slots = makeSlots({
    inAll,
    ofAddress: options.maxConnectionsPerAddress ?? Math.ceil(inAll / 2),
    isShared: (address) => isInNetworks(proxies, address),
  });
  const unreadable = (error: unknown) => unreadableAnswer(error, ids.next("req"));
  try {
    const server = await serve(app, { host, port, clock, limits, slots, unreadable });
    let stopped: Promise<void> | null = null;
    return {
      url: `http://${reachable(host)}:${server.port}`,
      port: server.port,
      connections: () => slots.taken(),
      stop: (graceMs = GRACE_MS) => stopped ??= server.stop(graceMs),
    };
  } catch (error) {
    throw cannotListen(`${urlHost(host)}:${port}`, error);
  }
}

/** Returns the answer to a request that never reached the app because it has no URL (an invalid Host header, say). */
function unreadableAnswer(error: unknown, requestId: string): Response {
  const problem = error instanceof Error && error.name === "RequestError"
    ? new Problem("validation_failed", "The request line or the Host header is not valid.")
    : problemOf(error);
  return Response.json(problemDocument(problem, requestId), {
    status: problem.status,
    headers: { "content-type": "application/problem+json", "x-request-id": requestId },
  });
}
