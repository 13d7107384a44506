/** What comes in, one piece after another (promise 4: a chat keeps its order). */
import type { EventEmitter } from "node:events";
import type { BinaryNode } from "@whiskeysockets/baileys";
import PQueue from "p-queue";

/**
 * Puts a queue before the library's listener for what the socket receives; it is the only one at that time. The library
 * inflates a frame that is deflated in the background and takes the next piece meanwhile: a plain frame overtakes the
 * deflated one before it. `failed` hears of what could not be read; what comes after it is read all the same.
 */
export function serializeFrames(
  ws: Pick<EventEmitter, "listeners" | "off" | "on">,
  run: (work: () => Promise<void>) => Promise<void>,
  failed: (error: unknown) => void,
): void {
  const [receive] = ws.listeners("message");
  ws.off("message", receive!);
  const queue = new PQueue({ concurrency: 1 });
  ws.on("message", (data: Uint8Array) => void queue.add(() => run(async () => await receive!(data))).catch(failed));
}

/**
 * The library takes messages that were missed one after another, and those that come meanwhile beside them: they would
 * overtake. Marked as missed, every message waits for its turn.
 */
export function markOffline(message: BinaryNode): void {
  message.attrs.offline ??= "0";
}

/**
 * Before it decrypts a message the library reads the certificate of its sender's business name, and refuses a message whose
 * certificate makes no sense: the network drops that for good. Nobody here asks for the name.
 */
export function dropCertificate(message: BinaryNode): void {
  if (Array.isArray(message.content)) message.content = message.content.filter(({ tag }) => tag !== "verified_name");
}
