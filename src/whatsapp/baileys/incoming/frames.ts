/** Keeps incoming frames in order, so that a chat keeps its order (promise 4). */
import type { EventEmitter } from "node:events";
import type { BinaryNode } from "@whiskeysockets/baileys";
import PQueue from "p-queue";

/**
 * Puts a queue before the library's listener for received data, which must be the only one at that time. The library
 * inflates a deflated frame in the background and processes the next piece meanwhile, so a plain frame could overtake a
 * deflated one. `failed` is called for a piece that can't be read; the following ones are still read.
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
 * Marks a message as missed while offline. The library processes missed messages one at a time, but others in parallel,
 * where they could overtake. With the mark, every message waits for its turn.
 */
export function markOffline(message: BinaryNode): void {
  message.attrs.offline ??= "0";
}

/**
 * Removes the certificate of a business sender's name, which nothing here uses. The library reads it before it decrypts
 * the message, and refuses a message whose certificate is malformed. The network then drops the message for good.
 */
export function dropCertificate(message: BinaryNode): void {
  if (Array.isArray(message.content)) message.content = message.content.filter(({ tag }) => tag !== "verified_name");
}
