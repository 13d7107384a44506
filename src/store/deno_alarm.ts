/**
 * The alarm clock on Deno KV's delayed queue. The queue holds no work, only "ring this topic": a message may be lost,
 * late or doubled and nothing breaks (promise 7). Its handler returns at once, or the engine would start it again.
 */
import type { Runtime } from "../runtime.ts";
import type { AlarmClock } from "./alarm.ts";

/** The engine's longest delay; what lies further ahead is set again when it rings early. */
const LONGEST_DELAY_MS = 30 * 24 * 60 * 60 * 1000;
/** What rings by so much too early counts as on time: two clocks are never quite the same. */
const EARLY_MS = 20;
/** An alarm that has not rung for so long after its time is taken for lost. */
const OVERDUE_MS = 5_000;

interface Alarm {
  topic: string;
  atMs: number;
}

/**
 * One alarm clock a process: Deno KV has one queue listener a connection. It begins to listen with the first `listen`
 * and ends when `native` is closed.
 */
export function denoAlarmClock(native: Deno.Kv, options: { runtime: Pick<Runtime, "clock" | "log"> }): AlarmClock {
  const { clock, log } = options.runtime;
  /** The earliest time that each topic is set to, as far as this process knows. */
  const pending = new Map<string, number>();
  const listeners = new Map<string, (topic: string) => void>();
  let listening = false;

  async function set(topic: string, atMs: number): Promise<void> {
    const earliest = pending.get(topic);
    if (earliest !== undefined && earliest <= atMs && earliest > clock.now() - OVERDUE_MS) return;
    pending.set(topic, atMs);
    const delay = Math.min(Math.max(0, atMs - clock.now()), LONGEST_DELAY_MS);
    try {
      // No retries by the engine: the handler cannot fail, and what a crash swallows is set again at boot.
      await native.enqueue({ topic, atMs } satisfies Alarm, { delay, backoffSchedule: [] });
    } catch (error) {
      if (pending.get(topic) === atMs) pending.delete(topic);
      log.warn({ err: error, topic }, "the alarm could not be set; the sweep will look instead");
    }
  }

  function ring(message: unknown): void {
    if (!isAlarm(message)) return;
    const { topic, atMs } = message;
    if ((pending.get(topic) ?? Infinity) <= atMs) pending.delete(topic);
    if (atMs > clock.now() + EARLY_MS) return void set(topic, atMs);
    for (const [prefix, listener] of listeners) {
      if (!topic.startsWith(prefix)) continue;
      try {
        listener(topic);
      } catch (error) {
        log.error({ err: error, topic }, "the listener of an alarm failed");
      }
    }
  }

  async function receive(): Promise<void> {
    try {
      await native.listenQueue(ring);
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) log.error({ err: error }, "alarms no longer ring; sweeps go on");
    }
  }

  return {
    set,
    listen(prefix, listener) {
      listeners.set(prefix, listener);
      if (listening) return;
      listening = true;
      void receive();
    },
  };
}

function isAlarm(message: unknown): message is Alarm {
  const alarm = message as Partial<Alarm> | null;
  return typeof alarm === "object" && typeof alarm?.topic === "string" && typeof alarm.atMs === "number";
}
