/** A fenced store: a commit through it succeeds only while its lease is still held (promise 9). */
import { Change, type Key, type Kv, StoreError } from "./kv.ts";

/** The lease's row as its holder wrote it. Any other version, or none, means that the lease is lost. */
interface FencingToken {
  readonly key: Key;
  readonly version: string;
}

/**
 * The lease is lost: nothing was written, and no retry can succeed. It is a StoreError, so that work that waits for the
 * store (an unacknowledged frame, an outcome) is left to the new holder in the same way.
 */
class Fenced extends StoreError {
  override name = "Fenced";

  constructor() {
    super("unavailable", "the lease has gone to another process: nothing was written");
  }
}

/**
 * Returns the same store with the fencing token checked in every commit. A commit refused because of the token calls
 * `lost` and rejects with Fenced. The token takes one of the checks that a commit may have.
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
