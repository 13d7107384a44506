/** Whether the store takes writes: a full disk answers every read, and keeps nothing. */
import type { Clock } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import { dataKeys } from "./rows.ts";

/** Anybody may ask whether the gateway is ready: it writes no more often than this. */
const EVERY_MS = 1_000;

/**
 * The probe resolves once a write is on disk, rejects where that fails, and hangs as long as the store does. Calls within a
 * second share one write.
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
