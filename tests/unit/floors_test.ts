/**
 * The house: each floor imports only floors below it, no files import each other in a circle, only `engines.ts` names an
 * engine, and time, chance and output come from `runtime.ts` alone.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  circles,
  type Engine,
  type Floors,
  idleExports,
  importsOf,
  loadedBy,
  namedEngines,
  readFiles,
  readHouse,
  roomOf,
  runningCode,
  type Source,
  upwardImports,
} from "../support/house.ts";

const ROOT = join(import.meta.dirname!, "..", "..");
const house = await readHouse(ROOT);

const FLOORS: Floors = [
  ["runtime.ts", "errors.ts", "shipped.ts"],
  ["base"],
  ["settings.ts"],
  ["config.ts"],
  ["store", "egress", "inspect", "sandbox"],
  ["cluster"],
  ["whatsapp", "account"],
  ["data"],
  ["event"],
  ["media"],
  ["chat"],
  ["message"],
  ["verification"],
  ["line", "webhook"],
  ["erasure"],
  ["ops"],
  ["http"],
  ["cloud", "mcp"],
  ["panel"],
  ["roles"],
  ["engines.ts"],
  ["app.ts"],
  ["cli"],
  ["main.ts"],
];

const ENGINES: Engine[] = [
  { folder: "store/deno_kv", names: /\bDeno\.openKv\b|"node:sqlite"/ },
  { folder: "store/postgres", names: /"pg"/ },
  // The simulated network encodes the wire with the same library; `docs/develop.md` says what stands against that.
  { folder: "whatsapp/baileys", names: /"@whiskeysockets\/baileys/, besides: ["sandbox"] },
];

/** What `paloma serve` loads before it listens: these, one after another on demand, and all that they import. */
const START = ["main.ts", "cli/run.ts", "cli/serve.ts", "ops/log.ts", "app.ts", "roles/role.ts"];
/** What it loads when something first needs it. */
const ON_DEMAND = new Set([
  "line/line_session.ts",
  "webhook/worker.ts",
  "ops/sweep_work.ts",
  "message/record.ts",
  "egress/safe_fetch.ts",
  "cluster/leases.ts",
  "base/phone_number.ts",
  "cloud/webhook_format.ts",
]);
/** Packages of many files. */
const DEAR = /^import (?!type ).*"commander"/m;
const SCHEMAS = /"(@hono\/zod-openapi|zod)"/;

/** What only `runtime.ts` may touch, and who else does. */
const CLOCK = /\bDate\.now\(|\bnew Date\(\)|\bset(Timeout|Interval)\(|\bperformance\.now\(/;
const CLOCK_EXCEPTIONS = [{ file: "inspect/file_facts.ts", why: "watches its own process, beside the gateway's" }];
const CHANCE = /\bMath\.random\(|\brandom(Bytes|Int|UUID)\(|\bgetRandomValues\(/;
const CONSOLE = /\bconsole\b/;
const CONSOLE_EXCEPTIONS = [
  { file: "ops/log.ts", why: "silences it for the whole process" },
  { file: "whatsapp/baileys/repairs/containment.ts", why: "keeps the Signal library off it" },
];

Deno.test("each floor imports only floors below it, types included", () => {
  assert.deepEqual(upwardImports(house, FLOORS), []);
  const checked = house.flatMap(importsOf).length;
  assert.ok(checked > 500, `only ${checked} imports were found`);
});

Deno.test("no files import each other in a circle, types included", () => {
  assert.deepEqual(circles(house), []);
});

Deno.test("nothing is exported that nobody imports", async () => {
  const readers = await readFiles(ROOT, ["tests", "scripts"]);
  assert.deepEqual(idleExports(house, readers), []);
  const planted = { path: "base/idle.ts", code: "export const idle = 1;" };
  assert.deepEqual(idleExports([...house, planted], readers), ["base/idle.ts idle"]);
});

Deno.test("only engines.ts names an engine", () => {
  assert.deepEqual(namedEngines(house, ENGINES), []);
});

Deno.test("a start loads no schemas (decision 0024)", () => {
  const withSchemas = (from: readonly Source[]) =>
    loadedBy(from, START).filter((source) => SCHEMAS.test(runningCode(source))).map(({ path }) => path);
  assert.deepEqual(withSchemas(house), []);
  const planted = house.map((source) =>
    source.path === "roles/role.ts" ? { ...source, code: `${source.code}import "../http/server.ts";` } : source
  );
  assert.ok(withSchemas(planted).includes("http/api/schemas.ts"));
});

Deno.test("a start loads nothing that only lines, webhooks, sweeps, the way out or other processes need (decision 0024)", () => {
  const loaded = (from: readonly Source[]) => loadedBy(from, START);
  const early = (from: readonly Source[]) => loaded(from).map(({ path }) => path).filter((path) => ON_DEMAND.has(path));
  assert.deepEqual(early(house), []);
  assert.deepEqual(loaded(house).filter((source) => DEAR.test(runningCode(source))).map(({ path }) => path), []);
  const planted = house.map((source) =>
    source.path === "roles/worker.ts" ? { ...source, code: `${source.code}import "../line/line_session.ts";` } : source
  );
  assert.ok(early(planted).includes("line/line_session.ts"));
});

Deno.test("the simulated network shares no code of ours with what talks to it", () => {
  const rooms = (source: Source, to: string) => [roomOf(source.path), roomOf(to)];
  const shared = house.flatMap((source) =>
    importsOf(source)
      .filter((to) => rooms(source, to).includes("sandbox") && rooms(source, to).includes("whatsapp"))
      .map((to) => `${source.path} imports ${to}`)
  );
  assert.deepEqual(shared, []);
});

Deno.test("time, chance and output come from runtime.ts alone", () => {
  const found: string[] = [];
  for (const { path, code } of house) {
    if (path === "runtime.ts") continue;
    const hasClock = CLOCK.test(code) && !CLOCK_EXCEPTIONS.some(({ file }) => file === path);
    if (hasClock || CHANCE.test(code)) found.push(`${path} has a clock or chance of its own`);
    if (CONSOLE.test(code) && !CONSOLE_EXCEPTIONS.some(({ file }) => file === path)) found.push(`${path} prints`);
  }
  assert.deepEqual(found, []);
});

Deno.test("a planted upward import, circle or engine is found", () => {
  const planted = (path: string, code: string) => [...house, { path, code }];
  const found = (before: readonly unknown[], after: readonly unknown[]) => after.length - before.length;
  for (
    const [path, code, says] of [
      ["store/up.ts", 'import { makeLines } from "../line/lines.ts";', "store/up.ts imports line/lines.ts"],
      ["store/up.ts", 'import type { Line } from "../line/line.ts";', "store/up.ts imports line/line.ts"],
      ["event/up.ts", 'const late = await import("../app.ts");', "event/up.ts imports app.ts"],
      ["line/over.ts", 'export * from "../webhook/signature.ts";', "line/over.ts imports webhook/signature.ts"],
      ["attic/new.ts", "", "attic/new.ts has no floor"],
    ] as const
  ) assert.ok(upwardImports(planted(path, code), FLOORS).includes(says), says);

  const ring = [
    { path: "base/a.ts", code: 'import { b } from "./b.ts";' },
    { path: "base/b.ts", code: 'import type { C } from "./c.ts";' },
    { path: "base/c.ts", code: 'import type { A } from "./a.ts";' },
    { path: "base/d.ts", code: 'import { a } from "./a.ts";' },
  ];
  assert.ok(circles([...house, ...ring]).some((circle) => circle.join() === "base/a.ts,base/b.ts,base/c.ts"));
  assert.equal(circles([...house, ...ring.slice(1)]).length, circles(house).length, "a chain is no circle");

  for (
    const [path, code] of [
      ["ops/engine.ts", 'import { openDenoKv } from "../store/deno_kv/deno_kv.ts";'],
      ["store/engine.ts", 'import type { Connections } from "./deno_kv/deno_kv.ts";'],
      ["cli/engine.ts", 'import { DatabaseSync } from "node:sqlite";'],
      ["http/engine.ts", "const kv = await Deno.openKv();"],
      ["line/engine.ts", 'import { proto } from "@whiskeysockets/baileys";'],
    ] as const
  ) assert.equal(found(namedEngines(house, ENGINES), namedEngines(planted(path, code), ENGINES)), 1, path);
});
