/**
 * Answers kept under a client's `Idempotency-Key`, per account, for 24 hours: the same key and body give the first
 * answer, another body is refused. Rows carry their own time; `sweepAnswers` removes what is over.
 */
import { createHash } from "node:crypto";
import { Problem } from "../errors.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import type { Clock } from "../runtime.ts";
import { accountKeys, type KeptAnswer } from "./rows.ts";
import { Change, type KeyOf, type Kv, type Slot, StoreError } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import { shareReads } from "../store/layers/shared_reads.ts";

const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000;

/** Removals that the sweep has in flight at once. */
const SWEEP_BATCH = 200;

/** A request that may be repeated. `fingerprint` stands for method, path and body. */
export interface RepeatableRequest {
  accountId: string;
  /** The header's value, at most 255 characters. */
  key: string;
  fingerprint: string;
}

/** Adds to a change that it keeps the answer, and that it fails its checks when another was kept meanwhile. */
export type Keep<T> = (change: Change, answer: T) => void;

export class Idempotency {
  readonly #deps: { kv: Kv; clock: Clock; seal: Seal };
  readonly #sharedGet: ReturnType<typeof shareReads>;
  readonly #requests = new KeyedQueue();

  constructor(deps: { kv: Kv; clock: Clock; seal: Seal }) {
    this.#deps = deps;
    this.#sharedGet = shareReads(deps.kv);
  }

  /** The first answer, or null. Throws Problem idempotency_key_reused when it was given to another body. */
  async find<T>(request: RepeatableRequest): Promise<T | null> {
    return this.#answerIn<T>(await this.#sharedGet(rowOf(request)), request);
  }

  /**
   * Keeps the answer, which must survive JSON, in the change that does the work. The change must have a check that
   * every rival of the same key shares.
   */
  keep(change: Change, request: RepeatableRequest, answer: unknown): void {
    const { seal, clock } = this.#deps;
    const sealed = seal.seal(new TextEncoder().encode(JSON.stringify(answer)));
    change.set(rowOf(request), { fingerprint: request.fingerprint, answer: sealed, keptAt: clock.now() });
  }

  /**
   * The kept answer, or that of `work`, which is kept then. Rivals in this process wait for the first; a failed `work`
   * keeps nothing. Throws as `find` and as `work`. What `work` did before a crash may be done again: where it makes
   * something, see `onceInCommit`.
   */
  async once<T>(request: RepeatableRequest, work: () => Promise<T>): Promise<T> {
    return await this.#requests.add(nameOf(request), async () => {
      const kept = await this.find<T>(request);
      if (kept !== null) return kept;
      const answer = await work();
      const change = new Change();
      this.keep(change, request, answer);
      await this.#deps.kv.commit(change);
      return answer;
    });
  }

  /**
   * As `once`, for `work` that keeps its answer itself, in the change that does it: neither is on disk without the
   * other, whatever fails in between.
   */
  async onceInCommit<T>(request: RepeatableRequest, work: (keep: Keep<T>) => Promise<T>): Promise<T> {
    return await this.#requests.add(nameOf(request), async () => {
      const attempt = async () => {
        const slot = await this.#sharedGet(rowOf(request));
        return this.#answerIn<T>(slot, request) ??
          await work((change, answer) => this.keep(change.check(slot), request, answer));
      };
      try {
        return await attempt();
      } catch (error) {
        // A rival in another process may have been faster: then no commit of ours can pass, and its answer is there.
        if (!(error instanceof StoreError)) throw error;
        const kept = this.#answerIn<T>(await this.#deps.kv.get(rowOf(request)), request);
        if (kept === null) throw error;
        return kept;
      }
    });
  }

  #answerIn<T>({ value }: Slot<KeptAnswer>, { fingerprint }: RepeatableRequest): T | null {
    const { clock, seal } = this.#deps;
    if (value === null || isOver(value, clock.now())) return null;
    if (value.fingerprint !== fingerprint) throw keyReused();
    return JSON.parse(new TextDecoder().decode(seal.open(value.answer)));
  }
}

/** The refusal of a key that came with another body before. */
export function keyReused(): Problem {
  return new Problem("idempotency_key_reused", "This Idempotency-Key was used with another request.");
}

/** Removes answers that are older than 24 hours; returns how many. */
export async function sweepAnswers(kv: Kv, now: number): Promise<number> {
  let swept = 0;
  let removals: Promise<string | null>[] = [];
  const settle = async () => {
    swept += (await Promise.all(removals)).filter((version) => version !== null).length;
    removals = [];
  };
  for await (const row of kv.list({ prefix: accountKeys.answers() })) {
    // Checked: a key may be used anew while the sweep runs.
    if (isOver(row.value, now)) removals.push(kv.commit(new Change().check(row).delete(row.key)));
    if (removals.length >= SWEEP_BATCH) await settle();
  }
  await settle();
  return swept;
}

/** Rivals have the same. */
function nameOf({ accountId, key }: RepeatableRequest): string {
  return JSON.stringify([accountId, key]);
}

/** The client's key is hashed: a commit with many of them stays within what it may hold in keys. */
function rowOf({ accountId, key }: RepeatableRequest): KeyOf<KeptAnswer> {
  return accountKeys.answer(accountId, createHash("sha256").update(key).digest("base64url"));
}

function isOver(kept: KeptAnswer, now: number): boolean {
  return now - kept.keptAt >= IDEMPOTENCY_MS;
}
