/** A PostgreSQL server for tests: Debian's, in a temporary folder, on a port of its own, gone with its handle. */
import { join } from "node:path";
import { freePort } from "./free_port.ts";
import { isFile } from "./tools.ts";

const PLACES = ["/usr/lib/postgresql", "/opt/homebrew/opt/postgresql@17", "/usr/local/pgsql"];

export interface PostgresServer {
  /** `postgres://…` of an empty database that nobody else has. */
  database(): Promise<string>;
  /** As `pg_ctl stop -m immediate` and a start: connections are cut, what was committed stays. */
  restart(): Promise<void>;
  /** SIGQUIT: connections are cut, and nobody answers any more. */
  halt(): Promise<void>;
  /** Does nothing where it runs. */
  start(): Promise<void>;
  /** Runs SQL as its superuser. */
  sql(text: string, database?: string): Promise<string>;
  port: number;
  /** Another server that follows this one, and takes no writes until it is promoted. */
  standby(): Promise<PostgresServer>;
  /** Halts it and removes its folder. */
  remove(): Promise<void>;
}

/** The folder of PostgreSQL's programs, the newest version first, or null where none is installed. */
export function postgresPrograms(): string | null {
  for (const place of PLACES) {
    try {
      const versions = [...Deno.readDirSync(place)].map(({ name }) => name).sort((a, b) => Number(b) - Number(a));
      for (const version of ["", ...versions]) {
        const folder = join(place, version, "bin");
        if (isFile(join(folder, "initdb"))) return folder;
      }
    } catch { /* Not here. */ }
  }
  return null;
}

/** What a test says where there is no PostgreSQL; `.ci/run` counts it as a failure. */
export const WITHOUT_POSTGRES = postgresPrograms() === null;

/** Makes a cluster and starts it. `settings` are those of `postgresql.conf`; by default nothing waits for the disk. */
export function startPostgres(settings: Readonly<Record<string, string>> = { fsync: "off" }): Promise<PostgresServer> {
  return startServer(settings, ["initdb", "-U", "paloma", "-A", "trust", "-E", "UTF8", "--locale", "C", "--no-sync"]);
}

/** `make`: the program, and its arguments, that makes the folder named by `-D`. */
async function startServer(
  settings: Readonly<Record<string, string>>,
  [program, ...make]: [string, ...string[]],
): Promise<PostgresServer> {
  const programs = postgresPrograms()!;
  const folder = await Deno.makeTempDir({ prefix: "paloma-postgres-" });
  // The server refuses to run as root.
  const owner: { uid?: number; gid?: number } = Deno.uid() === 0 ? await idsOf("postgres") : {};
  if (owner.uid !== undefined) await Deno.chown(folder, owner.uid, owner.gid ?? null);
  const data = join(folder, "data");
  const run = (program: string, ...args: string[]) =>
    output(new Deno.Command(join(programs, program), { args, cwd: folder, ...owner }));
  await run(program, "-D", data, ...make);
  const port = freePort();
  const options = { ...settings, listen_addresses: "127.0.0.1", port: String(port), unix_socket_directories: folder };
  let server: Deno.ChildProcess | null = null;
  let databases = 0;

  async function start(): Promise<void> {
    if (server !== null) return;
    const args = ["-D", data, ...Object.entries(options).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
    server = new Deno.Command(join(programs, "postgres"), {
      args,
      cwd: folder,
      ...owner,
      stdout: "null",
      stderr: "piped",
    })
      .spawn();
    const written = readUntil(server.stderr, /ready to accept (read-only )?connections/);
    if (!await written) throw new Error("PostgreSQL did not start");
  }

  async function halt(): Promise<void> {
    if (server === null) return;
    server.kill("SIGQUIT");
    await server.status;
    server = null;
  }

  const sql = (text: string, database = "postgres") =>
    run("psql", "-h", "127.0.0.1", "-p", String(port), "-U", "paloma", "-At", "-c", text, database);

  await start();
  return {
    async database() {
      const name = `paloma_${++databases}`;
      await sql(`create database ${name}`);
      return `postgres://paloma@127.0.0.1:${port}/${name}`;
    },
    async restart() {
      await halt();
      await start();
    },
    halt,
    start,
    sql,
    port,
    standby: () =>
      startServer(settings, [
        "pg_basebackup",
        "-d",
        `postgres://paloma@127.0.0.1:${port}`,
        "-R",
        "-c",
        "fast",
        "--no-sync",
      ]),
    async remove() {
      await halt();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function idsOf(user: string): Promise<{ uid: number; gid: number }> {
  const id = async (flag: string) => Number(await output(new Deno.Command("id", { args: [flag, user] })));
  return { uid: await id("-u"), gid: await id("-g") };
}

async function output(command: Deno.Command): Promise<string> {
  const { success, stdout, stderr } = await command.output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout).trim();
}

/** Whether the text comes; what follows it is read and dropped, so that the writer never waits. */
function readUntil(stream: ReadableStream<Uint8Array>, text: RegExp): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let seen = "";
  stream.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({
      write(part) {
        seen = (seen + part).slice(-4_000);
        if (text.test(seen)) resolve(true);
      },
      close: () => resolve(false),
    }),
  ).catch(() => resolve(false));
  return promise;
}
