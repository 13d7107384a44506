/** The end of the simulated network. */
import assert from "node:assert/strict";
import { within } from "../../../src/base/within.ts";
import { systemClock } from "../../../src/runtime.ts";
import { startNetwork } from "../../../src/sandbox/network.ts";
import { testRuntime } from "../../support/runtime.ts";

for (
  const [what, begun] of [
    ["says nothing", ""],
    ["begins a request", "GET /ws/chat HTTP/1.1\r\nhost: sandbox\r\n"],
  ] as const
) {
  Deno.test(`the network closes under a client that ${what}`, async () => {
    const network = await startNetwork({ runtime: testRuntime() });
    const { hostname, port } = new URL(network.url);
    using client = await Deno.connect({ hostname, port: Number(port) });
    await client.write(new TextEncoder().encode(begun));
    // The server takes connections in their order: once it has answered a later one, it has this one.
    await (await fetch(network.url.replace("ws:", "http:"))).body?.cancel();
    assert.equal(await within(systemClock, 10_000, network.close()), undefined);
  });
}
