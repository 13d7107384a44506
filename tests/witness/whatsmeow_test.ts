/**
 * The simulated network held against whatsmeow (Go), which shares no code with it: what Baileys' codec and libsignal would
 * get wrong on both sides of every other test, this client does not read. Needs Go; its modules come from the proxy once.
 */
import assert from "node:assert/strict";
import { startNetwork } from "../../src/sandbox/network.ts";
import { silentRuntime } from "../support/runtime.ts";

const TIMEOUT_MS = 300_000;

async function hasGo(): Promise<boolean> {
  try {
    return (await new Deno.Command("go", { args: ["version"], stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}

const found = await hasGo();

Deno.test({
  name: `whatsmeow links, sends and receives texts and files, and logs out${found ? "" : " (SKIPPED: there is no Go)"}`,
  ignore: !found,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    // This whatsmeow is older than the refresh of a QR's secret.
    const network = await startNetwork({ runtime: silentRuntime(), refresh: false });
    try {
      const { success, stdout, stderr } = await new Deno.Command("go", {
        args: ["run", ".", network.controlUrl],
        cwd: import.meta.dirname,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      }).output();
      const said = new TextDecoder().decode(stdout);
      assert.ok(success, said + new TextDecoder().decode(stderr));
      assert.equal(said.match(/^ok: /gm)?.length, 13, said);
      const chats = network.switchboard.wire.entries().map(({ to }) => to.split("@")[1]);
      assert.deepEqual(chats, ["lid", "lid", "g.us", "g.us"]);
    } finally {
      await network.close();
    }
  },
});
