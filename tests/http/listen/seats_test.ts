/** Connections that are silent, slow or too many: on a real socket, with each server that this runtime has. */
import assert from "node:assert/strict";
import { Hono } from "@hono/hono";
import type { ApiEnv } from "../../../src/http/api/route.ts";
import { listen, type Listening } from "../../../src/http/listen/listen.ts";
import type { Serve } from "../../../src/http/listen/serve.ts";
import { serveConnections, serveHttp } from "../../../src/http/listen/serve_connections.ts";
import { NODE_HAS_TIMEOUTS, serveNode } from "../../../src/http/listen/serve_node.ts";
import { silentRuntime } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";

const SERVERS: Record<string, Serve> = {
  ...(NODE_HAS_TIMEOUTS && { "node:http": serveNode }),
  ...(serveHttp && { "connection by connection": serveConnections }),
};

interface World {
  server: Listening;
  /** Lets the requests end that wait. */
  release: () => void;
  /** Resolves when so many requests wait. */
  waiting(count: number): Promise<void>;
}

function onEachServer(name: string, run: (world: World) => Promise<void>): void {
  for (const [kind, serve] of Object.entries(SERVERS)) {
    Deno.test(`${kind}: ${name}`, async () => {
      const released = Promise.withResolvers<void>();
      let waiting = 0;
      let changed = () => {};
      const app = new Hono<ApiEnv>();
      app.get("/", (c) => c.text("hello"));
      app.get("/wait", async (c) => {
        waiting++;
        changed();
        await released.promise;
        return c.text("done");
      });
      const runtime = silentRuntime();
      const limits = { maxConnections: 20, maxConnectionsPerAddress: 10 };
      const server = await listen(app, { host: "0.0.0.0", port: 0, runtime, serve, ...limits });
      try {
        await run({
          server,
          release: released.resolve,
          waiting: (count) =>
            new Promise((resolve) => {
              changed = () => waiting >= count && resolve();
              changed();
            }),
        });
      } finally {
        released.resolve();
        await server.stop(0);
      }
    });
  }
}

/** Sends the text from this address of the machine, and resolves to what comes back until the connection ends. */
async function ask(port: number, text: string, host = "127.0.0.1"): Promise<string> {
  using connection = await Deno.connect({ hostname: host, port });
  await connection.write(new TextEncoder().encode(text));
  let answer = "";
  const buffer = new Uint8Array(4096);
  const decoder = new TextDecoder();
  for (let read = await connection.read(buffer); read !== null; read = await connection.read(buffer)) {
    answer += decoder.decode(buffer.subarray(0, read));
  }
  return answer;
}

const request = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;

onEachServer("a hundred silent connections give way to one that asks something", async ({ server }) => {
  const silent = [];
  try {
    for (let i = 0; i < 100; i++) silent.push(await Deno.connect({ hostname: "127.0.0.1", port: server.port }));
    for (let i = 0; i < 5; i++) assert.match(await ask(server.port, request("/")), /^HTTP\/1.1 200 [^]*hello$/);
    assert.ok(server.connections() <= 10, `${server.connections()} are open`);
  } finally {
    for (const connection of silent) connection.close();
  }
});

onEachServer(
  "when every connection is at work, the next is told to come back",
  async ({ server, waiting, release }) => {
    const working = Array.from({ length: 10 }, () => ask(server.port, request("/wait")));
    await waiting(10);
    assert.match(await ask(server.port, request("/")), /^HTTP\/1.1 503 [^]*retry-after: 1[^]*"too_many_connections"/);
    release();
    for (const answer of await Promise.all(working)) assert.match(answer, /done$/);
    assert.match(await ask(server.port, request("/")), /hello$/);
  },
);

/** More than the system keeps for a client that does not read. */
const LONG = new Uint8Array(16 * 1024 ** 2);

/** The other server answers one after another by itself, and is not told what the client has read. */
function onNode(
  name: string,
  run: (server: Listening, answered: () => number) => Promise<void>,
  more: Partial<Parameters<typeof listen>[1]> = {},
): void {
  const fn = async () => {
    let answered = 0;
    const app = new Hono<ApiEnv>();
    app.get("/", (c) => c.text("hello"));
    app.get("/long", (c) => {
      answered++;
      return c.body(LONG);
    });
    const options = { host: "127.0.0.1", port: 0, runtime: silentRuntime(), serve: serveNode, maxConnections: 10 };
    const server = await listen(app, { ...options, ...more });
    try {
      await run(server, () => answered);
    } finally {
      await server.stop(0);
    }
  };
  Deno.test({ name: `node:http: ${name}`, ignore: !NODE_HAS_TIMEOUTS, fn });
}

async function connected(port: number, text: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode(text));
  return connection;
}

onNode("clients that read nothing of their answers give way to one that does", async ({ port }) => {
  const deaf = [];
  try {
    for (let i = 0; i < 10; i++) deaf.push(await connected(port, request("/long")));
    assert.match(await ask(port, request("/")), /^HTTP\/1.1 200 [^]*hello$/);
  } finally {
    for (const connection of deaf) connection.close();
  }
});

onNode("a client that reads nothing of its answer is hung up on in the end", async (server) => {
  using _deaf = await connected(server.port, request("/long"));
  await until(() => server.connections() === 1, "the connection");
  await until(() => server.connections() === 0, "its end");
}, { timeouts: { headersMs: 300, requestMs: 600, checkEveryMs: 50 } });

onNode("of answers that nobody reads so many bytes are kept, those of the latest", async ({ port, connections }) => {
  const deaf = [];
  try {
    for (let i = 0; i < 4; i++) deaf.push(await connected(port, request("/long")));
    await until(() => connections() === 2, "two of four to be hung up on");
    assert.match(await ask(port, request("/")), /hello$/);
  } finally {
    for (const connection of deaf) connection.close();
  }
}, { maxUnreadBytes: 2.5 * LONG.length });

onNode("a client that asks on and on without reading is given one answer, and hung up on", async (server, answered) => {
  using _deaf = await connected(server.port, "GET /long HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000));
  await until(() => answered() > 0 && server.connections() === 0, "its end");
  assert.equal(answered(), 1);
});

onNode("a client that asks a few times ahead gets its answers in order", async ({ port }) => {
  const ahead = "GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(15);
  const answers = await ask(port, ahead + request("/nothing"));
  assert.equal(answers.match(/HTTP\/1.1 200 /g)?.length, 15);
  assert.match(answers, /HTTP\/1.1 404 [^]*$/);
});
