/** The network's entrance: a WebSocket server on loopback. */
import { createServer } from "node:http";
// @ts-types="@types/ws"
import { WebSocketServer } from "ws";
import { listenOn } from "../../base/listening.ts";
import { admit } from "./login.ts";
import { serveSocket } from "./companion_socket.ts";
import type { NoiseIdentity } from "./noise.ts";
import type { RegistrationOptions } from "./linking/registration.ts";

interface Gate {
  /** `ws://127.0.0.1:PORT/ws/chat` */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts listening; port 0 takes a free one. Rejects when the port is taken. */
export async function openGate(
  { port, identity, options }: { port: number; identity: NoiseIdentity; options: RegistrationOptions },
): Promise<Gate> {
  const { runtime } = options.network;
  const http = createServer((_request, response) => response.writeHead(426).end());
  const server = new WebSocketServer({ server: http, perMessageDeflate: false });
  server.on("connection", (ws) => {
    serveSocket(ws, {
      identity,
      runtime,
      events: { onHandshake: (finish, socket) => admit(finish, socket, options) },
    });
  });
  // The WebSocket server forwards errors; the one that counts is the HTTP server's.
  server.once("error", () => {});
  const bound = await listenOn(http, { port });
  return {
    url: `ws://127.0.0.1:${bound}/ws/chat`,
    close: () =>
      new Promise((resolve) => {
        for (const ws of server.clients) ws.terminate();
        server.close();
        http.close(() => resolve());
      }),
  };
}
