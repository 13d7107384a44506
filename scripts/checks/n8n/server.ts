/** A real n8n: installed once, on a database of its own, driven by its command line and, as its editor does, by REST. */
import { join } from "node:path";
import { freePort } from "../../../tests/support/free_port.ts";
import { startPostgres } from "../../../tests/support/postgres.ts";
import { isThere, run, TOOLS } from "../programs.ts";
import { install, npm, PATH, QUIET } from "./package.ts";

/** The newest whose packages are all published. */
const N8N = "n8n@2.41.1";

// deno-lint-ignore no-explicit-any
type Json = any;

const OWNER = { email: "owner@shop.example", firstName: "Olga", lastName: "Owner", password: "Correct-horse-1" };

export interface N8n {
  url: string;
  /** Runs a command of n8n to its end. */
  command(...args: string[]): Promise<string>;
  /** Starts the server; resolves when it is ready. */
  start(): Promise<void>;
  /** A call of the editor, by the owner. */
  rest(method: string, path: string, body?: Json): Promise<Json>;
  /** As `kill -9` does. */
  kill(): Promise<void>;
  end(): Promise<void>;
}

/** `packed`: the node package as `npm pack` made it, installed as n8n installs a community package. */
export async function openN8n(packed: string): Promise<N8n> {
  const program = join(TOOLS, "n8n/server");
  await install(program, [N8N]);
  // The agent loads SQLite, whose binding is downloaded, or compiled by the headers of this machine's Node.js.
  if (!await isThere(join(program, "node_modules/sqlite3/build"))) {
    const headers: Record<string, string> = await isThere("/usr/include/node") ? { npm_config_nodedir: "/usr" } : {};
    await run(program, "npm", ["rebuild", "sqlite3"], { PATH, ...headers });
  }
  const home = await Deno.makeTempDir({ prefix: "n8n-" });
  const nodes = join(home, ".n8n/nodes");
  await Deno.mkdir(nodes, { recursive: true });
  await npm(nodes, "install", ...QUIET, "--omit=peer", "--legacy-peer-deps", packed);

  const database = await startPostgres();
  await database.sql("create database n8n");
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const script = join(program, "node_modules/n8n/bin/n8n");
  const env = {
    PATH,
    HOME: home,
    N8N_USER_FOLDER: home,
    DB_TYPE: "postgresdb",
    DB_POSTGRESDB_HOST: "127.0.0.1",
    DB_POSTGRESDB_PORT: String(database.port),
    DB_POSTGRESDB_USER: "paloma",
    DB_POSTGRESDB_DATABASE: "n8n",
    N8N_PORT: String(port),
    N8N_LISTEN_ADDRESS: "127.0.0.1",
    N8N_WEBHOOK_URL: `${url}/`,
    N8N_RUNNERS_BROKER_PORT: String(freePort()),
    N8N_SECURE_COOKIE: "false",
    N8N_ENCRYPTION_KEY: "of this check",
    // Else it is made at the first start of each process, and a sign-in of one is none to the other.
    N8N_USER_MANAGEMENT_JWT_SECRET: "of this check too",
    N8N_DIAGNOSTICS_ENABLED: "false",
    N8N_VERSION_NOTIFICATIONS_ENABLED: "false",
    N8N_TEMPLATES_ENABLED: "false",
    N8N_DISABLED_MODULES: "mcp-registry",
    NO_COLOR: "1",
  };
  let server: Deno.ChildProcess | null = null;
  let cookie = "";

  async function ask(method: string, path: string, body?: Json): Promise<Response> {
    const headers = { "content-type": "application/json", cookie, "browser-id": "check" };
    const answer = await fetch(`${url}/rest${path}`, { method, headers, body: body && JSON.stringify(body) });
    const [set] = answer.headers.getSetCookie().filter((set) => set.startsWith("n8n-auth="));
    if (set) cookie = set.split(";")[0]!;
    return answer;
  }

  async function rest(method: string, path: string, body?: Json): Promise<Json> {
    let answer = await ask(method, path, body);
    if (answer.status === 401) {
      await answer.body?.cancel();
      const login = await ask("POST", "/login", { emailOrLdapLoginId: OWNER.email, password: OWNER.password });
      if (!login.ok) throw new Error(`n8n refused the sign-in with ${login.status}: ${await login.text()}`);
      await login.body?.cancel();
      answer = await ask(method, path, body);
    }
    const text = await answer.text();
    if (!answer.ok) throw new Error(`n8n answered ${method} ${path} with ${answer.status}: ${text}`);
    return JSON.parse(text).data;
  }

  return {
    url,
    command: (...args) => run(home, "node", [script, ...args], env),
    rest,
    async kill() {
      server!.kill("SIGKILL");
      await server!.status;
      server = null;
    },
    async start() {
      const started = new Deno.Command("node", {
        args: [script, "start"],
        cwd: home,
        env: { ...env, N8N_LOG_FORMAT: "json" },
        clearEnv: true,
        stdin: "null",
        stdout: "piped",
        stderr: "inherit",
      }).spawn();
      server = started;
      const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
      let written = "";
      started.stdout.pipeThrough(new TextDecoderStream()).pipeTo(
        new WritableStream({
          write(text) {
            written += text;
            if (written.includes("Editor is now accessible")) resolve();
          },
        }),
      );
      started.status.then(({ code }) => reject(new Error(`n8n ended with ${code}:\n${written.slice(-3_000)}`)));
      await ready;
      if (!cookie) await rest("POST", "/owner/setup", OWNER);
    },
    async end() {
      server?.kill("SIGTERM");
      await server?.status;
      await database.remove();
      await Deno.remove(home, { recursive: true });
    },
  };
}
