/** Runs `paloma sandbox`. Loaded only for that command, because no gateway needs it. */
import { type Gateway, startGateway } from "../app.ts";
import type { Config } from "../config.ts";
import { placeOf } from "../data/data_folder.ts";
import { lineKeys } from "../line/rows.ts";
import { openLog, quietConsole } from "../ops/log.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";
import { type SandboxNetwork, startNetwork } from "../sandbox/network.ts";
import type { Emulation } from "../cloud/emulation.ts";
import { httpClient, linkByQr } from "./client.ts";
import { hasData, withFolder } from "./data.ts";
import { runDemo } from "./demo.ts";
import { Exit, printResult } from "./output.ts";
import { configOf, isSet } from "./settings.ts";
import { untilAsked } from "./signals.ts";

/** The initial phones: the line's, and a customer's. */
const LINE = "447700900001";
const CUSTOMER = "447700900002";
const PLAN = "sandbox";

interface SandboxOptions {
  demo?: boolean;
  cloud?: boolean;
  webhook?: string;
  verifyToken?: string;
  json?: boolean;
}

/** Runs only the simulated network, until asked to end. */
export async function runNetwork(options: SandboxOptions): Promise<void> {
  const config = configOf(options);
  const asked = untilAsked();
  const runtime = systemRuntime(await openLog(quieter(config, options)));
  quietConsole(runtime.log);
  await withNetwork(config, runtime, async (network, caFile) => {
    const settings = environmentOf(network, caFile);
    printResult(options, { controlUrl: network.controlUrl, settings }, () =>
      [
        "A simulated WhatsApp network is running. For a gateway of your own:",
        "",
        ...Object.entries(settings).map(([name, value]) => `  export ${name}=${value}`),
        "",
        "It has no phones yet. This adds one, which can then scan the gateway's QR:",
        "",
        `  curl -s ${network.controlUrl}/phones -d '{"number":"${LINE}"}'`,
        "",
        "Press Ctrl-C to stop.",
      ].join("\n"));
    await asked;
  });
}

/**
 * Starts the network, a gateway on it, an account and a linked line; then runs the demo, or stays up until asked to
 * end. Throws Exit if a demo is asked to end, so that a script does not take it for completed.
 */
export async function runSandbox(options: SandboxOptions): Promise<void> {
  const base = configOf(options);
  // Before anything is created that a signal could leave behind.
  const asked = untilAsked();
  const runtime = systemRuntime(await openLog(quieter(base, options)));
  quietConsole(runtime.log);
  const started = runtime.clock.now();
  const isTemporary = !isSet(options, "PALOMA_DATA_DIR");
  if (!isTemporary || base.store !== null) await assertOwnData(base);

  async function untilEnded(): Promise<void> {
    await asked;
    if (options.demo) throw new Exit(1, "The demo was stopped before it finished.");
  }

  await withNetwork(base, runtime, async (network, caFile) => {
    const dataDir = isTemporary ? await Deno.makeTempDir({ prefix: "paloma-sandbox-" }) : base.dataDir;
    const { url, rootKey, mediaUrl } = network;
    const config: Config = {
      ...base,
      dataDir,
      outboundAllow: [...base.outboundAllow, "127.0.0.0/8", "::1", "localhost"],
      whatsapp: { url, rootKey, mediaUrl, ca: caFile, version: null },
    };
    try {
      const emulation = options.cloud ? emulationOn(network, runtime) : undefined;
      const gateway = await startGateway({ config, runtime, emulation });
      try {
        const ended = untilEnded();
        await Promise.race([ended, show(options, { gateway, network, runtime, started, emulation })]);
        if (!options.demo) await ended;
      } finally {
        await gateway.stop();
      }
    } finally {
      if (isTemporary) await Deno.remove(dataDir, { recursive: true });
    }
  });
}

/**
 * Throws Exit if the data has lines that no sandbox has linked, because a network that does not know a line logs it out
 * for good. A shared store may hold only a sandbox's accounts: its other processes would connect this one's lines to
 * the real network, and this one would take over lines that are linked there later.
 */
async function assertOwnData(config: Config): Promise<void> {
  if (!await hasData(config)) return;
  await withFolder(config, async ({ kv, accounts }) => {
    const all = await accounts.list();
    const own = new Set(all.filter(({ plan }) => plan === PLAN).map(({ id }) => id));
    const place = placeOf(config);
    if (config.store !== null && (own.size === 0 || own.size < all.length)) {
      throw new Exit(1, `${place} is not a sandbox's own: use an empty store, or none (--store)`);
    }
    for await (const { value: { accountId, phone, status } } of kv.list({ prefix: lineKeys.lines() })) {
      if (phone === null || status === "logged_out" || own.has(accountId)) continue;
      throw new Exit(
        1,
        `${place} has lines that are linked elsewhere, and would be lost: use another folder (--data-dir)`,
      );
    }
  });
}

/** Runs with a new simulated network; afterwards closes it and removes its CA file. */
async function withNetwork(
  { sandboxPort }: Config,
  runtime: Runtime,
  run: (network: SandboxNetwork, caFile: string) => Promise<void>,
): Promise<void> {
  const network = await networkAt(sandboxPort, runtime);
  const caFile = await Deno.makeTempFile({ prefix: "paloma-sandbox-", suffix: ".pem" });
  try {
    await Deno.writeTextFile(caFile, network.caPem);
    await run(network, caFile);
  } finally {
    await network.close();
    await Deno.remove(caFile);
  }
}

/** Opens the simulated network. Throws Exit if the port is taken. */
async function networkAt(controlPort: number, runtime: Runtime): Promise<SandboxNetwork> {
  try {
    return await startNetwork({ runtime, controlPort });
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    throw new Exit(1, `127.0.0.1:${controlPort} is in use: choose another with PALOMA_SANDBOX_PORT (--sandbox-port)`);
  }
}

interface Running {
  gateway: Gateway;
  network: SandboxNetwork;
  runtime: Runtime;
  /** Unix ms. */
  started: number;
  emulation: Emulation | undefined;
}

/** Links the line; then runs the demo, or prints how to use the sandbox. */
async function show(
  options: SandboxOptions,
  { gateway, network, runtime, started, emulation }: Running,
): Promise<void> {
  const { clock } = runtime;
  const ready = await prepare(gateway, network);
  const { sessionId } = ready;
  const api = httpClient(gateway.baseUrl, { "x-api-key": ready.apiKey });
  const control = httpClient(network.controlUrl);
  const { scans } = await linkByQr(clock, { api, control, sessionId, phone: LINE });
  const tookMs = clock.now() - started;
  if (options.demo) {
    const linked = `line ${LINE} linked by QR (${scans} scans)`;
    printResult(
      options,
      { step: "link", durationMs: tookMs, outcome: linked },
      () => `Paloma sandbox: ${linked} in ${tookMs} ms, over the real protocol`,
    );
    await runDemo({ options, clock, api, control, sessionId, line: LINE, customer: CUSTOMER });
    const durationMs = clock.now() - started;
    printResult(
      options,
      { step: "all", durationMs, outcome: "every step succeeded" },
      () => `All of it in ${(durationMs / 1000).toFixed(1)} s, without a phone.`,
    );
    return;
  }
  const { baseUrl, panelUrl } = gateway;
  const panelLink = await gateway.firstRunLink() ?? panelUrl;
  const result = { baseUrl, controlUrl: network.controlUrl, panelUrl, ...ready, line: LINE, panelLink };
  if (!emulation) return printResult(options, result, () => welcome(result, tookMs));
  const cloud = {
    cloudUrl: baseUrl.replace(/\/v1$/, "/cloud"),
    accessToken: ready.apiKey,
    phoneNumberId: LINE,
    businessAccountId: LINE,
    verifyToken: options.verifyToken ?? randomHex(runtime, 8),
    appSecret: emulation.appSecret,
  };
  const { webhook: url } = options;
  if (url !== undefined) await api.call("POST", "/webhooks", { url, format: "cloud", verifyToken: cloud.verifyToken });
  printResult(options, { ...result, ...cloud }, () => cloudWelcome({ ...result, ...cloud }, tookMs));
}

/** Returns the emulation whose state the network's control API changes. */
function emulationOn({ templates, switchboard: { faults } }: SandboxNetwork, runtime: Runtime): Emulation {
  return {
    // As long as Meta's.
    appSecret: randomHex(runtime, 16),
    templateStatus: (name) => templates.get(name) ?? "PENDING",
    take: (phone, kind) => faults.take(phone, kind),
  };
}

function randomHex({ random }: Runtime, bytes: number): string {
  return random.bytes(bytes).toHex();
}

/** Returns the sandbox's log level: warnings, unless a level was set, because its output suffices on a terminal. */
function quieter(config: Config, options: SandboxOptions): Config["logLevel"] {
  return isSet(options, "PALOMA_LOG_LEVEL") ? config.logLevel : "warn";
}

function environmentOf(network: SandboxNetwork, caFile: string): Record<string, string> {
  return {
    PALOMA_WHATSAPP_URL: network.url,
    PALOMA_WHATSAPP_ROOT_KEY: network.rootKey,
    PALOMA_WHATSAPP_MEDIA_URL: network.mediaUrl,
    PALOMA_WHATSAPP_CA: caFile,
  };
}

/** Creates an account, the phones, and a session that waits for its QR to be scanned. */
async function prepare(
  gateway: Gateway,
  network: SandboxNetwork,
): Promise<{ apiKey: string; accountId: string; sessionId: string }> {
  const { account, apiKey } = await gateway.accounts.create({ name: "sandbox", plan: PLAN });
  network.addPhone(LINE, { name: "Sandbox Shop" });
  network.addPhone(CUSTOMER, { name: "Ana Customer" });
  const api = httpClient(gateway.baseUrl, { "x-api-key": apiKey });
  const { data } = await api.call("POST", "/sessions", { name: "sandbox line" });
  return { apiKey, accountId: account.id, sessionId: data._id };
}

function cloudWelcome(
  { cloudUrl, accessToken, phoneNumberId, businessAccountId, verifyToken, appSecret, controlUrl, panelLink }: Record<
    string,
    string
  >,
  tookMs: number,
): string {
  return `
  Paloma sandbox — WhatsApp's Cloud API emulated, ready in ${(tookMs / 1000).toFixed(1)} s

  Base URL              ${cloudUrl}   (in place of https://graph.facebook.com)
  Access token          ${accessToken}
  Phone number id       ${phoneNumberId}
  Business account id   ${businessAccountId}
  Verify token          ${verifyToken}
  App secret            ${appSecret}
  Control API           ${controlUrl}   (phones, templates, faults)
  Panel                 ${panelLink}

  Have the customer write, which opens the 24-hour window:

    curl -s ${controlUrl}/phones/${CUSTOMER}/messages -d '{"to":"${LINE}","text":"Hello"}'

  and answer:

    curl -s ${cloudUrl}/v24.0/${phoneNumberId}/messages -H 'authorization: Bearer ${accessToken}' \\
      -H 'content-type: application/json' \\
      -d '{"messaging_product":"whatsapp","to":"${CUSTOMER}","type":"text","text":{"body":"Hi!"}}'

  Press Ctrl-C to stop.
`;
}

function welcome(
  { baseUrl, controlUrl, panelLink, apiKey, sessionId }: Record<string, string>,
  tookMs: number,
): string {
  const docs = baseUrl!.replace(/\/v1$/, "/docs");
  return `
  Paloma sandbox — ready in ${(tookMs / 1000).toFixed(1)} s

  API           ${baseUrl}
  API key       ${apiKey}
  Session       ${sessionId}   (line ${LINE}, linked by QR)
  Panel         ${panelLink}
  Reference     ${docs}
  Control API   ${controlUrl}   (phones, groups, faults: ${docs}/guides/sandbox)

  Send a message to the customer's phone:

    curl -s ${baseUrl}/messages/send/text -H 'x-api-key: ${apiKey}' \\
      -H 'content-type: application/json' -d '{"to":"${CUSTOMER}","text":"Hello from Paloma"}'

  and see what that phone received:

    curl -s ${controlUrl}/phones/${CUSTOMER}/messages

  Press Ctrl-C to stop.
`;
}
