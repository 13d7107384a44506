/** A store behind a fence: whoever writes through it still holds the lease that it was given for (promise 9). */
import { Change, type Key, type Kv, StoreError } from "./kv.ts";

/** The row of a lease as its holder wrote it: another version, or none, means that the lease has gone elsewhere. */
interface FencingToken {
  readonly key: Key;
  readonly version: string;
}

/**
 * The lease has gone elsewhere: nothing was written, and never will be. A StoreError, so that whatever waits for the
 * store (an unacknowledged frame, an outcome) waits for the new holder in the same way.
 */
class Fenced extends StoreError {
  override name = "Fenced";

  constructor() {
    super("unavailable", "the lease has gone to another process: nothing was written");
  }
}

/**
 * The same store; each commit through it checks the token too, in the same commit. One that is refused because of the
 * token calls `lost` and rejects with Fenced. Costs one of the checks that the store takes.
 */
export function withFence(kv: Kv, token: FencingToken, lost: () => void): Kv {
  return {
    ...kv,
    mostChecks: kv.mostChecks - 1,
    async commit(change, options) {
      const version = await kv.commit(new Change().check(token).include(change), options);
      if (version !== null || (await kv.get(token.key)).version === token.version) return version;
      lost();
      throw new Fenced();
    },
    close() {},
  };
}
