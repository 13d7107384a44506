/**
 * The bell's wire on a remote Deno KV, which offers `watch` but no queue. Rings are rows ordered by a sequence;
 * processes watch the sequence and read on from their last position. Rows are kept for a while, so a broken connection
 * loses none.
 */
import { inBatches } from "../../base/batches.ts";
import { Loop } from "../../base/single_flight.ts";
import { type Clock, type Runtime, sleep } from "../../runtime.ts";
import { deleteRange } from "../delete_range.ts";
import { Change, firstRow, type Kv } from "../kv.ts";
import type { OpenWire } from "../layers/shared_bell.ts";
import { type RingRow, storeKeys } from "../layers/rows.ts";
import { openServer, remoteEngine } from "./remote.ts";

/** Topics per row: about 20 KiB. */
const TOPICS_A_ROW = 400;
/** Rings are also polled at this interval, in case the watch died silently. */
const LOOK_EVERY_MS = 15_000;
const RECONNECT_MS = 500;
const KEPT_MS = 120_000;
const SWEEP_EVERY_MS = 60_000;
/** Places in a sequence begin with microseconds since 1970, padded to this many digits. */
const TIME_DIGITS = 16;

export function denoKvWire(url: string, { runtime }: { runtime: Runtime }): OpenWire {
  const { clock, log, random } = runtime;
  const self = random.bytes(8).toHex();

  return async (events) => {
    const native = await openServer(url, { runtime });
    const kv = remoteEngine(native, { runtime });
    const closing = new AbortController();
    const readOn = await makeReader(kv, self, events, clock).catch((error) => {
      native.close();
      throw error;
    });
    const reading = new Loop(clock, async () => {
      try {
        await readOn();
        return LOOK_EVERY_MS;
      } catch (error) {
        if (!closing.signal.aborted) log.warn({ err: error }, "rings could not be read");
        return RECONNECT_MS;
      }
    });
    let sweptAt = clock.now();
    reading.start(LOOK_EVERY_MS);
    const following = follow();

    async function follow(): Promise<void> {
      while (!closing.signal.aborted) {
        try {
          for await (const _ of native.watch([storeKeys.ringSequence()])) await reading.now();
        } catch (error) {
          if (!closing.signal.aborted) log.warn({ err: error }, "the bell's watch broke");
        }
        await sleep(clock, RECONNECT_MS, closing.signal);
      }
    }

    async function sweep(): Promise<void> {
      if (clock.now() - sweptAt < SWEEP_EVERY_MS) return;
      sweptAt = clock.now();
      const end = storeKeys.ring(String((sweptAt - KEPT_MS) * 1000).padStart(TIME_DIGITS, "0"));
      await deleteRange(kv, { prefix: storeKeys.rings(), end });
    }

    return {
      async send(topics) {
        const change = new Change();
        for (const some of inBatches(topics, TOPICS_A_ROW)) {
          const row: RingRow = { from: self, topics: some };
          change.ordered(
            storeKeys.ringSequence(),
            (order) => [{ kind: "set", key: storeKeys.ring(order), value: row }],
          );
        }
        await kv.commit(change);
        await sweep();
      },
      async close() {
        if (closing.signal.aborted) return;
        closing.abort();
        native.close();
        await Promise.all([following, reading.stop()]);
      },
    };
  };
}

/** Returns a function that reads the rings from now on, each once. */
async function makeReader(kv: Kv, self: string, events: Parameters<OpenWire>[0], clock: Clock) {
  const last = await firstRow(kv, { prefix: storeKeys.rings() }, { reverse: true });
  let cursor = last?.key ?? storeKeys.ring("");
  let readAt = clock.now();

  return async (): Promise<void> => {
    // After so long without a read, unread rings may have been swept.
    const isLate = clock.now() - readAt > KEPT_MS / 2;
    for await (const { key, value } of kv.list({ prefix: storeKeys.rings(), start: cursor })) {
      if (key[2] === cursor[2]) continue;
      cursor = key;
      if (value.from !== self) value.topics.forEach((topic) => events.ring(topic));
    }
    if (isLate) events.missed();
    readAt = clock.now();
  };
}
