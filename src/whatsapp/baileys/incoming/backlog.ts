/**
 * Requests what the network kept for the line while it was offline. The network delivers as many stanzas as were
 * requested, and after them nothing, not even new ones, until the rest is requested. The library only requests the first
 * hundred, so a line that missed more would stay deaf, and miss more at each login.
 */
import { type BinaryNode, getBinaryNodeChild, type WASocket } from "@whiskeysockets/baileys";
import { detached } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";

/** As many as the library requests. */
const WINDOW = 100;
/**
 * If the network counts differently, so that nothing has come for this long, the next ones are requested: after each
 * request without an answer later. Its word that the backlog has ended may never come (Baileys issue 2810), so requests
 * end within a minute of the last stanza.
 */
const QUIET_MS = [2_000, 10_000, 30_000];

export type Backlog = ReturnType<typeof makeBacklog>;

export function makeBacklog(socket: Pick<WASocket, "sendNode">, { clock, log }: Pick<Runtime, "clock" | "log">) {
  let received = 0;
  /** Requests since a stanza of the backlog last came. */
  let unanswered = 0;
  /** When the last stanza of the backlog came or was requested, Unix ms; null before the first and after the last. */
  let lastAt: number | null = null;

  function request(): void {
    lastAt = clock.now();
    const content = [{ tag: "offline_batch", attrs: { count: String(WINDOW) } }];
    void detached(socket.sendNode({ tag: "ib", attrs: {}, content }), (failure) => {
      log.debug(failure, "missed messages could not be requested");
    });
  }

  return {
    /** Reads incoming stanzas. */
    watch(stanza: BinaryNode): void {
      if (stanza.tag === "ib" && getBinaryNodeChild(stanza, "offline")) lastAt = null;
      if (stanza.attrs.offline === undefined) return;
      lastAt = clock.now();
      unanswered = 0;
      if (++received % WINDOW === 0) request();
    },
    /** Called every few seconds. */
    look(): void {
      if (lastAt === null || clock.now() - lastAt < (QUIET_MS[unanswered] ?? Infinity)) return;
      unanswered++;
      request();
    },
  };
}
