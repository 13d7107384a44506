/** A store whose commits fail when told to, as a full disk does. */
import { type Change, type Kv, StoreError } from "../../src/store/kv.ts";

export interface FailingKv extends Kv {
  /** Asked before each commit: true makes it fail. */
  fails: (change: Change) => boolean;
  /** The commits that succeeded, in order. */
  readonly commits: Change[];
}

export function failingKv(kv: Kv): FailingKv {
  const failing: FailingKv = {
    fails: () => false,
    commits: [],
    ...kv,
    async commit(change) {
      if (failing.fails(change)) throw new StoreError("full", "no space");
      const written = await kv.commit(change);
      failing.commits.push(change);
      return written;
    },
  };
  return failing;
}
