/** A way to a TCP server that can be led to another one, and whose connections can fall silent, as when a machine is gone. */
import net from "node:net";
import { freePort } from "./free_port.ts";

export interface Relay extends AsyncDisposable {
  port: number;
  /** Where new connections go. */
  to: number;
  /** Nothing passes any more on the connections that there are, and neither side is told. */
  silence(): void;
}

export async function startRelay(to: number): Promise<Relay> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect(relay.to, "127.0.0.1");
    for (const [from, into] of [[near, far], [far, near]] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        into.destroy();
      });
      from.pipe(into);
    }
  });
  const relay: Relay = {
    port: freePort(),
    to,
    silence() {
      for (const socket of sockets) {
        socket.unpipe();
        socket.removeAllListeners("close");
        socket.resume();
      }
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  await new Promise<void>((resolve) => server.listen(relay.port, "127.0.0.1", resolve));
  return relay;
}
