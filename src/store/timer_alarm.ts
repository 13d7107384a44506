/**
 * The alarm clock on timers of this process. It asks nothing of the disk, so it goes on ringing when the disk is full,
 * where Deno KV's queue ends the process. After a crash it has forgotten everything, as the port allows (promise 7).
 */
import type { Runtime } from "../runtime.ts";
import type { AlarmClock } from "./alarm.ts";

/** The longest delay that a timer of the platform takes; what lies further ahead is set again then. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

export interface TimerAlarmClock extends AlarmClock {
  /** Cancels every alarm. */
  close(): void;
}

export function timerAlarmClock(options: { runtime: Pick<Runtime, "clock" | "log"> }): TimerAlarmClock {
  const { clock, log } = options.runtime;
  const pending = new Map<string, { atMs: number; cancel: () => void }>();
  const listeners = new Map<string, (topic: string) => void>();

  function arm(topic: string, atMs: number): void {
    const delay = Math.min(Math.max(0, atMs - clock.now()), LONGEST_DELAY_MS);
    pending.set(topic, { atMs, cancel: clock.after(delay, () => ring(topic, atMs)) });
  }

  function ring(topic: string, atMs: number): void {
    pending.delete(topic);
    if (atMs > clock.now()) return arm(topic, atMs);
    for (const [prefix, listener] of listeners) {
      if (!topic.startsWith(prefix)) continue;
      try {
        listener(topic);
      } catch (error) {
        log.error({ err: error, topic }, "the listener of an alarm failed");
      }
    }
  }

  return {
    set(topic, atMs) {
      const set = pending.get(topic);
      if (!set || set.atMs > atMs) {
        set?.cancel();
        arm(topic, atMs);
      }
      return Promise.resolve();
    },
    listen: (prefix, listener) => void listeners.set(prefix, listener),
    close() {
      for (const { cancel } of pending.values()) cancel();
      pending.clear();
    },
  };
}
