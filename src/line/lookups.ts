/**
 * Questions that clients may ask over and over, answered from memory for a while and limited for each line: the network
 * bans lines that poll it. In this process alone: a restart forgets.
 */
import { LRUCache } from "lru-cache";
import { Windows } from "../base/windows.ts";
import { Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";

/** Questions of a line that reach the network in a minute: some times what a person on the phone causes. */
const A_MINUTE = 60;
const WINDOW_MS = 60_000;
/** All answers together, in characters of JSON. */
const KEPT_CHARACTERS = 16_000_000;

interface Question<T> {
  lineId: string;
  /** What is asked, `group 1@g.us`; answers are forgotten by the beginning of it. */
  about: string;
  /** How long an answer is good. */
  maxAgeMs: number;
  ask(): Promise<T>;
}

export type Lookups = ReturnType<typeof makeLookups>;

export function makeLookups({ clock }: { clock: Clock }) {
  const answers = new LRUCache<string, { value: unknown; at: number }>({
    maxSize: KEPT_CHARACTERS,
    sizeCalculation: ({ value }, key) => key.length + (JSON.stringify(value)?.length ?? 0) + 1,
  });
  /** Single flight: those who ask the same at once share the answer. */
  const asking = new Map<string, Promise<unknown>>();
  const windows = new Windows(clock, WINDOW_MS);

  function spend(lineId: string): void {
    if (windows.add(lineId).count <= A_MINUTE) return;
    throw new Problem("rate_limited", `A session asks the messaging network at most ${A_MINUTE} questions a minute.`, {
      retryAfterSeconds: windows.secondsLeft(lineId),
    });
  }

  /** Asks, and keeps the answer unless it was forgotten meanwhile. */
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

  return {
    /** Throws what `ask` throws, and Problem rate_limited where the line has asked too much. */
    async answer<T>(question: Question<T>): Promise<{ value: T; ageSeconds: number }> {
      const key = `${question.lineId} ${question.about}`;
      const kept = answers.get(key);
      const age = kept ? clock.now() - kept.at : Infinity;
      const isFresh = kept !== undefined && age >= 0 && age < question.maxAgeMs;
      const value = isFresh ? kept.value : await (asking.get(key) ?? askAnew(question, key));
      return { value: value as T, ageSeconds: isFresh ? Math.floor(age / 1000) : 0 };
    },

    /** What is known of the line is not so any more: everything whose name begins like this. */
    forget(lineId: string, about: string): void {
      const beginning = `${lineId} ${about}`;
      for (const keys of [answers.keys(), asking.keys()]) {
        for (const key of [...keys]) if (key.startsWith(beginning)) void (answers.delete(key), asking.delete(key));
      }
    },
  };
}
