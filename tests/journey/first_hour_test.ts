/** What somebody meets who has just got the executable: help, typos, the way to the panel, a line from the terminal. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type Json, linkByQr } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { freePort } from "../support/free_port.ts";
import { palomaCommand, runCommand, spawnToEnd, tryCommand } from "../support/gateway_process.ts";
import { ROOT } from "../support/guides.ts";
import { HAS_TERMINAL, onTerminal } from "../support/pseudo_terminal.ts";
import { onStage, openStage, type Stage, WITH_REFRESH, withStage } from "../support/stage.ts";

const LINE = "4915200000011";
const OTHER = "4915200000012";

/** Runs `paloma link` to its end; resolves to what it printed, exit code aside, which has to be 0. */
async function link(
  stage: Stage,
  args: readonly string[],
  shown: (state: Json, kill: () => void) => Promise<unknown> | void,
): Promise<Json[]> {
  const { port } = new URL(stage.gateway.baseUrl);
  const child = spawnToEnd(palomaCommand(["link", ...args, "--json"], { ...stage.env, PALOMA_PORT: port }));
  const states: Json[] = [];
  let isKilled = false;
  // What was printed before its end is still read.
  const kill = () => {
    if (!isKilled) child.kill("SIGKILL");
    isKilled = true;
  };
  let rest = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const state = JSON.parse(line);
      states.push(state);
      await shown(state, kill);
    }
  }
  const stderr = await new Response(child.stderr).text();
  const { success, signal } = await child.status;
  assert.ok(success || signal, stderr);
  return states;
}

/** Runs `paloma link` until it has said a line on stderr; resolves to that line. */
async function firstLine(stage: Stage, args: readonly string[]): Promise<string> {
  const { port } = new URL(stage.gateway.baseUrl);
  const child = spawnToEnd(palomaCommand(["link", ...args], { ...stage.env, PALOMA_PORT: port }));
  let said = "";
  for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
    said += part;
    if (said.includes("\n")) break;
  }
  child.kill("SIGKILL");
  await Promise.all([child.stdout.cancel(), child.status]);
  return said;
}

onStage("`paloma link` shows QRs until the phone has scanned one, and finds the key by itself", async (stage) => {
  await stage.addPhone(LINE);
  const states = await link(stage, ["Office"], async ({ qr }) => {
    if (qr) await stage.control.call("POST", `/phones/${LINE}/scan`, { qr });
  });
  assert.deepEqual({ ...states.at(-1), sessionId: null }, {
    status: "connected",
    sessionId: null,
    name: "Office",
    phone: LINE,
  });
  await stage.secrets.readData(stage.env);

  const { port } = new URL(stage.gateway.baseUrl);
  const again = await tryCommand(["link", "Office"], { ...stage.env, PALOMA_PORT: port });
  assert.equal(again.code, 1);
  assert.match(again.stderr, /Office is already linked/);

  // As after `line export` and `line import` at the same place: one that is linked no more, and one that is.
  await stage.addPhone(OTHER);
  const [, linked] = [
    await stage.api.call("POST", "/sessions", { name: "Shop" }),
    await stage.api.call("POST", "/sessions", { name: "Shop" }),
  ];
  const { api, control } = stage;
  await linkByQr(systemClock, { api, control, sessionId: linked.data._id, phone: OTHER });
  const twin = await tryCommand(["link", "Shop"], { ...stage.env, PALOMA_PORT: port });
  assert.equal(twin.code, 1);
  assert.match(twin.stderr, new RegExp(`Shop is already linked: session ${linked.data._id}`));
}, WITH_REFRESH);

onStage(
  "`paloma link --number` may be run again when nobody has typed the code, and leaves one session",
  async (stage) => {
    await stage.addPhone(LINE);
    const args = ["Office", "--number", LINE];
    const [first] = await link(stage, args, (_, kill) => kill());
    assert.match(first.pairingCode, /^[A-Z0-9]{8}$/);
    const states = await link(stage, args, async ({ pairingCode: code }) => {
      if (code) await stage.control.call("POST", `/phones/${LINE}/enter-code`, { code });
    });
    assert.equal(states.at(-1).phone, LINE);
    await stage.secrets.readData(stage.env);
    const { data } = await stage.api.call("GET", "/sessions");
    assert.deepEqual(data.map(({ status }: Json) => status), ["connected"]);
  },
);

onStage("`paloma link` without the number shows the code of an earlier run", async (stage) => {
  await stage.addPhone(LINE);
  assert.match(
    await firstLine(stage, ["Office", "--number", LINE]),
    new RegExp(`^On the phone ${LINE}: .*[A-Z0-9]{8}\n`),
  );
  assert.match(await firstLine(stage, ["Office"]), /^On the phone: .*[A-Z0-9]{8}\n/);
});

onStage("`paloma link` says why WhatsApp gives no code, and that the account asks for its passkey", async (stage) => {
  await stage.addPhone(LINE);
  await stage.control.call("POST", "/faults", { line: LINE, kind: "refuse_code" });
  assert.equal(
    await firstLine(stage, ["Office", "--number", LINE]),
    "WhatsApp gives no code for this number: it is not valid, or has asked too often (error 400).\n",
  );
  await stage.control.call("POST", "/phones", { number: OTHER, passkey: true });
  const states = await link(stage, ["Shop"], async ({ qr, reason }, kill) => {
    if (qr) await stage.control.call("POST", `/phones/${OTHER}/scan`, { qr });
    if (reason) kill();
  });
  assert.match(states.at(-1).reason, /asks for its passkey/);
});

onStage("`paloma link` that is interrupted leaves no session", async (stage) => {
  const env = { ...stage.env, PALOMA_PORT: new URL(stage.gateway.baseUrl).port };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const child = spawnToEnd(palomaCommand(["link", "Office"], env));
    let said = "";
    for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
      if (!said.includes("Ctrl-C") && (said + part).includes("Ctrl-C")) child.kill(signal);
      said += part;
    }
    await child.stdout.cancel();
    assert.equal((await child.status).code, 1, said);
    assert.match(said, /^Stopped: Office is not linked\.$/m);
    assert.deepEqual((await stage.api.call("GET", "/sessions")).data, []);
  }
});

Deno.test({
  name: "a QR that does not fit the terminal says so, and where it can be scanned",
  ignore: !HAS_TERMINAL,
  fn: () =>
    withStage(openStage, async (stage) => {
      const env = { ...stage.env, PALOMA_PORT: new URL(stage.gateway.baseUrl).port };
      const linked = (rows: number, columns: number) =>
        onTerminal(["link", "Office"], env, {
          rows,
          columns,
          when: "Press Ctrl-C to stop.",
          type: "\x03",
        });
      for (const [rows, columns] of [[24, 80], [60, 60]] as const) {
        const { code, shown } = await linked(rows, columns);
        assert.equal(code, 1);
        const [, page] = /This window is too small for the QR: .* scan the one at (http\S+)/.exec(shown) ?? [];
        assert.ok(page?.startsWith(`${new URL(stage.gateway.baseUrl).origin}/panel/accounts/acc_`), shown);
        assert.match(page!, /\/lines\/ses_\w{26}$/);
      }
      const { code, shown } = await linked(60, 120);
      assert.deepEqual([code, /too small/.test(shown), /█/.test(shown)], [1, false, true], shown);
      assert.deepEqual((await stage.api.call("GET", "/sessions")).data, []);
    }),
});

onStage("`/` leads a browser to the panel, and a program to a 404", async (stage) => {
  const root = new URL("/", stage.gateway.baseUrl);
  const browser = await fetch(root, { headers: { accept: "text/html,*/*;q=0.8" }, redirect: "manual" });
  await browser.body?.cancel();
  assert.deepEqual([browser.status, browser.headers.get("location")], [302, "panel"]);
  const script = await fetch(root, { headers: { accept: "application/json" } });
  assert.equal(script.status, 404);
  assert.equal((await script.json()).code, "not_found");
});

onStage("a webhook target that is refused as private names the setting that allows it", async (stage) => {
  const response = await stage.request("POST", "/webhooks", {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url: "https://10.1.2.3/hook", events: ["message.received"] }),
  });
  assert.equal(response.status, 400);
  assert.match((await response.json()).detail, /not on the public internet.*PALOMA_OUTBOUND_ALLOW/);
});

Deno.test("a typo is answered with the nearest command, and with --json as JSON", async () => {
  for (
    const [args, says] of [
      [["srve"], "unknown command 'srve'\n(Did you mean serve?)"],
      [["account", "creat"], "unknown command 'creat'\n(Did you mean create?)"],
      [["doctor", "--jsno"], "unknown option '--jsno'\n(Did you mean --json?)"],
    ] as const
  ) {
    const { code, stdout, stderr } = await tryCommand(args, {});
    assert.deepEqual([code, stdout], [2, ""]);
    assert.ok(stderr.startsWith(`error: ${says}\n`), stderr);
    const json = await tryCommand([...args, "--json"], {});
    assert.equal(json.code, 2);
    assert.deepEqual(JSON.parse(json.stderr), { error: { code: "usage", message: says } });
  }
});

Deno.test("a failure with --json is one line of JSON with a code for scripts", async () => {
  const settings = await tryCommand(["doctor", "--json"], { PALOMA_PORT: "http" });
  assert.equal(settings.code, 2);
  const { error } = JSON.parse(settings.stderr);
  assert.equal(error.code, "settings_invalid");
  assert.match(error.message, /PALOMA_PORT: "http" is not a port number/);
  const missing = await tryCommand(["restore", "/no/such/file", "--json"], { PALOMA_DATA_DIR: "/no/such/folder" });
  assert.equal(missing.code, 1);
  assert.equal(JSON.parse(missing.stderr).error.code, "backup_failed");
});

Deno.test("`paloma files` prints what is in `ops/`, and lists it", async () => {
  const given = [...Deno.readDirSync(join(ROOT, "ops"))].map(({ name }) => name).filter((name) =>
    !name.includes("_test")
  );
  const listed = (await runCommand(["files"], {})).trim().split("\n");
  assert.deepEqual(listed, given.sort());
  for (const name of ["nginx.conf", "grafana-dashboard.json"]) {
    assert.equal(await runCommand(["files", name], {}), await Deno.readTextFile(join(ROOT, "ops", name)));
  }
  const { code, stderr } = await tryCommand(["files", "../deno.json", "--json"], {});
  assert.equal(code, 2);
  assert.match(JSON.parse(stderr).error.message, /no file \.\.\/deno\.json, only: Caddyfile, /);
});

Deno.test("a gateway that does not run, or is none, is a sentence and no stack", async () => {
  await using page = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => new Response("<html>"));
  const lost = new Response("<html>\n  Not Found\n", { status: 404 });
  await using other = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => lost.clone());
  const link = ["link", "line", "--key", "pk_any"];
  const nowhere = freePort();
  for (
    const [args, port, says] of [
      [link, nowhere, `Nothing answers at http://127.0.0.1:${nowhere}/v1 (`],
      [
        link,
        page.addr.port,
        `http://127.0.0.1:${page.addr.port}/v1 is not a Paloma API: GET /sessions answered <html>`,
      ],
      [link, other.addr.port, "GET /sessions answered 404: <html> Not Found\n"],
      [["healthcheck"], other.addr.port, `http://127.0.0.1:${other.addr.port}/readyz answers 404: <html> Not Found\n`],
    ] as const
  ) {
    const { code, stderr } = await tryCommand([...args, "--port", `${port}`], {});
    assert.equal(code, 1);
    assert.ok(stderr.startsWith(says) && !/\n./.test(stderr), stderr);
  }
});

Deno.test("help begins with a command's own options", async () => {
  const { stdout } = await tryCommand(["sandbox", "--help"], {});
  const places = ["--demo", "--network-only", "--json", "Settings", "--host", "--sandbox-port"].map((word) =>
    stdout.indexOf(word)
  );
  assert.ok(places.every((place, i) => place > (places[i - 1] ?? 0)), stdout);
});

Deno.test("help of a command beside the gateway shows the settings that it needs, and takes the others", async () => {
  const { stdout } = await tryCommand(["account", "list", "--help"], {});
  assert.match(
    stdout,
    /--data-dir[^]*--store[^]*--secret-key[^]*It accepts all other settings, too: paloma serve --help/,
  );
  assert.doesNotMatch(stdout, /--whatsapp-url|--max-bodies/);
  const { code, stderr } = await tryCommand(["account", "list", "--max-bodies", "much"], {});
  assert.equal(code, 2);
  assert.match(stderr, /--max-bodies: "much" is not a size/);
});

Deno.test("a reader that has seen enough ends a command without a word", async () => {
  const child = spawnToEnd(palomaCommand(["openapi"], {}));
  const reader = child.stdout.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(await new Response(child.stderr).text(), "");
  assert.equal((await child.status).code, 0);
});
