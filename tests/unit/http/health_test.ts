import assert from "node:assert/strict";
import { Hono } from "@hono/hono";
import type { ApiEnv } from "../../../src/http/api/route.ts";
import { onDemand } from "../../../src/base/single_flight.ts";
import { inFrontOf } from "../../../src/http/health.ts";

const at = (path: string, text: string) => new Hono<ApiEnv>().all(path, (c) => c.text(text));

async function ask(front: ReturnType<typeof inFrontOf>, path: string): Promise<string> {
  return await (await front.fetch(new Request(`http://gateway.test${path}`))).text();
}

Deno.test("health needs no API, a burst of other requests loads it once, and from then on it has every request", async () => {
  const loads: PromiseWithResolvers<Hono<ApiEnv>>[] = [];
  const api = onDemand(() => {
    loads.push(Promise.withResolvers());
    return loads.at(-1)!.promise;
  });
  const front = inFrontOf(api, at("/healthz", "health"));
  assert.equal(await ask(front, "/healthz?verbose"), "health");
  assert.equal(loads.length, 0);
  const burst = ["/v1/sessions", "/panel", "/nowhere"].map((path) => ask(front, path));
  assert.equal(await ask(front, "/healthz"), "health");
  assert.equal(loads.length, 1);
  loads[0]!.resolve(at("/*", "api"));
  assert.deepEqual(await Promise.all(burst), ["api", "api", "api"]);
  assert.deepEqual([await ask(front, "/healthz"), loads.length], ["api", 1]);
});

Deno.test("a load that failed is tried again by the next request", async () => {
  let loads = 0;
  const api = onDemand(() => {
    if (++loads === 1) return Promise.reject(new Error("too many open files"));
    return Promise.resolve(at("/*", "api"));
  });
  const front = inFrontOf(api, at("/healthz", "health"));
  await assert.rejects(ask(front, "/v1/sessions"), /too many open files/);
  assert.deepEqual([await ask(front, "/v1/sessions"), loads], ["api", 2]);
});
