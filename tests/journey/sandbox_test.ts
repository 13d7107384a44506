/** `paloma sandbox`: what it prints, that it stays up, that its network serves a gateway of its own, and its demo. */
import assert from "node:assert/strict";
import { httpClient, linkByQr } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import {
  palomaCommand,
  runCommand,
  spawnToEnd,
  startCommand,
  startGatewayProcess,
  tryCommand,
} from "../support/gateway_process.ts";
import { findLeaks } from "../support/leaks.ts";
import { Secrets } from "../support/secrets.ts";
import { until } from "../support/until.ts";
import { tempFolder } from "../support/temp_folder.ts";

const ANYWHERE = { PALOMA_PORT: "0", PALOMA_SANDBOX_PORT: "0", PALOMA_LOG_LEVEL: "trace" };

/** What was left in a temporary folder. */
const leftIn = (folder: string) => Array.from(Deno.readDirSync(folder), ({ name }) => name);

Deno.test("sandbox --json prints one line with the keys that scripts rely on, stays up, and leaves nothing behind", async () => {
  const temporary = await Deno.makeTempDir({ prefix: "paloma-sandbox-test-" });
  const sandbox = await startCommand(["sandbox", "--json"], { ...ANYWHERE, TMPDIR: temporary });
  const secrets = new Secrets();
  try {
    const ready = JSON.parse(sandbox.line);
    assert.deepEqual(Object.keys(ready), [
      "baseUrl",
      "controlUrl",
      "panelUrl",
      "apiKey",
      "accountId",
      "sessionId",
      "line",
      "panelLink",
    ]);
    secrets.read(ready);
    const api = secrets.watch(httpClient(ready.baseUrl, { "x-api-key": ready.apiKey }));
    const control = secrets.watch(httpClient(ready.controlUrl));
    const { data: [session] } = await api.call("GET", "/sessions");
    assert.deepEqual([session._id, session.status, session.phone], [ready.sessionId, "connected", ready.line]);

    await control.call("POST", "/phones", { number: "4917000000001" });
    const { messageId } = await api.call("POST", "/messages/send/text", {
      to: "4917000000001",
      text: "Hello from the sandbox",
    });
    await until(
      async () => (await api.call("GET", `/messages/${messageId}/status`)).status === "sent",
      "the status sent",
    );
    const message = await until(
      async () => (await control.call("GET", "/phones/4917000000001/messages"))[0],
      "the message at the phone",
    );
    assert.equal(message.text, "Hello from the sandbox");
    assert.equal((await fetch(ready.panelUrl)).status, 200);
  } finally {
    assert.equal(await sandbox.end("SIGTERM"), 0);
  }
  assert.deepEqual(findLeaks(sandbox.stderr(), secrets), []);
  assert.deepEqual(leftIn(temporary), []);
  await Deno.remove(temporary, { recursive: true });
});

Deno.test("sandbox --network-only --json prints the settings with which a gateway of one's own links and sends", async () => {
  await using temp = await tempFolder();
  const dataDir = temp.path;
  const alone = await startCommand(["sandbox", "--network-only", "--json"], ANYWHERE);
  try {
    const { controlUrl, settings, ...more } = JSON.parse(alone.line);
    assert.deepEqual(more, {});
    const env = { ...settings, PALOMA_DATA_DIR: dataDir };
    const { apiKey } = JSON.parse(await runCommand(["account", "create", "--name", "own", "--json"], env));
    const gateway = await startGatewayProcess(env);
    try {
      const api = httpClient(gateway.baseUrl, { "x-api-key": apiKey });
      const control = httpClient(controlUrl);
      for (const number of ["4915100000001", "4917000000001"]) await control.call("POST", "/phones", { number });
      const { data } = await api.call("POST", "/sessions", { name: "own" });
      await linkByQr(systemClock, { api, control, sessionId: data._id, phone: "4915100000001" });
      await api.call("POST", "/messages/send/text", { to: "4917000000001", text: "From a gateway of one's own" });
      await until(async () => (await control.call("GET", "/phones/4917000000001/messages"))[0], "the message");
    } finally {
      assert.equal(await gateway.stop(), 0);
    }
    // Another network does not know the line: it would log it out, and its credentials would go.
    const { code, stderr } = await tryCommand(["sandbox", "--demo"], { ...ANYWHERE, PALOMA_DATA_DIR: dataDir });
    assert.equal(code, 1);
    assert.match(stderr, /^\S+ has lines that are linked elsewhere, .*--data-dir/m);
  } finally {
    assert.equal(await alone.end("SIGTERM"), 0);
  }
});

Deno.test("sandbox --network-only says how to add a phone, with a command that adds one", async () => {
  const child = spawnToEnd(palomaCommand(["sandbox", "--network-only"], ANYWHERE));
  const said: string[] = [];
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    said.push(text);
    if (said.join("").includes("Ctrl-C")) break;
  }
  const [, command] = /^ {2}(curl .*)$/m.exec(said.join("")) ?? [];
  const { stdout } = await new Deno.Command("sh", { args: ["-c", command!] }).output();
  assert.equal(JSON.parse(new TextDecoder().decode(stdout)).number, "447700900001");
  child.kill("SIGINT");
  await child.stderr.cancel();
  assert.equal((await child.status).code, 0);
});

Deno.test("sandbox takes a data folder that is set to nothing for none, and makes its own", async () => {
  await using temp = await tempFolder();
  for (const PALOMA_DATA_DIR of ["", "  "]) {
    await runCommand(["sandbox", "--demo"], { ...ANYWHERE, TMPDIR: temp.path, PALOMA_DATA_DIR });
  }
  assert.deepEqual(leftIn(temp.path), []);
});

Deno.test("sandbox says which of its ports is in use, and leaves nothing behind", async () => {
  await using temp = await tempFolder();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  for (const [name, flag] of [["PALOMA_PORT", "--port"], ["PALOMA_SANDBOX_PORT", "--sandbox-port"]] as const) {
    const { code, stderr } = await tryCommand(["sandbox"], {
      PALOMA_PORT: "0",
      PALOMA_SANDBOX_PORT: "0",
      TMPDIR: temp.path,
      [name]: `${port}`,
    });
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^127\\.0\\.0\\.1:${port} is in use: .*${name} \\(${flag}\\)$`, "m"));
  }
  assert.deepEqual(leftIn(temp.path), []);
});

Deno.test("Ctrl-C while the sandbox starts leaves nothing behind", async () => {
  for (const [how, exit] of [[[], 0], [["--demo"], 1], [["--network-only"], 0]] as const) {
    await using temp = await tempFolder();
    const child = spawnToEnd(palomaCommand(["sandbox", ...how], { ...ANYWHERE, TMPDIR: temp.path }));
    await until(() => leftIn(temp.path)[0], "a folder of the network");
    child.kill("SIGINT");
    const { code, signal } = await child.output();
    assert.deepEqual([code, signal, leftIn(temp.path)], [exit, null, []], how.join());
  }
});

Deno.test("a demo needs more than the network alone", async () => {
  const { code, stderr } = await tryCommand(["sandbox", "--demo", "--network-only"], ANYWHERE);
  assert.deepEqual([code, stderr], [2, "Choose either --demo or --network-only.\n"]);
});

Deno.test("sandbox --demo --json prints one line of JSON for each step", async () => {
  const said = await runCommand(["sandbox", "--demo", "--json"], { PALOMA_PORT: "0", PALOMA_SANDBOX_PORT: "0" });
  const steps = said.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(steps.map(({ step }) => step), ["link", "text", "PDF", "bulk", "answer", "all"]);
  for (const { durationMs, outcome } of steps) assert.ok(durationMs >= 0 && outcome.length > 0);
});

Deno.test("sandbox --demo shows a text, a PDF, a bulk, an answer and its webhook, and ends with 0", async () => {
  const said = await runCommand(["sandbox", "--demo"], { PALOMA_PORT: "0", PALOMA_SANDBOX_PORT: "0" });
  for (const step of ["linked by QR (2 scans)", "✓ text", "✓ PDF", "✓ bulk", "✓ answer", "signature verified"]) {
    assert.ok(said.includes(step), `${step} is missing in:\n${said}`);
  }
});
