/**
 * Backups and restores on a real disk, with each call of the file system broken in turn. The runtime has no port between,
 * so its own functions are replaced. `killed` needs a process of its own: this file, run as a program.
 */
import { join, relative } from "node:path";
import { unlessMissing } from "../../src/base/files.ts";
import { backup, restore } from "../../src/data/backup.ts";
import type { DataPaths } from "../../src/data/data_folder.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { denoKvFiles as engine } from "../../src/store/deno_kv/file_engine.ts";
import { Change, type Kv, prefix } from "../../src/store/kv.ts";
import { quickKey, testRuntime } from "../../tests/support/runtime.ts";
import { tempFolder } from "../../tests/support/temp_folder.ts";
import { type Calls, DISK_FAULTS, type Fault } from "./faults.ts";
import type { Outcome, Trial } from "./journey.ts";

const runtime = systemRuntime(testRuntime().log);
const SEAL = { passphrase: "correct horse battery", random: runtime.random, keyOf: quickKey };
const SECRET = "a text that is nobody's to read";
const ROWS = 50;
const FILES = ["ab/med_1", "ab/med_2", "cd/med_3"];

const CALLS = ["open", "rename", "remove", "mkdir", "stat", "readDir", "chown"] as const;
const FILE_CALLS = ["write", "read", "sync", "stat"] as const;

/** Breaks the n-th call of the file system. `die` ends the process. */
export function breakDisk(fault: Fault, n: number, die = () => Deno.kill(Deno.pid, "SIGKILL")): Calls {
  let isDead = false;
  const calls: Calls = {
    count: 0,
    mend: () => mends.forEach((mend) => mend()),
    begin: () => void (isDead = false),
  };
  let isFull = true;
  calls.makeRoom = () => void (isFull = false);
  const broken = (name: string, given: unknown[]) => {
    if (fault === "full") {
      if (writes(name, given) && ++calls.count >= n && n > 0 && isFull) throw failure("ENOSPC", name);
      return;
    }
    // The dead tidy nothing up.
    if (!isDead && (++calls.count !== n || fault === "short")) return;
    if (!isDead && (fault === "killed" || fault === "dies")) {
      isDead = true;
      die();
    }
    throw failure(fault, name);
  };
  const mends = [...replaced(Deno, CALLS, broken), ...replaced(Deno.FsFile.prototype, FILE_CALLS, broken)];
  const { write } = Deno.FsFile.prototype;
  if (fault === "short") {
    Deno.FsFile.prototype.write = function (bytes) {
      return write.call(this, calls.count + 1 === n ? bytes.subarray(0, Math.ceil(bytes.length / 2)) : bytes);
    };
    mends.unshift(() => void (Deno.FsFile.prototype.write = write));
  }
  return calls;
}

const failure = (code: string, name: string) => Object.assign(new Error(`${code}: ${name} was broken`), { code });

/** Whether the call needs room. */
function writes(name: string, [, options]: unknown[]): boolean {
  const { create, createNew } = (options ?? {}) as Deno.OpenOptions;
  return name === "write" || name === "mkdir" || name === "open" && (create || createNew) === true;
}

type Before = (name: string, given: unknown[]) => void;

// deno-lint-ignore no-explicit-any
function replaced(of: any, names: readonly string[], before: Before): (() => void)[] {
  return names.map((name) => {
    const own = of[name];
    of[name] = function (...given: unknown[]) {
      // As a promise rejects, where it is one.
      try {
        before(name, given);
      } catch (error) {
        if (name === "readDir") throw error;
        return Promise.reject(error);
      }
      return own.apply(this, given);
    };
    return () => of[name] = own;
  });
}

const pathsIn = (folder: string): DataPaths => ({ store: join(folder, "store.db"), media: join(folder, "media") });

/** One try in the folder: the data are in `data`, the backup is `b`, and what is restored in `fresh`. */
async function work(name: Work, folder: string): Promise<void> {
  const [file, data, fresh] = [join(folder, "b"), pathsIn(join(folder, "data")), pathsIn(join(folder, "fresh"))];
  const seal = isSealed(name) ? SEAL : null;
  if (isRestore(name)) await restore(file, fresh, { engine, runtime, seal, mark: () => Promise.resolve() });
  else await backup(data, file, engine, { seal });
}

const WORKS = ["backup", "sealed backup", "restore", "sealed restore"] as const;
type Work = typeof WORKS[number];
const isSealed = (name: Work) => name.startsWith("sealed");
const isRestore = (name: Work) => name.endsWith("restore");

async function prepare(name: Work, folder: string): Promise<void> {
  const data = pathsIn(join(folder, "data"));
  await Deno.mkdir(join(folder, "data"));
  const kv = await openDenoKv(data.store, { runtime });
  for (let i = 0; i < ROWS; i++) await kv.commit(new Change().set(["row", i], `${SECRET} ${i}`));
  kv.close();
  for (const path of FILES) {
    await Deno.mkdir(join(data.media, path, ".."), { recursive: true });
    await Deno.writeTextFile(join(data.media, path), `${SECRET} ${path}`);
  }
  await Deno.mkdir(join(folder, "tmp"));
  if (isRestore(name)) await backup(data, join(folder, "b"), engine, { seal: isSealed(name) ? SEAL : null });
}

const EMPTY = " (empty)";

/** Files of the folder but the data, with whether they are empty, or a secret is readable in them. */
async function leftIn(folder: string, at = folder): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(at)) {
    const path = join(at, name);
    if (path === join(folder, "data")) continue;
    if (isDirectory) found.push(...await leftIn(folder, path));
    else {
      const text = await Deno.readTextFile(path);
      found.push(relative(folder, path) + (text === "" ? EMPTY : text.includes(SECRET) ? " (readable)" : ""));
    }
  }
  return found.sort();
}

async function run(name: Work, fault: Fault, n: number): Promise<Outcome> {
  await using temp = await tempFolder();
  const folder = temp.path;
  await prepare(name, folder);
  const before = await leftIn(folder);
  const left = new Map<string, number>();
  const count = (what: string) => left.set(what, (left.get(what) ?? 0) + 1);
  let calls = 0;
  let isDone = true;
  if (fault === "killed") {
    const args = ["run", "-A", "--no-check", import.meta.filename!, name, folder, String(n)];
    const env = { TMPDIR: join(folder, "tmp") };
    const { code, stdout } = await new Deno.Command(Deno.execPath(), { args, env, stderr: "null" }).output();
    isDone = code === 0;
    calls = Number(new TextDecoder().decode(stdout) || 0);
  } else {
    const disk = breakDisk(fault, n);
    await work(name, folder).catch(() => isDone = false);
    disk.mend();
    calls = disk.count;
  }
  const after = (await leftIn(folder)).filter((path) => !before.includes(path));
  if (!isDone) {
    for (const path of after.filter((path) => !mayStay(path, name, fault))) count(`left of a failure: ${path}`);
    if (fault === "killed" && isRestore(name)) await emptied(join(folder, "fresh"));
    // Killed when it had its name already, it is whole.
    isDone = after.some((path) => /^b( |$)/.test(path)) || await work(name, folder).then(() => true, () => false);
  }
  if (isDone) { for (const [what, number] of await heldBy(name, folder)) left.set(what, number); }
  return { calls, isDone, left };
}

/** What was killed can take nothing away, and the next try does; readable is only what was not to be sealed. */
function mayStay(path: string, name: Work, fault: Fault): boolean {
  if (path.startsWith(join("fresh", "gateway.lock"))) return true;
  if (fault !== "killed") return false;
  if (isRestore(name)) return path.startsWith("fresh") || path.startsWith("tmp") && path.endsWith(EMPTY);
  const named = path.replace(EMPTY, "");
  return isSealed(name) ? /^b(\.part(\.open)?)?$/.test(named) : /^b(\.part)?( \(readable\))?$/.test(named);
}

/** As its operator does after a restore that was killed, who is told so. */
async function emptied(folder: string): Promise<void> {
  await unlessMissing(Deno.remove(folder, { recursive: true }));
}

/** What the finished backup holds, by restoring it, and what else is there. */
async function heldBy(name: Work, folder: string): Promise<Map<string, number>> {
  const there = (await leftIn(folder)).filter((path) => !/^fresh|^tmp.* \(empty\)$/.test(path));
  const held = new Map(there.map((path): [string, number] => [path, 1]));
  const fresh = pathsIn(join(folder, "fresh"));
  if (!isRestore(name)) {
    const seal = isSealed(name) ? SEAL : null;
    await restore(join(folder, "b"), fresh, { engine, runtime, seal, mark: () => Promise.resolve() });
  }
  const kv = await openDenoKv(fresh.store, { runtime });
  held.set("rows", await rowsOf(kv));
  kv.close();
  for (const path of FILES) held.set(path, (await Deno.readTextFile(join(fresh.media, path))).length);
  return held;
}

async function rowsOf(kv: Kv): Promise<number> {
  return (await Array.fromAsync(kv.list({ prefix: prefix<string>("row") }))).length;
}

export const ON_DISK: readonly Trial[] = WORKS.map((name) => ({
  name,
  faults: DISK_FAULTS,
  run: (fault, n) => run(name, fault, n),
}));

if (import.meta.main) {
  const [name, folder, n] = Deno.args;
  const disk = breakDisk("killed", Number(n));
  await work(name as Work, folder!);
  console.log(disk.count);
}
