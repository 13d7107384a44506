/** Counts wrong passwords, codes and passkeys by address, by login, and by both together. */
import { subscriberOf } from "../../base/addresses.ts";
import { Windows } from "../../base/windows.ts";
import type { Clock } from "../../runtime.ts";
import { Refusal } from "../refusal.ts";
import type { Person } from "../rows.ts";

const WINDOW_MS = 15 * 60_000;
/** Per address and login; allows for one person's typing errors. */
const MOST_OF_PAIR = 5;
/** Per address, and per login: many logins from one address, or one login from many addresses, indicate guessing. */
const MOST_OF_ONE = 50;

/** A login that somebody tries, and the known addresses of its owner, if it has one. */
type Tried = Pick<Person, "login"> & Partial<Pick<Person, "addresses">>;

export function makeThrottle(clock: Clock) {
  const failures = new Windows(clock, WINDOW_MS);
  const nameOfPair = (address: string, login: string) => `${subscriberOf(address)} ${login}`;
  const names = (address: string, login: string) =>
    [
      [nameOfPair(address, login), MOST_OF_PAIR],
      [`from ${subscriberOf(address)}`, MOST_OF_ONE],
      [`as ${login}`, MOST_OF_ONE],
    ] as const;

  function check(address: string, { login, addresses = [] }: Tried): void {
    const [ofPair, from, as] = names(address, login);
    // Strangers who guess a login do not lock out its owner at addresses where they have signed in before.
    for (const [name, most] of addresses.includes(subscriberOf(address)) ? [ofPair, from] : [ofPair, from, as]) {
      if (failures.count(name) < most) continue;
      const seconds = failures.secondsLeft(name);
      throw new Refusal("too_many_attempts", `Too many failed attempts. Try again in ${Math.ceil(seconds / 60)} min.`, {
        retryAfterSeconds: seconds,
      });
    }
  }

  return {
    /**
     * Resolves to the result of `prove`; null or false counts as a failure. Throws Refusal too_many_attempts, with the
     * seconds to wait. An attempt counts before `prove`, which is costly, and is taken back unless it failed.
     */
    async attempt<T>(address: string, tried: Tried, prove: () => Promise<T>): Promise<T> {
      check(address, tried);
      const counted = names(address, tried.login).map(([name]) => name);
      for (const name of counted) failures.add(name);
      let hasFailed = false;
      try {
        const found = await prove();
        hasFailed = !found;
        return found;
      } finally {
        if (!hasFailed) { for (const name of counted) failures.takeBack(name); }
      }
    },
    /** Called after a success; forgets the person's own failures. */
    succeeded: (address: string, login: string) => failures.forgive(nameOfPair(address, login)),
  };
}
