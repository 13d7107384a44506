/** Checks whether the store accepts writes: with a full disk, reads still succeed. */
import type { Clock } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import { dataKeys } from "./rows.ts";

/** Least time between two writes, because anyone may ask whether the gateway is ready. */
const EVERY_MS = 1_000;

/**
 * Returns the probe, which resolves once a write is on disk, rejects if that fails, and hangs as long as the store
 * does. Calls within a second share one write.
 */
export function makeProbe(kv: Kv, clock: Clock): () => Promise<void> {
  let last: { at: number; written: Promise<void> } | null = null;
  async function write(now: number): Promise<void> {
    await kv.commit(new Change().set(dataKeys.probed(), now));
  }
  return () => {
    const now = clock.now();
    if (last === null || now - last.at >= EVERY_MS) {
      last = { at: now, written: write(now) };
      last.written.catch(() => {});
    }
    return last.written;
  };
}
