/**
 * Signs of life of one connection: what came and went last, how fast the network answers, what could not be read; and
 * whether a line that is connected hears nothing although the network says that messages wait for it.
 */
import { type BinaryNode, getBinaryNodeChild, type WASocket } from "@whiskeysockets/baileys";
import { within } from "../../base/within.ts";
import type { Clock } from "../../runtime.ts";
import { iq } from "./stanza.ts";

const PING_MS = 5_000;
/** The network said that messages wait, and gave nothing for so long. */
const DEAF_MS = 45_000;
/** What was missed is given within seconds; a queue that has not come to its end by then does not. */
const ENDLESS_MS = 10 * 60_000;
/** So many messages in a row that could not be read: the keys of the line are not what its senders think. */
const UNREADABLE_IN_A_ROW = 20;

interface Vitals {
  lastFrameAt: number | null;
  lastReceivedAt: number | null;
  lastSentAt: number | null;
  /** Messages of this connection that did not decrypt at first. */
  undecryptable: number;
}

export type VitalSigns = ReturnType<typeof watchVitals>;

export function watchVitals(clock: Clock) {
  const vitals: Vitals = { lastFrameAt: null, lastReceivedAt: null, lastSentAt: null, undecryptable: 0 };
  let unreadableInARow = 0;
  /** When the network last gave something that waits, or said that something does; null when nothing is said to wait. */
  let waitingSince: number | null = null;
  /** When the network said that something waits, until it says that all is given. */
  let previewedAt: number | null = null;

  return {
    vitals,
    frame(stanza: BinaryNode | Uint8Array): void {
      const now = vitals.lastFrameAt = clock.now();
      if (stanza instanceof Uint8Array) return;
      const { tag } = stanza;
      if (tag === "message") vitals.lastReceivedAt = now;
      if (tag === "ib") {
        const preview = getBinaryNodeChild(stanza, "offline_preview");
        if (preview && Number(preview.attrs.count ?? 0) > 0) waitingSince = previewedAt = now;
        if (getBinaryNodeChild(stanza, "offline")) waitingSince = previewedAt = null;
      } else if (tag !== "iq" && waitingSince !== null) waitingSince = now;
    },
    sent: () => void (vitals.lastSentAt = clock.now()),
    decrypted: () => void (unreadableInARow = 0),
    undecrypted(): void {
      vitals.undecryptable++;
      unreadableInARow++;
    },
    /** Why the connection is not well although it stands; null when it is. */
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

/** How long the network takes to answer, ms; null when it does not within this time. Never rejects. */
export async function ping(socket: Pick<WASocket, "query">, clock: Clock, withinMs = PING_MS): Promise<number | null> {
  const begun = clock.now();
  try {
    const asked = socket.query(iq({ type: "get", xmlns: "w:p" }, { tag: "ping", attrs: {} }));
    return await within(clock, withinMs, asked) === "late" ? null : clock.now() - begun;
  } catch {
    return null;
  }
}
