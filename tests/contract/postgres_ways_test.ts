/** The ways to a PostgreSQL that are not a plain connection: over TLS, and through a pooler that shares sessions. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Change, StoreError } from "../../src/store/kv.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { startPooler, WITHOUT_POOLER } from "../support/pooler.ts";
import { startPostgres, WITHOUT_POSTGRES } from "../support/postgres.ts";
import { testRuntime } from "../support/runtime.ts";
import { until } from "../support/until.ts";
import { tempFolder } from "../support/temp_folder.ts";

const open = (url: string, seed = 1) => openPostgres(url, { runtime: testRuntime(seed) });

const SERVERS = import.meta.resolve("../../src/store/postgres/connections.ts");

Deno.test({
  name: "PostgreSQL over TLS: the server's certificate is checked against the one that the URL names",
  ignore: WITHOUT_POSTGRES,
  async fn() {
    await using temp = await tempFolder();
    const folder = temp.path;
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
    const made = [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      ...subject,
      "-keyout",
      key,
      "-out",
      cert,
    ];
    assert.ok((await new Deno.Command("openssl", { args: made, stderr: "null" }).output()).success);
    // The server takes a key that is its own, or root's and readable by its group.
    if (Deno.uid() === 0) await new Deno.Command("chown", { args: ["-R", "postgres", folder] }).output();
    const server = await startPostgres({ fsync: "off", ssl: "on", ssl_cert_file: cert, ssl_key_file: key });
    try {
      const url = await server.database();
      const kv = await open(`${url}?sslmode=verify-full&sslrootcert=${cert}`);
      assert.ok(await kv.commit(new Change().set(["k"], "sealed on its way")));
      const encrypted = "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) " +
        "where application_name = 'paloma'";
      assert.equal(await server.sql(encrypted), "t");
      kv.close();
      for (const mode of ["verify-full", "require"]) {
        await assert.rejects(
          open(`${url}?sslmode=${mode}`),
          (error) => error instanceof StoreError && /self-signed/.test(error.message),
          "nobody vouches for it",
        );
      }
      const script = `const { serversOf } = await import(${JSON.stringify(SERVERS)});
        const { default: pg } = await import("pg");
        for (const url of serversOf("${url}?sslmode=require").urls) new pg.Client(url);`;
      const { success, stderr } = await new Deno.Command(Deno.execPath(), { args: ["eval", "--no-check", script] })
        .output();
      assert.deepEqual([success, new TextDecoder().decode(stderr)], [true, ""], "no warning on the terminal");
    } finally {
      await server.remove();
    }
  },
});

Deno.test({
  name: "PostgreSQL behind a pooler of transactions: commits, reads and orders are whole on two shared sessions",
  ignore: WITHOUT_POSTGRES || WITHOUT_POOLER,
  async fn() {
    const server = await startPostgres();
    try {
      await using pooler = await startPooler(await server.database());
      const [a, b] = [await open(pooler.url, 1), await open(pooler.url, 2)];
      const sequence = ["sequence"];
      const write = (i: number) =>
        new Change().set(["row", i], i).add(["n"], 1).ordered(sequence, (order) => [
          { kind: "set", key: ["in order", order], value: i },
        ]);
      const versions = await Promise.all(Array.from({ length: 200 }, (_, i) => (i % 2 ? a : b).commit(write(i))));
      assert.ok(versions.every((version) => version !== null));
      const [rows, ordered] = await Promise.all([
        Array.fromAsync(a.list({ prefix: ["row"] })),
        Array.fromAsync(b.list({ prefix: ["in order"] })),
      ]);
      assert.deepEqual([rows.length, ordered.length, (await a.get(["n"])).value], [200, 200, 200n]);
      assert.equal(await a.commit(new Change().checkAbsent(["row", 1]).set(["row", 1], "late")), null);

      // Of the pooler's sessions; who asks next gets new ones.
      await server.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'paloma' and pid <> pg_backend_pid()",
      );
      await until(() => b.get(["n"]).then(() => true, () => null), "a new session");
      assert.ok(await b.commit(new Change().add(["n"], 1)));
      assert.equal((await a.get(["n"])).value, 201n);
      a.close();
      b.close();
    } finally {
      await server.remove();
    }
  },
});
