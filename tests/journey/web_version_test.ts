/** The announced version of WhatsApp Web: fetched, kept, shown, and the older one that is built in when nothing else is. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { tryCommand } from "../support/gateway_process.ts";
import { type LinkedLine, onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";

const health = async (stage: Stage, { sessionId }: LinkedLine): Promise<Json> =>
  (await stage.api.call("GET", `/sessions/${sessionId}/health`)).data;

onStage("a fetch that fails at a restart refuses no line: the version fetched last is announced", async (stage) => {
  const { web } = stage.network.switchboard;
  // The version of this release is too old by now.
  web.oldest = 1_055_000_000;
  const line = await stage.linkLine(LINE);
  const before = await health(stage, line);
  assert.deepEqual([before.webVersion, before.webVersionSource], ["2.3000.1060000000", "127.0.0.1"]);
  assert.equal(before.webVersionExpiresAt, null);
  web.current = null;
  await stage.gateway.kill();
  await stage.gateway.start();
  await stage.sessionStatus(line, "connected");
  const { webVersion, webVersionSource, webVersionSince } = await health(stage, line);
  assert.deepEqual([webVersion, webVersionSource], ["2.3000.1060000000", "127.0.0.1"]);
  assert.equal(webVersionSince, before.webVersionSince);
});

onStage(
  "without a version that could be fetched the built-in one is announced, and the doctor warns",
  async (stage) => {
    const { web } = stage.network.switchboard;
    web.current = 1_040_000_000;
    const line = await stage.linkLine(LINE);
    // What the network names is older than this release.
    assert.equal((await health(stage, line)).webVersionSource, "built in");
    const doctorSays = async (port: string | number) => {
      const { stdout } = await tryCommand(["doctor", "--json"], { ...stage.env, PALOMA_PORT: String(port) });
      return JSON.parse(stdout).find(({ check }: Json) => check === "web version");
    };
    const { ok, detail, hint } = await doctorSays(new URL(stage.gateway.baseUrl).port);
    assert.equal(ok, true);
    assert.match(detail, /^2\.3000\.\d+, built in, \d+\.\d days old$/);
    assert.match(hint, /PALOMA_WHATSAPP_VERSION/);
    // A gateway that fetched its version 59 days ago, and 61.
    let days = 59;
    const metrics = () =>
      new Response(`paloma_whatsapp_web_version{version="2.3000.1 (example.org)"} 1
paloma_whatsapp_web_version_age_seconds ${days * 24 * 60 * 60}\n`);
    await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, metrics);
    assert.deepEqual((await doctorSays(server.addr.port)).hint, null);
    days = 61;
    assert.match((await doctorSays(server.addr.port)).hint, /PALOMA_WHATSAPP_VERSION/);
  },
);

onStage("the day on which the network will refuse the version is shown", async (stage) => {
  const line = await stage.linkLine(LINE);
  const at = Date.parse("2027-01-31T00:00:00.000Z");
  await stage.control.call("POST", "/faults", { line: LINE, kind: "client_expiration", at });
  const isShown = async () => (await health(stage, line)).webVersionExpiresAt === "2027-01-31T00:00:00.000Z";
  await until(isShown, "the day");
  await stage.control.call("POST", "/faults", { line: LINE, kind: "drop" });
  await until(async () => (await stage.events(line)).some(({ event }) => event === "session.disconnected"), "the drop");
  await stage.sessionStatus(line, "connected");
  await until(isShown, "the day after the next login");
});
