/**
 * The line's own presence. While the line is available, the owner's phone does not ring, so it is that only for a while
 * after it has shown its state in a chat: to those who are not available the network shows nobody's presence.
 */
import type { WASocket } from "@whiskeysockets/baileys";
import { detached } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";

const AVAILABLE_MS = 60_000;

export type Presence = ReturnType<typeof makePresence>;

export function makePresence(socket: Pick<WASocket, "sendNode">, { clock, log }: Pick<Runtime, "clock" | "log">) {
  /** Unix ms; 0 while the line is unavailable. */
  let availableUntil = 0;

  function tell(): Promise<void> {
    return socket.sendNode({ tag: "presence", attrs: { type: availableUntil > 0 ? "available" : "unavailable" } });
  }

  function repeat(): void {
    void detached(tell(), (failure) => log.debug(failure, "the line's presence could not be sent"));
  }

  return {
    /** Makes the line available for a while. */
    async appear(): Promise<void> {
      availableUntil = clock.now() + AVAILABLE_MS;
      await tell();
    },
    /** Tells the network the line's presence again: the library sends one that makes the line available. */
    repeat,
    /** Ends the availability that is over. */
    look(): void {
      if (availableUntil === 0 || clock.now() < availableUntil) return;
      availableUntil = 0;
      repeat();
    },
  };
}
