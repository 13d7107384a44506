/** Serves on `node:http`, for runtimes where it closes connections whose headers or bodies do not arrive. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { listenOn } from "../../base/listening.ts";
import { makeRounds } from "../../base/single_flight.ts";
import { NO_SLOT, type Slot } from "./slots.ts";
import { type Answers, type HttpServer, reachable, type ServeOptions } from "./serve.ts";

/**
 * Most pipelined requests per connection. Current clients do not pipeline; one that keeps asking without reading would
 * fill the memory with its answers.
 */
const MOST_AHEAD = 16;

/** False on runtimes whose `node:http` is a layer over Deno.serve, which has no timeouts. */
export const NODE_HAS_TIMEOUTS = createServer().headersTimeout !== undefined;

/**
 * Leaves the global objects alone: the library's own Response would save 10 of 30 µs per request, but `fetch` and
 * `Deno.serve` in the same process would not accept it.
 */
export async function serveNode(
  app: Answers,
  { host, port, clock, limits, slots, unreadable }: ServeOptions,
): Promise<HttpServer> {
  const answer = getRequestListener(app.fetch, {
    hostname: reachable(host),
    errorHandler: unreadable,
    overrideGlobalObjects: false,
  });
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: limits.maxHeaderBytes,
    },
  );
  const connections = receive(server, { clock, slots, unread: makeUnread(limits.maxUnreadBytes), answer });
  const bound = await listenOn(server, { port, host });
  // A failed accept must not end the process.
  server.on("error", () => {});
  // Instead of the server's own socket timeout, which would take a fifth of the time of a short request.
  const stopLooking = makeRounds(clock, limits.checkEveryMs)(() => {
    endDeaf(connections, { now: clock.now(), withinMs: limits.requestMs });
  });
  return {
    port: bound,
    stop(graceMs) {
      stopLooking();
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

interface Reception extends Pick<ServeOptions, "clock" | "slots"> {
  unread: Unread;
  answer: (request: IncomingMessage, response: ServerResponse) => void;
}

interface Connection {
  slot: Slot;
  /** Starters of the requests whose answers are not complete yet; the first one is running. */
  asked: (() => void)[];
  /** Bytes sent to the client as of the last check, and when it was last seen reading, or had nothing to read. */
  left: number;
  leftAt: number;
}

/** Gives each connection a slot and answers its requests one after another; returns the open connections. */
function receive(server: Server, { clock, slots, unread, answer }: Reception): ReadonlyMap<Socket, Connection> {
  const connections = new Map<Socket, Connection>();
  server.on("connection", (socket: Socket) => {
    const slot = slots.take(socket.remoteAddress ?? "", () => socket.destroy());
    if (!slot) {
      socket.on("error", () => {});
      return void socket.end(NO_SLOT, () => socket.destroy());
    }
    connections.set(socket, { slot, asked: [], left: 0, leftAt: clock.now() });
    socket.once("close", () => {
      connections.delete(socket);
      slot.leave();
    });
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const connection = connections.get(socket);
    if (!connection || socket.destroyed) return;
    const { slot, asked } = connection;
    const begin = () => {
      if (socket.destroyed) return;
      slot.work();
      // The answer is complete; now the client may take its time to read it.
      response.once("prefinish", () => {
        slot.rest();
        unread.wait(socket);
      });
      response.once("close", () => {
        unread.end(socket);
        asked.shift();
        asked[0]?.();
      });
      answer(request, response);
    };
    asked.push(begin);
    if (asked.length === 1) begin();
    else if (asked.length > MOST_AHEAD) socket.destroy();
  });
  return connections;
}

/** Closes connections whose clients have read nothing of their answers for `withinMs`. */
function endDeaf(
  connections: ReadonlyMap<Socket, Connection>,
  { now, withinMs }: { now: number; withinMs: number },
): void {
  for (const [socket, connection] of connections) {
    const left = socket.bytesWritten - socket.writableLength;
    if (socket.writableLength === 0 || left !== connection.left) Object.assign(connection, { left, leftAt: now });
    else if (now - connection.leftAt >= withinMs) socket.destroy();
  }
}

type Unread = ReturnType<typeof makeUnread>;

/**
 * Tracks answers that wait in memory for their clients; beyond the limit, the oldest are dropped with their
 * connections.
 */
function makeUnread(maxBytes: number) {
  const waiting = new Map<Socket, number>();
  let sum = 0;

  function end(socket: Socket): void {
    sum -= waiting.get(socket) ?? 0;
    waiting.delete(socket);
  }

  return {
    wait(socket: Socket): void {
      if (socket.writableLength === 0) return;
      waiting.set(socket, socket.writableLength);
      sum += socket.writableLength;
      for (const oldest of waiting.keys()) {
        if (sum <= maxBytes) return;
        end(oldest);
        oldest.destroy();
      }
    },
    end,
  };
}
