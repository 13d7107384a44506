/**
 * How long a line was silent after its worker was killed or frozen. The clock of a line runs from the last blow that hit
 * it (its worker, and then the one that took it over; the store's server, until it answers again), and only while a message
 * waits. Who holds it is read from the leases.
 */
import { clusterKeys } from "../../src/cluster/rows.ts";
import { LINE_KIND } from "../../src/line/remote.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import type { Kv } from "../../src/store/kv.ts";
import type { Process } from "../../tests/support/roles_stage.ts";
import { percentile } from "../bench/measure.ts";
import type { Blow } from "./blows.ts";

const LOOK_EVERY_MS = 500;

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
  lines: number;
  p50: number;
  p90: number;
  p99: number;
  longest: number;
  /** Of them, later than 10 s. */
  beyond10s: number;
  /** From a kill or a freeze until the last of its lines had sent, whatever else struck meanwhile: median and longest. */
  wholeWorker: [median: number, longest: number];
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
        for await (const { key, value: { holder } } of kv.list({ prefix: clusterKeys.leases(LINE_KIND) })) {
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
  const ofLines: number[] = [];
  const ofWorkers: number[] = [];
  for (const { kind, members, at } of struck) {
    if (kind !== "worker" && kind !== "freeze") continue;
    const lost = lines.filter(({ lineId }) => members!.has(holders.of(lineId, at)));
    const silences = lost.flatMap((line) => silence(line, { since: at, struck, holders }) ?? []);
    ofLines.push(...silences.map(({ judgedMs }) => judgedMs));
    if (silences.length > 0) ofWorkers.push(Math.max(...silences.map(({ wholeMs }) => wholeMs)));
  }
  const seconds = (ms: number) => Math.round(ms / 100) / 10;
  const at = (percent: number) => ofLines.length === 0 ? 0 : seconds(percentile(ofLines, percent));
  return {
    lines: ofLines.length,
    p50: at(50),
    p90: at(90),
    p99: at(99),
    longest: at(100),
    beyond10s: ofLines.filter((ms) => ms > 10_000).length,
    wholeWorker: [seconds(percentile(ofWorkers, 50)), seconds(percentile(ofWorkers, 100))],
  };
}

type Struck = Pick<Blow, "kind" | "at"> & { members: Set<string> | null };

/** Null for a line that had nothing more to send. */
function silence(
  { lineId, acceptedAt, sentAt }: LineTimes,
  { since, struck, holders }: { since: number; struck: readonly Struck[]; holders: Holders },
): { judgedMs: number; wholeMs: number } | null {
  const next = sentAt.findIndex((time) => time > since);
  if (next < 0) return null;
  const over = sentAt[next]!;
  const waitsSince = Math.max(since, acceptedAt[next] ?? since);
  const hits = struck.filter(({ kind, members, at }) => {
    if (at <= since || at >= over) return false;
    return kind === "restart" || members?.has(holders.of(lineId, at));
  });
  const judgedFrom = Math.max(waitsSince, ...hits.map(({ at }) => at));
  // A 202 may be noted here after the message has left.
  return { judgedMs: Math.max(0, over - judgedFrom), wholeMs: Math.max(0, over - waitsSince) };
}

/** By which names the others knew a worker: it says so in its log. */
function memberIds(process: Process): Set<string> {
  const lines = process.stderr().matchAll(/"member":"([0-9a-f]+)"[^\n]*one of those that share the store/g);
  return new Set([...lines].map(([, id]) => id!));
}
