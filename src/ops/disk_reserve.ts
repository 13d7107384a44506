/**
 * A reserve of free disk space: it takes no new messages and no files, so that the outcomes of accepted messages can
 * still be recorded. The store survives a full disk, but a line whose outcomes cannot be written stops. Files leave
 * twice as much, so that what strangers send stops nobody's messages.
 */
import { statfsSync } from "node:fs";
import type { SharedMediaStore } from "../media/fair_shares.ts";
import type { Accept } from "../message/accept.ts";
import type { Clock, Log } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";

/** Least time between two queries of the system, because thousands of sends may arrive in a second. */
const LOOK_EVERY_MS = 1_000;

interface DiskReserveOptions {
  folder: string;
  minFreeBytes: number;
  runtime: { clock: Clock; log: Log };
  /** By default, asks the system. */
  freeBytes?: (folder: string) => number;
}

export function makeDiskReserve(options: DiskReserveOptions) {
  const { folder, minFreeBytes, runtime: { clock, log }, freeBytes = freeBytesOf } = options;
  let looked = -Infinity;
  let free = Infinity;
  let short = false;

  function look(): number {
    if (clock.now() - looked < LOOK_EVERY_MS) return free;
    looked = clock.now();
    free = freeBytes(folder);
    if (short !== free < minFreeBytes) {
      short = !short;
      if (short) {
        log.error({ free, minFreeBytes }, "the disk is nearly full: sends are refused until there is room");
      } else log.info({ free }, "there is room on the disk again");
    }
    return free;
  }

  return {
    /** Returns the bytes that the gateway may still write, as of the last query. */
    free: look,
    /** Throws StoreError `full` while less than the reserve is free. */
    assertRoom(): void {
      if (look() < minFreeBytes) throw new StoreError("full", "less than PALOMA_MIN_FREE_DISK is free");
    },
    /** Takes room for `bytes` of a file. Throws StoreError `full` if less than twice the reserve would be left. */
    takeRoom(bytes: number): void {
      if (look() - bytes < 2 * minFreeBytes) {
        throw new StoreError("full", "less than twice PALOMA_MIN_FREE_DISK is free");
      }
      free -= bytes;
    },
  };
}

type DiskReserve = ReturnType<typeof makeDiskReserve>;

/** Returns the bytes free for the gateway's user on the folder's disk. */
export function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Returns an `Accept` that throws StoreError `full` while there is no room. */
export function acceptedWithRoom(accept: Accept, reserve: Pick<DiskReserve, "assertRoom">): Accept {
  return (command) => {
    reserve.assertRoom();
    return accept(command);
  };
}

/** Returns the same store of files, where a write fails with StoreError `full` at the chunk for which there is no room. */
export function writtenWithRoom<M extends SharedMediaStore>(media: M, reserve: Pick<DiskReserve, "takeRoom">): M {
  return {
    ...media,
    assertPlace() {
      media.assertPlace();
      reserve.takeRoom(0);
    },
    write(content, options) {
      const checked = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          reserve.takeRoom(chunk.length);
          controller.enqueue(chunk);
        },
      });
      return media.write(content.pipeThrough(checked), options);
    },
  };
}
