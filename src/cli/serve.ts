/** `paloma serve`, `api` and `worker`: a process that runs until SIGINT or SIGTERM. */
import type { Command } from "commander";
import { retry } from "../base/retry.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";
import { STORE_PAUSE_MS, StoreAway } from "../store/kv.ts";
import type { Gateway } from "../app.ts";
import type { RoleName } from "../roles/role.ts";
import { Exit, printResult } from "./output.ts";
import { configOf, withSettings } from "./settings.ts";
import { untilAsked } from "./signals.ts";

export function addServeCommands(root: Command, [name]: readonly string[]): void {
  const isDefault = name === undefined || name.startsWith("-");
  const serve = root.command("serve", { isDefault }).description("run the gateway (also with no command)");
  runAs(serve, "serve");
  const api = root.command("api").description("run only the HTTP API and the panel, beside workers on a shared store");
  runAs(api, "api");
  const worker = root.command("worker").description("run only lines and webhooks, beside an API on a shared store");
  runAs(worker, "worker");
}

function runAs(command: Command, role: RoleName): void {
  withSettings(command)
    .option("--json", "print one line of JSON once it is listening")
    .action((options) => serve(role, options));
}

/** Runs the role; resolves once the process was asked to stop and has stopped. */
export async function serve(role: RoleName, options: { json?: boolean } = {}): Promise<void> {
  const config = configOf(options);
  if (role !== "serve" && config.store === null) {
    throw new Exit(
      2,
      `paloma ${role} needs a store that processes share: set PALOMA_STORE (--store), or run paloma serve`,
    );
  }
  const [{ startGateway }, { openLog, quietConsole }] = await Promise.all([
    import("../app.ts"),
    import("../ops/log.ts"),
  ]);
  const runtime = systemRuntime(await openLog(config.logLevel));
  quietConsole(runtime.log);
  // Before the start, so that a signal during it also leads to an orderly stop.
  const stopping = new AbortController();
  const asked = untilAsked().then(() => stopping.abort());
  const patiently = whileStoreIsAway(runtime, stopping.signal);
  await using running = new AsyncDisposableStack();
  try {
    const gateway = running.adopt(
      await patiently(() => startGateway({ config, runtime, role })),
      (gateway) => gateway.stop(),
    );
    await patiently(() => announce(gateway, { role, options, runtime }));
  } catch (error) {
    if (error instanceof StoreAway && stopping.signal.aborted) return;
    throw error;
  }
  await asked;
}

/**
 * Returns a function that runs a step of the start, again and again while the server of a shared store is away, as a
 * running gateway waits for it. Says so once for each reason. Rejects as the step does.
 */
function whileStoreIsAway({ clock, log }: Runtime, signal: AbortSignal): <T>(step: () => Promise<T>) => Promise<T> {
  let said = "";
  return (step) =>
    retry(step, {
      clock,
      pauseMs: STORE_PAUSE_MS,
      signal,
      isTransient: (error) => error instanceof StoreAway,
      onRetry(error) {
        const { message } = error as StoreAway;
        if (message !== said) log.warn({ reason: message }, "the store is away: the start waits for it");
        said = message;
      },
    });
}

/** Prints where the gateway listens. Throws StoreError. */
async function announce(
  gateway: Gateway,
  { role, options, runtime }: { role: RoleName; options: { json?: boolean }; runtime: Runtime },
): Promise<void> {
  const { baseUrl, panelUrl } = gateway;
  const print = (started: unknown, text: () => string) => {
    // Nobody may read it any more, or the disk that takes it may be full: the gateway runs all the same.
    try {
      printResult(options, started, text);
    } catch (error) {
      runtime.log.warn({ err: error }, "where the gateway listens could not be printed");
    }
  };
  if (role === "worker") {
    const url = baseUrl.replace(/\/v1$/, "");
    return print({ url }, () => `The Paloma worker is running; its health is at ${url}/healthz`);
  }
  const operatorLink = await gateway.firstRunLink();
  const accounts = await gateway.accounts.list();
  print(
    { baseUrl, panelUrl, ...(operatorLink && { operatorLink }) },
    () => welcome({ baseUrl, panelUrl, operatorLink, accounts: accounts.map(({ name }) => name) }),
  );
}

/** `operatorLink` is null if the panel already has an operator; `accounts` are their names. */
function welcome({ baseUrl, panelUrl, operatorLink, accounts }: {
  baseUrl: string;
  panelUrl: string;
  operatorLink: string | null;
  accounts: readonly string[];
}): string {
  const lines = [
    `Paloma listens on ${baseUrl}`,
    `  panel      ${panelUrl}`,
    `  reference  ${baseUrl.replace(/\/v1$/, "/docs")}`,
  ];
  if (operatorLink !== null) {
    lines.push(
      "",
      "The panel has no operator yet. To create the login, open this link within an hour (it works once):",
      `  ${operatorLink}`,
    );
  }
  if (accounts.length === 0) {
    lines.push(
      "",
      "New here? In another terminal, with the same settings: paloma account create --name NAME --plan own, then paloma link NAME",
    );
  } else if (operatorLink !== null) {
    lines.push("", `Accounts: ${accounts.join(", ")}`);
  }
  return lines.join("\n");
}
