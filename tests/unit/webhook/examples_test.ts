import assert from "node:assert/strict";
import { join } from "node:path";
import type { LoggedEvent } from "../../../src/event/event.ts";
import { plain } from "../../../src/event/plain_json.ts";
import { palomaFormat } from "../../../src/webhook/format.ts";
import { makeSecret, signatureHeaders } from "../../../src/webhook/signature.ts";
import { seededRandom } from "../../support/runtime.ts";

const GUIDE = Deno.readTextFileSync(new URL("../../../docs/webhooks.md", import.meta.url));

/** The example in the guide for a language. */
function example(language: string): string {
  const block = new RegExp("```" + language + "\n(.*?)```", "s").exec(GUIDE);
  assert.ok(block, `the guide has no example in ${language}`);
  return block[1]!;
}

interface Runner {
  language: string;
  /** Runtimes in the order of preference; the first that is there runs the example. */
  runtimes: [command: string, ...args: string[]][];
  /** Files beside the example, and how it is called: body on stdin, signature and secret as arguments, "true" or "false". */
  files(code: string): Record<string, string>;
  /** Arguments of the runtime that build the example once; it is then called by itself. */
  build?: string[];
  /** Arguments of the runtime, or what was built. */
  entry: string[];
}

const RUNNERS: Runner[] = [
  {
    language: "js",
    runtimes: [["node"], [Deno.execPath(), "run", "-A", "--no-config"]],
    files: (code) => ({
      "verify.mjs": 'import { Buffer } from "node:buffer";\n' + code,
      "main.mjs": `import { verify } from "./verify.mjs";
        import { readFileSync } from "node:fs";
        import process from "node:process";
        console.log(verify(readFileSync(0), process.argv[2], process.argv[3]));`,
    }),
    entry: ["main.mjs"],
  },
  {
    language: "python",
    runtimes: [["python3"], ["python"]],
    files: (code) => ({
      "main.py": `${code}
import sys
print(str(verify(sys.stdin.buffer.read(), sys.argv[1], sys.argv[2])).lower())
`,
    }),
    entry: ["main.py"],
  },
  {
    language: "php",
    runtimes: [["php"]],
    files: (code) => ({
      "main.php": `${code}
echo verify(file_get_contents('php://stdin'), $argv[1], $argv[2]) ? 'true' : 'false';
`,
    }),
    entry: ["main.php"],
  },
  {
    language: "go",
    runtimes: [["go"]],
    files: (code) => ({
      "verify.go": code,
      "main.go": `package main
import ("fmt"; "io"; "os")
func main() {
  body, _ := io.ReadAll(os.Stdin)
  fmt.Println(Verify(body, os.Args[1], os.Args[2]))
}`,
    }),
    build: ["build", "-o", "example", "verify.go", "main.go"],
    entry: ["./example"],
  },
];
import { tempFolder } from "../../support/temp_folder.ts";

async function run(command: string[], { cwd, stdin }: { cwd: string; stdin: string }): Promise<string> {
  const child = new Deno.Command(command[0]!, {
    args: command.slice(1),
    cwd,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  })
    .spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(stdin));
  await writer.close();
  const { stdout, stderr } = await child.output();
  return new TextDecoder().decode(stdout).trim() || new TextDecoder().decode(stderr);
}

async function isThere(command: string): Promise<boolean> {
  try {
    await new Deno.Command(command, {
      args: [command === "go" ? "version" : "--version"],
      stdout: "null",
      stderr: "null",
    }).output();
    return true;
  } catch {
    return false;
  }
}

const secret = makeSecret(seededRandom(5));
const body = await palomaFormat.bodyOf({
  id: "evt_1",
  createdAt: 0,
  accountId: "acc_1",
  event: "message.received",
  sessionId: "ses_1",
  sessionName: "Büro 😀",
  data: plain({ text: "Zażółć 👩‍👩‍👧‍👦 \u2028 \u0000 \ud800", details: { 10: 1e21, 9: -0, b: 0.1, a: [null, true] } }),
} as unknown as LoggedEvent);
const signature = signatureHeaders({
  id: "evt_1",
  at: 0,
  body: new TextEncoder().encode(body),
  secrets: [secret],
})["x-webhook-signature"]!;

for (const { language, runtimes, files, build, entry } of RUNNERS) {
  const present: string[][] = [];
  for (const runtime of runtimes) if (await isThere(runtime[0])) present.push(runtime);
  const skipped = present.length === 0
    ? ` (skipped: no ${runtimes.map(([name]) => name).join(" or ")} on this machine)`
    : "";
  Deno.test({
    name: `the guide's ${language} example takes a true signature and refuses a false one${skipped}`,
    ignore: present.length === 0,
    async fn() {
      await using temp = await tempFolder();
      const cwd = temp.path;
      for (const [name, text] of Object.entries(files(example(language)))) {
        await Deno.writeTextFile(join(cwd, name), text);
      }
      if (build) assert.equal(await run([...present[0]!, ...build], { cwd, stdin: "" }), "");
      const command = build ? entry : [...present[0]!, ...entry];
      const verify = (stdin: string, given: string, key: string) => run([...command, given, key], { cwd, stdin });
      assert.equal(await verify(body, signature, secret), "true");
      assert.equal(await verify(body.replace("10", "11"), signature, secret), "false");
      assert.equal(await verify(body, signature.replace(/.$/, (c) => c === "0" ? "1" : "0"), secret), "false");
      assert.equal(await verify(body, signature, secret + "x"), "false");
      assert.equal(await verify(body, "nonsense", secret), "false");
    },
  });
}
