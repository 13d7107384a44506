/**
 * The departures of one line, strictly one after another (promises 1 to 3). A commit marks the message as on its way,
 * the message is handed to the connection, and another commit records the outcome.
 *
 * An acknowledgement may be recorded in the commit by which the next message departs, so that a line without pauses
 * needs one commit per message (docs/decisions/0019-one-commit-a-departure.md).
 */
import type { ChatIndex } from "../../chat/chat_index.ts";
import type { Plan } from "../../account/plan.ts";
import { retry } from "../../base/retry.ts";
import { traceStep } from "../../base/trace.ts";
import { chatOf, type Message } from "../../message/message.ts";
import type { Acknowledged, Alongside, MessageRow, Recorder } from "../../message/record.ts";
import type { Runtime } from "../../runtime.ts";
import { Change, type Kv, STORE_PAUSE_MS } from "../../store/kv.ts";
import type { Connection } from "../../whatsapp/connection.ts";
import type { SendOutcome } from "../../whatsapp/outgoing.ts";
import { survivesCrash, TROUBLE_PAUSE_MS, UNACKNOWLEDGED, verdictOn } from "./retry_policy.ts";
import { markReaction } from "../chat_entries.ts";
import { keepKnown } from "../chats.ts";
import { afterDeparture, atStart, countsOf, type Pacing, whileDeparting } from "./pacing.ts";
import { askNetwork, type Ready } from "./prepare.ts";
import { lineKeys } from "../rows.ts";

/** How long a connection may take to send one message. */
const SEND_DEADLINE_MS = 120_000;
/**
 * The line's last use and each known chat are written at most once in this time. It is short because a known-chat row
 * that an erasure deletes is not written again before it is over.
 */
const NOTED_EVERY_MS = 1_000;

interface DeparturesDeps {
  kv: Kv;
  chats: ChatIndex;
  runtime: Runtime;
  recorder: Recorder;
}

interface DepartingLine {
  lineId: string;
  /** Called when the connection gave no answer to a message: it may be dead without having noticed. */
  suspect(connection: Connection): void;
  /** Ends the retries of commits while the store fails. */
  signal: AbortSignal;
}

interface Departure {
  row: MessageRow;
  connection: Connection;
  ready: Ready;
  plan: Plan;
  /** Whether the message is the first one to a chat that counts as new. */
  startsChat: boolean;
}

/** `changed`: it was cancelled or changed before it could leave, and nothing was done. */
type Departed = "acknowledged" | "unacknowledged" | "changed";

/** An acknowledged message, with what is to be recorded of its line. */
interface Unrecorded extends Acknowledged {
  chat: string;
  /** The line's pacing from the acknowledgement on. */
  pacing: Pacing;
}

export class Departures {
  readonly #deps: DeparturesDeps;
  readonly #line: DepartingLine;
  /** Copy of the pacing row, which only this class writes; undefined until it is read. */
  #pacing: Pacing | null | undefined;
  /** The message that the network has acknowledged, until that is recorded. */
  #acknowledged: Unrecorded | null = null;
  #recorded = Promise.withResolvers<void>();
  /** End of the back-off after a temporary problem, Unix ms. A restart need not keep it. */
  #retryAt = 0;
  /** What need not be written again before `until`, Unix ms: the line's last use, and these known chats. */
  #noted = { until: 0, chats: new Set<string>() };

  constructor(deps: DeparturesDeps, line: DepartingLine) {
    this.#deps = deps;
    this.#line = line;
  }

  /** Resolves when no acknowledgement is left to record: until then, a receipt would conflict with that commit. */
  async recorded(): Promise<void> {
    if (this.#acknowledged) await this.#recorded.promise;
  }

  async pacing(): Promise<Pacing | null> {
    return this.#acknowledged?.pacing ?? (this.#pacing ??= await this.#read());
  }

  /** End of the back-off after a temporary problem, Unix ms. */
  get retryAt(): number {
    return this.#retryAt;
  }

  /** Begins a back-off: the connection is open but cannot send yet. */
  backOff(now: number): void {
    this.#retryAt = now + TROUBLE_PAUSE_MS;
  }

  /**
   * Recovers after a start, or after an error that leaves unclear what was written: a message that was on its way is
   * queued again in its place, under its network id. Throws StoreError.
   */
  async recover(departing: (pacing: Pacing | null) => Promise<MessageRow | null>): Promise<void> {
    await this.settle();
    this.#pacing = await this.#read();
    const row = await departing(this.#pacing);
    if (row?.value.status !== "processing") return;
    if (survivesCrash(row.value.attempts)) await this.#deps.recorder.retry(row);
    else await this.#deps.recorder.fail(row, UNACKNOWLEDGED);
  }

  /**
   * Sends the message and records the outcome; an acknowledgement is recorded by the next `settle` or departure.
   * `meanwhile` runs while the message is on its way. Throws StoreError.
   */
  async depart(departure: Departure, meanwhile: (pacing: Pacing) => Promise<void>): Promise<Departed> {
    const { clock, random } = this.#deps.runtime;
    const { row, ready, plan, startsChat } = departure;
    const before = await this.pacing();
    const handedOverAt = clock.now();
    const drawn = { plan, random };
    const counts = countsOf(before, { messageId: row.value.id, plan, startsChat, now: handedOverAt });
    const onItsWay = { ...whileDeparting(handedOverAt, drawn), ...counts, departing: row.value.id };
    const dispatched = await this.#dispatch(departure, onItsWay);
    if (!dispatched) return "changed";
    const answer = async () => {
      const outcome = await this.#send(row.value, ready);
      const at = clock.now();
      const after = { ...afterDeparture(handedOverAt, at, drawn), ...counts };
      // Noted here, not after `meanwhile`, so that a receipt that arrives right behind the acknowledgement finds it.
      if (outcome.kind === "sent") {
        this.#acknowledged = { row: dispatched, at, chat: chatOf(row.value.to), pacing: after };
      }
      return { outcome, at, after };
    };
    const [{ outcome, at, after }] = await Promise.all([answer(), meanwhile(onItsWay)]);
    this.#log(dispatched.value, outcome);
    traceDeparture(dispatched.value, outcome, { handedOverAt, answeredAt: at });
    if (outcome.kind === "sent") {
      await this.#record(() => markReaction(this.#deps, dispatched.value));
      return "acknowledged";
    }
    if (outcome.kind === "unknown") this.#line.suspect(departure.connection);
    await this.#recordUnacknowledged(dispatched, outcome, { before, after });
    return "unacknowledged";
  }

  /** Records the last acknowledgement, if it is not recorded yet. Retries for as long as the store fails. */
  async settle(): Promise<void> {
    const unrecorded = this.#acknowledged;
    if (!unrecorded) return;
    await this.#record(() =>
      this.#deps.recorder.acknowledge(unrecorded, this.#alongside(unrecorded, unrecorded.pacing))
    );
    this.#isRecorded(unrecorded.pacing);
  }

  #isRecorded(pacing: Pacing): void {
    if (this.#acknowledged) {
      const { at, chat } = this.#acknowledged;
      if (at >= this.#noted.until) this.#noted = { until: at + NOTED_EVERY_MS, chats: new Set() };
      this.#noted.chats.add(chat);
    }
    this.#pacing = pacing;
    this.#acknowledged = null;
    this.#recorded.resolve();
    this.#recorded = Promise.withResolvers();
  }

  /** Keeps only the pause: what else the pacing counts is about a number that the line no longer has. */
  async forgetNumber(): Promise<void> {
    const pacing = await this.#read();
    if (pacing === null) return;
    const { lastDepartureAt, nextDepartureAt } = pacing;
    this.#pacing = { lastDepartureAt, nextDepartureAt };
    await this.#deps.kv.commit(new Change().set(lineKeys.pacing(this.#line.lineId), this.#pacing));
  }

  async #read(): Promise<Pacing | null> {
    const { kv, runtime: { clock, log } } = this.#deps;
    const { key, value: kept } = await kv.get(lineKeys.pacing(this.#line.lineId));
    if (kept === null) return null;
    const pacing = atStart(kept, clock.now());
    if (pacing === kept) return kept;
    log.warn({ lineId: this.#line.lineId }, "the clock was set back: the pause of a line begins anew");
    await kv.commit(new Change().set(key, pacing));
    return pacing;
  }

  /**
   * Marks the message as on its way. The same commit records the acknowledgement of the message before, if that is
   * still to be done. Null if either row has changed.
   */
  async #dispatch({ row, ready }: Departure, onItsWay: Pacing): Promise<MessageRow | null> {
    const { recorder } = this.#deps;
    const unrecorded = this.#acknowledged;
    const keep = ready.kind === "ready" ? ready.keep : () => {};
    const alongside = this.#alongside(unrecorded, onItsWay, keep);
    const dispatched = unrecorded
      ? await recorder.advance(unrecorded, row, alongside)
      : await recorder.dispatch(row, alongside);
    // One of the two rows has changed: record the acknowledgement by itself, and let the caller read the queue again.
    if (!dispatched) {
      await this.settle();
      return null;
    }
    this.#isRecorded(onItsWay);
    return dispatched;
  }

  /** Returns what is to be written in the same commit as the messages. */
  #alongside(
    unrecorded: Unrecorded | null,
    pacing: Pacing | null,
    keep: (change: Change) => void = () => {},
  ): Alongside {
    const { lineId } = this.#line;
    return (change) => {
      if (pacing === null) change.delete(lineKeys.pacing(lineId));
      else change.set(lineKeys.pacing(lineId), pacing);
      if (unrecorded) this.#note(change, unrecorded);
      keep(change);
    };
  }

  /** Adds the line's last use and the known chat, unless they were written a moment ago. */
  #note(change: Change, { at, chat }: Unrecorded): void {
    const { lineId } = this.#line;
    const isOld = at >= this.#noted.until;
    if (isOld) change.set(lineKeys.lineUsed(lineId), at);
    if (isOld || !this.#noted.chats.has(chat)) keepKnown(change, lineId, { chat, at });
  }

  /** Records an attempt that was not acknowledged. `after` is the pacing if the attempt counts as a departure. */
  async #recordUnacknowledged(
    row: MessageRow,
    outcome: Exclude<SendOutcome, { kind: "sent" }>,
    { before, after }: { before: Pacing | null; after: Pacing },
  ): Promise<void> {
    const { recorder } = this.#deps;
    const verdict = verdictOn(outcome, row.value.attempts);
    const record = async (pacing: Pacing | null, commit: (alongside: Alongside) => Promise<unknown>) => {
      await this.#record(() => commit(this.#alongside(null, pacing)));
      this.#pacing = pacing;
    };
    switch (verdict.kind) {
      case "fails":
        await record(after, (alongside) => recorder.fail(row, verdict.error, alongside));
        break;
      case "goes_again": {
        const first = { ...after, departing: row.value.id };
        await record(first, (alongside) => recorder.retry(row, alongside));
        break;
      }
      case "waits":
        await record(
          verdict.error ? after : before,
          (alongside) => recorder.release(row, verdict.error ?? null, alongside),
        );
    }
    this.#retryAt = after.lastDepartureAt + verdict.restMs;
  }

  /** Hands the prepared message to the network, or returns the outcome that its preparation already had. */
  async #send({ id: messageId }: Message, ready: Ready): Promise<SendOutcome> {
    if (ready.kind !== "ready") return ready;
    return await askNetwork(() => ready.send(), { messageId, limitMs: SEND_DEADLINE_MS }, this.#deps.runtime);
  }

  /** Retries the commit for as long as the store fails: a lost outcome would make the message leave again. */
  async #record(commit: () => Promise<unknown>): Promise<void> {
    const { clock, log } = this.#deps.runtime;
    const { lineId, signal } = this.#line;
    const onRetry = (error: unknown) =>
      log.warn({ lineId, error: String(error) }, "the outcome of an attempt could not be recorded yet");
    try {
      await retry(commit, { clock, pauseMs: STORE_PAUSE_MS, signal, onRetry });
    } catch (error) {
      // On stop the message stays `processing`; the next start sends it again under the same network id.
      if (!signal.aborted) throw error;
    }
  }

  /** Logs what an operator needs to know of an attempt: ids, codes and reasons, no text and no number (promise 6). */
  #log({ id: messageId, networkId, attempts }: Message, outcome: SendOutcome): void {
    const { log } = this.#deps.runtime;
    const { kind } = outcome;
    const fields = { lineId: this.#line.lineId, messageId, networkId, attempts, outcome: kind };
    if (kind === "sent" || kind === "hold") log.debug(fields, "an attempt to send ended");
    else if (kind === "refused") log.warn({ ...fields, code: outcome.code }, "a message was refused");
    else log.warn({ ...fields, reason: outcome.detail }, "an attempt to send failed");
  }
}

/** Traces the wait in the queue, and the departure up to the network's answer. */
function traceDeparture(
  { id, createdAt, sendAt, attempts }: Message,
  outcome: SendOutcome,
  { handedOverAt, answeredAt }: { handedOverAt: number; answeredAt: number },
): void {
  if (attempts === 1) traceStep(id, { name: "message.queue", from: sendAt ?? createdAt, to: handedOverAt });
  const error = outcome.kind === "sent" ? null : outcome.kind;
  traceStep(id, { name: "message.send", from: handedOverAt, to: answeredAt, error, attributes: { attempt: attempts } });
}
