/**
 * A whole product to test on: the simulated network in this process, a gateway on it, an account, phones and linked
 * lines. What was sent, shown and made secret is remembered; the end searches the gateway's log for all of it.
 */
import assert from "node:assert/strict";
import type { PlanChange } from "../../src/account/plan.ts";
import { openData } from "../../src/engines.ts";
import { type Client, httpClient, type Json, linkByQr } from "../../src/cli/client.ts";
import { type Clock, systemClock } from "../../src/runtime.ts";
import { type SandboxNetwork, startNetwork } from "../../src/sandbox/network.ts";
import { type GatewayProcess, runCommand, type RunningGateway, startGatewayProcess } from "./gateway_process.ts";
import { findLeaks, type Secret } from "./leaks.ts";
import { Secrets } from "./secrets.ts";
import { dataConfigOf } from "./test_store.ts";
import { inTime, until } from "./until.ts";
import { silentRuntime } from "./runtime.ts";

export interface StageOptions {
  /** Bounds of the account's plan; without them it is on the plan `sandbox`: no quota, no pauses. */
  plan?: Omit<PlanChange, "name" | "sessions"> & { sessions?: number };
  /** Settings of the gateway beside those of its place. */
  env?: Record<string, string>;
  network?: Pick<Parameters<typeof startNetwork>[0], "refresh" | "passkeyLifetimeMs"> & { clock?: Clock };
}

export interface LinkedLine {
  sessionId: string;
  number: string;
}

export interface Stage<G extends RunningGateway = GatewayProcess> {
  readonly network: SandboxNetwork;
  readonly gateway: G;
  readonly dataDir: string;
  /** The gateway's settings. */
  readonly env: Record<string, string>;
  readonly apiKey: string;
  readonly accountId: string;
  readonly api: Client;
  readonly control: Client;
  readonly secrets: Secrets;
  addPhone(number: string, name?: string): Promise<void>;
  /** Creates a session and has the phone of that number scan its QR until it is connected. */
  link(number: string, session?: { name?: string; proxy?: string }): Promise<LinkedLine>;
  /** The same with a new phone. */
  linkLine(number: string): Promise<LinkedLine>;
  /** Calls the API with the key and hands back the response whatever its status. */
  request(method: string, path: string, init?: RequestInit): Promise<Response>;
  /** Sends a text; resolves to the message's id. */
  sendText(line: LinkedLine, to: string, text: string): Promise<string>;
  inbox(number: string): Promise<Json[]>;
  /** Waits until the inbox holds a message that matches. */
  arrival(number: string, matches: (message: Json) => boolean): Promise<Json>;
  /** Waits until the message has this status. */
  status(messageId: string, status: string): Promise<Json>;
  session(line: LinkedLine): Promise<Json>;
  /** Waits until the session has this status. */
  sessionStatus(line: LinkedLine, status: string): Promise<Json>;
  /** What waits on the line. */
  queue(line: LinkedLine): Promise<Json[]>;
  /** The line's events so far, oldest first. */
  events(line: LinkedLine): Promise<Json[]>;
  /** Waits for an event of the line that fits; resolves to the first. */
  event(line: LinkedLine, fits: (event: Json) => boolean): Promise<Json>;
  /** What the running gateway's log says of the line, parsed. */
  logOf(line: LinkedLine): Promise<Json[]>;
  /** Stops everything and fails if the log holds a key, a text, a QR or a code, or one of `more`. */
  end(more?: Iterable<Secret>): Promise<void>;
  /** Stops everything, whatever state it is in: for a test that has failed already. */
  abandon(): Promise<void>;
}

/** For tests of linking: the network asks for another QR after the scan, as the real one does, which is one more to draw. */
export const WITH_REFRESH = { network: { refresh: true } } satisfies StageOptions;

/** A stage with the gateway as a process of its own. */
export function openStage(options: StageOptions = {}): Promise<Stage> {
  return openStageWith(startGatewayProcess, options);
}

/** A stage with a gateway that `start` brings up with the settings it is given. */
export async function openStageWith<G extends RunningGateway>(
  start: (env: Record<string, string>) => Promise<G>,
  options: StageOptions = {},
): Promise<Stage<G>> {
  const [stage] = await openStages(start, { ...options, count: 1 });
  return stage!;
}

/** Stages that are one gateway and network: each has an account of its own there. The end of one is that of all. */
async function openStages<G extends RunningGateway>(
  start: (env: Record<string, string>) => Promise<G>,
  { count, ...options }: StageOptions & { count: number },
): Promise<Stage<G>[]> {
  const { clock = systemClock, ...networkOptions } = options.network ?? {};
  const runtime = { ...silentRuntime(), clock };
  const network = await startNetwork({ runtime, refresh: false, ...networkOptions });
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
  async function strike(): Promise<void> {
    await inTime(network.close(), "the network to close");
    await Deno.remove(dataDir, { recursive: true });
    await Deno.remove(caFile);
  }

  const accounts: NewAccount[] = [];
  while (accounts.length < count) accounts.push(await addAccount(env, options.plan));
  const gateway = await start(env).catch(async (error) => {
    await strike();
    throw error;
  });
  const place = { network, gateway, dataDir, env, secrets: new Secrets(), strike };
  return accounts.map((account) => stageOf(place, account));
}

interface Place<G extends RunningGateway>
  extends Pick<Stage<G>, "network" | "gateway" | "dataDir" | "env" | "secrets"> {
  /** Removes all but the gateway. */
  strike(): Promise<void>;
}

/** The stage as this account has it. */
function stageOf<G extends RunningGateway>(place: Place<G>, account: NewAccount): Stage<G> {
  const { network, gateway, env, secrets, strike } = place;
  const { apiKey } = account;
  const api = secrets.watch(answeredInTime(httpClient(gateway.baseUrl, { "x-api-key": apiKey })));
  const control = secrets.watch(answeredInTime(httpClient(network.controlUrl)));
  const stage: Stage<G> = {
    ...place,
    ...account,
    api,
    control,
    addPhone: async (number, name = `Phone ${number}`) => void await control.call("POST", "/phones", { number, name }),
    async link(number, session) {
      const { data } = await api.call("POST", "/sessions", { name: `line ${number}`, ...session });
      await linkByQr(systemClock, { api, control, sessionId: data._id, phone: number });
      // Now, for a log-out would drop them.
      await secrets.readData(env, data._id);
      return { sessionId: data._id, number };
    },
    async linkLine(number) {
      await stage.addPhone(number);
      return await stage.link(number);
    },
    request(method, path, init = {}) {
      const headers = { "x-api-key": apiKey, ...init.headers as Record<string, string> };
      return inTime(fetch(gateway.baseUrl + path, { ...init, method, headers }), `an answer to ${method} ${path}`);
    },
    async sendText({ sessionId }, to, text) {
      return (await api.call("POST", "/messages/send/text", { sessionId, to, text })).messageId;
    },
    inbox: (number) => control.call("GET", `/phones/${number}/messages`),
    arrival: (number, matches) =>
      until(async () => (await stage.inbox(number)).find(matches), `a message at ${number}`),
    status: (messageId, status) =>
      until(async () => {
        const answer = await api.call("GET", `/messages/${messageId}/status`);
        return answer.status === status ? answer : null;
      }, `status ${status} of ${messageId}`),
    session: async ({ sessionId }) => (await api.call("GET", `/sessions/${sessionId}/status`)).data,
    sessionStatus: (line, status) =>
      until(async () => {
        const session = await stage.session(line);
        return session.status === status ? session : null;
      }, `session ${line.number} to be ${status}`),
    queue: async ({ sessionId }) => (await api.call("GET", `/sessions/${sessionId}/queue`)).data,
    events: async ({ sessionId }) => (await api.call("GET", `/events?limit=1000&sessionId=${sessionId}`)).data,
    event: (line, fits) => until(async () => (await stage.events(line)).find(fits), `an event that fits ${fits}`),
    async logOf({ sessionId }) {
      // Answers overtake the log on their way here: what was written before this one is here when its own line is.
      const { headers, body } = await stage.request("GET", "/account");
      await body?.cancel();
      const whole = () => gateway.log().split("\n").slice(0, -1);
      await until(() => whole().some((text) => text.includes(headers.get("x-request-id")!)), "a request in the log");
      return whole().filter((text) => text.includes(sessionId)).map((text) => JSON.parse(text));
    },
    async end(more = []) {
      for (const secret of more) secrets.add(secret);
      const code = await gateway.stop();
      await secrets.readData(env).finally(strike);
      assert.equal(code, 0, `the gateway ended with ${code}: ${gateway.log().slice(-2000)}`);
      assert.deepEqual(findLeaks(gateway.log(), secrets), [], "the log holds secrets");
    },
    async abandon() {
      await gateway.stop().catch(() => {});
      await strike();
    },
  };
  return stage;
}

/** The client, whose calls fail if nobody answers them. */
const answeredInTime = ({ call }: Client): Client => ({
  call: (method, path, body) => inTime(call(method, path, body), `an answer to ${method} ${path}`),
});

type NewAccount = Pick<Stage, "accountId" | "apiKey">;

/** An account on a plan with these bounds. */
async function addAccount(env: Record<string, string>, bounds: StageOptions["plan"]): Promise<NewAccount> {
  // What one runtime writes another may not read: an executable makes its own.
  if (Deno.env.has("PALOMA_EXECUTABLE")) return await addAccountByCommand(env, bounds);
  const data = await openData(dataConfigOf(env), silentRuntime());
  try {
    if (bounds) await data.plans.set({ name: "staged", ...UNBOUNDED, ...bounds });
    const { account, apiKey } = await data.accounts.create({ name: "stage", plan: bounds ? "staged" : "sandbox" });
    return { accountId: account.id, apiKey };
  } finally {
    data.close();
  }
}

const UNBOUNDED = { sessions: 10, daily: null, monthly: null, requestsPerMinute: null };

/** The same as an operator does it. */
async function addAccountByCommand(env: Record<string, string>, bounds: StageOptions["plan"]): Promise<NewAccount> {
  if (bounds) {
    const { sessions, daily, monthly, requestsPerMinute, delayMinMs, delayMaxMs } = { ...UNBOUNDED, ...bounds };
    const flags = {
      sessions,
      daily,
      monthly,
      "requests-per-minute": requestsPerMinute,
      "delay-min": `${delayMinMs}ms`,
      "delay-max": `${delayMaxMs}ms`,
    };
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value ?? "none")]);
    await runCommand(["plan", "set", "staged", ...args], env);
  }
  const plan = bounds ? "staged" : "sandbox";
  const args = ["account", "create", "--name", "stage", "--same-name", "--plan", plan, "--json"];
  return JSON.parse(await runCommand(args, env));
}

/** Phone numbers that nobody else has on the stage. */
type Numbers = [string, string, string, string];
export type Run = (stage: Stage, numbers: Numbers) => Promise<void>;

/** A test on a stage of its own; a failure shows the end of the gateway's log. */
export function onStage(name: string, run: Run, options: StageOptions = {}): void {
  Deno.test(name, () => withStage(() => openStage(options), (stage) => run(stage, numbersOf(0))));
}

/**
 * The tests of a file that need no stage of their own, together on one, for a gateway's start takes half a second of the
 * processor: each is a step of the test with this title, with an account and phone numbers of its own.
 */
export function onSharedStage(title: string) {
  const tests: [name: string, run: Run][] = [];
  Deno.test(title, async (t) => {
    const stages = await openStages(startGatewayProcess, { count: tests.length });
    await withStage(() => Promise.resolve(stages[0]!), async () => {
      for (const [i, [name, run]] of tests.entries()) {
        const fn = () => withLog(stages[i]!, (stage) => run(stage, numbersOf(i)));
        // Its connections outlive a step; the test itself is held against leaks.
        await t.step({ name, fn, sanitizeOps: false, sanitizeResources: false });
      }
    });
  });
  return (...test: typeof tests[number]) => void tests.push(test);
}

function numbersOf(test: number): Numbers {
  const number = (n: number) => String(4915100000000 + 10 * test + n);
  return [number(1), number(2), number(3), number(4)];
}

/** Runs on a stage and ends it, searching its log. */
export async function withStage<G extends RunningGateway>(
  open: () => Promise<Stage<G>>,
  run: (stage: Stage<G>) => Promise<void>,
): Promise<void> {
  const stage = await open();
  try {
    await withLog(stage, run);
  } catch (error) {
    await stage.abandon();
    throw error;
  }
  await stage.end();
}

/** A failure shows the end of the gateway's log. */
async function withLog<S extends Stage<RunningGateway>>(stage: S, run: (stage: S) => Promise<void>): Promise<void> {
  try {
    await run(stage);
  } catch (error) {
    console.error(`The gateway's log ends with:\n${stage.gateway.log().slice(-3000)}`);
    throw error;
  }
}
