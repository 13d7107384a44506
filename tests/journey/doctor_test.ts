/** `paloma doctor` where all is well, and where it is not. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { tryCommand } from "../support/gateway_process.ts";
import { onStage, type Stage } from "../support/stage.ts";

async function doctor({ env, gateway }: Stage, more: Record<string, string> = {}): Promise<Map<string, Json>> {
  const port = new URL(gateway.baseUrl).port;
  const { stdout } = await tryCommand(["doctor", "--json"], { ...env, PALOMA_PORT: port, ...more });
  return new Map(JSON.parse(stdout).map((finding: Json) => [finding.check, finding]));
}

onStage("the doctor finds nothing beside a gateway that works", async (stage) => {
  const findings = await doctor(stage);
  for (const { check, ok, detail } of findings.values()) assert.ok(ok, `${check}: ${detail}`);
  assert.match(findings.get("gateway").detail, /^runs, ready at/);
  assert.match(findings.get("web version").detail, /no line of a running gateway has connected/);
  await stage.linkLine("4915100000001");
  const announced = (await doctor(stage)).get("web version");
  assert.ok(announced.ok);
  assert.match(announced.detail, /^2\.3000\.\d+, by built in, for 0\.\d h$/);
});

onStage("the doctor says of each trouble what to do", async (stage) => {
  await Deno.chmod(stage.dataDir, 0o755);
  await stage.api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/hook", events: ["message.sent"] });
  const findings = await doctor(stage, {
    PALOMA_PORT: "1",
    PALOMA_WHATSAPP_URL: "ws://127.0.0.1:9/ws",
    PALOMA_MIN_FREE_DISK: "1000000TB",
    PALOMA_TRUSTED_PROXY: "127.0.0.1",
  });
  for (
    const [check, detail, hint] of [
      ["settings", /ignored: PALOMA_TRUSTED_PROXY$/, /--help/],
      ["file rights", /can be read by others/, /^chmod 700 /],
      ["disk space", /sends are refused/, /make room/],
      ["gateway", /does not answer/, /PALOMA_PORT/],
      ["messaging network", /127\.0\.0\.1:9 cannot be reached/, /firewall/],
      ["webhook targets", /127\.0\.0\.1:1099/, /redeliver/],
    ] as const
  ) {
    const finding = findings.get(check);
    assert.equal(finding.ok, false, check);
    assert.match(finding.detail, detail);
    assert.match(finding.hint, hint);
  }
});
