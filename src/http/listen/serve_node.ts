/** Serves on `node:http`, where that ends connections whose headers or bodies do not come. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { listenOn } from "../../base/listening.ts";
import type { Answers } from "../front.ts";
import { NO_SEAT, type Seat, type Seats } from "./seats.ts";
import { type HttpServer, reachable, type ServeOptions } from "./serve.ts";

/** Missing where it is a layer over Deno.serve. */
export const NODE_HAS_TIMEOUTS = createServer().headersTimeout !== undefined;

/**
 * Globals stay as Deno made them: the library's own Response would save 10 of 30 µs a request, but is none to `fetch`
 * and `Deno.serve` in the same process.
 */
export async function serveNode(
  app: Answers,
  { host, port, clock, limits, seats, unreadable }: ServeOptions,
): Promise<HttpServer> {
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: limits.maxHeaderBytes,
    },
    getRequestListener(app.fetch, {
      hostname: reachable(host),
      errorHandler: unreadable,
      overrideGlobalObjects: false,
    }),
  );
  giveSeats(server, seats);
  const bound = await listenOn(server, { port, host });
  // An accept that fails must not end the process.
  server.on("error", () => {});
  return {
    port: bound,
    stop(graceMs) {
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

function giveSeats(server: Server, seats: Seats): void {
  const taken = new WeakMap<Socket, Seat>();
  server.on("connection", (socket: Socket) => {
    const seat = seats.take(socket.remoteAddress ?? "", () => socket.destroy());
    if (!seat) {
      socket.on("error", () => {});
      return void socket.end(NO_SEAT, () => socket.destroy());
    }
    taken.set(socket, seat);
    socket.once("close", seat.leave);
  });
  server.prependListener("request", ({ socket }: IncomingMessage, answer: ServerResponse) => {
    const seat = taken.get(socket);
    seat?.work();
    answer.once("close", () => seat?.rest());
  });
}
