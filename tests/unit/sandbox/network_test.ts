/** Closing the simulated network. */
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
  Deno.test(`the network closes despite a client that ${what}`, async () => {
    const network = await startNetwork({ runtime: testRuntime() });
    const { hostname, port } = new URL(network.url);
    using client = await Deno.connect({ hostname, port: Number(port) });
    await client.write(new TextEncoder().encode(begun));
    // The server takes connections in their order: once it has answered a later one, it has this one.
    await (await fetch(network.url.replace("ws:", "http:"))).body?.cancel();
    assert.equal(await within(systemClock, 10_000, network.close()), undefined);
  });
}

Deno.test("a closed network leaves no timer behind, and starts none", async () => {
  const runtime = testRuntime();
  const network = await startNetwork({ runtime });
  const line = "4917000000001";
  network.addPhone(line);
  const { faults } = network.switchboard;
  faults.hold(line, "silence", 30_000);
  let ran = false;
  faults.after(line, "silence", () => ran = true);
  // A client that is told why it is hung up on has a while to read it.
  const client = new WebSocket(network.url);
  await new Promise((resolve) => client.onopen = resolve);
  const closed = new Promise((resolve) => client.onclose = resolve);
  await network.close();
  await closed;
  assert.equal(runtime.clock.nextTimer(), null);
  await runtime.clock.advance(60_000);
  assert.equal(ran, false);
  faults.hold(line, "silence", 30_000);
  faults.after(line, "silence", () => ran = true);
  assert.equal(runtime.clock.nextTimer(), null, "nor does one begin");
});
