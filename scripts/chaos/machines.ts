/**
 * Promise 9 under fire: two APIs and three workers on one PostgreSQL, or one `denokv`, while processes are killed and
 * frozen, connections to the store cut and its server restarted, and messages go out and come in. Afterwards the phone and
 * the feed are asked: each message once, in the order of its line, each event once.
 */
import { httpClient, type Json, until } from "../../src/cli/client.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import { type Process, RolesStage, type StoreName } from "../../tests/support/roles_stage.ts";

interface MachinesOptions {
  store: StoreName;
  lines: number;
  outgoing: number;
  incoming: number;
  blows: number;
  report(line: string): void;
}

interface MachinesResult {
  outgoing: number;
  incoming: number;
  blows: Record<string, number>;
  /** Sends that got no answer and were repeated under their idempotency key. */
  repeatedSends: number;
  /** Writes under an old lease, as the workers counted them that still live, or lived when they woke up. */
  refusedWrites: number;
  /** After each kill of a worker: until the last of all lines sent again, s. */
  failOverSeconds: string[];
  tookMs: number;
  /** Sentences; empty when every promise held. */
  broken: string[];
}

const CUSTOMER = "4917000000001";
const BETWEEN_BLOWS_MS = [500, 4_000] as const;
const FROZEN_MS = 20_000;
const PATIENCE_MS = 180_000;
/** What a worker that wakes up still tries to write, it tries within this time. */
const WAKE_UP_MS = 3_000;

export async function machines(options: MachinesOptions): Promise<MachinesResult> {
  const { lines: count, outgoing, incoming, report } = options;
  const begun = systemClock.now();
  const stage = await RolesStage.open(options.store);
  const fleet: Record<"api" | "worker", Process[]> = { api: [], worker: [] };
  const result = { outgoing, incoming, blows: {} as Record<string, number>, repeatedSends: 0, refusedWrites: 0 };
  const refused = new Map<Process, number>();
  const noteRefused = async (worker: Process) =>
    void refused.set(worker, await stage.metric(worker, "paloma_refused_writes_total").catch(() => 0));
  const kills: number[] = [];
  let failOverSeconds: string[] = [];
  const broken: string[] = [];
  try {
    for (const role of ["api", "api", "worker", "worker", "worker"] as const) fleet[role].push(await stage.start(role));
    await stage.control.call("POST", "/phones", { number: CUSTOMER });
    const numbers = Array.from({ length: count }, (_, i) => `4915300${String(i).padStart(6, "0")}`);
    const lines = await stage.linkLines(stage.client(fleet.api[0]!), numbers);
    report(`${lines.size} lines are linked after ${Math.round((systemClock.now() - begun) / 1000)} s`);

    /** Asks any API until one answers. */
    const call = async (method: string, path: string, body?: unknown, key?: string): Promise<Json> => {
      for (let tries = 0;; tries++) {
        const api = fleet.api[systemRandom.between(0, fleet.api.length - 1)];
        try {
          if (!api) throw new Error("no API is up");
          const headers = { "x-api-key": stage.apiKey, ...(key ? { "idempotency-key": key } : {}) };
          return await httpClient(`${api.url}/v1`, headers).call(method, path, body);
        } catch (error) {
          if (tries > 200 || / answered 4/.test(String(error))) throw error;
          if (key && tries === 0) result.repeatedSends++;
          await sleep(systemClock, 250);
        }
      }
    };

    const perLine = Math.ceil(outgoing / count);
    const sending = Promise.all([...lines].map(async ([number, sessionId]) => {
      for (let i = 0; i < perLine; i++) {
        const text = `${number} ${String(i).padStart(5, "0")}`;
        await call("POST", "/messages/send/text", { sessionId, to: CUSTOMER, text }, text.replace(" ", "-"));
      }
    }));
    const receiving = (async () => {
      for (let i = 0; i < incoming; i++) {
        const to = numbers[i % numbers.length];
        await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to, text: `in ${i}` });
        await sleep(systemClock, 20);
      }
    })();
    await strike(stage, fleet, { options, blows: result.blows, kills, noteRefused });
    await Promise.all([sending, receiving]);
    report(`all is accepted after ${Math.round((systemClock.now() - begun) / 1000)} s; waiting for the rest`);

    const expected = perLine * count;
    let arrived = 0;
    const inbox = await until(systemClock, async () => {
      const there: Json[] = await stage.inbox(CUSTOMER);
      if (there.length !== arrived) report(`${arrived = there.length} of ${expected} are at the phone`);
      return there.length >= expected ? there : null;
    }, { what: "all messages at the phone", timeoutMs: PATIENCE_MS, pauseMs: 1_000 }).catch(() =>
      stage.inbox(CUSTOMER)
    );
    for (const number of numbers) {
      const texts = inbox.map(({ text }: Json) => text).filter((text: string) => text.startsWith(number));
      const wanted = Array.from({ length: perLine }, (_, i) => `${number} ${String(i).padStart(5, "0")}`);
      if (new Set(texts).size !== texts.length) broken.push(`line ${number}: ${texts.length} texts, some twice`);
      if (texts.join() !== wanted.join()) broken.push(`line ${number}: ${texts.length} of ${perLine}, or out of order`);
    }
    const events = await until(systemClock, async () => {
      const all = await feedOf(call);
      const has = (name: string) => all.filter(({ event }) => event === name).length;
      return has("message.sent") >= expected && has("message.received") >= incoming ? all : null;
    }, { what: "all events", timeoutMs: PATIENCE_MS, pauseMs: 2_000 }).catch(() => feedOf(call));
    checkEvents(events, { expected, incoming }, broken);
    for (const worker of fleet.worker) await noteRefused(worker);
    result.refusedWrites = [...refused.values()].reduce((sum, count) => sum + count, 0);
    const wire: Json[] = await stage.control.call("GET", "/wire") as unknown as Json[];
    failOverSeconds = kills.map((at) => failOver(wire, numbers, at)).filter((ms) => ms !== null)
      .sort((a, b) => a - b).map((ms) => (ms / 1000).toFixed(1));
  } finally {
    await stage.close();
  }
  return { ...result, failOverSeconds, tookMs: systemClock.now() - begun, broken };
}

/** Kills, freezes, cuts and restarts, one blow after another. */
async function strike(
  stage: RolesStage,
  fleet: Record<"api" | "worker", Process[]>,
  { options, blows, kills, noteRefused }: {
    options: MachinesOptions;
    blows: Record<string, number>;
    /** When workers were killed, Unix ms. */
    kills: number[];
    noteRefused(worker: Process): Promise<void>;
  },
): Promise<void> {
  const frozen: Promise<void>[] = [];
  for (let i = 0; i < options.blows; i++) {
    await sleep(systemClock, systemRandom.between(...BETWEEN_BLOWS_MS));
    const kind = ["kill", "kill", "kill", "kill api", "cut", "cut", "freeze", "restart"][i % 8]!;
    blows[kind] = (blows[kind] ?? 0) + 1;
    if (kind === "cut") {
      await stage.store.cut();
    } else if (kind === "restart") {
      await stage.store.restart();
    } else if (kind === "freeze") {
      const [worker] = fleet.worker;
      Deno.kill(worker!.pid, "SIGSTOP");
      fleet.worker.push(fleet.worker.shift()!);
      frozen.push(
        sleep(systemClock, FROZEN_MS).then(async () => {
          if (!stage.processes.has(worker!)) return;
          Deno.kill(worker!.pid, "SIGCONT");
          await sleep(systemClock, WAKE_UP_MS);
          if (stage.processes.has(worker!)) await noteRefused(worker!);
        }),
      );
    } else {
      const role = kind === "kill api" ? "api" : "worker";
      const victim = fleet[role].shift()!;
      if (role === "worker") kills.push(systemClock.now());
      await stage.end(victim, "SIGKILL");
      fleet[role].push(await stage.start(role));
    }
    options.report(`blow ${i + 1}: ${kind}`);
  }
  await Promise.all(frozen);
}

/** From the moment until all lines have sent again, ms; null when one of them had nothing more to send. */
function failOver(wire: Json[], numbers: readonly string[], at: number): number | null {
  const first = numbers.map((number) =>
    Math.min(...wire.filter(({ line, time }) => line === number && time > at).map(({ time }) => time))
  );
  const last = Math.max(...first);
  return Number.isFinite(last) ? last - at : null;
}

async function feedOf(call: (method: string, path: string) => Promise<Json>): Promise<Json[]> {
  const events: Json[] = [];
  for (let after: string | null = null;;) {
    const page: Json = await call("GET", `/events?limit=100${after ? `&after=${after}` : ""}`);
    events.push(...page.data);
    if (page.next === null) return events;
    after = page.next;
  }
}

function checkEvents(events: Json[], wanted: { expected: number; incoming: number }, broken: string[]): void {
  for (const [name, count] of [["message.sent", wanted.expected], ["message.received", wanted.incoming]] as const) {
    const ids = events.filter(({ event }) => event === name).map(({ data }) => data.messageId);
    if (new Set(ids).size !== ids.length) broken.push(`${ids.length - new Set(ids).size} events ${name} came twice`);
    if (ids.length < count) broken.push(`${count - ids.length} events ${name} are missing`);
  }
  const order = events.map(({ id }) => id);
  if (order.join() !== [...order].sort().join()) broken.push("the feed is out of order");
}
