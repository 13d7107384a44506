/**
 * No pattern of the source can be made to backtrack: whoever sends the text chooses how long it takes. The checker takes
 * a minute of the processor for all of them, and says the same each time: those that it found linear are listed in
 * `tests/fixtures/linear_patterns.txt`, and only what is new is checked. With `-- --list` all are, and the list is
 * written.
 */
import assert from "node:assert/strict";
import { join, relative } from "node:path";
import type { checkSync } from "recheck";
// The package's own entry starts a Java or native program where there is one; this one is JavaScript alone.
import { namesOf } from "../../src/whatsapp/person.ts";
import recheck from "recheck/lib/browser.js";
import config from "../../deno.json" with { type: "json" };

/** The version of the checker, and a line for each pattern that it found linear. */
const LIST = join(import.meta.dirname!, "..", "fixtures", "linear_patterns.txt");
const checker = config.imports.recheck;
const SOURCE = join(import.meta.dirname!, "..", "..", "src");
const check = (recheck as unknown as { checkSync: typeof checkSync }).checkSync;
/** Steps alone decide, of random numbers from one seed: by its clock it calls a pattern vulnerable on a busy machine. */
const LIMITS = { timeout: null, incubationTimeout: null, attackTimeout: null };

/** Patterns that are put together while the program runs: of constants, or of what is checked beside them. */
const PUT_TOGETHER = [
  "event/event_log.ts",
  "http/api/schemas.ts",
  "http/app.ts",
  "http/docs/web/colours.js",
  "http/docs/web/find.js",
  "http/resources/events.ts",
  "panel/api/roles.ts",
  "panel/web/routes.js",
  "verification/code.ts",
  "whatsapp/person.ts",
];

interface Pattern {
  file: string;
  source: string;
  flags: string;
}

/** The patterns of a file, as Deno's own parser finds them. */
function patternsOf(file: string, text: string): { literal: Pattern[]; putTogether: string[] } {
  const literal: Pattern[] = [];
  const putTogether: string[] = [];
  const rule: Deno.lint.Rule = {
    create: () => ({
      Literal(node) {
        if ("regex" in node && node.regex) literal.push({ file, source: node.regex.pattern, flags: node.regex.flags });
      },
      NewExpression({ callee }) {
        if (callee.type === "Identifier" && callee.name === "RegExp") putTogether.push(file);
      },
    }),
  };
  Deno.lint.runPlugin({ name: "patterns", rules: { all: rule } }, `${file}.ts`, text);
  return { literal, putTogether };
}

async function* filesOf(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) yield* filesOf(path);
    else if (/\.(ts|js)$/.test(name)) yield path;
  }
}

/** Why the pattern may take long; null when it cannot. */
function fault({ source, flags }: Pattern): string | null {
  const found = check(source, flags, LIMITS);
  if (found.status === "safe") return null;
  return found.status === "vulnerable" ? found.complexity.summary : found.status;
}

Deno.test("no pattern of the source takes more than linear time", async () => {
  const patterns = new Map<string, Pattern>();
  const putTogether: string[] = [];
  const add = (pattern: Pattern) => patterns.set(`/${pattern.source}/${pattern.flags}`, pattern);
  for await (const path of filesOf(SOURCE)) {
    const file = relative(SOURCE, path).replaceAll("\\", "/");
    const found = patternsOf(file, await Deno.readTextFile(path));
    found.literal.forEach(add);
    putTogether.push(...found.putTogether);
  }
  // Looked for in what strangers wrote.
  const { source, flags } = namesOf({ number: "33333333333", lids: ["123456789012345@lid"] });
  add({ file: "whatsapp/person.ts", source, flags });

  const [by, ...linear] = (await Deno.readTextFile(LIST)).split("\n");
  const isListed = by === checker && !Deno.args.includes("--list") ? new Set(linear) : new Set();
  const faults = [...patterns].flatMap(([shown, pattern]) => {
    const why = isListed.has(shown) ? null : fault(pattern);
    return why === null ? [] : [`${pattern.file}: ${shown}: ${why}`];
  });
  assert.deepEqual(faults, []);
  assert.ok(patterns.size > 80, `only ${patterns.size} patterns were found`);
  assert.deepEqual([...new Set(putTogether)].sort(), PUT_TOGETHER);
  if (Deno.args.includes("--list")) {
    await Deno.writeTextFile(LIST, [checker, ...[...patterns.keys()].sort(), ""].join("\n"));
  }
});

Deno.test("a pattern that backtracks is found", () => {
  const { literal } = patternsOf(
    "planted",
    String.raw`const file = /[^/\\.\s][^/\\]*$/, value = /:[ \t]*(.*?)[ \t]*$/;`,
  );
  assert.deepEqual(literal.map(fault), ["2nd degree polynomial", "3rd degree polynomial"]);
});
