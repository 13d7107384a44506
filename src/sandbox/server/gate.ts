/** The network's entrance: a WebSocket server on loopback. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
// @ts-types="@types/ws"
import { WebSocketServer } from "ws";
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
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    // The server forwards its errors; the one that counts is the HTTP server's.
    server.once("error", () => {});
    http.listen(port, "127.0.0.1", resolve);
  });
  const bound = (http.address() as AddressInfo).port;
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
