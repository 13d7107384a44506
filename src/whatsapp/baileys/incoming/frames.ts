/**
 * What comes in, one piece after another (promise 4: a chat keeps its order).
 *
 * The library inflates a frame that is deflated in the background and takes the next piece meanwhile: a plain frame
 * overtakes the deflated one before it.
 */
import type { EventEmitter } from "node:events";
import PQueue from "p-queue";

type Receive = (data: Uint8Array) => Promise<void>;

/**
 * Puts a queue before the library's listener for what the socket receives; it is the only one at that time. `failed`
 * hears of what could not be read; what comes after it is read all the same.
 */
export function takeFramesInTurn(
  ws: Pick<EventEmitter, "listeners" | "off" | "on">,
  run: (work: () => Promise<void>) => Promise<void>,
  failed: (error: unknown) => void,
): void {
  const [receive] = ws.listeners("message") as Receive[];
  ws.off("message", receive!);
  const queue = new PQueue({ concurrency: 1 });
  ws.on("message", (data: Uint8Array) => void queue.add(() => run(() => receive!(data))).catch(failed));
}
