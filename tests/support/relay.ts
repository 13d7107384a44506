/**
 * A way to a TCP server that can be led to another one, or be closed, and whose connections can be cut, or fall silent, as
 * when a machine is gone.
 */
import net from "node:net";
import { listenOn } from "../../src/base/listening.ts";
import { systemClock } from "../../src/runtime.ts";
import { inTime } from "./until.ts";

export interface Relay extends AsyncDisposable {
  readonly port: number;
  /** The port where new connections go; null: they are refused. */
  to: number | null;
  /** When somebody tried to connect, Unix ms. */
  readonly attempts: number[];
  /** Ends the connections that there are. */
  cut(): void;
  /** Nothing passes any more on the connections that there are, and neither side is told. */
  silence(): void;
}

export async function startRelay(to: number | null): Promise<Relay> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    relay.attempts.push(systemClock.now());
    if (relay.to === null) return void near.resetAndDestroy();
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
    port: await listenOn(server),
    to,
    attempts: [],
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    silence() {
      for (const socket of sockets) {
        socket.unpipe();
        socket.removeAllListeners("close");
        socket.resume();
      }
    },
    async [Symbol.asyncDispose]() {
      relay.to = null;
      relay.cut();
      await inTime(new Promise((resolve) => server.close(resolve)), "the relay to close");
    },
  };
  return relay;
}
