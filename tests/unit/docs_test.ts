/** No page rots: the files, commands, options, tasks, settings and paths that the documentation names are there. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { program } from "../../src/cli/program.ts";
import { FOREIGN, SETTINGS } from "../../src/settings.ts";
import { openApiDocument } from "../../src/http/docs/openapi.ts";
import { controlApp } from "../../src/sandbox/control/app.ts";
import { fault } from "../../src/sandbox/control/faults.ts";
import type { ControlledNetwork } from "../../src/sandbox/control/request.ts";
import { guides, namedCommands, type Page, ROOT, shellBlocks } from "../support/guides.ts";

/** Read by commands alone, so they are no settings of the gateway; the first two also by the recipes' programs. */
const OF_COMMANDS = ["PALOMA_URL", "PALOMA_API_KEY", "PALOMA_PASSPHRASE", "PALOMA_NEW_SECRET_KEY"];
/** Of the tests and of install.sh. */
const OF_DEVELOPERS = ["PALOMA_EXECUTABLE"];

function decisions(): Page[] {
  return [...Deno.readDirSync(join(ROOT, "docs/decisions"))].map(({ name }) => ({
    path: `docs/decisions/${name}`,
    text: Deno.readTextFileSync(join(ROOT, "docs/decisions", name)),
  }));
}

Deno.test("every file and folder that a page names exists", async () => {
  const missing: string[] = [];
  let named = 0;
  for (const { path: page, text } of [...guides(), ...decisions()]) {
    for (const [, path] of text.matchAll(/`((?:src|tests|scripts|docs|ops)\/[\w./-]*)`/g)) {
      named++;
      await Deno.stat(join(ROOT, path!)).catch(() => missing.push(`${page}: ${path}`));
    }
    for (const [, link] of text.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
      named++;
      await Deno.stat(join(ROOT, page, "..", link!)).catch(() => missing.push(`${page}: ${link}`));
    }
  }
  assert.deepEqual(missing, []);
  assert.ok(named > 50, `only ${named} were found`);
});

/** A file of the source, by its whole path or the end of it: `listen/listen.ts`. */
const SOURCE = /`([\w./-]+\.(?:ts|go))`/g;
const FOLDERS = ["src", "tests", "scripts", "extension", "clients", "integrations"];

Deno.test("every file of the source that a page or a comment names, by whatever end of its path, exists", async () => {
  const files = (await Promise.all(FOLDERS.map((folder) => filesOf(folder)))).flat();
  files.push("main.ts", "deploy.ts");
  const comments = files.filter((path) => path.endsWith(".ts")).map((path) => ({
    path,
    text: Deno.readTextFileSync(join(ROOT, path)).match(/\/\*\*[^]*?\*\/|^\s*\/\/ .*$/gm)?.join("\n") ?? "",
  }));
  const named = [...guides(), ...decisions(), ...comments].flatMap(({ path: page, text }) =>
    [...text.matchAll(SOURCE)].map(([, path]) => ({ page, path: path! }))
    // What is not TypeScript in a comment is of other projects.
  ).filter(({ page, path }) => page.endsWith(".md") || path.endsWith(".ts"));
  assert.ok(named.length > 200, `only ${named.length} were found`);
  assert.deepEqual(named.filter(({ path }) => !files.some((file) => `/${file}`.endsWith(`/${path}`))), []);
});

Deno.test("every function and table that the map of the source names is in the source; what a page places in a file is there", async () => {
  const files = (await filesOf("src")).filter((file) => file.endsWith(".ts"));
  const texts = new Map(
    await Promise.all(files.map(async (file) => [file, await Deno.readTextFile(join(ROOT, file))] as const)),
  );
  const all = [...texts.values()].join("\n");
  const map = guides().find(({ path }) => path === "docs/develop.md")!.text;
  const names = new Set(
    [...map.matchAll(/`#?([a-z]+[A-Z]\w+|[A-Z]+_[A-Z_]+|[A-Z][a-z]+[A-Z]\w+)`/g)].map(([, name]) => name!),
  );
  assert.ok(names.size > 20, `only ${names.size} were found`);
  assert.deepEqual([...names].filter((name) => !all.includes(name)), []);
  const placed = [...guides(), ...decisions()].flatMap(({ text }) =>
    [...text.matchAll(/`#?(\w+)`\s+in\s+`([\w./]+\.ts)`/g)].map(([, name, path]) => ({ name: name!, path: path! }))
  );
  assert.ok(placed.length > 20, `only ${placed.length} were found`);
  const isThere = ({ name, path }: { name: string; path: string }) =>
    files.some((file) => `/${file}`.endsWith(`/${path}`) && texts.get(file)!.includes(name));
  assert.deepEqual(placed.filter((one) => !isThere(one)), []);
});

async function filesOf(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(join(ROOT, folder)));
  const files = entries.filter(({ isFile }) => isFile).map(({ name }) => `${folder}/${name}`);
  const below = entries.filter(({ isDirectory }) => isDirectory).map(({ name }) => filesOf(`${folder}/${name}`));
  return [...files, ...(await Promise.all(below)).flat()];
}

Deno.test("every heading that a link leads to exists", () => {
  const anchors = new Map(
    guides().map(({ path, text }) => [
      path,
      new Set([...text.matchAll(/^#+ (.*)$/gm)].map(
        ([, heading]) => heading!.toLowerCase().replaceAll(/[^\w\- ]/g, "").replaceAll(" ", "-"),
      )),
    ]),
  );
  const missing = guides().flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)].filter(([, link, anchor]) => {
      const page = link === "" ? path : join(path, "..", link!);
      return anchors.has(page) && !anchors.get(page)!.has(anchor!);
    }).map(([link]) => `${path}: ${link}`)
  );
  assert.deepEqual(missing, []);
});

Deno.test("each command of the pages is one that there is, with options that it takes", async () => {
  const commands = guides().flatMap(namedCommands);
  assert.ok(commands.length >= 40, `only ${commands.length} were found`);
  const all = await program(["help"], false);
  const wrong: string[] = [];
  for (const { place, text } of commands) {
    let command = all;
    for (const word of text.split(/\s+/)) {
      const next = command.commands.find((one) => one.name() === word);
      if (!next) break;
      command = next;
    }
    const known = command.options.map(({ long }) => long);
    if (!command.parent || command.commands.length > 0 && / [a-z]/.test(text)) wrong.push(`${place}: paloma ${text}`);
    for (const [option] of text.matchAll(/(?<=[\s[])--[a-z-]+/g)) {
      if (!known.includes(option)) wrong.push(`${place}: paloma ${text}: there is no ${option}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("each task of the pages is one of deno.json", () => {
  const { tasks } = JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json")));
  const named = guides().flatMap(({ path, text }) =>
    [...text.matchAll(/\bdeno(?:@[\d.]+)? task ([a-z]+)/g)].map(([, name]) => ({ path, name: name! }))
  );
  assert.ok(named.length >= 8);
  assert.deepEqual(named.filter(({ name }) => !(name in tasks)), []);
});

Deno.test("every dependency has one line, and no line is of none", () => {
  const { imports }: { imports: Record<string, string> } = JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json")));
  const needed = new Set(Object.values(imports).map((address) => /^npm:\/?(.[^@]*)@/.exec(address)![1]!));
  const [table] = decisions().find(({ path }) => path.endsWith("/dependencies.md"))!.text.split("\n## ");
  const lines = table!.split("\n").filter((line) => line.startsWith("| `"));
  const listed = lines.flatMap((line) =>
    [...line.split("|")[1]!.matchAll(/(?<!as )`([^`]+)`/g)].map(([, name]) => name!)
  );
  assert.deepEqual(listed.toSorted(), [...needed].filter((name) => !name.startsWith("@types/")).toSorted());
});

Deno.test("each setting of the pages is one that there is", () => {
  const known: string[] = [...SETTINGS.map(({ env }) => env), ...FOREIGN, ...OF_COMMANDS, ...OF_DEVELOPERS];
  const named = guides().flatMap(({ path, text }) =>
    [...text.matchAll(/\bPALOMA_[A-Z_]*[A-Z]\b/g)].map(([name]) => ({ path, name }))
  );
  assert.ok(named.length >= 40);
  assert.deepEqual(named.filter(({ name }) => !known.includes(name)), []);
  const readme = guides()[0]!.text;
  const silent = SETTINGS.map(({ env }) => env).filter((env) =>
    !readme.includes(env) && !/_(ROOT_KEY|MEDIA_URL|CA)$|_PER_ADDRESS$/.test(env)
  );
  assert.deepEqual(silent, [], "the README's table leaves out settings");
});

Deno.test("each metric of the pages is one that there is", async () => {
  const files = (await filesOf("src")).filter((file) => file.endsWith(".ts"));
  const source = (await Promise.all(files.map((file) => Deno.readTextFile(join(ROOT, file))))).join("\n");
  const named = guides().flatMap(({ path, text }) =>
    [...text.matchAll(/\bpaloma_[a-z_]+/g)].map(([name]) => ({ path, name }))
  );
  assert.ok(named.length >= 20);
  assert.deepEqual(named.filter(({ name }) => !source.includes(`"${name}"`)), []);
});

Deno.test("each path of the pages is one of the API's", () => {
  const paths = Object.keys(openApiDocument().paths ?? {}).map((path) => path.replaceAll(/\{[^}]*\}/g, "*"));
  const missing = guides().flatMap(({ path: page, text }) =>
    [...text.matchAll(/(\/v1\/[\w/{}…-]+)/g)].filter(([, path]) => {
      const plain = path!.replaceAll(/\{[^}]*\}|(?:ses|whk|msg|dlv|evt)_(?:01k)?…/g, "*").replace(/[/…]+$/, "");
      return !paths.some((known) => known === plain || known.startsWith(`${plain}/`));
    }).map(([, path]) => `${page}: ${path}`)
  );
  assert.deepEqual(missing, []);
});

Deno.test("the page of the sandbox has every request and every fault of the control API, and no other", async () => {
  const page = await Deno.readTextFile(join(ROOT, "docs/sandbox.md"));
  const routes = controlApp({} as ControlledNetwork).routes.filter(({ method }) => method !== "ALL")
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  const named = [...page.matchAll(/`((?:GET|POST|PATCH|DELETE) \/(?!v1)[\w/{}-]+)/g)].map(([, request]) => request!);
  assert.deepEqual([...new Set(named)].sort(), [...new Set(routes)].sort());
  const [, faults] = page.split("## Faults");
  const kinds = [...faults!.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell]) => cell!.match(/(?<=`)\w+(?=`)/g) ?? []);
  const known = fault.options.flatMap(({ shape: { kind } }) => "options" in kind ? kind.options : [kind.value]);
  assert.deepEqual(kinds.slice(1).sort(), known.sort());
});

Deno.test("how to start is the same in every language", () => {
  const [english, ...others] = ["docs/start.md", "docs/es/start.md", "docs/pt/start.md"].map((path) =>
    guides().find((page) => page.path === path)!
  );
  const told = (page: Page) => ({
    commands: shellBlocks(page).flat().map(({ text }) => text),
    recipes: [...page.text.matchAll(/(recipes\/[\w-]+\.md)/g)].map(([path]) => path),
    headings: [...page.text.matchAll(/^#+ (?:\d\. )?/gm)].map(([mark]) => mark),
  });
  assert.ok(told(english!).recipes.length > 10);
  for (const other of others) assert.deepEqual(told(other), told(english!), other.path);
});

Deno.test("each proxy that is given lets the largest upload through, with the form around it", async () => {
  for (const name of ["Caddyfile", "Caddyfile.machines", "nginx.conf"]) {
    const text = await Deno.readTextFile(join(ROOT, "ops", name));
    const [, mebibytes] = /(?:max_size (?=\d+MiB$)|client_max_body_size (?=\d+m;))(\d+)/m.exec(text) ?? [];
    assert.ok(Number(mebibytes) > 100, `${name}: ${mebibytes}`);
  }
});

Deno.test("shell blocks are found with the line that each command ends on", () => {
  const page = {
    path: "a.md",
    text: "# A\n\n```sh\npaloma serve   # it runs\ncurl x \\\n  -d '{}'\n```\n\n```js\nx\n```\n",
  };
  assert.deepEqual(shellBlocks(page), [[
    { place: "a.md:4", text: "paloma serve" },
    { place: "a.md:6", text: "curl x   -d '{}'" },
  ]]);
});
