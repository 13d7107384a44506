/** `paloma serve`, `api` and `worker`: a process that runs until SIGINT or SIGTERM. */
import type { Command } from "commander";
import { systemRuntime } from "../runtime.ts";
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
  const asked = untilAsked();
  const gateway = await startGateway({ config, runtime, role });
  // Nobody may read it any more, or the disk that takes it may be full: the gateway runs all the same.
  const announce = (started: unknown, text: () => string) => {
    try {
      printResult(options, started, text);
    } catch (error) {
      runtime.log.warn({ err: error }, "where the gateway listens could not be printed");
    }
  };
  const { baseUrl, panelUrl } = gateway;
  if (role === "worker") {
    const url = baseUrl.replace(/\/v1$/, "");
    announce({ url }, () => `The Paloma worker is running; its health is at ${url}/healthz`);
    await asked;
    return await gateway.stop();
  }
  const operatorLink = await gateway.firstRunLink();
  const accounts = await gateway.accounts.list();
  announce(
    { baseUrl, panelUrl, ...(operatorLink && { operatorLink }) },
    () => welcome({ baseUrl, panelUrl, operatorLink, accounts: accounts.map(({ name }) => name) }),
  );
  await asked;
  await gateway.stop();
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
