/** Servers that end with their connections: `close` alone waits for those that their clients keep. */
import type { Server, Socket } from "node:net";
import { inTime } from "./until.ts";

export interface Connections {
  readonly sockets: ReadonlySet<Socket>;
  /** Closes the server, and every connection: one, too, that comes meanwhile. */
  close(): Promise<void>;
}

/** Keeps the connections of a server, which has none yet. */
export function connectionsOf(server: Server): Connections {
  const sockets = new Set<Socket>();
  let isClosing = false;
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    if (isClosing) socket.destroy();
  });
  return {
    sockets,
    close() {
      isClosing = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      return inTime(closed, "a server to close");
    },
  };
}
