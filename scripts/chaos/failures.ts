/**
 * Promise 1 while the machine fails around the gateway: a full disk, a database that another process holds locked,
 * SIGTERM under load. Careful clients send all the while, a phone writes to the line. Nothing that got a 202 is missing
 * or doubled, nor is anything that came in; the process never ends by itself, and recovers soon after the failure.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { GIVE_UP_AFTER_MS, until } from "../../src/cli/client.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import { type LinkedLine, openStage, type Stage, type StageOptions } from "../../tests/support/stage.ts";
import { Feed } from "./event_checks.ts";
import { type AcceptedText, checkArrivals } from "./paced_checks.ts";

interface FailureOptions {
  /** Lines, each with a client that sends one text after another. */
  lines: number;
  /** How soon after a failure's end a text must be at the phone. */
  backWithinMs: number;
  report: (line: string) => void;
}

export interface FailureResult {
  accepted: number;
  received: number;
  /** Requests that were not answered 202, and how each was answered: a status, or `none`. */
  refused: Record<string, number>;
  /** From the end of each failure until a text that was asked for then was at the phone. */
  backAfterMs: number[];
  tookMs: number;
  /** Sentences; empty when every promise held. */
  broken: string[];
}

const CUSTOMER = "4917000000001";
/** A line of its own with nothing waiting: it shows when the gateway works again. */
const PROBE = "4915000000009";
/** The first of the lines' phone numbers. */
const FIRST_LINE = 4915000000010;
const PAUSE_MS: [number, number] = [20, 120];
/** Stands for a request that was not answered. */
const NO_ANSWER = 599;
const WRITES_EVERY_MS = 400;
/** Load before, between and after failures. */
const CALM_MS = 1_000;

/** Fills the disk to the last byte for this time. `folder` is a small file system and holds the data. */
export function fullDisk(options: FailureOptions & { folder: string; seconds: number }): Promise<FailureResult> {
  const { folder, seconds, report } = options;
  const env = { PALOMA_DATA_DIR: join(folder, "data"), PALOMA_MIN_FREE_DISK: "2MB" };
  return underLoad({ ...options, stage: { env } }, async (_stage, back) => {
    const ballast = join(folder, "ballast");
    const end = systemClock.now() + seconds * 1000;
    let bytes = 0;
    // Space that the gateway frees meanwhile is taken too.
    for (; systemClock.now() < end; await sleep(systemClock, 50)) bytes += await fill(ballast);
    report(`the disk was full for ${seconds} s (${bytes} bytes of ballast)`);
    await Deno.remove(ballast);
    await back();
  });
}

/** Holds the database's write lock for this time, as another process would. */
export function heldLock(options: FailureOptions & { seconds: number }): Promise<FailureResult> {
  return underLoad(options, async ({ dataDir }, back) => {
    const database = new DatabaseSync(join(dataDir, "paloma.db"));
    try {
      database.exec("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE");
      await sleep(systemClock, options.seconds * 1000);
      database.exec("ROLLBACK");
    } finally {
      database.close();
    }
    options.report(`the lock was held for ${options.seconds} s`);
    await back();
  });
}

/** Ends the gateway by SIGTERM and starts it again, this many times. */
export function terminated(
  options: FailureOptions & { times: number; drainsWithinMs: number },
): Promise<FailureResult> {
  return underLoad(options, async ({ gateway }, back, broken) => {
    for (let time = 1; time <= options.times; time++) {
      const asked = systemClock.now();
      const code = await gateway.stop();
      const drainedMs = systemClock.now() - asked;
      if (code !== 0) broken.push(`SIGTERM ${time} ended with ${code}`);
      if (drainedMs > options.drainsWithinMs) broken.push(`SIGTERM ${time} took ${drainedMs} ms`);
      await gateway.start();
      await back();
      options.report(`SIGTERM ${time} of ${options.times}: ended within ${drainedMs} ms`);
      await sleep(systemClock, systemRandom.between(CALM_MS / 2, CALM_MS));
    }
  });
}

/** For a person at a terminal. */
export function describeFailure({ accepted, received, refused, backAfterMs, tookMs, broken }: FailureResult): string[] {
  return [
    `${accepted} messages accepted, ${received} received in ${Math.round(tookMs / 1000)} s`,
    `requests without a 202, repeated under their key: ${JSON.stringify(refused)}`,
    `back after ${Math.min(...backAfterMs)} to ${Math.max(...backAfterMs)} ms`,
    broken.length === 0 ? "every promise held" : `${broken.length} PROMISES BROKEN`,
  ];
}

type Fail = (stage: Stage, back: () => Promise<void>, broken: string[]) => Promise<void>;

/** Runs `fail` under load; it calls `back` at the end of each failure. */
async function underLoad(options: FailureOptions & { stage?: StageOptions }, fail: Fail): Promise<FailureResult> {
  const started = systemClock.now();
  const stage = await openStage(options.stage);
  try {
    await stage.addPhone(CUSTOMER);
    const probe = await stage.linkLine(PROBE);
    const lines: LinkedLine[] = [];
    for (let i = 0; i < options.lines; i++) lines.push(await stage.linkLine(String(FIRST_LINE + i)));
    const load = new Load(stage);
    const going = load.run(lines, probe);
    // Heard below; a failure of ours before that is the cause.
    going.catch(() => {});
    await sleep(systemClock, CALM_MS);

    const broken: string[] = [];
    const backAfterMs: number[] = [];
    await fail(stage, async () => {
      const over = systemClock.now();
      const { text } = await load.send(probe, `probe-${backAfterMs.length}`);
      await stage.arrival(CUSTOMER, (message) => message.text === text);
      const tookMs = systemClock.now() - over;
      backAfterMs.push(tookMs);
      if (tookMs > options.backWithinMs) broken.push(`back only after ${tookMs} ms`);
    }, broken);
    await sleep(systemClock, CALM_MS);
    load.end();
    await going;

    const { accepted, written, refused } = load;
    for (const { messageId } of accepted) await stage.status(messageId, "sent");
    const inbox = await until(systemClock, async () => {
      const all = (await stage.inbox(CUSTOMER)).filter(({ fromMe }) => !fromMe);
      return all.length >= accepted.length ? all : null;
    }, { what: "the last message at the phone", timeoutMs: 120_000 });
    broken.push(...checkArrivals(accepted, inbox), ...await notReceivedOnce(stage, written));
    // Fails when the process had ended before.
    await stage.end().catch((error) => broken.push(error.message));
    const tookMs = systemClock.now() - started;
    return { accepted: accepted.length, received: written.length, refused, backAfterMs, tookMs, broken };
  } catch (error) {
    await stage.abandon();
    throw error;
  }
}

/** Clients that repeat what got no 202 under its idempotency key, and a phone that writes. */
class Load {
  readonly accepted: AcceptedText[] = [];
  /** Texts that the phone wrote to the probe's line, in order. */
  readonly written: string[] = [];
  readonly refused: Record<string, number> = {};
  readonly #stage: Stage;
  #goesOn = true;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Runs until `end`; sends begun by then are accepted when it resolves. */
  async run(lines: LinkedLine[], writtenTo: LinkedLine): Promise<void> {
    const clients = lines.map(async (line) => {
      for (let i = 0; this.#goesOn; i++) {
        await this.send(line, `load-${i}`);
        await sleep(systemClock, systemRandom.between(...PAUSE_MS));
      }
    });
    await Promise.all([...clients, this.#write(writtenTo)]);
  }

  end(): void {
    this.#goesOn = false;
  }

  /** Sends until it is accepted. */
  async send({ sessionId, number }: LinkedLine, what: string): Promise<AcceptedText> {
    const text = `through a failure, line ${number}, ${what}`;
    this.#stage.secrets.add(text);
    const body = JSON.stringify({ sessionId, to: CUSTOMER, text });
    const headers = { "content-type": "application/json", "idempotency-key": `${number}-${what}` };
    const messageId = await until(systemClock, async () => {
      const answer = await this.#ask({ body, headers });
      if (answer.status === 202) return (await answer.json()).messageId as string;
      if (answer.status < 500) throw new Error(`a send was answered ${answer.status}: ${await answer.text()}`);
      await answer.body?.cancel();
      this.#count(answer.status === NO_ANSWER ? "none" : String(answer.status));
    }, { what: "a send to be accepted", timeoutMs: 300_000 });
    const accepted = { line: number, messageId, text, at: systemClock.now() };
    this.accepted.push(accepted);
    return accepted;
  }

  async #ask(init: RequestInit): Promise<Response> {
    try {
      return await this.#stage.request("POST", "/messages/send/text", { ...init, signal: AbortSignal.timeout(30_000) });
    } catch {
      return new Response(null, { status: NO_ANSWER });
    }
  }

  #count(name: string): void {
    this.refused[name] = (this.refused[name] ?? 0) + 1;
  }

  async #write({ number }: LinkedLine): Promise<void> {
    for (let i = 0; this.#goesOn; i++) {
      const text = `written during a failure ${i}`;
      this.#stage.secrets.add(text);
      await this.#stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: number, text });
      this.written.push(text);
      await sleep(systemClock, WRITES_EVERY_MS);
    }
  }
}

/** What was not reported as received exactly once, at the latest. */
async function notReceivedOnce(stage: Stage, written: string[]): Promise<string[]> {
  const end = systemClock.now() + GIVE_UP_AFTER_MS;
  const received = new Feed(stage.api.call, { query: "types=message.received" });
  for (;;) {
    const times = Map.groupBy(await received.readOn(), ({ data }) => data.text);
    const others = written.filter((text) => times.get(text)?.length !== 1);
    if (others.length === 0 || systemClock.now() > end) {
      return others.map((text) => `"${text}" was reported ${times.get(text)?.length ?? 0} times`);
    }
    await sleep(systemClock, 200);
  }
}

/** Writes to the end of the file until there is no byte left; resolves to how many it took. */
async function fill(path: string): Promise<number> {
  using file = await Deno.open(path, { append: true, create: true });
  let written = 0;
  for (const size of [256 * 1024, 4096, 1]) {
    try {
      for (;;) written += await file.write(new Uint8Array(size));
    } catch (error) {
      if (!/os error 28/.test(String(error))) throw error;
    }
  }
  return written;
}
