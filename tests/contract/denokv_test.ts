/** The contracts of store and bell on a Deno KV by URL: a real `denokv` server. */
import assert from "node:assert/strict";
import { systemClock } from "../../src/runtime.ts";
import type { Bell } from "../../src/store/bell.ts";
import { openDenoKvBell } from "../../src/store/deno_kv/bell.ts";
import { openRemoteDenoKv } from "../../src/store/deno_kv/remote.ts";
import { denoKvWire } from "../../src/store/deno_kv/wire.ts";
import { shareBell } from "../../src/store/layers/shared_bell.ts";
import { denoKvProgram, type DenoKvServer, startDenoKv, TOKEN } from "../support/denokv.ts";
import { testRuntime } from "../support/runtime.ts";
import { Change, StoreError } from "../../src/store/kv.ts";
import { bellContract, sharedBellContract } from "./bell_contract.ts";
import { kvContract } from "./kv_contract.ts";

Deno.test("Deno KV by URL: a server that says where its data is and then nothing is no locked file", async () => {
  const silence = Promise.withResolvers<Response>();
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, ({ url }) => {
    if (new URL(url).pathname !== "/") return silence.promise;
    return Response.json({
      version: 3,
      databaseId: "7b1d1f7c-1d53-4f6f-8d3a-4a5d1c1c9c1b",
      endpoints: [{ url: "/data", consistency: "strong" }],
      token: TOKEN,
      expiresAt: "2100-01-01T00:00:00Z",
    });
  });
  Deno.env.set("DENO_KV_ACCESS_TOKEN", TOKEN);
  const runtime = testRuntime();
  const opening = openRemoteDenoKv(`http://127.0.0.1:${server.addr.port}`, { runtime });
  await assert.rejects(runtime.clock.during(opening), {
    code: "unavailable",
    message: "the server of the Deno KV does not answer",
  });
  silence.resolve(new Response(null, { status: 400 }));
});

if (denoKvProgram() === null) {
  console.log("The tests of a Deno KV by URL are skipped: there is no denokv here (cargo install denokv --locked).");
} else {
  const servers = new Map<string, Promise<DenoKvServer>>();
  /** A server for each test, which knows it by any name. */
  const serverOf = (test: string) => {
    const server = servers.get(test) ?? startDenoKv();
    servers.set(test, server);
    return server;
  };
  Deno.test.afterEach(async () => {
    for (const server of servers.values()) await (await server).remove();
    servers.clear();
  });

  kvContract({
    name: "Deno KV by URL",
    conflicts: 10,
    open: async (path, runtime) => await openRemoteDenoKv((await serverOf(path)).url, { runtime }),
  });

  Deno.test("Deno KV by URL: while the server is away reads and commits are refused in time, and it needs nobody to go on", async () => {
    const server = await serverOf("away");
    const runtime = testRuntime();
    const kv = await openRemoteDenoKv(server.url, { runtime });
    assert.ok(await kv.commit(new Change().set(["k"], "before")));
    await server.halt();
    const isUnavailable = (error: unknown) => error instanceof StoreError && error.code === "unavailable";
    const refused = [
      assert.rejects(kv.get(["k"]), isUnavailable),
      assert.rejects(kv.commit(new Change().set(["k"], "meanwhile")), isUnavailable),
      assert.rejects(Array.fromAsync(kv.list({ prefix: ["k"] })), isUnavailable),
    ];
    await runtime.clock.advance(5_000);
    // Waits behind the first, and no longer than that.
    refused.push(assert.rejects(kv.commit(new Change().set(["k"], "behind")), isUnavailable));
    await runtime.clock.advance(10_000);
    await Promise.all(refused);
    await server.start();
    assert.equal(typeof (await kv.get(["k"])).value, "string");
    assert.ok(await kv.commit(new Change().set(["k"], "after")));
    kv.close();
  });

  const runtimeOf = (seed: number) => ({ ...testRuntime(seed), clock: systemClock });
  const openBell = async (url: string, seed: number): Promise<Bell> => {
    const runtime = runtimeOf(seed);
    return await shareBell(await openDenoKvBell({ runtime }), denoKvWire(url, { runtime }), { runtime });
  };

  bellContract({
    name: "Deno KV by URL",
    async open() {
      const bell = await openBell((await serverOf("bell")).url, 1);
      return { bell, runtime: runtimeOf(1), pass: () => Promise.resolve() };
    },
  });

  sharedBellContract("Deno KV by URL", async () => {
    const server = await serverOf("bell");
    const [a, b] = await Promise.all([openBell(server.url, 1), openBell(server.url, 2)]);
    return { a, b, runtime: runtimeOf(3), cut: () => server.restart() };
  });
}
