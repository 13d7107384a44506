/**
 * Asking the holder of a lease, wherever it is: the question is a row, and so is the answer; the bell only says that they
 * are there (promise 7). A question is done at most once: whoever does it takes its row away first, and so does a caller
 * that waits no longer. Both are sealed: they hold what messages say, and what signs in.
 */
import v8 from "node:v8";
import PQueue from "p-queue";
import type { Service } from "../base/service.ts";
import { Loop } from "../base/single_flight.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, type Kv, type Row } from "../store/kv.ts";
import { serialise } from "../store/layers/row_format.ts";
import type { Seal } from "../store/seal.ts";
import { type AnswerRow, type CallRow, clusterKeys, type WrittenError } from "./rows.ts";

/** How long an answer is waited for. */
const ANSWER_WITHIN_MS = 9_000;
/** So often a ring that was lost is made up for. */
const LOOK_EVERY_MS = 1_000;
/** What nobody came for is swept after this time. */
const KEPT_MS = 60_000;

const CALL_TOPIC = "call/";
const ANSWER_TOPIC = "answer/";

/** Nobody answered in time: whether it was done is not known. */
export class CallTimeout extends Error {
  override name = "CallTimeout";
}

/** What was asked failed; `error` is as the other side wrote it down. */
export class CallFailed extends Error {
  override name = "CallFailed";
  constructor(readonly error: WrittenError) {
    super("the call failed");
  }
}

/** Asks the holder of the thing. Throws CallTimeout, CallFailed, StoreError. */
export type Ask = (thing: string, method: string, args: unknown[]) => Promise<unknown>;

interface CallOptions {
  kv: Kv;
  bell: Bell;
  seal: Pick<Seal, "seal" | "open">;
  runtime: Pick<Runtime, "clock" | "ids" | "log">;
}

export function makeAsk({ kv, bell, seal, runtime: { clock, ids } }: CallOptions): Ask {
  const caller = ids.network();
  return async (thing, method, args) => {
    const callId = ids.network();
    const call = clusterKeys.call(thing, callId);
    const answer = clusterKeys.answer(caller, callId);
    const over = clock.now() + ANSWER_WITHIN_MS;
    let rung = new AbortController();
    const deafen = bell.hear(`${ANSWER_TOPIC}${caller}/${callId}`, () => rung.abort());
    try {
      await kv.commit(new Change().set(call, { caller, method, args: sealed(seal, args), askedAt: clock.now() }));
      bell.ring(CALL_TOPIC + thing);
      for (let left = ANSWER_WITHIN_MS; left > 0; left = over - clock.now()) {
        await sleep(clock, Math.min(left, LOOK_EVERY_MS), rung.signal);
        rung = new AbortController();
        const { value } = await kv.get(answer);
        if (value === null) continue;
        await kv.commit(new Change().delete(answer));
        if (value.ok) return opened(seal, value.value);
        throw new CallFailed(value.error);
      }
      await kv.commit(new Change().delete(call));
      throw new CallTimeout("nobody answered in time");
    } finally {
      deafen();
    }
  };
}

interface AnswerOptions extends CallOptions {
  /** Whether this process answers for the thing. */
  answersFor(thing: string): boolean;
  answer(thing: string, method: string, args: unknown[]): Promise<unknown>;
  /** Writes an error down so that the caller can make it again. */
  written(error: unknown): WrittenError;
}

/** Answers what is asked of things that are this process's. */
export function makeAnswers(options: AnswerOptions): Service {
  const { kv, bell, seal, runtime: { clock, log }, answersFor, answer, written } = options;
  const underWay = new PQueue();
  let deafen: (() => void) | null = null;

  async function answerTo(thing: string, { method, args }: CallRow): Promise<AnswerRow> {
    try {
      const value = await answer(thing, method, opened<unknown[]>(seal, args));
      return { ok: true, value: sealed(seal, value), at: clock.now() };
    } catch (error) {
      return { ok: false, error: written(error), at: clock.now() };
    }
  }

  /** Never rejects. */
  async function take({ key, value, version }: Row<CallRow>): Promise<void> {
    const [thing, callId] = [String(key.at(-2)), String(key.at(-1))];
    try {
      if (!await kv.commit(new Change().check({ key, version }).delete(key))) return;
      const row = await answerTo(thing, value);
      await kv.commit(new Change().set(clusterKeys.answer(value.caller, callId), row));
      bell.ring(`${ANSWER_TOPIC}${value.caller}/${callId}`);
    } catch (error) {
      log.warn({ error: String(error) }, "a question could not be answered");
    }
  }

  const looks = new Loop(clock, async () => {
    try {
      for await (const row of kv.list({ prefix: clusterKeys.calls() })) {
        if (answersFor(String(row.key.at(-2)))) void underWay.add(() => take(row));
      }
    } catch (error) {
      log.warn({ error: String(error) }, "questions could not be read");
    }
    return LOOK_EVERY_MS;
  });

  return {
    async start() {
      if (deafen) return;
      looks.start(LOOK_EVERY_MS);
      deafen = bell.hear(CALL_TOPIC, (topic) => {
        if (answersFor(topic.slice(CALL_TOPIC.length))) void looks.now();
      });
      await looks.now();
    },
    async stop() {
      deafen?.();
      await looks.stop();
      await underWay.onIdle();
    },
  };
}

function sealed(seal: Pick<Seal, "seal">, value: unknown): Uint8Array {
  return seal.seal(serialise(value));
}

/** Throws SealError where the other side has another secret key. */
function opened<T>(seal: Pick<Seal, "open">, bytes: Uint8Array): T {
  return v8.deserialize(seal.open(bytes));
}

/** Removes questions and answers that nobody came for; resolves to how many. */
export async function sweepCalls(kv: Kv, now: number): Promise<number> {
  const change = new Change();
  for await (const { key, value } of kv.list({ prefix: clusterKeys.calls() }, { limit: 400 })) {
    if (now - value.askedAt > KEPT_MS) change.delete(key);
  }
  for await (const { key, value } of kv.list({ prefix: clusterKeys.answers() }, { limit: 400 })) {
    if (now - value.at > KEPT_MS) change.delete(key);
  }
  if (change.mutations.length > 0) await kv.commit(change);
  return change.mutations.length;
}
