import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Runtime, systemRuntime } from "../../../src/runtime.ts";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { Change, StoreError } from "../../../src/store/kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const WRITER = new URL("../../support/store_writer.ts", import.meta.url).pathname;
const runtime: Runtime = systemRuntime(testRuntime().log);

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  await run(temp.path);
}

/** Lines that a process writes to its stdout. */
async function* linesOf(process: Deno.ChildProcess): AsyncGenerator<string> {
  let rest = "";
  for await (const text of process.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

const writerCommand = (path: string, size: number) => [
  Deno.execPath(),
  "run",
  "-A",
  "--no-check",
  WRITER,
  path,
  String(size),
];

/** Runs the writer until the store refuses; what it said last. */
async function untilRefused(command: string[]): Promise<{ acknowledged: number; failed: string; readable: string }> {
  const process = new Deno.Command(command[0]!, { args: command.slice(1), stdout: "piped" }).spawn();
  let acknowledged = 0;
  let failed = "";
  let readable = "";
  for await (const line of linesOf(process)) {
    if (line.startsWith("done ")) acknowledged++;
    else if (line.startsWith("failed ")) failed = line.slice(7);
    else readable = line;
  }
  assert.equal((await process.status).code, 0, "the process lives");
  return { acknowledged, failed, readable };
}

Deno.test("the store's files are readable by their owner only", {
  ignore: Deno.build.os === "windows",
}, () =>
  withFolder(async (folder) => {
    const kv = await openDenoKv(join(folder, "data", "store.db"), { runtime });
    try {
      await kv.commit(new Change().set(["k"], 1));
      const modes = Array.from(Deno.readDirSync(join(folder, "data")), ({ name }) => {
        return [name, Deno.statSync(join(folder, "data", name)).mode! & 0o777];
      });
      assert.deepEqual(modes.toSorted(), [["store.db", 0o600], ["store.db-shm", 0o600], ["store.db-wal", 0o600]]);
      assert.equal(Deno.statSync(join(folder, "data")).mode! & 0o777, 0o700);
    } finally {
      kv.close();
    }
  }));

Deno.test("a killed process loses nothing that it acknowledged, and leaves no half commit", () =>
  withFolder(async (folder) => {
    for (const kills of [1, 300, 1_000]) {
      const path = join(folder, `store-${kills}.db`);
      const [command, ...args] = writerCommand(path, 100);
      const writer = new Deno.Command(command!, { args, stdout: "piped" }).spawn();
      const acknowledged: number[] = [];
      for await (const line of linesOf(writer)) {
        const number = /^done (\d+)$/.exec(line)?.[1];
        if (number !== undefined) acknowledged.push(Number(number));
        if (acknowledged.length === kills) writer.kill("SIGKILL");
      }
      assert.equal((await writer.status).signal, "SIGKILL");
      const kv = await openDenoKv(path, { runtime });
      try {
        const slots = await kv.getMany(acknowledged.map((number) => ["row", number]));
        assert.ok(slots.every((slot) => slot.version !== null), "every acknowledged row is there");
        let rows = 0n;
        for await (const _ of kv.list({ prefix: ["row"] })) rows++;
        assert.equal((await kv.get(["rows"])).value, rows, "rows and their counter agree");
      } finally {
        kv.close();
      }
    }
  }));

Deno.test("a file that another process holds locked is an error of its own kind, and passes", () =>
  withFolder(async (folder) => {
    const path = join(folder, "store.db");
    const kv = await openDenoKv(path, { runtime });
    const other = new DatabaseSync(path);
    try {
      await kv.commit(new Change().set(["k"], 1));
      other.exec("BEGIN IMMEDIATE");
      const [opened] = await Promise.all([
        untilRefused(writerCommand(path, 1)),
        assert.rejects(kv.commit(new Change().set(["k"], 2)), { name: "StoreError", code: "locked" }),
      ]);
      assert.deepEqual(opened, { acknowledged: 0, failed: "locked", readable: "readable 0 0" });
      assert.equal((await kv.get(["k"])).value, 1, "reading goes on");
      other.exec("ROLLBACK");
      assert.ok(await kv.commit(new Change().set(["k"], 3)));
    } finally {
      other.close();
      kv.close();
    }
  }));

Deno.test("the engine's index of what expires holds nothing else, and serves the engine's own queries", () =>
  withFolder(async (folder) => {
    const path = join(folder, "store.db");
    // As an earlier version made it, and still open.
    const native = await Deno.openKv(path);
    await native.set(["stays"], 1);
    await native.set(["expires"], 1, { expireIn: 60_000 });
    const kv = await openDenoKv(path, { runtime });
    try {
      await native.set(["stays too"], 1);
      await kv.commit(new Change().set(["new"], 1));
      using database = new DatabaseSync(path, { readOnly: true });
      const planOf = (sql: string) => {
        return database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => detail).join();
      };
      const indexed = "SELECT COUNT(*) AS n FROM kv INDEXED BY kv_expiration_ms_idx WHERE expiration_ms >= 0";
      assert.equal(database.prepare(indexed).get()?.n, 1);
      assert.match(planOf("delete from kv where expiration_ms >= 0 and expiration_ms <= 5"), /kv_expiration_ms_idx/);
      assert.match(
        planOf("select expiration_ms from kv where expiration_ms >= 0 order by expiration_ms limit 1"),
        /kv_expiration_ms_idx/,
      );
      // Only the rows that expire stand in it: it cannot answer for the others.
      assert.throws(
        () => database.prepare("SELECT k FROM kv INDEXED BY kv_expiration_ms_idx WHERE expiration_ms = -1"),
        /no query solution/,
      );
      for (const key of ["stays", "expires", "stays too", "new"]) assert.equal((await kv.get([key])).value, 1);
    } finally {
      kv.close();
      native.close();
    }
  }));

Deno.test("a store that was just opened reads, whoever locks the file the next moment", () =>
  withFolder(async (folder) => {
    // What an instance does by itself at first races with the lock: one opening may miss it.
    for (let opening = 0; opening < 20; opening++) {
      const path = join(folder, `store-${opening}.db`);
      const other = new DatabaseSync(path);
      const kv = await openDenoKv(path, { runtime });
      try {
        other.exec("BEGIN IMMEDIATE");
        const written = kv.commit(new Change().set(["k"], 1));
        const first = await Promise.race([kv.get(["k"]), written]);
        assert.deepEqual(first, { key: ["k"], value: null, version: null }, "before the write is given up");
        other.exec("ROLLBACK");
        assert.ok(await written);
      } finally {
        other.close();
        kv.close();
      }
    }
  }));

Deno.test("what is no store is an error, not a crash", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(join(folder, "store.db"), "not a database ".repeat(1000));
    await assert.rejects(openDenoKv(join(folder, "store.db"), { runtime }), StoreError);
    await Deno.writeTextFile(join(folder, "file"), "");
    await assert.rejects(openDenoKv(join(folder, "file", "store.db"), { runtime }), StoreError);
  }));

Deno.test("a store that may not grow any more refuses, keeps what it has, and the process lives", {
  ignore: Deno.build.os !== "linux",
}, () =>
  withFolder(async (folder) => {
    const limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 4000; exec "$0" "$@"'];
    const { acknowledged, failed, readable } = await untilRefused([
      ...limited,
      ...writerCommand(join(folder, "store.db"), 30_000),
    ]);
    assert.equal(failed, "unavailable");
    const [, rows, counted] = readable.split(" ");
    assert.equal(rows, counted, "no half commit");
    assert.ok(Number(rows) >= acknowledged && acknowledged > 0);
  }));

/** Whether this user may mount a small file system in a name space of its own. */
async function canMount(): Promise<boolean> {
  if (Deno.build.os !== "linux") return false;
  try {
    const mount = ["-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"];
    return (await new Deno.Command("unshare", { args: mount, stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}

Deno.test(
  "a full disk is an error of its own kind, and the process lives",
  { ignore: !await canMount() },
  () =>
    withFolder(async (folder) => {
      const mounted = ["unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=3m none "${folder}" && exec "$0" "$@"`];
      const { acknowledged, failed, readable } = await untilRefused([
        ...mounted,
        ...writerCommand(join(folder, "store.db"), 30_000),
      ]);
      assert.equal(failed, "full");
      const [, rows, counted] = readable.split(" ");
      assert.equal(rows, counted, "no half commit");
      assert.ok(Number(rows) >= acknowledged && acknowledged > 0);
    }),
);
