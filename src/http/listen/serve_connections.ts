/**
 * Serves connection by connection, for runtimes whose `node:http` is Deno.serve in disguise (2.6 is one): it has no
 * time-outs there, and takes a whole body into memory when its reader is slower than the client. Here deadlines end the
 * connection, and a body is read no faster than it is used.
 */
import type { IncomingMessage } from "node:http";
import { RequestError } from "@hono/node-server";
import { settledWithin, within } from "../../base/within.ts";
import { sleep } from "../../runtime.ts";
import { NO_SEAT, type Seat } from "./seats.ts";
import type { Answers, HttpServer, ServeOptions } from "./serve.ts";

/** What those runtimes have, and newer type declarations no longer name. */
type ServeHttp = (connection: Deno.TcpConn) => HttpConnection;

interface HttpConnection {
  /** Null once the connection has ended; rejects what is no HTTP. */
  nextRequest(): Promise<{ request: Request; respondWith(response: Response): Promise<void> } | null>;
  close(): void;
}

export const serveHttp: ServeHttp | undefined = Reflect.get(Deno, "serveHttp");

/** A name, an IPv4 or a bracketed IPv6 address, and maybe a port. */
const HOST = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i;
/** For the last bytes of an answer, when no other will follow. */
const LAST_MS = 1_000;
/** After an accept that failed; too many open files is the usual reason. */
const ACCEPT_AGAIN_MS = 100;

// deno-lint-ignore require-await -- what `Deno.listen` throws is a rejection
export async function serveConnections(
  app: Answers,
  { host, port, clock, limits, seats, unreadable }: ServeOptions,
): Promise<HttpServer> {
  const listener = Deno.listen({ hostname: host, port });
  const served = new Map<HttpConnection, Promise<void>>();
  const idle = new Set<HttpConnection>();
  let stopped = false;

  async function acceptAll(): Promise<void> {
    while (!stopped) {
      try {
        const connection = await listener.accept();
        const peer = connection.remoteAddr.hostname;
        let close = () => connection.close();
        const seat = seats.take(peer, () => close());
        if (!seat) {
          await turnAway(connection);
          continue;
        }
        const http = serveHttp!(connection);
        close = () => http.close();
        const ended = answerAll(http, { peer, seat }).finally(() => {
          http.close();
          seat.leave();
          served.delete(http);
        });
        served.set(http, ended);
      } catch {
        if (!stopped) await sleep(clock, ACCEPT_AGAIN_MS);
      }
    }
  }

  async function answerAll(http: HttpConnection, { peer, seat }: { peer: string; seat: Seat }): Promise<void> {
    for (let waitMs = limits.headersMs;; waitMs = limits.keepAliveMs) {
      // Once stopped, wait for the end: the last answer may still be on its way.
      if (!stopped) idle.add(http);
      const cancel = clock.after(stopped ? LAST_MS : waitMs, () => http.close());
      const next = await http.nextRequest().catch(() => null);
      cancel();
      idle.delete(http);
      if (!next) return;
      seat.work();
      const answer = await answerInTime(next.request, peer);
      await next.respondWith(stopped ? last(answer) : answer).catch(() => http.close());
      seat.rest();
    }
  }

  /** A body that is late is given up, and its connection with it. */
  async function answerInTime(request: Request, peer: string): Promise<Response> {
    const answer = answerTo(request, peer).catch((error) => last(unreadable(error)));
    if (request.body === null) return await answer;
    const inTime = await within(clock, limits.requestMs, answer);
    return inTime === "late" ? last(new Response(null, { status: 408 })) : inTime;
  }

  async function answerTo(request: Request, peer: string): Promise<Response> {
    // The runtime builds the URL from it, and a path in it would come before the path.
    const host = request.headers.get("host");
    if (host !== null && !HOST.test(host)) throw new RequestError("Invalid host header");
    if (sizeOf(request) > limits.maxHeaderBytes) return last(new Response(null, { status: 431 }));
    return await app.fetch(request, { incoming: { socket: { remoteAddress: peer } } as IncomingMessage });
  }

  const accepting = acceptAll();
  return {
    port: listener.addr.port,
    async stop(graceMs) {
      stopped = true;
      listener.close();
      for (const http of idle) http.close();
      await accepting;
      // A handler whose client has gone is not waited for.
      const ended = await settledWithin(clock, graceMs, Promise.all(served.values()));
      if (!ended) { for (const http of served.keys()) http.close(); }
    },
  };
}

async function turnAway(connection: Deno.TcpConn): Promise<void> {
  await connection.write(new TextEncoder().encode(NO_SEAT)).catch(() => {});
  connection.close();
}

/** The same answer, after which the connection ends. */
function last({ body, status, headers }: Response): Response {
  return new Response(body, { status, headers: [...headers, ["connection", "close"]] });
}

/** Bytes on the wire of the request line and the headers: a colon, a space and the end of the line with each of these. */
function sizeOf({ method, url, headers }: Request): number {
  let size = method.length + url.length;
  for (const [name, value] of headers) size += name.length + value.length + 4;
  return size;
}
