/** The gateway that a bench measures: as a process of the bench that counts the calls of its store, or as users run it. */
import { httpClient, until } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import type { SettingValues } from "../../src/settings.ts";
import { freePort } from "../../tests/support/free_port.ts";
import { processorMs, writtenBytes } from "../proc.ts";
import { startChild } from "./child.ts";
import { answers } from "./first_response.ts";
import type { GatewayQuestion, GatewayReady } from "./gateway.ts";
import { type LinkedFolder, linkLine, settingsFor } from "./linked_folder.ts";
import type { Site } from "./network.ts";
import type { Program } from "./start.ts";
import { type GatewayUse, NO_CALLS, sinceLast } from "./watch_load.ts";

export interface Served {
  /** `http://HOST:PORT` */
  url: string;
  /** What it has used since it was last asked. */
  use(): Promise<GatewayUse>;
  stop(): Promise<void>;
}

/** Starts a gateway with these settings, on their data folder. */
export type Serve = (settings: SettingValues) => Promise<Served>;

export const serveCounted: Serve = async (settings) => {
  const { ready: { url }, ask, stop } = await startChild<GatewayReady>("./gateway.ts", settings);
  return { url, use: () => ask<GatewayUse>("use" satisfies GatewayQuestion), stop };
};

/** A folder with one linked line, written by the program itself: an older runtime cannot read what a newer one wrote. */
export async function linkedFolderBy(program: Program, site: Pick<Site, "root" | "network">): Promise<LinkedFolder> {
  const dataDir = await Deno.makeTempDir({ dir: site.root, prefix: "data-" });
  const settings = await settingsFor(site);
  const env = { ...settings, PALOMA_DATA_DIR: dataDir };
  const args = [...program.args.slice(0, -1), "account", "create", "--name", "bench", "--plan", "sandbox", "--json"];
  const { stdout } = await new Deno.Command(program.command, { args, env, stderr: "inherit" }).output();
  const { apiKey } = JSON.parse(new TextDecoder().decode(stdout));
  const gateway = await serveBy(program)(env);
  const api = httpClient(`${gateway.url}/v1`, { "x-api-key": apiKey });
  const sessionId = await linkLine({ api, control: httpClient(site.network.ready.controlUrl) });
  await gateway.stop();
  return { dataDir, settings, accounts: [{ apiKey, sessionIds: [sessionId] }] };
}

/** Runs `serve` of the program. Nobody counts the calls of its store. */
export function serveBy({ command, args }: Program): Serve {
  return async (settings) => {
    const port = freePort();
    const env = { PALOMA_LOG_LEVEL: "warn", ...settings, PALOMA_PORT: String(port) };
    const child = new Deno.Command(command, { args: [...args], env, stdout: "null" }).spawn();
    const url = `http://127.0.0.1:${port}`;
    await until(systemClock, async () => await answers(`${url}/healthz`) || null, { what: "the gateway" });
    const { pid } = child;
    const look = async () => ({ ...NO_CALLS, usedMs: await processorMs(pid), writtenBytes: writtenBytes(pid) });
    return {
      url,
      use: sinceLast(look),
      async stop() {
        child.kill("SIGTERM");
        await child.status;
      },
    };
  };
}
