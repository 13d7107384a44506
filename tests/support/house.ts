/** The rules of the house as functions over its files: floors, circles, engines. */
import { join, relative } from "node:path";

export interface Source {
  /** Below `src/`, or `main.ts`. */
  path: string;
  /** Without comments. */
  code: string;
}

/** Every file of the house below the root of the repository. */
export function readHouse(root: string): Promise<Source[]> {
  return readFiles(root, ["src", "main.ts"]);
}

/** The files of these folders below the root, with paths as from inside `src/`: those of others begin with `../`. */
export async function readFiles(root: string, folders: readonly string[]): Promise<Source[]> {
  const found: Source[] = [];
  async function walk(folder: string): Promise<void> {
    for await (const entry of Deno.readDir(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory) await walk(path);
      else if (entry.name.endsWith(".ts")) await add(path, relative(join(root, "src"), path));
    }
  }
  async function add(file: string, path: string): Promise<void> {
    const text = await Deno.readTextFile(file);
    found.push({ path: path.replaceAll("\\", "/"), code: text.replaceAll(/\/\*[^]*?\*\/|(^|\s)\/\/.*$/gm, "") });
  }
  for (const folder of folders) {
    if (folder.endsWith(".ts")) await add(join(root, folder), folder);
    else await walk(join(root, folder));
  }
  return found;
}

/** What a file of the house exports and nobody imports: neither the house nor the readers beside it. */
export function idleExports(house: readonly Source[], readers: readonly Source[]): string[] {
  const read = new Set<string>();
  const whole = new Set<string>();
  for (const source of [...house, ...readers]) {
    for (
      const [, names, to] of source.code.matchAll(/\b(?:import|export)\s+(?:type\s)?\{([^}]*)\}\s*from\s*"(\.[^"]+)"/g)
    ) {
      const imported = names!.split(",").map((name) => name.trim().replace(/^type /, "").split(" ")[0]!);
      for (const name of imported) read.add(`${resolved(source.path, to!)} ${name}`);
    }
    for (const [, star, late] of source.code.matchAll(/\*[^;]*?from\s*"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"/g)) {
      whole.add(resolved(source.path, (star ?? late)!));
    }
  }
  const exported = /^export (?:abstract |async )*(?:function\*?|class|const|let|interface|type|enum) (\w+)/gm;
  return house.filter(({ path }) => !whole.has(path)).flatMap(({ path, code }) =>
    [...code.matchAll(exported)].map(([, name]) => `${path} ${name}`).filter((each) => !read.has(each))
  );
}

/** The path below `src/` that an import names. */
function resolved(from: string, to: string): string {
  const file = new URL(from === "main.ts" ? "file:///root/main.ts" : `file:///root/src/${from}`);
  return new URL(to, file).pathname.replace(/^\/root\/src\//, "");
}

/** The files of our own that a file imports or re-exports, types too, wherever that stands in the code. */
export function importsOf({ path, code }: Source): string[] {
  const file = new URL(path === "main.ts" ? "file:///main.ts" : `file:///src/${path}`);
  const pattern = /\b(?:(?:import|export)\s+(?:type\s)?[^"';]*?from\s*|import\s*\(?\s*)"(\.[^"]+)"/g;
  return [...code.matchAll(pattern)].map(([, to]) => new URL(to!, file).pathname.replace(/^\/src\//, ""));
}

/** The files that run once these have been imported: whatever is imported as a type, or on demand, is not. */
export function loadedBy(house: readonly Source[], entries: readonly string[]): Source[] {
  const sources = new Map(house.map((source) => [source.path, source]));
  const loaded = new Set<Source>();
  function load(path: string): void {
    const source = sources.get(path);
    if (!source || loaded.has(source)) return;
    loaded.add(source);
    for (const to of importsOf({ path, code: runningCode(source) })) load(to);
  }
  entries.forEach(load);
  return [...loaded];
}

/** Without the imports of types alone, and of what is loaded on demand. */
export function runningCode({ code }: Source): string {
  return code
    .replaceAll(/^(import|export) type\b[^;]*;/gm, "")
    .replaceAll(/^import \{(\s*type [^,}]+,?)+\s*\} from[^;]*;/gm, "")
    .replaceAll(/\bimport\(/g, "");
}

/** The folder at the top, or the file where there is none. */
export const roomOf = (path: string) => path.split("/")[0]!;

/** From the ground up; rooms on one floor do not import each other. */
export type Floors = readonly (readonly string[])[];

/** Files without a floor, and imports that go up or to a neighbour on the same floor. */
export function upwardImports(house: readonly Source[], floors: Floors): string[] {
  const floorOf = (path: string) => floors.findIndex((rooms) => rooms.includes(roomOf(path)));
  return house.flatMap((source) => {
    if (floorOf(source.path) === -1) return [`${source.path} has no floor`];
    return importsOf(source)
      .filter((to) => roomOf(to) !== roomOf(source.path) && floorOf(to) >= floorOf(source.path))
      .map((to) => `${source.path} imports ${to}`);
  });
}

/** Files that import each other in a circle, as one sorted list a circle (Tarjan's strongly connected components). */
export function circles(house: readonly Source[]): string[][] {
  const imports = new Map(house.map((source) => [source.path, importsOf(source)]));
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const found: string[][] = [];

  function visit(path: string): void {
    order.set(path, order.size);
    lowest.set(path, order.get(path)!);
    open.push(path);
    for (const to of imports.get(path) ?? []) {
      if (!order.has(to)) visit(to);
      if (open.includes(to)) lowest.set(path, Math.min(lowest.get(path)!, lowest.get(to)!));
    }
    if (lowest.get(path) !== order.get(path)) return;
    const circle = open.splice(open.indexOf(path));
    if (circle.length > 1 || imports.get(path)?.includes(path)) found.push(circle.sort());
  }

  for (const path of imports.keys()) if (!order.has(path)) visit(path);
  return found;
}

/** An engine behind a port: its folder, and the words by which the rest of the world is reached from there alone. */
export interface Engine {
  folder: string;
  names: RegExp;
  /** Rooms that may use the names for a purpose of their own. */
  besides?: readonly string[];
}

/** Files outside of an engine's folder that name it, the one that picks them aside. */
export function namedEngines(house: readonly Source[], engines: readonly Engine[], root = "engines.ts"): string[] {
  return engines.flatMap(({ folder, names, besides = [] }) =>
    house.filter(({ path }) => !path.startsWith(`${folder}/`)).flatMap((source) => {
      const imported = source.path === root ? [] : importsOf(source).filter((to) => to.startsWith(`${folder}/`));
      const named = names.test(source.code) && !besides.includes(roomOf(source.path));
      return [
        ...imported.map((to) => `${source.path} imports ${to}`),
        ...(named ? [`${source.path} names what belongs to ${folder}`] : []),
      ];
    })
  );
}
