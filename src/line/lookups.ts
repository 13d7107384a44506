/**
 * A cache and rate limit for questions that clients may ask repeatedly: the network bans lines that poll it. Both are
 * in the memory of this process; a restart empties them.
 */
import { LRUCache } from "lru-cache";
import { Windows } from "../base/windows.ts";
import { Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";

/** Questions per line and minute that may reach the network: a few times what a person using the phone causes. */
const LIMIT = 60;
const WINDOW_MS = 60_000;
/** Size limit of the whole cache, in characters of JSON. */
const KEPT_CHARACTERS = 16_000_000;

interface Question<T> {
  lineId: string;
  /** What is asked, such as `group 1@g.us`; `forget` invalidates answers by a prefix of it. */
  about: string;
  /** How long an answer may be cached. */
  maxAgeMs: number;
  ask(): Promise<T>;
}

export type Lookups = ReturnType<typeof makeLookups>;

export function makeLookups({ clock }: { clock: Clock }) {
  const answers = new LRUCache<string, { value: unknown; at: number }>({
    maxSize: KEPT_CHARACTERS,
    sizeCalculation: ({ value }, key) => key.length + (JSON.stringify(value)?.length ?? 0) + 1,
  });
  /** Single flight: concurrent callers with the same question share one answer. */
  const asking = new Map<string, Promise<unknown>>();
  const windows = new Windows(clock, WINDOW_MS);

  function spend(lineId: string): void {
    if (windows.add(lineId).count <= LIMIT) return;
    throw new Problem("rate_limited", `A session asks the messaging network at most ${LIMIT} questions a minute.`, {
      retryAfterSeconds: windows.secondsLeft(lineId),
    });
  }

  /** Asks the network, and caches the answer unless `forget` was called for it in the meantime. */
  async function askAnew({ lineId, ask }: Question<unknown>, key: string): Promise<unknown> {
    spend(lineId);
    const asked = ask();
    asking.set(key, asked);
    try {
      const value = await asked;
      if (asking.get(key) === asked) answers.set(key, { value, at: clock.now() });
      return value;
    } finally {
      if (asking.get(key) === asked) asking.delete(key);
    }
  }

  function forget(beginning: string): void {
    for (const keys of [answers.keys(), asking.keys()]) {
      for (const key of [...keys]) if (key.startsWith(beginning)) void (answers.delete(key), asking.delete(key));
    }
  }

  return {
    /**
     * Answers from the cache or the network. Throws what `ask` throws, and Problem
     * rate_limited if the line asks too often.
     */
    async answer<T>(question: Question<T>): Promise<{ value: T; ageSeconds: number }> {
      const key = `${question.lineId} ${question.about}`;
      const kept = answers.get(key);
      const age = kept ? clock.now() - kept.at : Infinity;
      const isFresh = kept !== undefined && age < question.maxAgeMs;
      const value = isFresh ? kept.value : await (asking.get(key) ?? askAnew(question, key));
      return { value: value as T, ageSeconds: isFresh ? Math.floor(age / 1000) : 0 };
    },

    /** Invalidates the line's answers, also those still awaited, whose `about` begins with this prefix. */
    forget: (lineId: string, about: string): void => forget(`${lineId} ${about}`),

    /** Invalidates every answer, also those still awaited. */
    forgetAll: (): void => forget(""),
  };
}
