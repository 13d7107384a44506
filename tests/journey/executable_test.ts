/** The compiled executable where there is no Deno, no source and no cache: its demo, and the pages it has to carry. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { startProgram, tryProgram } from "../support/gateway_process.ts";
import { isFile } from "../support/tools.ts";
import { tempFolder } from "../support/temp_folder.ts";

const EXECUTABLE = Deno.env.get("PALOMA_EXECUTABLE") ?? fileURLToPath(new URL("../../dist/paloma", import.meta.url));

/** A test with the executable in an empty place; skipped, and saying so, where it was not built. */
function withExecutable(name: string, run: (env: Record<string, string>) => Promise<void>): void {
  if (!isFile(EXECUTABLE)) {
    Deno.test({ name: `${name} (skipped: not built; deno task compile, or PALOMA_EXECUTABLE)`, ignore: true, fn() {} });
    return;
  }
  Deno.test(name, async () => {
    await using temp = await tempFolder();
    await run({
      HOME: temp.path,
      TMPDIR: temp.path,
      PATH: "/usr/bin:/bin",
      PALOMA_PORT: "0",
      PALOMA_SANDBOX_PORT: "0",
    });
  });
}

withExecutable("the executable runs its demo where there is no Deno", async (env) => {
  const { code, stdout, stderr } = await tryProgram(EXECUTABLE, ["sandbox", "--demo"], env);
  assert.equal(code, 0, stderr);
  for (const step of ["linked by QR (2 scans)", "✓ text", "✓ PDF", "✓ bulk", "✓ answer", "signature verified"]) {
    assert.ok(stdout.includes(step), `${step} is missing in:\n${stdout}`);
  }
});

withExecutable("the executable runs on a terminal, where its log is written for people", async (env) => {
  const demo = ["-qec", `${EXECUTABLE} sandbox --demo`, "/dev/null"];
  const { code, stdout } = await tryProgram("script", demo, { ...env, PALOMA_LOG_LEVEL: "info" });
  assert.equal(code, 0, stdout);
  assert.match(stdout, /INFO.*the gateway is up/);
});

withExecutable("the executable carries panel and reference with all that they load", async (env) => {
  const sandbox = await startProgram(EXECUTABLE, ["sandbox", "--json"], env);
  try {
    const { baseUrl } = JSON.parse(sandbox.line);
    const loaded = new Set<string>();
    for (const page of ["/panel", "/docs"]) await load(new URL(page, baseUrl), loaded);
    const files = [...loaded].map((url) => new URL(url).pathname);
    for (
      const file of ["/docs/theme.css", "/docs/samples.js", "/panel/assets/main.js", "/panel/assets/lib.js"]
    ) {
      assert.ok(files.includes(file), `${file} is not among ${files}`);
    }
    // A page and a language are imported when they are wanted.
    for (const file of ["pages/lines.js", "lang/es.js"]) await load(new URL(`/panel/assets/${file}`, baseUrl), loaded);
    assert.equal((await (await fetch(new URL("/openapi.json", baseUrl))).json()).openapi, "3.1.0");
  } finally {
    assert.equal(await sandbox.end("SIGTERM"), 0);
  }
});

withExecutable("the executable backs its data up and restores it elsewhere", async (env) => {
  const paloma = async (folder: string, ...args: string[]) => {
    const { code, stdout, stderr } = await tryProgram(EXECUTABLE, args, {
      ...env,
      PALOMA_DATA_DIR: `${env.HOME}/${folder}`,
    });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const { accountId } = await paloma("old", "account", "create", "--name", "acme", "--plan", "free", "--json");
  await paloma("old", "backup", `${env.HOME}/backup`, "--json");
  await Deno.mkdir(`${env.HOME}/new`);
  await Deno.copyFile(`${env.HOME}/old/secret.key`, `${env.HOME}/new/secret.key`);
  await paloma("new", "restore", `${env.HOME}/backup`, "--json");
  assert.equal((await paloma("new", "account", "show", accountId, "--json")).name, "acme");
  // HOME and TMPDIR are this folder: nothing else was left there, the runtime's cache of compiled code included.
  assert.deepEqual(Array.from(Deno.readDirSync(env.HOME!), ({ name }) => name).sort(), ["backup", "new", "old"]);
});

withExecutable("the executable may not load a native library, nor start another program", async (env) => {
  const { code, stdout, stderr } = await tryProgram(EXECUTABLE, ["version", "--json"], env);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout).permissions, ["env", "net", "read", "sys", "write"]);
});

/** Loads a page or a script with all that it names: styles, scripts, and the modules that these import. */
async function load(url: URL, loaded: Set<string>): Promise<void> {
  if (loaded.has(url.href)) return;
  loaded.add(url.href);
  const response = await fetch(url);
  const text = await response.text();
  assert.equal(response.status, 200, url.pathname);
  for (const [, file] of text.matchAll(/(?:src=|href=|from )"([^"]+\.(?:js|css))"/g)) {
    await load(new URL(file!, url), loaded);
  }
}
