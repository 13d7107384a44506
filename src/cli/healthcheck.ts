/** `paloma healthcheck`: asks a running gateway whether it is ready; for containers and service managers. */
import type { Command } from "commander";
import { Exit, printResult } from "./output.ts";
import { configOf, localUrl, OF_PORT, withSettings } from "./settings.ts";

const TIMEOUT_MS = 5_000;

export function addHealthcheckCommand(root: Command): void {
  withSettings(
    root.command("healthcheck").description("exit with 0 if the gateway on this host and port is ready"),
    OF_PORT,
  )
    .option("--json", "print JSON")
    .action(async (options) => {
      const url = `${localUrl(configOf(options))}/readyz`;
      const { ok, status, body } = await ask(url);
      if (!ok) throw new Exit(1, `${url} answers ${status}: ${body}`);
      printResult(options, { ready: true, url }, () => `ready: ${url}`);
    });
}

async function ask(url: string): Promise<{ ok: boolean; status: number; body: string }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { ok: answer.ok, status: answer.status, body: await answer.text() };
  } catch (error) {
    const why = error instanceof Error ? error.message : error;
    throw new Exit(1, `${url} does not answer: start the gateway, or check --host and --port (${why})`);
  }
}
