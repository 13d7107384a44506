/** Each server on a real socket: clients that are slow, broken or never end. */
import assert from "node:assert/strict";
import { Hono } from "@hono/hono";
import { GIVE_UP_AFTER_MS } from "../../../src/cli/client.ts";
import { listen, type Listening } from "../../../src/http/listen/listen.ts";
import type { ApiEnv } from "../../../src/http/api/route.ts";
import type { Serve } from "../../../src/http/listen/serve.ts";
import { serveConnections, serveHttp } from "../../../src/http/listen/serve_connections.ts";
import { NODE_HAS_TIMEOUTS, serveNode } from "../../../src/http/listen/serve_node.ts";
import { settledWithin } from "../../../src/base/within.ts";
import { withApi } from "../../support/api_world.ts";
import { silentRuntime } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";

const runtime = silentRuntime();
/** For the tests that wait until they are over; a loaded machine would let them end other requests. */
const SHORT = { headersMs: 300, requestMs: 600, checkEveryMs: 50 };

/** Those that can do here what is asked of them; the newest runtimes have both. */
const SERVERS: Record<string, Serve> = {
  ...(NODE_HAS_TIMEOUTS && { "node:http": serveNode }),
  ...(serveHttp && { "connection by connection": serveConnections }),
};

type Options = Partial<Pick<Parameters<typeof listen>[1], "host" | "port" | "timeouts">>;
type WithServer = (app: Hono<ApiEnv>, run: (server: Listening) => Promise<void>, options?: Options) => Promise<void>;

interface Server {
  start: (app: Hono<ApiEnv>, options?: Options) => Promise<Listening>;
  withServer: WithServer;
}

/** A test of every server. */
function onEachServer(name: string, run: (server: Server) => Promise<void>): void {
  for (const [kind, serve] of Object.entries(SERVERS)) {
    const start: Server["start"] = (app, options) =>
      listen(app, { host: "127.0.0.1", port: 0, ...options, runtime, serve });
    const withServer: WithServer = async (app, use, options) => {
      const server = await start(app, options);
      try {
        await use(server);
      } finally {
        await server.stop(0);
      }
    };
    Deno.test(`${kind}: ${name}`, () => run({ start, withServer }));
  }
}

/** Writes the pieces, one every 50 ms, and resolves to everything that came back before the server hung up. */
async function converse(port: number, pieces: string[]): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  let ended = false;
  const writing = (async () => {
    for (const piece of pieces) {
      if (ended) return;
      let bytes = new TextEncoder().encode(piece);
      while (bytes.length > 0) bytes = bytes.subarray(await connection.write(bytes));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })().catch(() => {});
  let text = "";
  const buffer = new Uint8Array(4096);
  try {
    for (let n = await connection.read(buffer); n !== null; n = await connection.read(buffer)) {
      text += new TextDecoder().decode(buffer.subarray(0, n));
    }
  } catch {
    // A reset is an end too.
  }
  ended = true;
  await writing;
  return text;
}

onEachServer(
  "a client that is silent, or drips its headers or its body, is hung up on",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ port }) => {
        const head = `POST /v1/messages/send/text HTTP/1.1\r\nhost: x\r\nx-api-key: ${world.apiKey}\r\n` +
          "content-type: application/json\r\ncontent-length: 1000\r\n\r\n";
        // Without headers there may be nobody to answer.
        const slow: Record<string, string[]> = {
          silent: [],
          headers: ["POST /v1/sessions HTTP/1.1\r\n", ...Array(100).fill("a: b\r\n")],
          body: [head, ...Array(100).fill("x")],
          "a body that stops": [head, "{"],
        };
        for (const [name, pieces] of Object.entries(slow)) {
          const expected = name.includes("body") ? /^HTTP\/1\.1 408 / : /^(HTTP\/1\.1 408 |$)/;
          assert.match(await converse(port, pieces), expected, name);
        }
      }, { timeouts: SHORT })
    ),
);

onEachServer(
  "what is no HTTP is refused, and the next client is served",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ port, url }) => {
        const answers: [string, RegExp][] = [
          ["\x00\x01garbage\r\n\r\n", /^HTTP\/1\.1 400 /],
          [`GET / HTTP/1.1\r\nhost: x\r\ny: ${"z".repeat(40_000)}\r\n\r\n`, /^(HTTP\/1\.1 431 |$)/],
          ["GET / HTTP/1.1\r\nhost: a b c\r\nconnection: close\r\n\r\n", /^HTTP\/1\.1 400 [\s\S]*problem\+json/],
          [
            "GET /healthz HTTP/1.1\r\nhost: x/docs?\r\nconnection: close\r\n\r\n",
            /^HTTP\/1\.1 400 [\s\S]*problem\+json/,
          ],
        ];
        for (const [request, expected] of answers) assert.match(await converse(port, [request]), expected);
        const response = await fetch(`${url}/healthz`);
        assert.deepEqual(await response.json(), { status: "ok" });
      })
    ),
);

onEachServer(
  "an upload that is refused early does not hold the connection",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ url }) => {
        const response = await fetch(`${url}/v1/messages/send/text`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: new Uint8Array(3 * 1024 * 1024),
        });
        assert.equal(response.status, 401);
        assert.equal((await response.json()).code, "api_key_missing");
      })
    ),
);

onEachServer(
  "the address of the client comes from the connection",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ url }) => {
        const ask = async () => {
          const response = await fetch(`${url}/v1/sessions`, { headers: { "x-api-key": world.apiKey } });
          await response.body?.cancel();
          return response.status;
        };
        await world.accounts.update(world.account.id, { allowedIps: ["127.0.0.1"] });
        assert.equal(await ask(), 200);
        await world.accounts.update(world.account.id, { allowedIps: ["192.0.2.1"] });
        assert.equal(await ask(), 403);
      })
    ),
);

/** Answers `/slow` when it may go on. */
function slowApp() {
  const app = new Hono<ApiEnv>();
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  app.get("/slow", async (c) => {
    begun.resolve();
    await goOn.promise;
    return c.text("done");
  });
  return { app, begun, goOn };
}

onEachServer("a stop lets a request end and takes no new one", async ({ start }) => {
  const { app, begun, goOn } = slowApp();
  const server = await start(app);
  const answer = fetch(`${server.url}/slow`);
  await begun.promise;
  const stopped = server.stop();
  await assert.rejects(Deno.connect({ hostname: "127.0.0.1", port: server.port }));
  goOn.resolve();
  assert.equal(await (await answer).text(), "done");
  await stopped;
});

onEachServer("a port that is taken is said at once", async ({ start, withServer }) => {
  const app = new Hono<ApiEnv>();
  await withServer(app, async ({ port }) => {
    await assert.rejects(start(app, { port }), /in use: stop what listens there/);
  });
});

onEachServer(
  "a request that cannot be read is a problem as every other, and one without a Host is answered on IPv6 too",
  async ({ start, withServer }) => {
    const app = new Hono<ApiEnv>();
    app.get("/", (c) => c.text("here"));
    await withServer(app, async ({ port }) => {
      const text = await converse(port, ["GET / HTTP/1.1\r\nhost: bad host\r\nconnection: close\r\n\r\n"]);
      assert.match(text, /^HTTP\/1.1 400 /);
      const { code, requestId } = JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));
      assert.equal(code, "validation_failed");
      assert.match(requestId, /^req_/);
    });
    const server = await start(app, { host: "::1" });
    try {
      using connection = await Deno.connect({ hostname: "::1", port: server.port });
      await connection.write(new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n"));
      assert.match(await new Response(connection.readable).text(), /^HTTP\/1\.[01] 200 /);
    } finally {
      await server.stop(0);
    }
  },
);

onEachServer(
  "a request that is refused before its body was read leaves the connection good for the next",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ port }) => {
        const head = (length: number, more = "") =>
          `POST /v1/messages/send/text HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n${more}\r\n`;
        const requests = [
          head(100) + "x".repeat(100),
          head(300_000) + "x".repeat(300_000),
          head(9, `x-api-key: ${world.apiKey}\r\n`) + '{"to":""}',
          "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        ];
        const statuses = [...(await converse(port, requests)).matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, code]) => code);
        assert.deepEqual(statuses, ["401", "401", "415", "200"]);
      })
    ),
);

onEachServer(
  "an upload that is refused on its way is told why, and the next request is answered",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ port }) => {
        const post = (path: string, type: string, body: string) =>
          `POST /v1/messages/send/${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\n` +
          `x-api-key: ${world.apiKey}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
        const many = "A".repeat(20_000_000);
        const part =
          `--b\r\ncontent-disposition: form-data; name="picture"; filename="a.pdf"\r\n\r\n${many}\r\n--b--\r\n`;
        const uploads: [string, RegExp][] = [
          [post("file", "multipart/form-data; boundary=b", part), /400 [\s\S]*the part of the file is named/],
          [post("document", "application/json", `{"file":"?${many}"}`), /400 [\s\S]*base64/],
          [post("document", "application/json", `{"file":"AAAA","file":"${many}"}`), /400 [\s\S]*given twice/],
          [post("document", "application/json", `{"other":"${many}"}`), /413 /],
        ];
        for (const [upload, refusal] of uploads) {
          const text = await converse(port, [upload, "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"]);
          const [first, second] = text.split(/(?=HTTP\/1\.1 )/);
          assert.match(first!, refusal);
          assert.match(second ?? "no second answer", /^HTTP\/1\.1 200 /);
        }
      })
    ),
);

onEachServer(
  "a client that goes on sending what nobody wants is answered, and hung up on",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ port }) => {
        const head = "POST /nowhere HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
        const conversed = converse(port, [head, ...Array(200).fill("1\r\nx\r\n")]);
        await until(async () => {
          await world.runtime.clock.advance(5_000);
          return await settledWithin(runtime.clock, 20, conversed);
        }, "the end of the connection");
        assert.match(await conversed, /^HTTP\/1\.1 404 [\s\S]*connection: close[\s\S]*not_found/i);
      })
    ),
);

onEachServer(
  "a body where none belongs ends the connection with the answer",
  ({ withServer }) =>
    withApi((world) =>
      withServer(world.app, async ({ port }) => {
        const request = `GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n${"x".repeat(100_000)}`;
        assert.match(await converse(port, [request]), /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*"ok"/i);
      })
    ),
);

if (serveHttp) {
  Deno.test("a client that asks before it sends is refused at once, and sends nothing", () =>
    withApi(async (world) => {
      const server = await listen(world.app, { host: "127.0.0.1", port: 0, runtime, serve: serveConnections });
      const head =
        "POST /v1/messages/send/file HTTP/1.1\r\nhost: x\r\ncontent-length: 50000000\r\nexpect: 100-continue\r\n\r\n";
      assert.match(await converse(server.port, [head]), /^HTTP\/1\.1 401 /);
      await server.stop(0);
    }));
}

onEachServer("a stop waits for what goes on no longer than it may", async ({ start }) => {
  const { app, begun, goOn } = slowApp();
  const server = await start(app);
  const answer = assert.rejects(fetch(`${server.url}/slow`));
  await begun.promise;
  assert.ok(await settledWithin(runtime.clock, GIVE_UP_AFTER_MS, server.stop(50)), "the stop does not end");
  await answer;
  goOn.resolve();
});

onEachServer(
  "a stop does not wait for a client that keeps its connection when its stream has ended",
  async ({ start }) => {
    const app = new Hono<ApiEnv>();
    const stopping = Promise.withResolvers<void>();
    app.get("/stream", (c) =>
      c.body(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue(new TextEncoder().encode("first\n"));
            await stopping.promise;
            controller.close();
          },
        }, { highWaterMark: 0 }),
      ));
    const server = await start(app);
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await connection.write(new TextEncoder().encode("GET /stream HTTP/1.1\r\nhost: x\r\n\r\n"));
    const buffer = new Uint8Array(4096);
    for (let text = ""; !text.includes("first");) {
      text += new TextDecoder().decode(buffer.subarray(0, (await connection.read(buffer)) ?? assert.fail("no stream")));
    }
    stopping.resolve();
    const stopped = server.stop(10 * GIVE_UP_AFTER_MS);
    assert.ok(await settledWithin(runtime.clock, GIVE_UP_AFTER_MS, stopped), "the stop waits for its client");
  },
);
