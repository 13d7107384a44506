/** A backup on its way back: beside what a killed gateway left, beside a running one, and under another secret key. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathsOf } from "../../src/data/data_folder.ts";
import { runCommand, tryCommand } from "../support/gateway_process.ts";
import { onStage, type Stage } from "../support/stage.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** Runs on the folder of the stage a command that has to fail in a sentence; resolves to that. */
async function refusal({ env }: Stage, args: readonly string[], more: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await tryCommand(args, { ...env, PALOMA_PORT: "0", ...more });
  assert.equal(code, 1, `${args.join(" ")}: ${stderr}`);
  assert.doesNotMatch(stderr, /^ +at /m);
  return stdout + stderr;
}

async function answers({ gateway, apiKey }: Stage): Promise<number> {
  const response = await fetch(`${gateway.baseUrl}/sessions`, { headers: { "x-api-key": apiKey } });
  await response.body?.cancel();
  return response.status;
}

const LINE = "4915200000081";
const ANA = "4917000000081";

onStage(
  "a backup comes back into a killed gateway's folder, and the next messages reach who had later ones",
  async (stage) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "Team", participants: [LINE, ANA] });
    const say = async (text: string) => {
      for (const to of [ANA, group]) {
        await stage.sendText(line, to, `${text} to ${to}`);
        await stage.arrival(ANA, (message) => message.text === `${text} to ${to}`);
      }
    };
    await say("before the backup");
    const copy = join(await Deno.makeTempDir({ dir: stage.dataDir }), "copy.backup");
    await runCommand(["backup", copy], stage.env);
    assert.match(await refusal(stage, ["restore", copy]), /^a gateway already runs/);

    await runCommand(["account", "create", "--name", "after the backup", "--plan", "free", "--json"], stage.env);
    for (const text of ["after the backup", "once more"]) await say(text);
    await stage.gateway.kill();
    const store = pathsOf(stage.dataDir).store;
    await Deno.remove(store);
    await Deno.remove(join(stage.dataDir, "media"), { recursive: true });
    const said = await refusal(stage, ["restore", copy]);
    assert.ok(said.includes(`${store}-wal is left of a store`), said);
    await assert.rejects(Deno.stat(store), Deno.errors.NotFound);

    for (const suffix of ["-wal", "-shm"]) await Deno.remove(store + suffix);
    await runCommand(["restore", copy], stage.env);
    await stage.gateway.start();
    assert.equal(await answers(stage), 200);
    const accounts = JSON.parse(await runCommand(["account", "list", "--json"], stage.env));
    assert.deepEqual(accounts.map(({ name }: { name: string }) => name), ["stage"]);
    // Under the keys of the backup her phone would take them for what it has seen.
    await say("after the restore");
    await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "I read you" });
    await stage.event(line, ({ event, data }) => event === "message.received" && data.text === "I read you");
  },
);

onStage("with another secret key no gateway starts and no command works, and nothing is harmed", async (stage) => {
  await stage.gateway.kill();
  const wrong = { PALOMA_SECRET_KEY: "the secret key of another machine" };
  for (
    const args of [
      ["serve"],
      ["account", "create", "--name", "acme", "--plan", "free"],
      ["account", "list"],
      ["plan", "list"],
      ["doctor", "--json"],
    ]
  ) {
    const said = await refusal(stage, args, wrong);
    assert.match(said, /PALOMA_SECRET_KEY \(--secret-key\) is not the key .*nothing was changed: set it to the key/);
    assert.ok(!said.includes(wrong.PALOMA_SECRET_KEY), "the secret is shown");
  }
  await stage.gateway.start();
  assert.equal(await answers(stage), 200);
});

onStage("under a new secret key the line logs in again without a QR, and the old key opens nothing", async (stage) => {
  const line = await stage.linkLine("447700900001");
  await stage.addPhone("447700900002");
  assert.match(await refusal(stage, ["rekey"]), /^a gateway already runs/);
  await stage.gateway.kill();
  const file = join(stage.dataDir, "secret.key");
  const before = await Deno.readTextFile(file);
  const half = await tryCommand(["rekey"], { ...stage.env, PALOMA_NEW_SECRET_KEY: "a key of the operator's" });
  assert.equal(half.code, 2);
  assert.match(half.stderr, /goes with PALOMA_SECRET_KEY/);

  assert.match(await runCommand(["rekey"], stage.env), /^Rows re-encrypted: [1-9]\d*\. The new key is in place\./);
  assert.notEqual(await Deno.readTextFile(file), before);
  assert.match(await refusal(stage, ["account", "list"], { PALOMA_SECRET_KEY: before.trim() }), /is not the key/);
  await stage.gateway.start();
  await stage.sessionStatus(line, "connected");
  await stage.sendText(line, "447700900002", "under the new key");
  await stage.arrival("447700900002", ({ text }) => text === "under the new key");
});

Deno.test("a new secret key counts as it will be read as a setting, without the blanks around it", async () => {
  await using temp = await tempFolder();
  const at = (PALOMA_SECRET_KEY: string) => ({ PALOMA_DATA_DIR: temp.path, PALOMA_SECRET_KEY });
  await runCommand(["account", "create", "--name", "acme"], at("the first secret key"));
  const next = " the next secret key\n";
  const short = await tryCommand(["rekey"], {
    ...at("the first secret key"),
    PALOMA_NEW_SECRET_KEY: "short".padEnd(20),
  });
  assert.deepEqual([short.code, short.stderr], [2, "PALOMA_NEW_SECRET_KEY: needs at least 16 characters\n"]);
  await runCommand(["rekey"], { ...at("the first secret key"), PALOMA_NEW_SECRET_KEY: next });
  await runCommand(["account", "list"], at(next));
});
