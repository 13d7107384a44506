/**
 * The simulated network held against whatsmeow (Go), which shares no code with it: what Baileys' codec and libsignal would
 * get wrong on both sides of every other test, this client does not read. Needs Go; its modules come from the proxy once.
 */
import assert from "node:assert/strict";
import { openStage, withStage } from "../support/stage.ts";

const TIMEOUT_MS = 300_000;

async function hasGo(): Promise<boolean> {
  try {
    return (await new Deno.Command("go", { args: ["version"], stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}

const found = await hasGo();

/** Whom whatsmeow links to, and the line of a gateway that it writes to. */
const OWNER = "4915500000001";
const LINE = "4915500000003";

// whatsmeow cannot link by passkey: its newest version on the module proxy, of December 2025, is older than passkeys.
Deno.test({
  name: `whatsmeow links, sends and receives texts and files, and logs out${found ? "" : " (SKIPPED: there is no Go)"}`,
  ignore: !found,
  sanitizeOps: false,
  sanitizeResources: false,
  // It is older than the refresh of a QR's secret, too.
  fn: () =>
    withStage(() => openStage({ network: { refresh: false } }), async ({ network, gateway, apiKey, linkLine }) => {
      const { sessionId } = await linkLine(LINE);
      const { success, stdout, stderr } = await new Deno.Command("go", {
        args: ["run", ".", network.controlUrl, gateway.baseUrl, apiKey, sessionId, LINE],
        cwd: import.meta.dirname,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      }).output();
      const said = new TextDecoder().decode(stdout);
      assert.ok(success, said + new TextDecoder().decode(stderr));
      assert.equal(said.match(/^ok: /gm)?.length, 16, said);
      const chats = network.switchboard.wire.entries(OWNER).map(({ to }) => to.split("@")[1]);
      assert.deepEqual(chats, ["lid", "lid", "g.us", "g.us", "lid", "lid", "lid"]);
    }),
});
