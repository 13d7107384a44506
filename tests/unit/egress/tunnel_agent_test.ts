/** Asks the kernel, since a runtime may take `setNoDelay` without doing it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { WebSocket, WebSocketServer } from "ws";
import { listenOn } from "../../../src/base/listening.ts";
import { directAgent } from "../../../src/egress/tunnel_agent.ts";
import { systemClock } from "../../../src/runtime.ts";

Deno.test({
  name: "a WebSocket's frames do not wait for acknowledgements of the frames before",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const server = createServer();
    const sockets = new WebSocketServer({ server });
    const port = await listenOn(server);
    const url = new URL(`ws://127.0.0.1:${port}`);
    const client = new WebSocket(url, { agent: directAgent(url, systemClock) });
    await once(client, "open");
    assert.equal(noDelayTo(port), 1);
    client.terminate();
    sockets.close();
    server.close();
  },
});

Deno.test("a connection that is refused says so", async () => {
  const url = new URL("ws://127.0.0.1:9");
  const refused = new WebSocket(url, { agent: directAgent(url, systemClock) });
  const [error] = await once(refused, "error");
  assert.match(error.message, /connect ECONNREFUSED/);
});

/** TCP_NODELAY of this process's connection to the port of loopback, as the kernel has it. */
function noDelayTo(port: number): number {
  const there = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const row = Deno.readTextFileSync("/proc/net/tcp").split("\n").map((line) => line.trim().split(/\s+/))
    .find(([, , remote]) => remote === there);
  const fds = [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => name);
  const fd = fds.find((name) => linkOf(`/proc/self/fd/${name}`) === `socket:[${row![9]}]`);
  const libc = Deno.dlopen("libc.so.6", {
    getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
  });
  const value = new Int32Array(1);
  assert.equal(libc.symbols.getsockopt(Number(fd), 6, 1, value, new Int32Array([4])), 0);
  libc.close();
  return value[0]!;
}

function linkOf(path: string): string | null {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return null;
  }
}
