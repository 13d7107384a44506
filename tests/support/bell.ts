/** The bell on a queue that keeps the time of the test's clock: late as Deno KV's is, and deaf when told. */
import type { Clock, Runtime } from "../../src/runtime.ts";
import { type EventLog, makeEventLog } from "../../src/event/event_log.ts";
import { denoKvBell } from "../../src/store/deno_kv/bell.ts";
import type { Bell } from "../../src/store/bell.ts";
import type { Kv } from "../../src/store/kv.ts";

/** As late as Deno KV's queue in memory was measured to be. */
const MOST_LATE_MS = 150;

/** Deno KV's queue on another clock: not in order, and up to 150 ms late. */
export function clockedQueue(clock: Clock, lateMs: () => number): Parameters<typeof denoKvBell>[0] {
  const closed = Promise.withResolvers<void>();
  const timers = new Set<() => void>();
  let deliver: (value: unknown) => unknown = () => {};
  return {
    enqueue(value, { delay = 0 } = {}) {
      const cancel = clock.after(delay + lateMs(), () => {
        timers.delete(cancel);
        deliver(structuredClone(value));
      });
      timers.add(cancel);
      return Promise.resolve({ ok: true, versionstamp: "0" });
    },
    listenQueue(handler) {
      deliver = handler;
      return closed.promise;
    },
    close() {
      for (const cancel of timers) cancel();
      closed.resolve();
    },
  };
}

export interface TestBell extends Bell {
  /** Every topic that was set to ring at a time. */
  readonly topics: string[];
  /** While true nothing rings: all that was set is lost. */
  deaf: boolean;
}

export function testBell(runtime: Pick<Runtime, "clock" | "log" | "random">): TestBell {
  const lateMs = () => runtime.random.between(0, MOST_LATE_MS);
  const bell = denoKvBell(clockedQueue(runtime.clock, lateMs), { runtime });
  const test: TestBell = {
    ...bell,
    topics: [],
    deaf: false,
    ringAt(topic, atMs) {
      test.topics.push(topic);
      bell.ringAt(topic, atMs);
    },
    hear: (prefix, wake) => bell.hear(prefix, (topic) => test.deaf || wake(topic)),
  };
  return test;
}

/** The event log of a process with a bell of its own. */
export function testEvents(kv: Kv, runtime: Pick<Runtime, "clock" | "log" | "random">): EventLog {
  return makeEventLog({ kv, bell: testBell(runtime), runtime });
}
