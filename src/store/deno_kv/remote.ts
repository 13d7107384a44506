/**
 * Deno KV on a server by KV Connect: Deno Deploy's, or a `denokv`. The runtime retries forever against a server that
 * does not answer; this engine rejects in time, as the port requires. A commit may still be written afterwards.
 */
import type { Clock, Runtime } from "../../runtime.ts";
import { within } from "../../base/within.ts";
import { type Kv, type ListOptions, type Range, type Row, StoreAway } from "../kv.ts";
import type { ChunkedKv } from "../layers/chunk.ts";
import { COMMIT_LIMITS } from "../limits.ts";
import { denoKvEngine, openAnswering, withLayers } from "./deno_kv.ts";

const ANSWER_MS = 10_000;
/**
 * Late operations cannot be cancelled, and the runtime retries each until the server is back. With this many, further
 * ones are refused at once: during a long outage they would fill the memory, and then all reach the server together.
 */
const MOST_LATE_COMMITS = 8;
const MOST_LATE_READS = 100;
/** How long a late operation counts: on a connection that died unnoticed, its answer may never come. */
const LATE_FOR_MS = 120_000;

/** Opens the store at `url`. The runtime reads the access token from `DENO_KV_ACCESS_TOKEN`. Throws StoreError. */
export async function openRemoteDenoKv(url: string, options: { runtime: Runtime }): Promise<ChunkedKv> {
  const engine = remoteEngine(await openServer(url, options), options);
  const limit = { clock: options.runtime.clock, ms: ANSWER_MS, late: unanswered };
  return withLayers(engine, { limits: COMMIT_LIMITS, limit, ...options });
}

/** Connects to the server, without the layers. Throws StoreError. */
export async function openServer(url: string, { runtime }: { runtime: Pick<Runtime, "clock"> }): Promise<Deno.Kv> {
  return await openAnswering(url, runtime.clock, { late: unanswered });
}

/** Returns the engine on such a connection, with a time limit on every operation. */
export function remoteEngine(native: Deno.Kv, { runtime }: { runtime: Pick<Runtime, "clock"> }): Kv {
  const kv = denoKvEngine({ writes: native, reads: native }, { runtime });
  const commitInTime = inTime(runtime.clock, MOST_LATE_COMMITS);
  const readInTime = inTime(runtime.clock, MOST_LATE_READS);
  return {
    mostChecks: COMMIT_LIMITS.checks,
    get: (key) => readInTime(() => kv.get(key)),
    getMany: (keys) => readInTime(() => kv.getMany(keys)),
    async *list<T>(range: Range<T>, options?: ListOptions): AsyncIterable<Row<T>> {
      const rows = kv.list(range, options)[Symbol.asyncIterator]();
      for (;;) {
        const { value, done } = await readInTime(() => rows.next());
        if (done) return;
        yield value;
      }
    },
    commit: (change) => commitInTime(() => kv.commit(change)),
    close: () => kv.close(),
  };
}

/** Returns a function that runs operations with a time limit, and refuses them while `mostLate` late ones still run. */
function inTime(clock: Clock, mostLate: number): <T>(run: () => Promise<T>) => Promise<T> {
  /** The late operations that run, oldest first, and when each became late. */
  const late = new Map<Promise<unknown>, number>();
  return async (run) => {
    for (const [operation, since] of late) if (clock.now() - since >= LATE_FOR_MS) late.delete(operation);
    if (late.size >= mostLate) throw unanswered();
    const answer = run();
    const answered = await within(clock, ANSWER_MS, answer);
    if (answered !== "late") return answered;
    late.set(answer, clock.now());
    const end = () => void late.delete(answer);
    answer.then(end, end);
    throw unanswered();
  };
}

const unanswered = () => new StoreAway("the server of the Deno KV does not answer");
