/**
 * Runs a command with what many machines share under the gateways of its tests, PostgreSQL and a bucket:
 * `deno run -A tests/support/with_servers.ts deno test -A tests/journey/kill_test.ts`.
 */
import { startPostgres } from "./postgres.ts";
import { s3Program, startS3 } from "./s3_server.ts";

await using servers = new AsyncDisposableStack();
const postgres = servers.adopt(
  await startPostgres({ fsync: "off", max_connections: "300" }),
  (server) => server.remove(),
);
const env: Record<string, string> = { PALOMA_TEST_STORE: await postgres.database() };
if (s3Program() === null) console.log("Files stay in the data folder: there is no versitygw here.");
else {
  const s3 = servers.adopt(await startS3(), (server) => server.remove());
  Object.assign(env, s3.env, { PALOMA_TEST_MEDIA: s3.env.PALOMA_MEDIA });
}
const [program, ...args] = Deno.args;
const command = new Deno.Command(program!, { args, env, stdin: "null", stdout: "inherit", stderr: "inherit" });
Deno.exitCode = (await command.output()).code;
