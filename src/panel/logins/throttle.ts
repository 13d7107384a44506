/** Wrong passwords, counted by address, by login, and by both. Kept in this process only: a restart forgives. */
import type { Clock } from "../../runtime.ts";
import { Refusal } from "../refusal.ts";

const WINDOW_MS = 15 * 60_000;
/** Allows for one person's typing errors. */
const MOST_OF_PAIR = 5;
/** Many logins from one address, or one login from many: somebody is guessing. */
const MOST_OF_ONE = 50;
const MAX_COUNTS = 10_000;

export interface Throttle {
  /** Throws Refusal too_many_attempts, with the seconds to wait, before anything costly is done. */
  check(address: string, login: string): void;
  failed(address: string, login: string): void;
  /** After a success a person's own errors are forgotten. */
  succeeded(address: string, login: string): void;
}

export function makeThrottle(clock: Clock): Throttle {
  const counts = new Map<string, { failures: number; endsAt: number }>();

  function live(name: string) {
    const count = counts.get(name);
    if (count && clock.now() < count.endsAt) return count;
    counts.delete(name);
    return null;
  }

  function add(name: string): void {
    if (counts.size >= MAX_COUNTS) { for (const name of [...counts.keys()]) live(name); }
    const count = live(name) ?? { failures: 0, endsAt: clock.now() + WINDOW_MS };
    counts.set(name, { ...count, failures: count.failures + 1 });
  }

  const names = (address: string, login: string) =>
    [[`${address} ${login}`, MOST_OF_PAIR], [`from ${address}`, MOST_OF_ONE], [`as ${login}`, MOST_OF_ONE]] as const;

  return {
    check(address, login) {
      for (const [name, most] of names(address, login)) {
        const count = live(name);
        if (!count || count.failures < most) continue;
        const seconds = Math.ceil((count.endsAt - clock.now()) / 1000);
        throw new Refusal("too_many_attempts", `Too many wrong tries; wait ${Math.ceil(seconds / 60)} min.`, {
          retryAfterSeconds: seconds,
        });
      }
    },
    failed(address, login) {
      for (const [name] of names(address, login)) add(name);
    },
    succeeded: (address, login) => void counts.delete(`${address} ${login}`),
  };
}
