import assert from "node:assert/strict";
import { EgressError } from "../../../src/egress/egress_error.ts";
import type { Resolve } from "../../../src/egress/resolve.ts";
import { makeSafeFetch } from "../../../src/egress/safe_fetch.ts";
import { readAllowList } from "../../../src/egress/vetting.ts";
import { ManualClock } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Counts connections and requests; `answer` says what the nth request gets, null to hang up without a word. */
function rawServer(answer: (number: number) => string | null) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections = new Set<Deno.Conn>();
  const counts = { connections: 0, requests: 0, open: () => connections.size };
  const serving = (async () => {
    for await (const connection of listener) void serve(connection).catch(() => {}).finally(() => hangUp(connection));
  })();
  async function serve(connection: Deno.Conn): Promise<void> {
    connections.add(connection);
    counts.connections++;
    const buffer = new Uint8Array(4_096);
    while (await connection.read(buffer) !== null) {
      const text = answer(++counts.requests);
      if (text === null) return;
      await connection.write(new TextEncoder().encode(text));
    }
  }
  function hangUp(connection: Deno.Conn): void {
    if (connections.delete(connection)) connection.close();
  }
  return {
    counts,
    hangUpAll: () => connections.forEach(hangUp),
    url: `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}/`,
    async [Symbol.asyncDispose]() {
      listener.close();
      connections.forEach(hangUp);
      await serving.catch(() => {});
    },
  };
}

function client({ resolve }: { resolve?: Resolve } = {}) {
  const clock = new ManualClock();
  const { fetch } = makeSafeFetch({ clock, allow: readAllowList(["127.0.0.0/8"]), ...(resolve ? { resolve } : {}) });
  const post = async (url: string, { reuse = true } = {}) => {
    const body = new TextEncoder().encode("x");
    const { status, body: answer } = await fetch({
      url,
      method: "POST",
      body,
      schemes: ["https:"],
      maxRedirects: 0,
      timeoutMs: 10_000,
      maxBytes: 100,
      reuse,
    });
    await new Response(answer).text();
    return status;
  };
  return { clock, post };
}

Deno.test("requests in a row share one connection, side by side they do not wait for each other", async () => {
  await using server = rawServer(() => OK);
  const { post, clock } = client();
  for (let i = 0; i < 100; i++) assert.equal(await post(server.url), 200);
  assert.equal(server.counts.connections, 1);
  await Promise.all(Array.from({ length: 10 }, () => post(server.url)));
  assert.equal(server.counts.requests, 110);
  assert.ok(server.counts.connections <= 10);
  await clock.advance(2_000);
  await until(() => server.counts.open() === 0, "the idle connections to be closed");
});

Deno.test("without reuse every request has a connection of its own, closed at the end", async () => {
  await using server = rawServer(() => OK);
  const { post } = client();
  for (let i = 0; i < 5; i++) await post(server.url, { reuse: false });
  assert.equal(server.counts.connections, 5);
  await until(() => server.counts.open() === 0, "the end of the connections");
});

Deno.test("a waiting connection that the server closes is not used again", async () => {
  await using server = rawServer(() => OK);
  const { post, clock } = client();
  for (let i = 1; i <= 5; i++) {
    assert.equal(await post(server.url), 200);
    server.hangUpAll();
    // The end reaches us a moment after the server's call.
    await until(() => clock.nextTimer() === null, "the end to be noticed");
  }
  assert.deepEqual([server.counts.connections, server.counts.requests], [5, 5]);
});

Deno.test("a waiting connection on which something comes unasked is not used again", async () => {
  await using server = rawServer((number) => number === 1 ? OK + "HTTP/1.1 408 Request Timeout\r\n\r\n" : OK);
  const { post, clock } = client();
  assert.equal(await post(server.url), 200);
  await until(() => clock.nextTimer() === null, "the surplus to be noticed");
  assert.equal(await post(server.url), 200);
  assert.equal(server.counts.connections, 2);
  await clock.advance(2_000);
});

Deno.test("a connection that breaks under a request fails it, and nothing is sent a second time", async () => {
  await using server = rawServer((number) => number % 2 === 1 ? OK : null);
  const { post } = client();
  for (let i = 1; i <= 5; i++) {
    assert.equal(await post(server.url), 200);
    await assert.rejects(post(server.url), (error) => error instanceof EgressError);
    assert.deepEqual([server.counts.connections, server.counts.requests], [i, 2 * i]);
  }
});

/** A place on loopback that accepts no connection, as one behind a firewall that drops packets. */
async function blackHole(hostname: string, port: number) {
  const listener = Deno.listen({ hostname, port, tcpBacklog: 1 });
  const address = { hostname, port: (listener.addr as Deno.NetAddr).port };
  const waiting = await Promise.all([Deno.connect(address), Deno.connect(address)]);
  const [a, b, c, d] = hostname.split(".").map((part) => Number(part).toString(16).padStart(2, "0").toUpperCase());
  const target = `${d}${c}${b}${a}:${address.port.toString(16).padStart(4, "0").toUpperCase()} 02`;
  return {
    ...address,
    /** Whether the system is still trying to connect to it. */
    async isTried(): Promise<boolean> {
      return (await Deno.readTextFile("/proc/net/tcp")).includes(target);
    },
    [Symbol.dispose]() {
      for (const resource of [...waiting, listener]) resource.close();
    },
  };
}

/** Only Linux tells which connections are being opened. */
const ignore = Deno.build.os !== "linux";

Deno.test("a connection that is never accepted is given up with its request", { ignore }, async () => {
  using hole = await blackHole("127.0.0.1", 0);
  const { clock, post } = client();
  const posting = assert.rejects(post(`http://127.0.0.1:${hole.port}/`), { code: "timeout" });
  await until(hole.isTried, "the attempt");
  await clock.advance(10_000);
  await posting;
  await until(async () => !await hole.isTried(), "the end of the attempt");
});

Deno.test("an address that accepts no connection leaves time for the next one", { ignore }, async () => {
  await using server = rawServer(() => OK);
  const url = new URL(server.url);
  using hole = await blackHole("127.0.0.2", Number(url.port));
  const { clock, post } = client({ resolve: () => Promise.resolve(["127.0.0.2", "127.0.0.1"]) });
  url.hostname = "two.test";
  const posting = post(url.href);
  await until(hole.isTried, "the attempt");
  await clock.advance(3_000);
  await until(async () => !await hole.isTried(), "the end of the attempt");
  assert.equal(await posting, 200);
});
