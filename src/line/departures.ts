/**
 * The departures of one line, strictly one after another (promises 1 to 3): a commit says that a message is on its way,
 * it is handed over, and a commit says what came of it.
 *
 * A message that was acknowledged may be recorded in the commit by which the next one departs, so that a line without
 * pauses pays for one commit a message (docs/decisions/0019-one-commit-a-departure.md).
 */
import type { Plan } from "../account/plan.ts";
import { retry } from "../base/retry.ts";
import { traceStep } from "../base/trace.ts";
import { chatOf, type Message } from "../message/message.ts";
import type { Acknowledged, Alongside, MessageRow, Recorder } from "../message/record.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import { STORE_PAUSE_MS } from "../store/retry.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { SendOutcome } from "../whatsapp/outgoing.ts";
import { LONGEST_REST_MS, survivesCrash, TROUBLE_PAUSE_MS, UNACKNOWLEDGED, verdictOn } from "./attempts.ts";
import { keepKnown } from "./chats.ts";
import { oneMoreChat } from "./new_chats.ts";
import { afterDeparture, atStart, delaysOf, type Pacing, whileDeparting } from "./pacing.ts";
import { askNetwork, type Ready } from "./prepare.ts";
import { lineKeys } from "./rows.ts";

/** How long a connection may take over the departure of one message. */
const SEND_DEADLINE_MS = 120_000;
/** That the line was used, and that it knows a chat, is written once in this time: who erases a chat meets it for no longer. */
const NOTED_EVERY_MS = 1_000;

interface DeparturesDeps {
  kv: Kv;
  runtime: Runtime;
  recorder: Recorder;
}

export interface DepartingLine {
  lineId: string;
  /** Called when the connection left a message without an answer: it may be dead without knowing it. */
  suspect(connection: Connection): void;
  /** Ends the retries while the store is in trouble. */
  signal: AbortSignal;
}

interface Departure {
  row: MessageRow;
  connection: Connection;
  ready: Ready;
  plan: Plan;
  /** It is the first of a chat that counts as new. */
  startsChat: boolean;
}

/** What the row of a message that has left says of it, and of its line. */
interface Left extends Acknowledged {
  chat: string;
  /** As it is from its answer on. */
  pacing: Pacing;
}

export class Departures {
  readonly #deps: DeparturesDeps;
  readonly #line: DepartingLine;
  /** As the row says, which nobody else writes; undefined: it has to be read. */
  #pacing: Pacing | null | undefined;
  /** The message that the network has acknowledged and that is not recorded yet. */
  #acknowledged: Left | null = null;
  #recorded = Promise.withResolvers<void>();
  /** Not before this time after passing trouble; a restart need not keep it. */
  #retryAt = 0;
  /** What stands already until the time `until`: that the line was used, and that it knows these chats. */
  #noted = { until: 0, chats: new Set<string>() };

  constructor(deps: DeparturesDeps, line: DepartingLine) {
    this.#deps = deps;
    this.#line = line;
  }

  /** Whether the network has acknowledged the last message, and that is still to be recorded. */
  isAcknowledged(): boolean {
    return this.#acknowledged !== null;
  }

  /** Resolves when no acknowledged message is still to be recorded: what its recipient says would meet that commit. */
  async recorded(): Promise<void> {
    if (this.#acknowledged) await this.#recorded.promise;
  }

  async pacing(): Promise<Pacing | null> {
    return this.#acknowledged?.pacing ?? (this.#pacing ??= await this.#read());
  }

  /** How long the network is left alone after passing trouble, from `now` on. */
  restMs(now: number): number {
    const rest = this.#retryAt - now;
    // A longer one than there is: the clock was set back.
    return rest > LONGEST_REST_MS ? 0 : Math.max(0, rest);
  }

  /** The connection is open and yet holds. */
  rest(now: number): void {
    this.#retryAt = now + TROUBLE_PAUSE_MS;
  }

  /**
   * After a start, or when nobody knows what was written: a message that was on its way is queued again, in its place,
   * under its network id. Throws StoreError.
   */
  async recover(departing: (pacing: Pacing | null) => Promise<MessageRow | null>): Promise<void> {
    await this.settle();
    this.#pacing = await this.#read();
    const row = await departing(this.#pacing);
    if (row?.value.status !== "processing") return;
    if (survivesCrash(row.value.attempts)) await this.#deps.recorder.requeued(row, "again");
    else await this.#deps.recorder.failed(row, UNACKNOWLEDGED);
  }

  /**
   * Lets the message leave and records what came of it, an acknowledgement at the next `settle` or departure. False when
   * it was cancelled or changed in this very moment. `meanwhile` runs while it is on its way. Throws StoreError.
   */
  async depart(departure: Departure, meanwhile: (pacing: Pacing) => Promise<void>): Promise<boolean> {
    const { clock, random } = this.#deps.runtime;
    const { row, ready, plan, startsChat } = departure;
    const before = await this.pacing();
    const handedOverAt = clock.now();
    const delays = delaysOf(plan);
    const counts = {
      // Another attempt is no turn of its own, or it would use up that of the message that has waited longest.
      departures: (before?.departures ?? 0) + (before?.departing === row.value.id ? 0 : 1),
      firstDepartureAt: before?.firstDepartureAt ?? handedOverAt,
      ...(startsChat
        ? { newChats: oneMoreChat(plan, before, handedOverAt) }
        : before?.newChats && { newChats: before.newChats }),
    };
    const onItsWay = { ...whileDeparting(handedOverAt, { delays, random }), ...counts, departing: row.value.id };
    const dispatched = await this.#dispatch(departure, onItsWay);
    if (!dispatched) return false;
    // What comes in behind the acknowledgement finds it noted, however long `meanwhile` takes.
    const answered = this.#send(row.value, ready).then((outcome) => {
      const at = clock.now();
      const after = { ...afterDeparture(handedOverAt, at, { delays, random }), ...counts };
      if (outcome.kind === "sent") {
        this.#acknowledged = { row: dispatched, at, chat: chatOf(row.value.to), pacing: after };
      }
      return { outcome, at, after };
    });
    await meanwhile(onItsWay);
    const { outcome, at, after } = await answered;
    this.#log(dispatched.value, outcome);
    traceDeparture(dispatched.value, outcome, { handedOverAt, answeredAt: at });
    if (outcome.kind === "sent") return true;
    if (outcome.kind === "unknown") this.#line.suspect(departure.connection);
    await this.#fall(dispatched, outcome, { before, after });
    return true;
  }

  /** Records the message that was acknowledged last, however long the store is in trouble. */
  async settle(): Promise<void> {
    const left = this.#acknowledged;
    if (!left) return;
    await this.#record(() => this.#deps.recorder.sent(left, this.#alongside(left, left.pacing)));
    this.#isRecorded(left.pacing);
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

  /** On its way, in the commit that records the one before where that is still to be done. */
  async #dispatch({ row, ready }: Departure, onItsWay: Pacing): Promise<MessageRow | null> {
    const { recorder } = this.#deps;
    const left = this.#acknowledged;
    const keep = ready.kind === "ready" ? ready.keep : () => {};
    const alongside = this.#alongside(left, onItsWay, keep);
    const dispatched = left ? await recorder.followed(left, row, alongside) : await recorder.dispatched(row, alongside);
    // One of the two was changed: the one before is recorded by itself, and the queue is looked at again.
    if (!dispatched) {
      await this.settle();
      return null;
    }
    this.#isRecorded(onItsWay);
    return dispatched;
  }

  /** What is written beside the messages. */
  #alongside(left: Left | null, pacing: Pacing | null, keep: (change: Change) => void = () => {}): Alongside {
    const { lineId } = this.#line;
    return (change) => {
      if (pacing === null) change.delete(lineKeys.pacing(lineId));
      else change.set(lineKeys.pacing(lineId), pacing);
      if (left) this.#note(change, left);
      keep(change);
    };
  }

  /** Adds that the line was used and knows the chat, where that does not stand already. */
  #note(change: Change, { at, chat }: Left): void {
    const { lineId } = this.#line;
    const isOld = at >= this.#noted.until;
    if (isOld) change.set(lineKeys.lineUsed(lineId), at);
    if (isOld || !this.#noted.chats.has(chat)) keepKnown(change, lineId, { chat, at });
  }

  /** Records an attempt that was not acknowledged. `after`: the pacing where it counts as a departure. */
  async #fall(
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
        await record(after, (alongside) => recorder.failed(row, verdict.error, alongside));
        break;
      case "goes_again": {
        const first = { ...after, departing: row.value.id };
        await record(first, (alongside) => recorder.requeued(row, "again", alongside));
        break;
      }
      case "waits":
        await record(verdict.departed ? after : before, (alongside) => recorder.requeued(row, "hold", alongside));
    }
    this.#retryAt = after.lastDepartureAt + verdict.restMs;
  }

  /** Lets the message leave. */
  async #send({ id: messageId }: Message, ready: Ready): Promise<SendOutcome> {
    if (ready.kind !== "ready") return ready;
    return await askNetwork(() => ready.send(), { messageId, limitMs: SEND_DEADLINE_MS }, this.#deps.runtime);
  }

  /** Records an outcome however long the store is in trouble: it must not be lost, nor the message go out again. */
  async #record(commit: () => Promise<unknown>): Promise<void> {
    const { clock, log } = this.#deps.runtime;
    const { lineId, signal } = this.#line;
    const onRetry = (error: unknown) => log.warn({ lineId, error: String(error) }, "an outcome waits to be kept");
    try {
      await retry(commit, { clock, pauseMs: STORE_PAUSE_MS, signal, onRetry });
    } catch (error) {
      // On stop the message stays `processing`; the next start sends it again under the same network id.
      if (!signal.aborted) throw error;
    }
  }

  /** What an operator needs to know of an attempt: ids, codes and reasons, no text and no number (promise 6). */
  #log({ id: messageId, networkId, attempts }: Message, outcome: SendOutcome): void {
    const { log } = this.#deps.runtime;
    const { kind } = outcome;
    const fields = { lineId: this.#line.lineId, messageId, networkId, attempts, outcome: kind };
    if (kind === "sent" || kind === "hold") log.debug(fields, "an attempt to send ended");
    else if (kind === "refused") log.warn({ ...fields, code: outcome.code }, "a message was refused");
    else log.warn({ ...fields, reason: outcome.detail }, "an attempt to send failed");
  }
}

/** The wait for its turn, and the departure up to the network's acknowledgement. */
function traceDeparture(
  { id, createdAt, sendAt, attempts }: Message,
  outcome: SendOutcome,
  { handedOverAt, answeredAt }: { handedOverAt: number; answeredAt: number },
): void {
  if (attempts === 1) traceStep(id, { name: "message.queue", from: sendAt ?? createdAt, to: handedOverAt });
  const error = outcome.kind === "sent" ? null : outcome.kind;
  traceStep(id, { name: "message.send", from: handedOverAt, to: answeredAt, error, attributes: { attempt: attempts } });
}
