/** What a gateway's process is under: how late its event loop comes, its processor time, its memory, what it asks of its store. */
import process from "node:process";
import { writtenBytes } from "../proc.ts";
import { percentile } from "./measure.ts";

/** Reads, commits that the disk had to flush (several of ours may share one), and the rows that they wrote or deleted. */
export interface StoreCalls {
  reads: number;
  flushes: number;
  rows: number;
}

/** What the process has used when asked, since it was last asked. */
export interface GatewayUse extends StoreCalls {
  /** Processor time of the process. */
  usedMs: number;
  /** What it caused to be written to the disk, pages of files whole; 0 where the system does not tell. */
  writtenBytes: number;
}

/** What the process reports when asked, for the time since it was last asked. */
export interface GatewayLoad extends StoreCalls {
  /** Processor time of the process. */
  usedMs: number;
  /** The longest that work held its event loop: processor time that its thread used within one turn. */
  heldMs: number;
  /** The longest turn by the clock: on a shared machine most of it may be waiting for a processor. */
  turnMs: number;
  /** How late timers come, by the clock. */
  lateP50: number;
  lateP99: number;
  /** Resident memory, bytes: now, and at most. */
  bytes: number;
  peakBytes: number;
}

export const NO_CALLS: StoreCalls = { reads: 0, flushes: 0, rows: 0 };

const LOOK_EVERY_MS = 10;

/** Says what each of so many texts took of the store and the disk. */
export function useInWords({ reads, rows, flushes, writtenBytes }: GatewayUse, texts: number): string {
  const each = (count: number, digits: number) => (count / texts).toFixed(digits);
  return `${each(reads, 1)} reads, ${each(rows, 1)} rows, ${each(flushes, 2)} flushes and ${
    each(writtenBytes / 1024, 0)
  } KiB to disk a text`;
}

/** The returned function answers for the time since its last call. */
export function watchUse(storeCalls: () => StoreCalls): () => Promise<GatewayUse> {
  const look = () => ({ usedMs: usedMs(), writtenBytes: writtenBytes("self"), ...storeCalls() });
  return sinceLast(() => Promise.resolve(look()));
}

/** The returned function answers for the time since its last call. */
export function sinceLast(look: () => Promise<GatewayUse>): () => Promise<GatewayUse> {
  let before = look();
  return async () => {
    const [then, now] = [await before, await look()];
    before = Promise.resolve(now);
    const names = Object.keys(now) as (keyof GatewayUse)[];
    return Object.fromEntries(names.map((name) => [name, now[name] - then[name]])) as Record<keyof GatewayUse, number>;
  };
}

/** The returned function answers for the time since its last call. Sampling costs processor time: it begins with the first. */
export function watchLoad(storeCalls: () => StoreCalls): () => Promise<GatewayLoad> {
  let answer: (() => GatewayLoad) | null = null;
  return () => Promise.resolve((answer ??= sample(storeCalls))());
}

function sample(storeCalls: () => StoreCalls): () => GatewayLoad {
  let most = { heldMs: 0, peakBytes: 0 };
  let lateMs: number[] = [];
  let last = { at: performance.now(), loopMs: loopMs() };
  let askedAt = usedMs();
  let before = storeCalls();
  // Watching keeps no process alive.
  Deno.unrefTimer(setInterval(() => {
    const now = { at: performance.now(), loopMs: loopMs() };
    const turnMs = Math.max(0, now.at - last.at - LOOK_EVERY_MS);
    lateMs.push(turnMs);
    most = {
      heldMs: Math.max(most.heldMs, Math.min(turnMs, now.loopMs - last.loopMs)),
      peakBytes: Math.max(most.peakBytes, Deno.memoryUsage().rss),
    };
    last = now;
  }, LOOK_EVERY_MS));
  return () => {
    const calls = storeCalls();
    const load: GatewayLoad = {
      ...most,
      turnMs: percentile([0, ...lateMs], 100),
      lateP50: percentile([0, ...lateMs], 50),
      lateP99: percentile([0, ...lateMs], 99),
      usedMs: usedMs() - askedAt,
      bytes: Deno.memoryUsage().rss,
      reads: calls.reads - before.reads,
      flushes: calls.flushes - before.flushes,
      rows: calls.rows - before.rows,
    };
    before = calls;
    askedAt += load.usedMs;
    most = { heldMs: 0, peakBytes: 0 };
    lateMs = [];
    return load;
  };
}

/** Processor time of the process so far. */
function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** That of the thread of the event loop: others collect garbage and work for the store meanwhile. */
function loopMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Counts from now on, in every store opened later; the function returns the counts so far. */
export function countStoreCalls(): () => StoreCalls {
  const calls = { ...NO_CALLS };
  const { openKv } = Deno;
  const open = async (path?: string): Promise<Deno.Kv> => {
    const kv = await openKv(path);
    // Not on disk: the bell's queue.
    if (path === ":memory:") return kv;
    const { get, getMany, list, atomic } = kv;
    const counted =
      <Given extends unknown[], Answer>(call: (...given: Given) => Answer) => (...given: Given): Answer => {
        calls.reads++;
        return call.apply(kv, given);
      };
    return Object.assign(kv, {
      get: counted(get as () => unknown),
      getMany: counted(getMany as () => unknown),
      list: counted(list as () => unknown),
      atomic() {
        const operation = atomic.call(kv);
        const { commit, set, delete: remove, mutate } = operation;
        const writing = <Given extends unknown[]>(call: (...given: Given) => unknown) => (...given: Given) => {
          calls.rows++;
          call.apply(operation, given);
          return operation;
        };
        return Object.assign(operation, {
          set: writing(set as () => unknown),
          delete: writing(remove),
          mutate: writing(mutate),
          commit() {
            calls.flushes++;
            return commit.call(operation);
          },
        });
      },
    });
  };
  Object.defineProperty(Deno, "openKv", { value: open });
  return () => ({ ...calls });
}
