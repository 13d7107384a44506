/** A receiver of webhooks as a process: answers at once, and reports when each event first came. */
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import { runAsChild, wallClock } from "./child.ts";

export interface ReceiverReady {
  url: string;
}

/** What came since it was last asked. */
export interface Arrivals {
  /** Event id to time, Unix ms with fractions. */
  at: Record<string, number>;
  /** Deliveries of events that had come before. */
  repeated: number;
}

/** Asks to wait until this many different events have come, and to forget them. */
export interface ArrivalsWanted {
  count: number;
}

if (import.meta.main) {
  await runAsChild<null, ArrivalsWanted>(async () => {
    let at = new Map<string, number>();
    let repeated = 0;
    let came = () => {};
    const server = createServer((request, response) => {
      const id = String(request.headers["webhook-id"]);
      const now = wallClock();
      if (at.has(id)) repeated++;
      else at.set(id, now);
      came();
      request.resume();
      request.on("end", () => response.end());
    });
    const ready: ReceiverReady = { url: `http://127.0.0.1:${await listenOn(server)}/hook` };
    return {
      ready,
      async answer({ count }) {
        while (at.size < count) await new Promise<void>((resolve) => came = resolve);
        const arrivals: Arrivals = { at: Object.fromEntries(at), repeated };
        at = new Map();
        repeated = 0;
        return arrivals;
      },
    };
  });
}
