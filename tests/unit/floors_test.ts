/** The house: each floor imports only floors below it, and time, chance and output come from `runtime.ts` alone. */
import assert from "node:assert/strict";
import { join, relative } from "node:path";

const ROOT = join(import.meta.dirname!, "..", "..");

/** From the ground up. Neighbours on one floor do not import each other. */
const FLOORS = [
  ["runtime.ts", "errors.ts", "version.ts"],
  ["base"],
  ["config.ts"],
  ["store", "egress", "sandbox"],
  ["whatsapp", "account"],
  ["data"],
  ["event"],
  ["media"],
  ["message"],
  ["line", "webhook"],
  ["ops"],
  ["http"],
  ["panel"],
  ["app.ts"],
  ["cli"],
  ["main.ts"],
];

/** Imports that go up, each with its reason. */
const EXCEPTIONS: { file: string; typesOnly: boolean; why: string }[] = [
  { file: "message/record.ts", typesOnly: false, why: "reads the name of the line" },
  { file: "message/receipts.ts", typesOnly: false, why: "reads the name of the line" },
];

/** What only `runtime.ts` may touch, and who else does. */
const CLOCK = /\bDate\.now\(|\bnew Date\(\)|\bset(Timeout|Interval)\(|\bperformance\.now\(/;
const CHANCE = /\bMath\.random\(|\brandom(Bytes|Int|UUID)\(|\bgetRandomValues\(/;
const CONSOLE = /\bconsole\b/;
const CONSOLE_EXCEPTIONS = [
  { file: "ops/log.ts", why: "silences it for the whole process" },
  { file: "whatsapp/baileys/repairs/quiet_libsignal.ts", why: "keeps the Signal library off it" },
];

interface Source {
  /** Below `src/`, or `main.ts`. */
  path: string;
  /** Without comments. */
  code: string;
}

async function sources(): Promise<Source[]> {
  const found: Source[] = [];
  async function walk(folder: string): Promise<void> {
    for await (const entry of Deno.readDir(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory) await walk(path);
      else if (entry.name.endsWith(".ts")) await add(path, relative(join(ROOT, "src"), path));
    }
  }
  async function add(file: string, path: string): Promise<void> {
    const text = await Deno.readTextFile(file);
    found.push({ path: path.replaceAll("\\", "/"), code: text.replaceAll(/\/\*[^]*?\*\/|(^|\s)\/\/.*$/gm, "") });
  }
  await walk(join(ROOT, "src"));
  await add(join(ROOT, "main.ts"), "main.ts");
  return found;
}

interface Import {
  /** Below `src/`. */
  to: string;
  typeOnly: boolean;
}

/** Imports and re-exports of files of our own, those in the middle of the code too. */
function importsOf({ path, code }: Source): Import[] {
  const file = new URL(path === "main.ts" ? "file:///main.ts" : `file:///src/${path}`);
  const pattern = /\b(?:(?:import|export)\s+(type\s)?[^"';]*?from\s*|import\s*\(?\s*)"(\.[^"]+)"/g;
  return [...code.matchAll(pattern)].map(([, type, to]) => ({
    to: new URL(to!, file).pathname.replace(/^\/src\//, ""),
    typeOnly: type !== undefined,
  }));
}

const roomOf = (path: string) => path.split("/")[0]!;
const floorOf = (path: string) => FLOORS.findIndex((rooms) => rooms.includes(roomOf(path)));

Deno.test("everything in src stands on a floor", async () => {
  for (const { path } of await sources()) assert.notEqual(floorOf(path), -1, `${path} has no floor`);
});

Deno.test("each floor imports only floors below it", async () => {
  const upward: string[] = [];
  const needed = new Set<string>();
  let checked = 0;
  for (const source of await sources()) {
    for (const { to, typeOnly } of importsOf(source)) {
      checked++;
      if (roomOf(to) === roomOf(source.path) || floorOf(to) < floorOf(source.path)) continue;
      const exception = EXCEPTIONS.find(({ file, typesOnly }) => file === source.path && (typeOnly || !typesOnly));
      if (exception) needed.add(exception.file);
      else upward.push(`${source.path} imports ${to}`);
    }
  }
  assert.deepEqual(upward, []);
  assert.equal(needed.size, EXCEPTIONS.length, "an exception is not needed any more");
  assert.ok(checked > 500, `only ${checked} imports were found`);
});

Deno.test("the simulated network shares no code with what talks to it", async () => {
  const shared: string[] = [];
  for (const source of await sources()) {
    for (const { to } of importsOf(source)) {
      const rooms = [roomOf(source.path), roomOf(to)];
      if (rooms.includes("sandbox") && rooms.includes("whatsapp")) shared.push(`${source.path} imports ${to}`);
    }
  }
  assert.deepEqual(shared, []);
});

Deno.test("time, chance and output come from runtime.ts alone", async () => {
  const found: string[] = [];
  for (const { path, code } of await sources()) {
    if (path === "runtime.ts") continue;
    if (CLOCK.test(code) || CHANCE.test(code)) found.push(`${path} has a clock or chance of its own`);
    if (CONSOLE.test(code) && !CONSOLE_EXCEPTIONS.some(({ file }) => file === path)) found.push(`${path} prints`);
  }
  assert.deepEqual(found, []);
});
