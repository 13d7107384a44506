import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import process from "node:process";
import { makeLog, quietConsole, recentEntries } from "../../../src/ops/log.ts";

/** A log into memory. */
function memoryLog() {
  const written: string[] = [];
  const log = makeLog("trace", { destination: { write: (line: string) => void written.push(line) } });
  return { log, text: () => written.join("") };
}

const PLANTED = "planted-secret-5d41402a";

Deno.test("what libsignal prints of a session never reaches the log or the terminal", () => {
  const { log, text } = memoryLog();
  const printed: unknown[] = [];
  const { info } = console;
  console.info = (...values: unknown[]) => void printed.push(...values);
  try {
    const undo = quietConsole(log);
    try {
      console.info("Closing session:", { currentRatchet: { ephemeralKeyPair: { privKey: Buffer.from(PLANTED) } } });
      console.error(`Session error: ${PLANTED}`);
      console.log(PLANTED);
    } finally {
      undo();
    }
    assert.deepEqual(printed, []);
    assert.equal(text().match(/a library printed something/g)?.length, 3);
    assert.ok(!text().includes(PLANTED) && !text().includes("Closing session"));
    assert.ok(!text().includes(Buffer.from(PLANTED).join(",")));
    console.info("after");
    assert.deepEqual(printed, ["after"]);
  } finally {
    console.info = info;
  }
});

Deno.test("a warning of the runtime is a line of the log, and nothing is printed", async () => {
  const { log, text } = memoryLog();
  const before = process.listeners("warning");
  const undo = quietConsole(log);
  try {
    const warned = new Promise((resolve) => process.once("warning", resolve));
    process.emitWarning(PLANTED, { type: "DeprecationWarning", code: "DEP0181" });
    await warned;
  } finally {
    undo();
  }
  assert.match(text(), /"name":"DeprecationWarning","code":"DEP0181","msg":"a library was warned"/);
  assert.ok(!text().includes(PLANTED));
  assert.deepEqual(process.listeners("warning"), before);
});

Deno.test("fields that hold secrets or words are blotted out at every depth, others are kept", () => {
  const { log, text } = memoryLog();
  const error = Object.assign(new Error("no answer"), { data: { creds: PLANTED }, text: PLANTED });
  log.info({ apiKey: PLANTED, lineId: "ses_1", code: 440 }, "one");
  log.info({ request: { headers: { "X-Api-Key": PLANTED, Authorization: `Bearer ${PLANTED}`, host: "here" } } }, "two");
  log.info({ items: [{ text: PLANTED, to: "4915" }], bytes: Buffer.from(PLANTED) }, "three");
  log.warn({ err: error, error }, "four");
  log.child({ lineId: "ses_2" }).info({ a: { b: { c: { d: { e: { f: { g: PLANTED } } } } } } }, "five");
  assert.ok(!text().includes(PLANTED), text());
  for (const kept of ["ses_1", "ses_2", "440", "here", "4915", "no answer", "one", "two", "three", "four", "five"]) {
    assert.ok(text().includes(kept), kept);
  }
});

Deno.test("a log at a level leaves out what is below it", () => {
  const written: string[] = [];
  const log = makeLog("warn", { destination: { write: (line: string) => void written.push(line) } });
  log.info("quiet");
  log.warn("loud");
  assert.equal(written.length, 1);
  assert.equal(JSON.parse(written[0]!).msg, "loud");
});

Deno.test("the last lines before a process ends are written, however it ends", async () => {
  const script = `const { makeLog } = await import(${JSON.stringify(import.meta.resolve("../../../src/ops/log.ts"))});
    const log = makeLog("info");
    for (const word of ["one", "two", "three"]) log.info(word);
    Deno.kill(Deno.pid, "SIGKILL");`;
  const { stderr } = await new Deno.Command(Deno.execPath(), { args: ["eval", "--no-check", script] }).output();
  const lines = new TextDecoder().decode(stderr).trim().split("\n");
  assert.deepEqual(lines.map((line) => JSON.parse(line).msg), ["one", "two", "three"]);
});

Deno.test({
  name: "on a terminal the log is written for people, in colour unless NO_COLOR is set",
  // Others' `script` takes other options.
  ignore: Deno.build.os !== "linux",
  async fn() {
    const code = `const { openLog } = await import(${
      JSON.stringify(import.meta.resolve("../../../src/ops/log.ts"))
    }); (await openLog("info")).info("hello");`;
    const onTerminal = async (env: Record<string, string>) => {
      const args = ["-qec", `"$deno" eval --quiet --no-check "$code"`, "/dev/null"];
      const inherited = { ...Deno.env.toObject(), deno: Deno.execPath(), code, NO_COLOR: "" };
      const terminal = new Deno.Command("script", { args, clearEnv: true, env: { ...inherited, ...env } });
      return new TextDecoder().decode((await terminal.output()).stdout);
    };
    assert.ok((await onTerminal({})).includes("\u001b[32mINFO\u001b[39m: "));
    assert.match(await onTerminal({ NO_COLOR: "1" }), /^\[\d\d:\d\d:\d\d\.\d+\] INFO: hello\r\n$/);
  },
});

Deno.test("strangers' words can't control the terminal that shows the log", () => {
  const { log, text } = memoryLog();
  const words = "\u001b]0;owned\u0007 \u009b2J \u202eevil";
  log.warn({ from: words, list: [words], err: new Error(words) }, "somebody wrote");
  const { from, list, err } = JSON.parse(text());
  for (const shown of [from, ...list, err.message, err.stack]) {
    assert.match(shown, /owned/);
    assert.doesNotMatch(shown, /[^\P{Cc}\n]|\p{Cf}/u);
  }
});

Deno.test("the newest entries are kept, redacted, and warnings are not pushed out by what is more frequent", () => {
  const log = makeLog("info", { destination: { write: () => {} } });
  log.warn({ secret: "abc" }, "careful");
  log.child({ lineId: "ses_1" }).error("broken");
  log.debug("not logged");
  log.warn({ long: "x".repeat(10_000) }, "too long to keep");
  for (let i = 0; i < 1_000; i++) log.info({ i }, "request");
  const entries = recentEntries(log).map((entry) => JSON.parse(entry));
  assert.deepEqual(entries.filter(({ level }) => level >= 40).map(({ msg, secret }) => [msg, secret]), [
    ["careful", "[redacted]"],
    ["broken", undefined],
  ]);
  const requests = entries.filter(({ msg }) => msg === "request").map(({ i }) => i).toSorted((a, b) => a - b);
  assert.deepEqual(requests, Array.from({ length: 300 }, (_, i) => 700 + i));
});
