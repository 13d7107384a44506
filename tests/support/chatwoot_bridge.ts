/** The bridge as a process, between a stage and a double of Chatwoot. */
import { join } from "node:path";
import { ChatwootDouble } from "./chatwoot.ts";
import { freePort } from "./free_port.ts";
import { runCommand, startCommand } from "./gateway_process.ts";
import type { LinkedLine, Stage } from "./stage.ts";
import { tempFolder } from "./temp_folder.ts";

export interface BridgeProcess extends AsyncDisposable {
  readonly chatwoot: ChatwootDouble;
  readonly inbox: number;
  /** Makes an inbox for another line, which the running bridge serves at once. */
  connect(line: LinkedLine): Promise<number>;
  /** Where it keeps what it knows. */
  readonly file: string;
  /** Where Chatwoot's webhooks go. */
  webhookUrl(): string;
  log(): string;
  /** SIGKILL, what happens in the meantime, and another start. */
  restart(meantime?: () => Promise<unknown>): Promise<void>;
}

/** Makes an inbox for the line, and runs with these options besides. */
export async function openBridge(stage: Stage, line: LinkedLine, options: string[] = []): Promise<BridgeProcess> {
  const folder = await tempFolder();
  const chatwoot = ChatwootDouble.start();
  const file = join(folder.path, "chatwoot.kv");
  const port = freePort();
  const env = {
    PALOMA_API_KEY: stage.apiKey,
    CHATWOOT_URL: chatwoot.url,
    CHATWOOT_ACCOUNT: "1",
    CHATWOOT_TOKEN: chatwoot.token,
  };
  const common = ["--url", stage.gateway.baseUrl, "--data", file, "--json"];
  const address = `127.0.0.1:${port}`;
  const connect = async ({ sessionId }: LinkedLine): Promise<number> => {
    const args = ["--session", sessionId, "--public-url", `http://${address}`];
    return JSON.parse(await runCommand(["chatwoot", "connect", ...args, ...common], env)).inbox;
  };
  const inbox = await connect(line);
  const run = () => startCommand(["chatwoot", "run", "--listen", address, ...options, ...common], env);
  let running = await run();
  let log = "";
  return {
    chatwoot,
    inbox,
    connect,
    file,
    webhookUrl: () => chatwoot.webhookUrl(inbox),
    log: () => log + running.stderr(),
    async restart(meantime) {
      await running.end("SIGKILL");
      log += running.stderr();
      await meantime?.();
      running = await run();
    },
    async [Symbol.asyncDispose]() {
      await running.end("SIGTERM");
      await chatwoot.kill();
      await folder[Symbol.asyncDispose]();
    },
  };
}
