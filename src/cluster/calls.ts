/**
 * Remote calls to the process that holds a lease. Calls and answers are rows; the bell only announces them (promise 7).
 * A call is executed at most once: the process that executes it deletes its row first, as does a caller that gives up.
 * Arguments and results are sealed, because they contain message contents and secrets used for linking.
 */
import PQueue from "p-queue";
import type { Service } from "../base/service.ts";
import { Loop } from "../base/single_flight.ts";
import { readUntil } from "../base/within.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { deleteKeys } from "../store/delete_range.ts";
import { Change, type Key, type Kv, type Row } from "../store/kv.ts";
import { deserialise, serialise } from "../store/layers/row_format.ts";
import type { Seal } from "../store/seal.ts";
import { type AnswerRow, type CallRow, clusterKeys, type WrittenError } from "./rows.ts";

/** How long a caller waits for the answer. */
const ANSWER_WITHIN_MS = 9_000;
/** Polling interval, in case a ring is lost. */
const LOOK_EVERY_MS = 1_000;

const CALL_TOPIC = "call/";
const ANSWER_TOPIC = "answer/";

/** No answer came in time: it is unknown whether the call was executed. */
export class CallTimeout extends Error {
  override name = "CallTimeout";
}

/** The call failed; `error` is the other side's error in serialised form. */
export class CallFailed extends Error {
  override name = "CallFailed";
  constructor(readonly error: WrittenError) {
    super("the call failed");
  }
}

/** Calls a method of the process that holds the thing's lease. Throws CallTimeout, CallFailed, StoreError. */
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
    await kv.commit(new Change().set(call, { caller, method, args: sealed(seal, args) }));
    bell.ring(CALL_TOPIC + thing);
    const { value } = await readUntil(() => kv.get(answer), ({ value }) => value !== null, {
      clock,
      withinMs: ANSWER_WITHIN_MS,
      watch: (rung) => bell.hear(`${ANSWER_TOPIC}${caller}/${callId}`, rung),
    });
    await kv.commit(new Change().delete(value === null ? call : answer));
    if (value === null) throw new CallTimeout("nobody answered in time");
    if (!value.ok) throw new CallFailed(value.error);
    return opened(seal, value.value);
  };
}

interface AnswerOptions extends CallOptions {
  /** Whether this process answers for the thing. */
  answersFor(thing: string): boolean;
  answer(thing: string, method: string, args: unknown[]): Promise<unknown>;
  /** Serialises an error so that the caller can recreate it. */
  written(error: unknown): WrittenError;
}

/** Returns the service that answers calls about things whose leases this process holds. */
export function makeAnswers(options: AnswerOptions): Service {
  const { kv, bell, seal, runtime: { clock, log }, answersFor, answer, written } = options;
  const underWay = new PQueue();
  let deafen: (() => void) | null = null;

  async function answerTo(thing: string, { method, args }: CallRow): Promise<AnswerRow> {
    try {
      const value = await answer(thing, method, opened<unknown[]>(seal, args));
      return { ok: true, value: sealed(seal, value) };
    } catch (error) {
      return { ok: false, error: written(error) };
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
      log.warn({ error: String(error) }, "a call could not be answered");
    }
  }

  const looks = new Loop(clock, async () => {
    try {
      for await (const row of kv.list({ prefix: clusterKeys.calls() })) {
        if (answersFor(String(row.key.at(-2)))) void underWay.add(() => take(row));
      }
    } catch (error) {
      log.warn({ error: String(error) }, "calls could not be read");
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

/** Throws SealError if the other side has another secret key. */
function opened<T>(seal: Pick<Seal, "open">, bytes: Uint8Array): T {
  return deserialise(seal.open(bytes)) as T;
}

/**
 * Returns a sweep, for once a minute, of calls and answers that nobody collects: those that were there at its last run.
 * Their ages would be told by the clocks of other machines. It resolves to their number.
 */
export function makeSweepCalls(kv: Kv): () => Promise<number> {
  let before = new Set<string>();
  return async () => {
    const there = new Set<string>();
    async function* abandoned(): AsyncGenerator<Key> {
      for (const prefix of [clusterKeys.calls(), clusterKeys.answers()]) {
        for await (const { key } of kv.list<unknown>({ prefix })) {
          const name = key.join();
          if (before.has(name)) yield key;
          else there.add(name);
        }
      }
    }
    const removed = await deleteKeys(kv, abandoned());
    before = there;
    return removed;
  };
}
