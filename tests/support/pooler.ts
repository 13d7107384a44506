/** A PgBouncer in front of a test's PostgreSQL, which gives each transaction any of its few sessions. */
import { join } from "node:path";
import { freePort, listens } from "./free_port.ts";
import { until } from "./until.ts";

const PROGRAM = "/usr/sbin/pgbouncer";

/** What a test says where there is no pooler; `.ci/run` counts it as a failure. */
export const WITHOUT_POOLER = await Deno.stat(PROGRAM).then(() => false, () => true);

/** Resolves to the URL of the same database behind the pooler. */
export async function startPooler(database: string): Promise<AsyncDisposable & { url: string }> {
  const url = new URL(database);
  const folder = await Deno.makeTempDir({ prefix: "paloma-pooler-" });
  const port = freePort();
  const settings = [
    "[databases]",
    `* = host=127.0.0.1 port=${url.port} user=${url.username}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    "default_pool_size = 2",
  ];
  const file = join(folder, "pgbouncer.ini");
  await Deno.writeTextFile(file, settings.join("\n"));
  await Deno.chmod(folder, 0o755);
  // It refuses to run as root.
  const user = Deno.uid() === 0 ? ["-u", "postgres"] : [];
  const pooler = new Deno.Command(PROGRAM, { args: ["-q", ...user, file], stdout: "null", stderr: "null" }).spawn();
  await until(() => listens(port), "the pooler to listen");
  url.port = String(port);
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      pooler.kill("SIGKILL");
      await pooler.status;
      await Deno.remove(folder, { recursive: true });
    },
  };
}
