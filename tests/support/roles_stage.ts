/** APIs and workers, each a process, on one shared store and the simulated network. */
import { fileURLToPath } from "node:url";
import { type Client, GIVE_UP_AFTER_MS, httpClient, type Json, linkByQr } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { type SandboxNetwork, startNetwork } from "../../src/sandbox/network.ts";
import { runCommand, startCommand, type Started } from "./gateway_process.ts";
import { startDenoKv, TOKEN } from "./denokv.ts";
import { startPostgres } from "./postgres.ts";
import { until } from "./until.ts";
import { silentRuntime } from "./runtime.ts";

const DEPLOY = fileURLToPath(new URL("../../deploy.ts", import.meta.url));

export interface Process extends Started {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
}

/** The server of a shared store. */
interface StoreServer {
  url: string;
  /** Cuts the connections that there are. */
  cut(): Promise<unknown>;
  restart(): Promise<void>;
  /** SIGQUIT or SIGKILL: nobody answers any more. */
  halt(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

const STORES = {
  async postgres(): Promise<StoreServer> {
    const server = await startPostgres();
    const cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'paloma%'";
    return { ...server, url: await server.database(), cut: () => server.sql(cut) };
  },
  async denokv(): Promise<StoreServer> {
    const server = await startDenoKv();
    // Nothing but its end cuts the connections of one.
    return { ...server, cut: () => server.restart() };
  },
};

export type StoreName = keyof typeof STORES;

export class RolesStage {
  readonly processes = new Set<Process>();
  /** Every process there was, in the order in which they came. */
  readonly started: Process[] = [];
  apiKey = "";

  private constructor(
    readonly network: SandboxNetwork,
    readonly store: StoreServer,
    readonly env: Record<string, string>,
    readonly control: Client,
  ) {}

  /** `env`: settings of all processes beside those of the stage. */
  static async open(
    storeName: StoreName = "postgres",
    env: Readonly<Record<string, string>> = {},
  ): Promise<RolesStage> {
    const network = await startNetwork({ runtime: silentRuntime(), refresh: false });
    const store = await STORES[storeName]();
    const folder = await Deno.makeTempDir({ prefix: "paloma-roles-" });
    const ca = `${folder}/ca.pem`;
    await Deno.writeTextFile(ca, network.caPem);
    const stage = new RolesStage(network, store, {
      PALOMA_STORE: store.url,
      DENO_KV_ACCESS_TOKEN: TOKEN,
      PALOMA_SECRET_KEY: "a secret that all machines share",
      PALOMA_DATA_DIR: folder,
      PALOMA_WHATSAPP_URL: network.url,
      PALOMA_WHATSAPP_ROOT_KEY: network.rootKey,
      PALOMA_WHATSAPP_MEDIA_URL: network.mediaUrl,
      PALOMA_WHATSAPP_CA: ca,
      PALOMA_OUTBOUND_ALLOW: "127.0.0.0/8,localhost",
      PALOMA_LOG_LEVEL: "debug",
      PALOMA_PORT: "0",
      ...env,
    }, httpClient(network.controlUrl));
    await runCommand(
      ["plan", "set", "roles", "--sessions", "100", "--delay-min", "0s", "--delay-max", "0s"]
        .concat("--requests-per-minute", "none"),
      stage.env,
    );
    const made = await runCommand(["account", "create", "--name", "acme", "--plan", "roles", "--json"], stage.env);
    stage.apiKey = JSON.parse(made).apiKey;
    return stage;
  }

  async start(role: "api" | "worker" | "serve"): Promise<Process> {
    const started = await startCommand([role, "--json"], this.env);
    const said = JSON.parse(started.line);
    const process = Object.assign(started, { url: said.url ?? said.baseUrl.replace(/\/v1$/, "") });
    this.processes.add(process);
    this.started.push(process);
    return process;
  }

  /** `deploy.ts` on that port, under a host that lets it write, run and load nothing; resolves when it answers. */
  async startHandler(port: number): Promise<{ url: string; end(): Promise<void> }> {
    const denied = ["--deny-write", "--deny-run", "--deny-ffi"];
    const handler = new Deno.Command(Deno.execPath(), {
      args: ["serve", "--no-check", "-A", ...denied, "--host", "127.0.0.1", "--port", String(port), DEPLOY],
      env: { ...this.env, PALOMA_DATA_DIR: "/nowhere/at/all" },
      stdout: "null",
      stderr: "null",
    }).spawn();
    const url = `http://127.0.0.1:${port}`;
    const answers = () => fetch(`${url}/healthz`).then((answer) => answer.text(), () => null);
    await until(answers, "a handler that answers");
    return {
      url,
      async end() {
        handler.kill("SIGKILL");
        await handler.status;
      },
    };
  }

  async end(process: Process, signal: Deno.Signal): Promise<number> {
    this.processes.delete(process);
    return await process.end(signal);
  }

  client({ url }: Pick<Process, "url">): Client {
    return httpClient(`${url}/v1`, { "x-api-key": this.apiKey });
  }

  /** Lines that are linked and connected. */
  async linkLines(api: Client, numbers: readonly string[]): Promise<Map<string, string>> {
    const lines = new Map<string, string>();
    for (const number of numbers) {
      await this.control.call("POST", "/phones", { number });
      const { data } = await api.call("POST", "/sessions", { name: `line ${number}` });
      await linkByQr(systemClock, { api, control: this.control, sessionId: data._id, phone: number });
      lines.set(number, data._id);
    }
    return lines;
  }

  /** How many leases on lines the worker has, by its own metrics. */
  async linesOf(worker: Process): Promise<number> {
    const text = await (await fetch(`${worker.url}/metrics`)).text();
    return Number(/^paloma_leases\{kind="line"\} (\d+)/m.exec(text)?.[1] ?? -1);
  }

  async metric(worker: Process, name: string): Promise<number> {
    const text = await (await fetch(`${worker.url}/metrics`, { signal: AbortSignal.timeout(GIVE_UP_AFTER_MS) })).text();
    return Number(new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1] ?? 0);
  }

  inbox(number: string): Promise<Json[]> {
    return this.control.call("GET", `/phones/${number}/messages`) as unknown as Promise<Json[]>;
  }

  async close(): Promise<void> {
    for (const process of this.processes) await process.end("SIGKILL");
    await this.network.close();
    await this.store.remove();
    await Deno.remove(this.env.PALOMA_DATA_DIR!, { recursive: true });
  }
}
