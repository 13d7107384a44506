/**
 * Signs of life of one connection: when something last arrived or left, how fast the network answers, what could not be
 * decrypted. Detects a line that is connected but receives nothing although the network says that messages are waiting.
 */
import { type BinaryNode, getBinaryNodeChild, type WASocket } from "@whiskeysockets/baileys";
import { within } from "../../base/within.ts";
import type { Clock } from "../../runtime.ts";
import type { ConnectionHealth } from "../connection.ts";
import { iq } from "./stanza.ts";

const PING_MS = 5_000;
/** The network said that messages are waiting, and has delivered nothing for this long. */
const DEAF_MS = 45_000;
/** The offline backlog arrives within seconds. If it has not ended after this long, it never will. */
const ENDLESS_MS = 10 * 60_000;
/** The last second that can be written as a date. */
const LATEST_S = 8.64e12;
/** After this many undecryptable messages in a row, the line's keys no longer match those of its senders. */
const UNREADABLE_IN_A_ROW = 20;

interface Observed extends Pick<ConnectionHealth, "lastFrameAt" | "lastReceivedAt" | "lastSentAt" | "undecryptable"> {
  /** When the network will refuse the announced version, Unix ms; null if it has not said. */
  versionExpiresAt: number | null;
}

export type Liveness = ReturnType<typeof watchLiveness>;

export function watchLiveness(clock: Clock) {
  const liveness: Observed = {
    lastFrameAt: null,
    lastReceivedAt: null,
    lastSentAt: null,
    undecryptable: 0,
    versionExpiresAt: null,
  };
  let unreadableInARow = 0;
  /** When the network last announced or delivered something from the backlog; null if nothing is announced. */
  let waitingSince: number | null = null;
  /** When the network announced a backlog; null once everything has been delivered. */
  let previewedAt: number | null = null;
  /** How many of the announced stanzas have not come. With the last of them the backlog has ended, whatever is said. */
  let announced = 0;

  function ended(): void {
    waitingSince = previewedAt = null;
  }

  return {
    liveness,
    frame(stanza: BinaryNode | Uint8Array): void {
      const now = liveness.lastFrameAt = clock.now();
      if (stanza instanceof Uint8Array) return;
      const { tag, attrs } = stanza;
      if (tag === "message") liveness.lastReceivedAt = now;
      if (tag === "ib") {
        const preview = getBinaryNodeChild(stanza, "offline_preview");
        if (preview) announced = Number(preview.attrs.count ?? 0);
        if (preview && announced > 0) waitingSince = previewedAt = now;
        if (getBinaryNodeChild(stanza, "offline")) ended();
        const seconds = Number(getBinaryNodeChild(stanza, "client_expiration")?.attrs.t);
        if (seconds > 0 && seconds < LATEST_S) liveness.versionExpiresAt = seconds * 1000;
      } else if (tag !== "iq" && waitingSince !== null) waitingSince = now;
      if (attrs.offline !== undefined && --announced === 0) ended();
    },
    sent: () => void (liveness.lastSentAt = clock.now()),
    decrypted: () => void (unreadableInARow = 0),
    undecrypted(): void {
      liveness.undecryptable++;
      unreadableInARow++;
    },
    /** Returns why the connection is unhealthy although it is open; null if it is healthy. */
    complaint(): string | null {
      if (waitingSince !== null && clock.now() - waitingSince > DEAF_MS) {
        return "The network says that messages wait, and gives none.";
      }
      if (previewedAt !== null && clock.now() - previewedAt > ENDLESS_MS) {
        return "What was missed comes to no end.";
      }
      return unreadableInARow >= UNREADABLE_IN_A_ROW ? "What arrives can't be decrypted." : null;
    },
  };
}

/** Resolves to the network's answer time in ms; null if it does not answer within `withinMs`. Never rejects. */
export async function ping(socket: Pick<WASocket, "query">, clock: Clock, withinMs = PING_MS): Promise<number | null> {
  const begun = clock.now();
  const asked = socket.query(iq({ type: "get", xmlns: "w:p" }, { tag: "ping", attrs: {} }));
  const answer = await within(clock, withinMs, asked).catch(() => "late");
  return answer === "late" ? null : clock.now() - begun;
}
