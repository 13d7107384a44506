/**
 * Gives the app a port. On `node:http`, because it ends connections whose headers or bodies do not come; Deno.serve
 * waits for ever. Where `node:http` does too, on connections that are served one by one (docs/decisions/0011).
 */
import { OperatorError, Problem } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { problemDocument, problemOf } from "../api/answer.ts";
import { isInNetworks, parseNetwork, urlHost } from "../../base/addresses.ts";
import { makeSeats, seatsForFiles } from "./seats.ts";
import { type Answers, reachable, type Serve } from "./serve.ts";
import { serveConnections, serveHttp } from "./serve_connections.ts";
import { NODE_HAS_TIMEOUTS, serveNode } from "./serve_node.ts";

/** A client on a slow line has sent its headers long before. */
const HEADERS_TIMEOUT_MS = 15_000;
/** For the whole request: 100 MiB at 3 Mbit/s. */
const REQUEST_TIMEOUT_MS = 300_000;
/** Between requests; longer than proxies keep theirs, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
const CHECK_EVERY_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;
/** Bytes of answers that clients have asked for and do not read. */
const MAX_UNREAD_BYTES = 128 * 1024 ** 2;
/** How long requests under way may take when the gateway stops. */
const GRACE_MS = 5_000;

interface ListenOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  runtime: Pick<Runtime, "clock" | "ids">;
  /** Shorter ones for tests. */
  timeouts?: { headersMs: number; requestMs: number; checkEveryMs: number };
  /** Connections that may be open; null: as many as the process may open files, and half of them from one address. */
  maxConnections?: number | null;
  maxConnectionsPerAddress?: number | null;
  /** Fewer for tests. */
  maxUnreadBytes?: number;
  /** CIDRs from which many clients come. */
  trustedProxies?: readonly string[];
  /** By default the one that suits this runtime. */
  serve?: Serve;
}

export interface Listening {
  /** `http://HOST:PORT`, as a client on this machine reaches it. */
  url: string;
  port: number;
  /** How many connections are open. */
  connections(): number;
  /** Takes no new request, ends idle connections, and resolves when the others have ended or `graceMs` is over. Idempotent. */
  stop(graceMs?: number): Promise<void>;
}

/** The address cannot be used: something else listens there, it is not this machine's, or the port needs privileges. */
class CannotListen extends OperatorError {
  readonly code = "cannot_listen";
  override name = "CannotListen";

  constructor(address: string, cause: unknown) {
    const why = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE"
      ? "is in use: stop what listens there, or choose another with PALOMA_PORT (--port)"
      : `cannot be listened on (${cause instanceof Error ? cause.message : cause}): ` +
        "PALOMA_HOST (--host) and PALOMA_PORT (--port) choose another address";
    super(`${address} ${why}`, { cause });
  }
}

/** Deno 2.6's `node:http` silently ignores its time-outs. */
const suitable: Serve = NODE_HAS_TIMEOUTS || !serveHttp ? serveNode : serveConnections;

/** Resolves when requests are taken. Throws CannotListen. */
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
  const inAll = options.maxConnections ?? await seatsForFiles();
  const proxies = (options.trustedProxies ?? []).map(parseNetwork);
  const seats = makeSeats({
    inAll,
    ofAddress: options.maxConnectionsPerAddress ?? Math.ceil(inAll / 2),
    isShared: (address) => isInNetworks(proxies, address),
  });
  const unreadable = (error: unknown) => unreadableAnswer(error, ids.next("req"));
  try {
    const server = await serve(app, { host, port, clock, limits, seats, unreadable });
    let stopped: Promise<void> | null = null;
    return {
      url: `http://${reachable(host)}:${server.port}`,
      port: server.port,
      connections: () => seats.taken(),
      stop: (graceMs = GRACE_MS) => stopped ??= server.stop(graceMs),
    };
  } catch (error) {
    throw new CannotListen(`${urlHost(host)}:${port}`, error);
  }
}

/** The answer to a request that has no URL (a broken Host header, say) and so never reached the app. */
function unreadableAnswer(error: unknown, requestId: string): Response {
  const problem = error instanceof Error && error.name === "RequestError"
    ? new Problem("validation_failed", "The request line or the Host header is not valid.")
    : problemOf(error);
  return Response.json(problemDocument(problem, requestId), {
    status: problem.status,
    headers: { "content-type": "application/problem+json", "x-request-id": requestId },
  });
}
