/**
 * The line's row as its session writes it: by the table of transitions, and in one commit
 * with the events of the change.
 */
import type { EventLog } from "../event/event_log.ts";
import type { NewEvent } from "../event/event.ts";
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";
import { retry } from "../base/retry.ts";
import type { Clock, Runtime } from "../runtime.ts";
import { forgetChats } from "./chats.ts";
import { lineKeys } from "./rows.ts";
import { removeUploads } from "../media/uploads.ts";
import { messageKeys } from "../message/rows.ts";
import { deleteKeys, deleteRange } from "../store/delete_range.ts";
import { Change, type Kv, retryOnConflict, STORE_PAUSE_MS } from "../store/kv.ts";
import { type Line, LINE_TRANSITIONS, type LineTrigger } from "./line.ts";

/**
 * Most pixel rows of a QR repeat the row above, so filter 2 ("up") makes a smaller picture in a third of the time that
 * trying every filter takes.
 */
const PNG = { filterType: 2, deflateStrategy: 0, deflateLevel: 6 };

/** How long a name is cached, and so how late a change by another process may be seen. */
const NAME_KEPT_MS = 2_000;
const MOST_NAMES = 10_000;

/** The current names of lines, for their events. */
export type SessionNames = ReturnType<typeof makeSessionNames>;

export function makeSessionNames(kv: Kv, clock: Clock) {
  const known = new LRUCache<string, string>(atMost(MOST_NAMES, { forMs: NAME_KEPT_MS, clock }));
  let changes = 0;
  return {
    /** Resolves to the name, "" if the line is gone. Throws StoreError. */
    async of(lineId: string): Promise<string> {
      const kept = known.get(lineId);
      if (kept !== undefined) return kept;
      const before = changes;
      const start = clock.now();
      const { value } = await kv.get(lineKeys.line(lineId));
      const name = value?.name ?? "";
      if (changes === before) known.set(lineId, name, { start });
      return name;
    },
    /** Invalidates the cached name. Call it after the commit that changes the name. */
    changed(lineId: string): void {
      changes++;
      known.delete(lineId);
    },
  };
}

interface LineRowOptions {
  kv: Kv;
  events: EventLog;
  runtime: Runtime;
  lineId: string;
  /** Ends the retries while the store fails. */
  signal: AbortSignal;
  /** Called after every change. */
  changed: () => void;
}

export class LineRow {
  readonly #options: LineRowOptions;

  constructor(options: LineRowOptions) {
    this.#options = options;
  }

  /** Reads the line; null if it is gone. Retries for as long as the store fails. */
  async read(): Promise<Line | null> {
    return (await this.untilDone(() => this.#options.kv.get(lineKeys.line(this.#options.lineId)))).value;
  }

  /**
   * Changes the line's status by the table of transitions, applies the patch, and appends the events. Does nothing if
   * the table does not list the trigger for the line's status.
   */
  async change(trigger: LineTrigger, patch: Partial<Line>): Promise<void> {
    const qr = trigger === "qr" && patch.qr ? await qrDataUrl(patch.qr) : null;
    const line = await this.untilDone(() => this.#commit(trigger, patch, qr));
    if (!line) return;
    const { id: lineId, accountId, status, reason } = line;
    this.#options.events.committed(accountId);
    this.#options.runtime.log.info({ lineId, status, reason }, "a line changed");
    this.#options.changed();
  }

  #commit(trigger: LineTrigger, patch: Partial<Line>, qr: string | null): Promise<Line | null> {
    const { kv, events, runtime, lineId } = this.#options;
    const key = lineKeys.line(lineId);
    return retryOnConflict<Line | null>(kv, async () => {
      const change = new Change();
      const slot = await kv.get(key);
      const status = slot.value && LINE_TRANSITIONS[slot.value.status][trigger];
      if (!slot.value || !status) return { change, result: null };
      const line: Line = { ...slot.value, ...patch, status };
      change.check(slot).set(key, line);
      if (status === "connected") change.set(lineKeys.lineUsed(line.id), runtime.clock.now());
      for (const event of eventsOf(slot.value, line, qr)) events.append(change, event);
      return { change, result: line };
    });
  }

  /**
   * Retries until the work succeeds or the signal aborts: what has happened must be written,
   * however long the store fails.
   */
  untilDone<T>(work: () => Promise<T>): Promise<T> {
    const { lineId, signal, runtime: { clock, log } } = this.#options;
    const onRetry = (error: unknown) =>
      log.warn({ lineId, error: String(error) }, "a change of a line could not be written yet");
    return retry(work, { clock, pauseMs: STORE_PAUSE_MS, signal, onRetry });
  }
}

/** Yields the events of a change of the line. A log-out clears the restriction, which is an event too. */
function* eventsOf(before: Line, after: Line, qr: string | null): Generator<NewEvent> {
  const of = { accountId: after.accountId, sessionId: after.id, sessionName: after.name };
  if (qr) yield { ...of, event: "session.qr", data: { qr } };
  if (after.passkey && !isSamePasskey(before.passkey, after.passkey)) {
    const { stage, expiresAt } = after.passkey;
    yield { ...of, event: "session.passkey", data: { stage, expiresAt: isoTime(expiresAt) } };
  }
  const { status, reason, phone } = after;
  if (status === "connected") {
    if (before.status !== "connected") yield { ...of, event: "session.connected", data: { phone: phone ?? "" } };
    else if (before.reason !== reason) yield { ...of, event: "session.degraded", data: { reason } };
  } else if (before.status !== status && (status === "disconnected" || status === "logged_out")) {
    yield { ...of, event: "session.disconnected", data: { status, reason: reason ?? "" } };
  }
  if (!isSameRestriction(before.restriction, after.restriction)) {
    const { kind = before.restriction?.kind ?? "", until = null } = after.restriction ?? {};
    const data = { active: after.restriction !== null, kind, until: until === null ? null : isoTime(until) };
    yield { ...of, event: "session.restricted", data };
  }
}

function isSameRestriction(one: Line["restriction"] = null, other: Line["restriction"] = null): boolean {
  return one?.kind === other?.kind && one?.until === other?.until;
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}

function isSamePasskey(one: Line["passkey"], other: Line["passkey"]): boolean {
  return one?.stage === other?.stage && one?.expiresAt === other?.expiresAt;
}

/**
 * Removes every row that only this line needs, the line's own row last, so that a deletion interrupted by a crash is
 * run again. The line's messages stay in the history.
 */
export async function deleteLine(kv: Kv, line: Line, now: number): Promise<void> {
  await deleteRange(kv, { prefix: lineKeys.seenOfLine(line.id) });
  await forgetChats(kv, line.id);
  await deleteRange(kv, { prefix: lineKeys.chatsRead(line.id) });
  await deleteRange(kv, { prefix: messageKeys.networkIdsOfLine(line.id) });
  await removeUploads(kv, line.id, now);
  await deleteKeys(kv, [
    messageKeys.chatsComplete(line.id),
    lineKeys.pacing(line.id),
    lineKeys.preparing(line.id),
    lineKeys.lineUsed(line.id),
    lineKeys.queuePaused(line.id),
    lineKeys.line(line.id),
  ]);
}

/** Draws a QR as the data URL of a PNG, `data:image/png;base64,…` (spec, "Session QR / pairing result"). */
export async function qrDataUrl(text: string): Promise<string> {
  const { default: QRCode } = await import("qrcode");
  return await QRCode.toDataURL(text, { errorCorrectionLevel: "M", margin: 4, scale: 6, rendererOpts: PNG });
}
