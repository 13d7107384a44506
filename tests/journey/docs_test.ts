/** No page rots: each command of the documentation is one that the program has, and each call one that the API has. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { openApiDocument } from "../../src/http/docs/openapi.ts";
import { tryCommand } from "../support/gateway_process.ts";
import { onStage } from "../support/stage.ts";

const ROOT = join(import.meta.dirname!, "..", "..");
const PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/develop.md", "docs/operate.md", "docs/proxy.md"]
  .concat("docs/migrate.md", "docs/events.md", "docs/webhooks.md", "compose.yaml", "docs/benchmarks.md");

interface Line {
  page: string;
  text: string;
}

/** The lines of the pages' shell blocks, continued ones joined; of other files, all of their lines. */
async function shellLines(): Promise<Line[]> {
  const found: Line[] = [];
  for (const page of PAGES) {
    const text = await Deno.readTextFile(join(ROOT, page));
    const blocks = page.endsWith(".md") ? [...text.matchAll(/```sh\n([^]*?)```/g)].map(([, block]) => block!) : [text];
    for (const block of blocks) {
      for (const line of block.replaceAll("\\\n", " ").split("\n")) found.push({ page, text: line });
    }
  }
  return found;
}

Deno.test("each command of the pages is one that there is, with options that it takes", async () => {
  const commands = new Map<string, Line>();
  for (const line of await shellLines()) {
    for (const [, args] of line.text.matchAll(/(?:^|[\s(]|exec paloma )paloma ((?:[a-z-]+ ?)(?:[^#|&>)]*))/g)) {
      const words = args!.trim().split(/\s+/);
      const names = words.slice(0, words.findIndex((word) => !/^[a-z-]+$/.test(word) || word.startsWith("-")) >>> 0);
      commands.set(`${names.slice(0, 2).join(" ")} ${words.filter((word) => word.startsWith("--")).join(" ")}`, line);
    }
  }
  assert.ok(commands.size >= 6, `only ${commands.size} were found`);
  for (const [command, { page, text }] of commands) {
    const [names, options] = [/^[a-z -]*?(?= --|$)/, /--[a-z-]+/g].map((pattern) => command.match(pattern) ?? []);
    const words = names![0]!.trim().split(" ");
    const help = await tryCommand([...words, "--help"], {});
    // A word that is no command is answered with the help of all.
    assert.ok(help.stdout.startsWith(`Usage: paloma ${words[0]}`), `${page}: ${text}: there is no such command`);
    for (const option of options!) assert.ok(help.stdout.includes(option), `${page}: ${text}: there is no ${option}`);
  }
});

Deno.test("each task of the pages is one of deno.json", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const named = (await shellLines()).flatMap(({ text }) =>
    [...text.matchAll(/\btask ([a-z]+)/g)].map(([, name]) => name!)
  );
  assert.ok(named.length >= 8);
  assert.deepEqual(named.filter((name) => !(name in tasks)), []);
});

Deno.test("each path of the pages is one of the API's", async () => {
  const paths = Object.keys(openApiDocument().paths ?? {}).map((path) => path.replaceAll(/\{[^}]*\}/g, "*"));
  const missing: string[] = [];
  for (const page of PAGES) {
    const text = await Deno.readTextFile(join(ROOT, page));
    for (const [, path] of text.matchAll(/(\/v1\/[\w/{}…-]+)/g)) {
      const plain = path!.replaceAll(/\{[^}]*\}|(?:ses|whk|msg|dlv|evt)_…/g, "*").replace(/[/…]+$/, "");
      if (!paths.some((known) => known === plain || known.startsWith(`${plain}/`))) missing.push(`${page}: ${path}`);
    }
  }
  assert.deepEqual(missing, []);
});

onStage("the README's send works as it stands", async (stage) => {
  const readme = await Deno.readTextFile(join(ROOT, "README.md"));
  const [, to] = /-d '\{"to":"(\d+)","text":"Hello from Paloma"\}'/.exec(readme)!;
  await stage.linkLine("4915200000051");
  await stage.addPhone(to!);
  const curl = /curl -s localhost:8080(\S+) (-H[^]*?-d '[^']*')/.exec(readme)!;
  const command = `curl -s ${new URL(stage.gateway.baseUrl).origin}${curl[1]} ${curl[2]!.replaceAll("\\\n", " ")}`;
  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", command],
    env: { KEY: stage.apiKey },
  }).output();
  const answer = JSON.parse(new TextDecoder().decode(stdout));
  assert.equal(answer.status, "queued");
  await stage.arrival(to!, ({ text }) => text === "Hello from Paloma");
});
