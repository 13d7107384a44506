/** The commands and their options. */
import { Command, CommanderError } from "commander";
import { VERSION } from "../shipped.ts";
import { reasonOf, refusal } from "./client.ts";
import { Exit, Misuse, print, printError, printResult } from "./output.ts";
import { addSettings, configOf, localUrl, OF_PORT, withSettings } from "./settings.ts";

const HEALTHCHECK_MS = 5_000;

/** Adds commands; `args` are the command line's. */
type AddCommands = (root: Command, args: readonly string[]) => void;

/** Commands in the order of the help. Only the module of the command named is loaded. */
const COMMANDS: readonly { names: readonly string[]; load: () => Promise<AddCommands> }[] = [
  { names: ["serve", "api", "worker"], load: async () => (await import("./serve.ts")).addServeCommands },
  { names: ["link"], load: async () => (await import("./link.ts")).addLinkCommand },
  { names: ["line"], load: async () => (await import("./line.ts")).addLineCommand },
  { names: ["sandbox"], load: () => Promise.resolve(addSandboxCommand) },
  { names: ["account"], load: async () => (await import("./account.ts")).addAccountCommand },
  { names: ["plan"], load: async () => (await import("./plan.ts")).addPlanCommand },
  { names: ["operator"], load: async () => (await import("./operator.ts")).addOperatorCommand },
  { names: ["backup", "restore", "rekey"], load: async () => (await import("./backup.ts")).addBackupCommands },
  { names: ["listen"], load: async () => (await import("./listen.ts")).addListenCommand },
  { names: ["chatwoot"], load: async () => (await import("./chatwoot.ts")).addChatwootCommand },
  { names: ["files"], load: async () => (await import("./files.ts")).addFilesCommand },
  { names: ["doctor"], load: async () => (await import("./doctor.ts")).addDoctorCommand },
  { names: ["openapi"], load: () => Promise.resolve(addOpenapiCommand) },
  { names: ["healthcheck"], load: () => Promise.resolve(addHealthcheckCommand) },
  { names: ["version"], load: () => Promise.resolve(addVersionCommand) },
];

/** Runs the command that `args` name. Throws Misuse, and what the command throws. */
export async function parse(args: readonly string[], json: boolean): Promise<void> {
  try {
    await (await program(args, json)).parseAsync([...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw new Misuse(error.message.replace(/^error: /, ""));
  }
}

/** Returns the program with the command that `args` name, or with all; with `json` the parser prints no errors. */
export async function program(args: readonly string[], json: boolean): Promise<Command> {
  const root = new Command("paloma")
    .description(
      "A self-hosted messaging gateway: link WhatsApp lines, send over plain HTTP, receive signed webhooks.",
    )
    .version(VERSION, "-V, --version", "print the version")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => print(text.trimEnd()),
      writeErr: (text) => printError(text.trimEnd()),
      outputError: (text, write) => json || write(text),
    });
  if (!json) root.showHelpAfterError("Run it with --help for usage.");
  const [name = "serve"] = args;
  const named = COMMANDS.filter(({ names }) => names.includes(name));
  // For an unknown command all are loaded, to suggest the nearest one.
  const needed = named.length > 0 ? named : COMMANDS;
  for (const add of await Promise.all(needed.map(({ load }) => load()))) add(root, args);
  addSettings(root, args);
  return root;
}

/** Adds `paloma sandbox`: the whole product on a simulated network, without a phone. */
function addSandboxCommand(root: Command): void {
  withSettings(
    root.command("sandbox").description("run a simulated network with a gateway, an account and a linked line"),
  )
    .option("--demo", "send and receive some messages, print what happened, and exit")
    .option("--network-only", "run only the simulated network, for a gateway of your own")
    .option("--cloud", "emulate WhatsApp's Cloud API: its 24-hour window, approval of templates, faults on demand")
    .option("--webhook <url>", "with --cloud: the application's webhook, which must answer the challenge")
    .option("--verify-token <token>", "with --cloud: what the webhook expects in the challenge")
    .option("--json", "print one line of JSON once all is ready, or for each step of the demo")
    .action(async (options) => {
      const isOther = options.demo || options.networkOnly;
      if (options.cloud && isOther) throw new Exit(2, "Choose one of --cloud, --demo and --network-only.");
      if (!options.cloud && (options.webhook || options.verifyToken)) {
        throw new Exit(2, "--webhook and --verify-token belong to --cloud.");
      }
      if (options.demo && options.networkOnly) throw new Exit(2, "Choose either --demo or --network-only.");
      const { runNetwork, runSandbox } = await import("./run_sandbox.ts");
      await (options.networkOnly ? runNetwork : runSandbox)(options);
    });
}

function addVersionCommand(root: Command): void {
  root.command("version").description("print the version").option("--json", "print JSON")
    .action((options) => {
      const names = ["env", "ffi", "net", "read", "run", "sys", "write"] as const;
      const permissions = names.filter((name) => Deno.permissions.querySync({ name }).state === "granted");
      printResult(options, { version: VERSION, deno: Deno.version.deno, permissions }, () => VERSION);
    });
}

/** Adds `paloma openapi`, which needs no running gateway. */
function addOpenapiCommand(root: Command): void {
  root.command("openapi").description("print the OpenAPI document").option("--json", "print it on one line")
    .action(async (options) => {
      const { openApiDocument } = await import("../http/docs/openapi.ts");
      print(JSON.stringify(openApiDocument(), null, options.json ? 0 : 2));
    });
}

/** Adds `paloma healthcheck`, by which containers and service managers ask whether the gateway is ready. */
function addHealthcheckCommand(root: Command): void {
  withSettings(
    root.command("healthcheck").description("exit with 0 if the gateway on this host and port is ready"),
    OF_PORT,
  )
    .option("--json", "print JSON")
    .action(async (options) => {
      const url = `${localUrl(configOf(options))}/readyz`;
      const { ok, status, body } = await ask(url);
      if (!ok) throw new Exit(1, `${url} answers ${refusal(status, body)}`);
      printResult(options, { ready: true, url }, () => `ready: ${url}`);
    });
}

async function ask(url: string): Promise<{ ok: boolean; status: number; body: string }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(HEALTHCHECK_MS) });
    return { ok: answer.ok, status: answer.status, body: await answer.text() };
  } catch (error) {
    throw new Exit(1, `${url} does not answer: start the gateway, or check --host and --port (${reasonOf(error)})`);
  }
}
