/** The gateway as a process: how it starts, refuses to start, and ends. */
import assert from "node:assert/strict";
import { systemClock } from "../../src/runtime.ts";
import { freePort } from "../support/free_port.ts";
import { noFileLeft } from "../support/media_folder.ts";
import {
  type Environment,
  palomaArguments,
  startCommand,
  startProgram,
  tryCommand,
} from "../support/gateway_process.ts";
import { onStage, openStage, withStage } from "../support/stage.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** The network acknowledges nothing for as long as that: who waits for it ends later. */
const HELD_SECONDS = 600;

async function inFolder(run: (dataDir: string) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  await run(temp.path);
}

/** Starts a gateway as a shell does that was given this after it, or before it. */
async function startBy(shell: string, env: Environment) {
  const [path, args, environment] = palomaArguments(["serve", "--json", "--port", "0"], env);
  return await startProgram("/bin/sh", ["-c", shell, path, ...args], environment);
}

onStage("a second gateway on the same data folder is refused, and the first does not notice", async (stage) => {
  const line = await stage.linkLine("4915100000001");
  const { code, stdout, stderr } = await tryCommand(["serve"], { ...stage.env, PALOMA_PORT: "0" });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(
    stderr,
    /a gateway already runs on the data folder .*stop it first, or choose another folder/,
  );
  assert.equal((await stage.session(line)).status, "connected");
  assert.equal((await stage.events(line)).filter(({ event }) => event === "session.disconnected").length, 0);
});

onStage("SIGTERM ends the gateway with 0, although a message waits for its ack", async (stage) => {
  await stage.addPhone("4917000000001");
  const line = await stage.linkLine("4915100000001");
  await stage.control.call("POST", "/faults", { line: line.number, kind: "hold_acks", seconds: HELD_SECONDS });
  const messageId = await stage.sendText(line, "4917000000001", "on its way when the gateway stops");
  const { id } = await stage.arrival("4917000000001", ({ text }) => text === "on its way when the gateway stops");
  const asked = systemClock.now();
  assert.equal(await stage.gateway.stop(), 0);
  assert.ok(systemClock.now() - asked < HELD_SECONDS * 1000, `it took ${systemClock.now() - asked} ms`);
  await stage.control.call("DELETE", `/faults/${line.number}`);

  await stage.gateway.start();
  await stage.status(messageId, "sent");
  const arrived = (await stage.inbox("4917000000001")).map((message) => [message.id, message.copies]);
  assert.deepEqual(arrived, [[id, 1]]);
});

Deno.test("settings that cannot be used are reported together, with exit 2", () =>
  inFolder(async (dataDir) => {
    const { code, stdout, stderr } = await tryCommand(["serve", "--log-level", "loud"], {
      PALOMA_DATA_DIR: `${dataDir}/never-made`,
      PALOMA_PORT: "80x",
      PALOMA_TRUSTED_PROXIES: "10.0.0.0/8, nowhere",
      PALOMA_WHATSAPP_ROOT_KEY: "abc",
      PALOMA_WHATSAPP_VERSION: "latest",
    });
    assert.equal(code, 2);
    assert.equal(stdout, "");
    for (const name of ["PORT", "TRUSTED_PROXIES", "WHATSAPP_ROOT_KEY", "WHATSAPP_VERSION"]) {
      assert.match(stderr, new RegExp(`^  PALOMA_${name}: `, "m"));
    }
    assert.match(stderr, /^ {2}--log-level: /m, "named as it was written");
    assert.match(stderr, /"nowhere" is neither an address nor a CIDR/);
    await assert.rejects(Deno.stat(`${dataDir}/never-made`), Deno.errors.NotFound);
  }));

Deno.test("a data folder that cannot be made is named in a sentence, not by a stack", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    const { code, stdout, stderr } = await tryCommand(["serve"], { PALOMA_DATA_DIR: `${folder}/file/data` });
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /\/file\/data/);
    assert.doesNotMatch(stderr, /^ +at /m);
  }));

Deno.test("an unknown flag or command is wrong usage: exit 2, and a hint", async () => {
  for (const args of [["serve", "--prot", "80"], ["sevre"], ["account", "create"]]) {
    const { code, stdout, stderr } = await tryCommand(args, {});
    assert.equal(code, 2, args.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, /--help/, args.join(" "));
  }
});

Deno.test("without a flag or PALOMA_PORT the gateway listens on PORT", () =>
  inFolder(async (dataDir) => {
    const port = freePort();
    const gateway = await startCommand(["--json"], { PALOMA_DATA_DIR: dataDir, PORT: String(port) });
    try {
      const { operatorLink, ...urls } = JSON.parse(gateway.line);
      const panelUrl = `http://127.0.0.1:${port}/panel`;
      assert.deepEqual(urls, { baseUrl: `http://127.0.0.1:${port}/v1`, panelUrl });
      assert.match(operatorLink, new RegExp(`^${panelUrl}/welcome#[\\w-]{43}$`));
      const health = await tryCommand(["healthcheck"], { PALOMA_DATA_DIR: dataDir, PORT: String(port) });
      assert.equal(health.code, 0, health.stderr);
      const taken = await tryCommand(["serve"], { PALOMA_DATA_DIR: `${dataDir}/other`, PORT: String(port) });
      assert.equal(taken.code, 1);
      assert.equal(
        taken.stderr.trim(),
        `127.0.0.1:${port} is in use: stop what listens there, or choose another with PALOMA_PORT (--port)`,
      );
    } finally {
      assert.equal(await gateway.end("SIGINT"), 0);
    }
  }));

Deno.test("below PALOMA_MIN_FREE_DISK sends are 503, and the rest goes on", async () => {
  await withStage(() => openStage({ env: { PALOMA_MIN_FREE_DISK: "1000000TB" } }), async (stage) => {
    await stage.addPhone("4917000000031");
    const line = await stage.linkLine("4915100000031");
    const response = await stage.request("POST", "/messages/send/text", {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ sessionId: line.sessionId, to: "4917000000031", text: "no room" }),
    });
    assert.equal(response.status, 503);
    assert.equal((await response.json()).code, "storage_unavailable");
    assert.ok(Number(response.headers.get("retry-after")) > 0);
    assert.equal((await stage.session(line)).status, "connected");

    // What is received is reported, without its file.
    const sent = { to: line.number, kind: "image", mimetype: "image/png", file: "aGVsbG8=" };
    await stage.control.call("POST", "/phones/4917000000031/messages", sent);
    const { data } = await stage.event(line, ({ event }) => event === "message.received");
    assert.equal(data.media.url, null);
    assert.match(data.media.reason, /no space left/);
    await noFileLeft(stage);
  });
});

Deno.test("a log that cannot be written, as on a full disk, ends no gateway", () =>
  inFolder(async (dataDir) => {
    const gateway = await startBy('exec "$0" "$@" 2>/dev/full', {
      PALOMA_DATA_DIR: dataDir,
      PALOMA_LOG_LEVEL: "trace",
    });
    const { baseUrl } = JSON.parse(gateway.line);
    for (let n = 0; n < 3; n++) await (await fetch(`${baseUrl}/account`)).body?.cancel();
    assert.equal(await gateway.end("SIGTERM"), 0);
  }));

Deno.test("a gateway that cannot print where it listens runs all the same, and ends in order", () =>
  inFolder(async (dataDir) => {
    // Its log comes where its output would.
    const gateway = await startBy('exec "$0" "$@" 2>&1 >/dev/full', { PALOMA_DATA_DIR: dataDir });
    assert.match(gateway.line, /the gateway is up/);
    assert.equal(await gateway.end("SIGTERM"), 0);
  }));

Deno.test("the end of its terminal ends a gateway in order, and none that nohup keeps from hearing of it", async () => {
  // The executable may not ask what it is to ignore, and goes by its terminal, which it has none of here.
  const asks = !Deno.env.has("PALOMA_EXECUTABLE");
  if (asks) {
    await inFolder(async (dataDir) => {
      const gateway = await startBy('exec "$0" "$@"', { PALOMA_DATA_DIR: dataDir });
      // The terminal says so, and its shell once more.
      Deno.kill(gateway.pid, "SIGHUP");
      assert.equal(await gateway.end("SIGHUP"), 0);
      assert.match(gateway.stderr(), /the gateway has stopped/);
    });
  }
  await inFolder(async (dataDir) => {
    const gateway = await startBy(`trap '' HUP; exec "$0" "$@"`, { PALOMA_DATA_DIR: dataDir });
    Deno.kill(gateway.pid, "SIGHUP");
    await (await fetch(gateway.line.match(/http[^"]+/)![0].replace("/v1", "/healthz"))).body?.cancel();
    assert.equal(await gateway.end("SIGTERM"), 0);
  });
});
