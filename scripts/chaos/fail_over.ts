/**
 * How long a line was silent after its worker was killed or frozen: until another one sends for it, and only while a message
 * waits. Who holds it is read from the leases. The clock of a line begins anew with each further blow that hits it (the
 * worker that took it over; the store's server, until it answers again). Of lines that were undisturbed it runs from the
 * one blow that there was.
 */
import { leaseKeys } from "../../src/cluster/rows.ts";
import { LINE } from "../../src/line/rows.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import type { Kv } from "../../src/store/kv.ts";
import type { Process } from "../../tests/support/roles_stage.ts";
import { percentile } from "../bench/measure.ts";
import type { Blow } from "./blows.ts";

const LOOK_EVERY_MS = 200;
/** What the product promises. */
const LATE_MS = 10_000;
/** Whoever was struck so long ago has been given up, and its lines are somebody else's. */
const GIVEN_UP_AFTER_MS = 8_000;

/** What the line says of itself, oldest first, Unix ms. */
export interface LineTimes {
  lineId: string;
  /** When each of its messages was answered with 202. */
  acceptedAt: readonly number[];
  /** When each was first seen by the network's server. */
  sentAt: readonly number[];
}

export interface FailOver {
  /** Lines that lost their worker, each time that they did. */
  all: Silences;
  /** Of them, those around whose loss no other worker, no connection to the store and not its server was struck. */
  undisturbed: Silences;
  /** Of those beyond 10 s, how many had these blows fall beside their own. */
  lateAmid: Record<string, number>;
  /** From a kill or a freeze until the last of its lines had sent, whatever else struck meanwhile: median and longest. */
  wholeWorker: [median: number, longest: number];
}

interface Silences {
  lines: number;
  p50: number;
  p90: number;
  p99: number;
  longest: number;
  /** Later than that. */
  beyond10s: number;
}

/** Which worker had which line when, looked up again and again. */
export class Holders {
  readonly #seen = new Map<string, { at: number; holder: string }[]>();
  readonly #closing = new AbortController();
  readonly #looking: Promise<void>;

  constructor(kv: Kv) {
    this.#looking = this.#look(kv);
  }

  /** The member that had the line then; "" for nobody. */
  of(lineId: string, at: number): string {
    return this.#seen.get(lineId)?.findLast((look) => look.at <= at)?.holder ?? "";
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#looking;
  }

  async #look(kv: Kv): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        const at = systemClock.now();
        for await (const { key, value: { holder } } of kv.list({ prefix: leaseKeys(LINE.name).leases() })) {
          const lineId = String(key.at(-1));
          const looks = this.#seen.get(lineId) ?? [];
          if (looks.at(-1)?.holder !== holder) this.#seen.set(lineId, [...looks, { at, holder }]);
        }
      } catch { /* The store was struck. */ }
      await sleep(systemClock, LOOK_EVERY_MS, this.#closing.signal);
    }
  }
}

export function judgeFailOver(
  blows: readonly Blow[],
  { holders, lines }: { holders: Holders; lines: readonly LineTimes[] },
): FailOver {
  const struck = blows.map((blow) => ({ ...blow, members: blow.process && memberIds(blow.process) }));
  const silences: Silence[] = [];
  const ofWorkers: number[] = [];
  for (const blow of struck) {
    const { kind, members, at } = blow;
    if (kind !== "worker" && kind !== "freeze") continue;
    const lost = lines.filter(({ lineId }) => members!.has(holders.of(lineId, at)));
    const ofWorker = lost.flatMap((line) => silence(line, { blow, struck, holders }) ?? []);
    silences.push(...ofWorker);
    if (ofWorker.length > 0) ofWorkers.push(Math.max(...ofWorker.map(({ wholeMs }) => wholeMs)));
  }
  const late = silences.filter(({ judgedMs }) => judgedMs > LATE_MS);
  return {
    all: summaryOf(silences),
    undisturbed: summaryOf(silences.filter(({ amid }) => amid.length === 0)),
    lateAmid: Object.fromEntries(
      [...Map.groupBy(late, ({ amid }) => amid.join(", ") || "nothing")].map(([amid, of]) => [amid, of.length]),
    ),
    wholeWorker: [seconds(percentile(ofWorkers, 50)), seconds(percentile(ofWorkers, 100))],
  };
}

function summaryOf(silences: readonly Silence[]): Silences {
  const judged = silences.map(({ judgedMs }) => judgedMs);
  const at = (percent: number) => judged.length === 0 ? 0 : seconds(percentile(judged, percent));
  const beyond10s = judged.filter((ms) => ms > LATE_MS).length;
  return { lines: judged.length, p50: at(50), p90: at(90), p99: at(99), longest: at(100), beyond10s };
}

const seconds = (ms: number) => Math.round(ms / 100) / 10;

type Struck = Pick<Blow, "kind" | "at"> & { members: Set<string> | null };

interface Silence {
  /** From the last blow that hit the line. */
  judgedMs: number;
  /** From the first. */
  wholeMs: number;
  /** Kinds of other blows that could touch it, from just before its worker was struck until it sent again. */
  amid: Blow["kind"][];
}

/** Null for a line that had nothing more to send. */
function silence(
  { lineId, acceptedAt, sentAt }: LineTimes,
  { blow, struck, holders }: { blow: Struck; struck: readonly Struck[]; holders: Holders },
): Silence | null {
  const since = blow.at;
  const before = holders.of(lineId, since);
  // What the struck worker had written may arrive after the blow.
  const next = sentAt.findIndex((time) => time > since && holders.of(lineId, time) !== before);
  if (next < 0) return null;
  const over = sentAt[next]!;
  const waitsSince = Math.max(since, acceptedAt[next] ?? since);
  const others = struck.filter((other) => other !== blow && other.at < over);
  const hits = others.filter(({ kind, members, at }) =>
    at > since && (kind === "restart" || members?.has(holders.of(lineId, at)))
  );
  const judgedFrom = Math.max(waitsSince, ...hits.map(({ at }) => at));
  const near = others.filter(({ kind, at }) => kind !== "api" && at > since - GIVEN_UP_AFTER_MS);
  // A 202 may be noted here after the message has left.
  return {
    judgedMs: Math.max(0, over - judgedFrom),
    wholeMs: Math.max(0, over - waitsSince),
    amid: [...new Set(near.map(({ kind }) => kind))].sort(),
  };
}

/** By which names the others knew a worker: it says so in its log. */
function memberIds(process: Process): Set<string> {
  const lines = process.stderr().matchAll(/"member":"([0-9a-f]+)"[^\n]*joined the cluster/g);
  return new Set([...lines].map(([, id]) => id!));
}
