/**
 * Answers kept per account under the client's `Idempotency-Key` for 24 hours: the same key and body get the first
 * answer, another body is refused. Rows carry a timestamp; `sweepAnswers` removes expired ones. Unless a request's
 * commit keeps its answer, its process first claims the key on a shared store, in the same row.
 */
import { createHash } from "node:crypto";
import { Problem } from "../errors.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import { readUntil } from "../base/within.ts";
import type { Runtime } from "../runtime.ts";
import { accountKeys, type KeptAnswer } from "./rows.ts";
import { Change, type KeyOf, type Kv, type Slot, StoreError } from "../store/kv.ts";
import { deleteUnchanged } from "../store/delete_range.ts";
import type { Seal } from "../store/seal.ts";
import { shareReads } from "../store/layers/shared_reads.ts";

const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000;

/** How long a claim holds: longer than the calls to the network. If it is still there then, its process has died. */
const CLAIM_MS = 60_000;

/** A request that may be repeated. `fingerprint` identifies method, path and body. */
export interface RepeatableRequest {
  accountId: string;
  /** The header's value, at most 255 characters. */
  key: string;
  fingerprint: string;
}

/** Makes a change keep the answer, and fail its checks if another answer was kept in the meantime. */
export type Keep<T> = (change: Change, answer: T) => void;

interface IdempotencyDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "confirmed">;
  seal: Seal;
  /** Whether other processes answer requests on the same store. */
  isShared: boolean;
}

export class Idempotency {
  readonly #deps: IdempotencyDeps;
  readonly #sharedGet: ReturnType<typeof shareReads>;
  readonly #requests = new KeyedQueue();

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps;
    this.#sharedGet = shareReads(deps.kv);
  }

  /** Resolves to the first answer, or null. Throws Problem idempotency_key_reused if that was for another body. */
  async find<T>(request: RepeatableRequest): Promise<T | null> {
    return this.#answerIn<T>(await this.#sharedGet(rowOf(request)), request);
  }

  /**
   * Keeps the answer, which must survive JSON, in the change that does the work. The change must contain a check shared
   * by all concurrent requests with the same key.
   */
  keep(change: Change, request: RepeatableRequest, answer: unknown): void {
    const { seal, runtime: { clock } } = this.#deps;
    const sealed = seal.seal(new TextEncoder().encode(JSON.stringify(answer)));
    change.set(rowOf(request), { fingerprint: request.fingerprint, answer: sealed, keptAt: clock.now() });
  }

  /**
   * Resolves to the kept answer, or runs `work` and keeps its answer. Concurrent calls wait for the first, those of
   * other processes for at most a minute; a failed `work` keeps nothing. Throws as `find` and `work` do. After a crash,
   * `work` may run again: to create something, use `onceInCommit`.
   */
  async once<T>(request: RepeatableRequest, work: () => Promise<T>): Promise<T> {
    return await this.#requests.add(nameOf(request), async () => {
      for (;;) {
        const slot = await this.#unclaimed(request);
        const kept = this.#answerIn<T>(slot, request);
        if (kept !== null) return kept;
        const release = await this.#claim(slot, request);
        if (release === null) continue;
        let answer: T;
        try {
          answer = await work();
        } catch (error) {
          await release();
          throw error;
        }
        const change = new Change();
        this.keep(change, request, answer);
        await this.#deps.kv.commit(change);
        return answer;
      }
    });
  }

  /**
   * Claims the key for this process; resolves to what frees it again, or to null if another process was first. A
   * process that is alone needs no claim.
   */
  async #claim({ key, version }: Slot<KeptAnswer>, { fingerprint }: RepeatableRequest) {
    const { kv, runtime: { clock }, isShared } = this.#deps;
    if (!isShared) return () => Promise.resolve(null);
    const claim: KeptAnswer = { fingerprint, answer: null, keptAt: clock.now() };
    const claimed = await kv.commit(new Change().check({ key, version }).set(key, claim));
    if (claimed === null) return null;
    return () => kv.commit(new Change().check({ key, version: claimed }).delete(key));
  }

  /**
   * As `once`, for `work` that keeps its answer in the same change that does the work, so that neither is ever on disk
   * without the other.
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
        // Another process may have been faster: then our commits fail, or what it created has reached a limit, and its
        // answer is kept.
        if (!(error instanceof StoreError || error instanceof Problem)) throw error;
        const kept = this.#answerIn<T>(await this.#deps.kv.get(rowOf(request)), request);
        if (kept === null) throw error;
        return kept;
      }
    });
  }

  /** Resolves to the answer's row once no other process has a claim in it, or after a minute. */
  #unclaimed(request: RepeatableRequest): Promise<Slot<KeptAnswer>> {
    const { clock } = this.#deps.runtime;
    return readUntil(
      () => this.#sharedGet(rowOf(request)),
      ({ value }) => value === null || value.answer !== null || isOver(value, clock.now()),
      { clock, withinMs: CLAIM_MS, watch: () => () => {} },
    );
  }

  #answerIn<T>({ value }: Slot<KeptAnswer>, { fingerprint }: RepeatableRequest): T | null {
    const { runtime: { confirmed }, seal } = this.#deps;
    if (value === null || isOver(value, confirmed.now())) return null;
    if (value.fingerprint !== fingerprint) throw keyReused();
    if (value.answer === null) return null;
    return JSON.parse(new TextDecoder().decode(seal.open(value.answer)));
  }
}

/** Returns the refusal of a key that was used with another body. */
export function keyReused(): Problem {
  return new Problem("idempotency_key_reused", "This Idempotency-Key was used with another request.");
}

/** Removes answers older than 24 hours; resolves to their number. */
export async function sweepAnswers(kv: Kv, now: number): Promise<number> {
  async function* over() {
    for await (const row of kv.list({ prefix: accountKeys.answers() })) if (isOver(row.value, now)) yield row;
  }
  // The key may be used again while the sweep runs.
  return await deleteUnchanged(kv, over());
}

/** Returns the queue key shared by concurrent requests with the same idempotency key. */
function nameOf({ accountId, key }: RepeatableRequest): string {
  return JSON.stringify([accountId, key]);
}

/** Returns the answer's row. The client's key is hashed, so that many of them fit into a commit's limit for keys. */
function rowOf({ accountId, key }: RepeatableRequest): KeyOf<KeptAnswer> {
  return accountKeys.answer(accountId, createHash("sha256").update(key).digest("base64url"));
}

function isOver({ answer, keptAt }: KeptAnswer, now: number): boolean {
  return now - keptAt >= (answer === null ? CLAIM_MS : IDEMPOTENCY_MS);
}
