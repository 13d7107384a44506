/**
 * A whole product to test on: the simulated network in this process, a gateway as a process on it, an account, phones
 * and linked lines. What was sent and every key is remembered, so that the end can search the log for them.
 */
import assert from "node:assert/strict";
import { type Client, httpClient, type Json, linkByQr, until } from "../../src/cli/client.ts";
import { systemClock, systemRuntime } from "../../src/runtime.ts";
import { type SandboxNetwork, startNetwork } from "../../src/sandbox/network.ts";
import { type GatewayProcess, runCommand, startGatewayProcess } from "./gateway_process.ts";
import { findLeaks } from "./leaks.ts";
import pino from "pino";

export interface StageOptions {
  /** The plan of the account; a plan of its own is made when it has bounds. */
  plan?: { sessions?: number; daily?: number | "none"; monthly?: number | "none"; delayMin: string; delayMax: string };
  env?: Record<string, string>;
  /** The refresh stage of linking; on by default, as on the real network. */
  refresh?: boolean;
}

export interface LinkedLine {
  sessionId: string;
  number: string;
}

export interface Stage {
  readonly network: SandboxNetwork;
  readonly gateway: GatewayProcess;
  readonly env: Record<string, string>;
  readonly apiKey: string;
  readonly accountId: string;
  readonly api: Client;
  readonly control: Client;
  addPhone(number: string, name?: string): Promise<void>;
  /** Creates a session and has the phone of that number scan its QR until it is connected. */
  linkLine(number: string): Promise<LinkedLine>;
  /** Calls the API with the key and hands back the response whatever its status. */
  request(method: string, path: string, init?: RequestInit): Promise<Response>;
  inbox(number: string): Promise<Json[]>;
  /** Waits until the inbox holds a message that matches. */
  arrival(number: string, matches: (message: Json) => boolean): Promise<Json>;
  /** Waits until the message has this status. */
  status(messageId: string, status: string): Promise<Json>;
  /** Stops everything and fails if the log holds a key or a text. Texts that were sent are given as `secrets`. */
  end(secrets?: readonly string[]): Promise<void>;
}

export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const runtime = systemRuntime(pino({ level: "silent" }));
  const network = await startNetwork({ runtime, controlPort: 0, refresh: options.refresh ?? true });
  const dataDir = await Deno.makeTempDir({ prefix: "paloma-stage-" });
  const caFile = await Deno.makeTempFile({ prefix: "paloma-stage-", suffix: ".pem" });
  await Deno.writeTextFile(caFile, network.caPem);
  const env: Record<string, string> = {
    PALOMA_DATA_DIR: dataDir,
    PALOMA_WHATSAPP_URL: network.url,
    PALOMA_WHATSAPP_ROOT_KEY: network.rootKey,
    PALOMA_WHATSAPP_MEDIA_URL: network.mediaUrl,
    PALOMA_WHATSAPP_CA: caFile,
    PALOMA_OUTBOUND_ALLOW: "127.0.0.0/8,localhost",
    ...options.env,
  };
  let plan = "sandbox";
  if (options.plan) {
    plan = "staged";
    const { sessions = 10, daily = "none", monthly = "none", delayMin, delayMax } = options.plan;
    await runCommand([
      ...["plan", "set", plan, "--sessions", `${sessions}`, "--daily", `${daily}`, "--monthly", `${monthly}`],
      ...["--delay-min", delayMin, "--delay-max", delayMax, "--requests-per-minute", "none"],
    ], env);
  }
  const created = JSON.parse(await runCommand(["account", "create", "--name", "stage", "--plan", plan, "--json"], env));
  const gateway = await startGatewayProcess(env);
  const api = httpClient(gateway.baseUrl, { "x-api-key": created.apiKey });
  const control = httpClient(network.controlUrl);

  const stage: Stage = {
    network,
    gateway,
    env,
    apiKey: created.apiKey,
    accountId: created.accountId,
    api,
    control,
    addPhone: async (number, name = `Phone ${number}`) => void await control.call("POST", "/phones", { number, name }),
    async linkLine(number) {
      await stage.addPhone(number);
      const { data } = await api.call("POST", "/sessions", { name: `line ${number}` });
      await linkByQr(systemClock, { api, control, sessionId: data._id, phone: number });
      return { sessionId: data._id, number };
    },
    request: (method, path, init = {}) =>
      fetch(gateway.baseUrl + path, {
        ...init,
        method,
        headers: { "x-api-key": created.apiKey, ...init.headers as Record<string, string> },
      }),
    inbox: (number) => control.call("GET", `/phones/${number}/messages`),
    arrival: (number, matches) =>
      until(systemClock, async () => (await stage.inbox(number)).find(matches), { what: `a message at ${number}` }),
    status: (messageId, status) =>
      until(systemClock, async () => {
        const answer = await api.call("GET", `/messages/${messageId}/status`);
        return answer.status === status ? answer : null;
      }, { what: `status ${status} of ${messageId}` }),
    async end(secrets = []) {
      const code = await gateway.stop();
      const leaks = await findLeaks(gateway.log(), { dataDir, secrets: [created.apiKey, ...secrets] });
      await network.close();
      await Deno.remove(dataDir, { recursive: true });
      await Deno.remove(caFile);
      assert.equal(code, 0, `the gateway ended with ${code}: ${gateway.log().slice(-2000)}`);
      assert.deepEqual(leaks, [], "the log holds secrets");
    },
  };
  return stage;
}
