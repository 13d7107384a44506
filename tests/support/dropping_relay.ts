/** A way to a TCP server that loses connections: a request before it arrives, or its answer, by turns. */
import net from "node:net";
import { listenOn } from "../../src/base/listening.ts";
import { connectionsOf } from "./closing.ts";

export interface DroppingRelay extends AsyncDisposable {
  readonly port: number;
  /** How many requests and answers were lost so far. */
  readonly dropped: { requests: number; answers: number };
}

/** Loses one in `every` of what clients write at once: as a rule, a request. */
export async function startDroppingRelay(to: number, every: number): Promise<DroppingRelay> {
  const dropped = { requests: 0, answers: 0 };
  let written = 0;

  const server = net.createServer((near) => {
    const far = net.connect(to, "127.0.0.1");
    let losesAnswer = false;
    for (const [socket, other] of [[near, far], [far, near]] as const) {
      socket.on("error", () => {});
      socket.on("close", () => other.destroy());
    }
    near.on("data", (bytes) => {
      written++;
      if (written % (2 * every) === 0) {
        dropped.requests++;
        near.resetAndDestroy();
      } else {
        losesAnswer ||= written % (2 * every) === every;
        far.write(bytes);
      }
    });
    far.on("data", (bytes) => {
      if (losesAnswer) {
        dropped.answers++;
        near.resetAndDestroy();
      } else near.write(bytes);
    });
  });

  const { close } = connectionsOf(server);
  return { port: await listenOn(server), dropped, [Symbol.asyncDispose]: close };
}
