/**
 * Runs a command with a PostgreSQL server under the gateways of its tests:
 * `deno run -A tests/support/with_postgres.ts deno test -A tests/journey/kill_test.ts`.
 */
import { startPostgres } from "./postgres.ts";

const server = await startPostgres({ fsync: "off", max_connections: "300" });
try {
  const [program, ...args] = Deno.args;
  const env = { PALOMA_TEST_STORE: await server.database() };
  const { code } = await new Deno.Command(program!, { args, env, stdin: "null", stdout: "inherit", stderr: "inherit" })
    .output();
  Deno.exitCode = code;
} finally {
  await server.remove();
}
