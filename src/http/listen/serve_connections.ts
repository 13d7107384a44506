/**
 * Serves connection by connection, for runtimes whose `node:http` is a layer over Deno.serve (2.6 is one). There it has
 * no timeouts, and buffers a whole body in memory if its reader is slower than the client. Here deadlines close the
 * connection, and a body is read only as fast as it is used.
 */
import type { IncomingMessage } from "node:http";
import { RequestError } from "@hono/node-server";
import { settledWithin, within } from "../../base/within.ts";
import { sleep } from "../../runtime.ts";
import { NO_SLOT, type Slot } from "./slots.ts";
import type { Answers, HttpServer, ServeOptions } from "./serve.ts";

/** `Deno.serveHttp`, which those runtimes have but newer type declarations no longer list. */
type ServeHttp = (connection: Deno.TcpConn) => HttpConnection;

interface HttpConnection {
  /** Resolves to null once the connection has closed; rejects if the input is not HTTP. */
  nextRequest(): Promise<{ request: Request; respondWith(response: Response): Promise<void> } | null>;
  close(): void;
}

export const serveHttp: ServeHttp | undefined = Reflect.get(Deno, "serveHttp");

/** A name, an IPv4 address or a bracketed IPv6 address, with an optional port. */
const HOST = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i;
/** Time for the last bytes of an answer after which none follows. */
const LAST_MS = 1_000;
/** Pause after an accept that failed, usually because of too many open files. */
const ACCEPT_AGAIN_MS = 100;

// deno-lint-ignore require-await -- turns what `Deno.listen` throws into a rejection
export async function serveConnections(
  app: Answers,
  { host, port, clock, limits, slots, unreadable }: ServeOptions,
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
        const slot = slots.take(peer, () => close());
        if (!slot) {
          await turnAway(connection);
          continue;
        }
        const http = serveHttp!(connection);
        close = () => http.close();
        const ended = answerAll(http, { peer, slot }).finally(() => {
          http.close();
          slot.leave();
          served.delete(http);
        });
        served.set(http, ended);
      } catch {
        if (!stopped) await sleep(clock, ACCEPT_AGAIN_MS);
      }
    }
  }

  async function answerAll(http: HttpConnection, { peer, slot }: { peer: string; slot: Slot }): Promise<void> {
    for (let waitMs = limits.headersMs;; waitMs = limits.keepAliveMs) {
      // Once stopped, wait until the client closes: the last answer may still be in transit.
      if (!stopped) idle.add(http);
      const cancel = clock.after(stopped ? LAST_MS : waitMs, () => http.close());
      const next = await http.nextRequest().catch(() => null);
      cancel();
      idle.delete(http);
      if (!next) return;
      slot.work();
      const answer = await answerInTime(next.request, peer);
      await next.respondWith(stopped ? last(answer) : answer).catch(() => http.close());
      slot.rest();
    }
  }

  /** Resolves to the app's answer, or to 408, which closes the connection, if a request with a body takes too long. */
  async function answerInTime(request: Request, peer: string): Promise<Response> {
    const answer = answerTo(request, peer).catch((error) => last(unreadable(error)));
    if (request.body === null) return await answer;
    const inTime = await within(clock, limits.requestMs, answer);
    return inTime === "late" ? last(new Response(null, { status: 408 })) : inTime;
  }

  async function answerTo(request: Request, peer: string): Promise<Response> {
    // The runtime builds the URL from this header; a path in it would be prepended to the request's path.
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
      // Handlers whose clients have disconnected are not waited for.
      const ended = await settledWithin(clock, graceMs, Promise.all(served.values()));
      if (!ended) { for (const http of served.keys()) http.close(); }
    },
  };
}

async function turnAway(connection: Deno.TcpConn): Promise<void> {
  await connection.write(new TextEncoder().encode(NO_SLOT)).catch(() => {});
  connection.close();
}

/** Returns the same answer, with the header that closes the connection after it. */
function last({ body, status, headers }: Response): Response {
  return new Response(body, { status, headers: [...headers, ["connection", "close"]] });
}

/** Returns the approximate size in bytes of the request line and headers; 4 a header for `: ` and the line break. */
function sizeOf({ method, url, headers }: Request): number {
  let size = method.length + url.length;
  for (const [name, value] of headers) size += name.length + value.length + 4;
  return size;
}
