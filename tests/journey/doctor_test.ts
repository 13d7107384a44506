/** `paloma doctor` where all is well, and where it is not. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";
import { Change } from "../../src/store/kv.ts";
import { storeKeys } from "../../src/store/layers/rows.ts";
import { runCommand, tryCommand } from "../support/gateway_process.ts";
import { s3Program, startS3 } from "../support/s3_server.ts";
import { silentRuntime } from "../support/runtime.ts";
import { onStage, type Stage } from "../support/stage.ts";
import { tempFolder } from "../support/temp_folder.ts";

async function doctor({ env, gateway }: Stage, more: Record<string, string> = {}): Promise<Map<string, Json>> {
  const port = new URL(gateway.baseUrl).port;
  const { stdout } = await tryCommand(["doctor", "--json"], { ...env, PALOMA_PORT: port, ...more });
  return new Map(JSON.parse(stdout).map((finding: Json) => [finding.check, finding]));
}

onStage("the doctor finds nothing beside a gateway that works", async (stage) => {
  // As beside a service in Kubernetes that is called paloma.
  const findings = await doctor(stage, { PALOMA_SERVICE_HOST: "10.0.0.7", PALOMA_PORT_80_TCP_ADDR: "10.0.0.7" });
  for (const { check, ok, detail } of findings.values()) assert.ok(ok, `${check}: ${detail}`);
  assert.match(findings.get("gateway").detail, /^ready at/);
  assert.match(findings.get("web version").detail, /runs no line, or does not run/);
  await stage.linkLine("4915100000001");
  const announced = (await doctor(stage)).get("web version");
  assert.ok(announced.ok);
  assert.match(announced.detail, /^2\.3000\.1060000000, from 127\.0\.0\.1, 0\.0 days old$/);
  assert.equal(announced.hint, null);
  const env = { ...stage.env, PALOMA_PORT: new URL(stage.gateway.baseUrl).port };
  assert.match(await runCommand(["doctor"], env), /\nAll is well\.\n$/);
});

onStage("the doctor says of each trouble what to do", async (stage) => {
  await Deno.chmod(stage.dataDir, 0o755);
  const kv = await denoKvFiles.open(join(stage.dataDir, "paloma.db"), { runtime: silentRuntime() });
  await kv.commit(new Change().set(storeKeys.logMissing(), systemClock.now()));
  kv.close();
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
      ["store log", /^paloma\.db-wal was missing at 20/, /^send again what GET \/v1\/messages lacks/],
      ["file rights", /can be read by other users/, /^chmod 700 /],
      ["disk space", /sends are refused below .* files below /, /free up space/],
      ["gateway", /does not answer/, /PALOMA_PORT/],
      ["messaging network", /127\.0\.0\.1:9 cannot be reached/, /firewall.* on port 9$/],
      ["webhook targets", /127\.0\.0\.1:1099/, /redeliver/],
    ] as const
  ) {
    const finding = findings.get(check);
    assert.equal(finding.ok, false, check);
    assert.match(finding.detail, detail);
    assert.match(finding.hint, hint);
  }
});

Deno.test({
  name: "the doctor puts a file into the bucket, and says why it cannot",
  ignore: s3Program() === null,
  async fn() {
    await using folder = await tempFolder();
    const bucket = await startS3();
    try {
      const env = { PALOMA_DATA_DIR: folder.path, PALOMA_WHATSAPP_URL: "ws://127.0.0.1:9/ws", ...bucket.env };
      await runCommand(["account", "create", "--name", "acme"], env);
      const found = async (more: Record<string, string>) => {
        const { stdout } = await tryCommand(["doctor", "--json"], { ...env, ...more });
        return JSON.parse(stdout).find(({ check }: Json) => check === "bucket");
      };
      assert.equal((await found({})).detail, "files can be stored in files, read and deleted");
      assert.deepEqual(bucket.objects(), []);
      const forged = await found({ AWS_SECRET_ACCESS_KEY: "another secret" });
      assert.equal(forged.ok, false);
      assert.match(forged.detail, /^files: the bucket cannot be used: 403 SignatureDoesNotMatch$/);
      assert.match(forged.hint, /endpoint, region and keys/);
      const missing = await found({ PALOMA_MEDIA: bucket.env.PALOMA_MEDIA!.replace("//files/", "//none/") });
      assert.match(missing.detail, /^none: the bucket cannot be used: 404 NoSuchBucket$/);
    } finally {
      await bucket.remove();
    }
  },
});
