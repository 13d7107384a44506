/**
 * The runner of one line: takes the head of its queue, has it prepared during the pause, and sends it (promises 1 to
 * 4). Strictly one message after another, so at most one message of the line is on its way.
 *
 * It keeps nothing in memory that a restart would need: a message that was on its way when the process died is still
 * `processing` and is sent again under the same network id. Wake-ups may be lost or repeated, because each only
 * makes the runner read the queue.
 */
import { openHours } from "../../account/hours.ts";
import type { ChatIndex } from "../../chat/chat_index.ts";
import type { Plan } from "../../account/plan.ts";
import { chatOf, type Message, type MessageError } from "../../message/message.ts";
import { OPTED_OUT } from "../../message/opt_outs.ts";
import { isProved } from "../../message/receipts.ts";
import { messageKeys } from "../../message/rows.ts";
import type { MessageRow, Recorder } from "../../message/record.ts";
import type { Service } from "../../base/service.ts";
import { sleep } from "../../runtime.ts";
import type { Bell } from "../../store/bell.ts";
import { TROUBLE_PAUSE_MS } from "./retry_policy.ts";
import { forgetChats } from "../chats.ts";
import { Departures } from "./departures.ts";
import { LINE_TOPIC } from "../live.ts";
import { type NewChats, newChatsOf, nextDeparture, type Pacing } from "./pacing.ts";
import { NextUp } from "./next_up.ts";
import { lineKeys } from "../rows.ts";
import type { Connection } from "../../whatsapp/connection.ts";
import type { Incoming } from "../../whatsapp/incoming.ts";
import { Preparation } from "./preparation.ts";
import { makePrepare, type PrepareDeps } from "./prepare.ts";
import { Waker } from "./waker.ts";

export interface RunnerDeps extends PrepareDeps {
  bell: Bell;
  chats: ChatIndex;
  recorder: Recorder;
  /** Returns the current plan of the account. */
  plan(accountId: string): Promise<Plan>;
}

interface RunnerLine {
  lineId: string;
  accountId: string;
  /** Called when the connection gave no answer to a message: it may be dead without having noticed. */
  suspect(connection: Connection): void;
}

/** What the state of the line's connection allows. */
type Flow =
  | { kind: "open"; connection: Connection }
  /** Offline or paused: messages wait and use no attempt (promise 2). */
  | { kind: "waiting" }
  /** The link is gone for good: waiting messages fail with this error. */
  | { kind: "ended"; error: MessageError };

/** The message whose turn it is, and what decides when it may leave. */
interface Turn {
  row: MessageRow;
  connection: Connection | null;
  plan: Plan;
  pacing: Pacing | null;
  newChats: NewChats | null;
  now: number;
}

/** When the next step follows: at a time, Unix ms, or as soon as the runner is woken. */
type Next = "now" | "woken" | { at: number };

/** What is to be done with the message whose turn it is. */
type Fate =
  | { kind: "leaves"; connection: Connection }
  /** A receipt has proved that it arrived, though its acknowledgement was lost. */
  | { kind: "proved" }
  | { kind: "expired" }
  | { kind: "opted_out" }
  /** For so long that it is prepared anew: the queue is paused, or the plan's hours have not begun. */
  | { kind: "held"; next: Next }
  | { kind: "waits"; next: Next };

/** How many messages of an ended line fail per step. */
const ENDING_AT_ONCE = 50;

export class Runner implements Service {
  readonly #deps: RunnerDeps;
  readonly #line: RunnerLine;
  #nextUp: NextUp;
  readonly #departures: Departures;
  readonly #preparation: Preparation;
  readonly #waker = new Waker();
  #flow: Flow = { kind: "waiting" };
  #stopping = new AbortController();
  #running: Promise<void> | null = null;
  /** Whether rows may have changed since the queue was last read. The line's own departures only change the head. */
  #changed = true;
  /** The message whose turn it is, as last determined; null if that has to be read from the queue. */
  #turn: MessageRow | null = null;
  /** Who of a status's audience had opted out at the last look. */
  #leftOut = "";

  constructor(deps: RunnerDeps, line: RunnerLine) {
    this.#deps = deps;
    this.#line = line;
    this.#nextUp = this.#readQueue();
    this.#departures = new Departures(deps, { ...line, signal: this.#stopping.signal });
    this.#preparation = new Preparation(makePrepare(deps, line.lineId), {
      ready: () => this.#waker.wake(),
      again: () => this.wake(),
    });
  }

  /** Begins to work on the queue. Resolves at once. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return Promise.resolve();
  }

  /** Starts no further message; resolves when the outcome of the one on its way is recorded. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#running;
  }

  /**
   * Notes that a message was accepted, changed or cancelled. Does nothing while the line is offline and all must wait.
   */
  queueChanged(): void {
    if (this.#flow.kind !== "waiting") this.wake();
  }

  /** Makes the runner read the queue again, because rows may have changed: a receipt came, or the bell rang. */
  wake(): void {
    this.#changed = true;
    this.#waker.wake();
  }

  /** Notes an incoming message: what waits for its chat is now a reply. */
  heard(message: Pick<Incoming, "chat" | "number" | "participant" | "timestamp">): void {
    if (this.#nextUp.heard(message, this.#deps.runtime.clock.now())) this.queueChanged();
  }

  /** Sets what the connection allows from now on. */
  use(flow: Flow): void {
    this.#flow = flow;
    this.wake();
  }

  /**
   * Forgets what the plan counts for the line's last number, and the chats of that number: another one starts its own
   * warm-up, and nobody knows it. Call it while nothing can be sent. Throws StoreError.
   */
  async forgetNumber(): Promise<void> {
    await this.idle();
    await this.#departures.forgetNumber();
    await forgetChats(this.#deps.kv, this.#line.lineId);
    this.#nextUp = this.#readQueue();
  }

  /** Resolves when no acknowledgement is left to record. */
  recorded(): Promise<void> {
    return this.#departures.recorded();
  }

  /** When the runner wakes by itself, Unix ms: infinity if nothing is due, a past time while it works. */
  get restsUntil(): number {
    return this.#waker.restsUntil;
  }

  /** Resolves when the runner has nothing to do: the queue is empty, a pause runs, or the line is offline. */
  idle(): Promise<void> {
    return this.#waker.idle();
  }

  #readQueue(): NextUp {
    const { kv, runtime: { clock } } = this.#deps;
    return new NextUp({ kv, clock }, this.#line);
  }

  async #run(): Promise<void> {
    let recovered = false;
    while (!this.#stopping.signal.aborted) {
      try {
        this.#waker.looks();
        if (!recovered) await this.#departures.recover((pacing) => this.#nextUp.departing(pacing));
        recovered = true;
        const next = await this.#step();
        if (next === "now") continue;
        await this.#departures.settle();
        await this.#rest(next);
      } catch (error) {
        // What was written is unknown: a message may be recorded as on its way that never left.
        recovered = false;
        this.#changed = true;
        this.#deps.runtime.log.warn(
          { lineId: this.#line.lineId, error: String(error) },
          "line queue failed; retrying",
        );
        await sleep(this.#deps.runtime.clock, TROUBLE_PAUSE_MS, this.#stopping.signal);
      }
    }
    await this.#departures.settle();
    await this.#preparation.end();
    this.#waker.end();
  }

  /** Does the next step. */
  async #step(): Promise<Next> {
    const flow = this.#flow;
    if (this.#nextUp.dueAt <= this.#deps.runtime.clock.now()) this.#changed = true;
    // If the next message can follow at once, its departure's commit also records the acknowledgement.
    if (!this.#follows(flow)) await this.#departures.settle();
    if (flow.kind !== "open") await this.#preparation.end();
    if (flow.kind === "ended") return await this.#fail(flow.error);
    const now = this.#deps.runtime.clock.now();
    if (this.#changed) {
      // Reset first: a change from now on requires the queue to be read again.
      this.#changed = false;
      this.#turn = null;
      await this.#nextUp.sortIn(now);
    }
    const pacing = await this.#departures.pacing();
    const plan = await this.#deps.plan(this.#line.accountId);
    const newChats = newChatsOf(plan, pacing, now);
    const connection = flow.kind === "open" ? flow.connection : null;
    const row = this.#turn ?? await this.#nextUp.message({ plan, pacing, connection, now });
    this.#turn = null;
    if (!row) {
      this.#preparation.drop();
      return newChats && newChats.used >= newChats.limit ? { at: newChats.resetsAt } : "woken";
    }
    const turn = { row, connection, plan, pacing, newChats, now };
    const { recorder } = this.#deps;
    const fate = await this.#fateOf(turn);
    switch (fate.kind) {
      case "leaves":
        return await this.#takeTurn({ ...turn, connection: fate.connection });
      case "proved":
        await recorder.prove(row.value.id);
        return "now";
      case "expired":
        await recorder.expire(row.value.id);
        return "now";
      case "opted_out":
        await recorder.drop(row.value.id, OPTED_OUT);
        return "now";
      case "held":
        this.#preparation.drop();
        return fate.next;
      case "waits":
        return fate.next;
    }
  }

  async #fateOf({ row: { value: message }, plan, connection, now }: Turn): Promise<Fate> {
    if (isProved(message)) return { kind: "proved" };
    if (message.expiresAt <= this.#deps.runtime.confirmed.now()) return { kind: "expired" };
    if (connection === null) return { kind: "waits", next: "woken" };
    const hold = await this.#holdOn(message);
    if (hold === "paused") return { kind: "held", next: "woken" };
    const opensAt = plan.hours === null ? now : openHours(plan.hours, now).opensAt;
    if (opensAt > now) return { kind: "held", next: beforeExpiry(message, opensAt, now) };
    if (hold === "opted_out") return { kind: "opted_out" };
    const { retryAt } = this.#departures;
    return retryAt > now ? { kind: "waits", next: { at: retryAt } } : { kind: "leaves", connection };
  }

  /** Has the message prepared, and sends it if its time has come. */
  async #takeTurn(
    { row, connection, plan, pacing, newChats, now }: Turn & { connection: Connection },
  ): Promise<Next> {
    const message = row.value;
    const ready = this.#preparation.of(message, connection);
    if (!this.#changed) this.#turn = row;
    const pauseMs = nextDeparture(pacing, now, plan) - now;
    const waitMs = this.#preparation.untilTyped(message, { now, pauseMs, typingMs: plan.typingMs });
    // If the message expires first, the rest of the pause is left to prepare the next one.
    if (waitMs > 0) return beforeExpiry(message, now + waitMs, now);
    if (!ready) {
      await this.#departures.settle();
      await this.#waker.next(); // the end of the preparation wakes it
      return "now";
    }
    this.#turn = null;
    this.#preparation.drop(); // used up, or the connection holds
    if (ready.kind === "hold") {
      this.#departures.backOff(now);
      return "now";
    }
    // So that one flush has the keys that encrypt it and the mark that it is on its way.
    if (ready.kind === "ready") await ready.leavesNext();
    const chat = chatOf(message.to);
    // A retry of the same message does not start a chat.
    const startsChat = message.id !== pacing?.departing && newChats !== null && await this.#nextUp.isNew(chat);
    const departure = { row, connection, ready, plan, startsChat };
    const departed = await this.#departures.depart(departure, (pacing) => this.#lookAhead(departure, pacing));
    // The next message was chosen on the assumption of an acknowledgement. Without one, this message may have to be
    // sent again first, or others be held back as it was. One that did not depart was changed without a wake-up.
    if (departed !== "acknowledged") this.#changed = true;
    if (startsChat) {
      await this.#departures.settle();
      await this.#nextUp.started(chat);
    }
    return "now";
  }

  /** Returns whether the next message is ready to leave at once. */
  #follows(flow: Flow): boolean {
    if (flow.kind !== "open" || this.#changed || this.#turn === null) return false;
    return this.#preparation.of(this.#turn.value, flow.connection)?.kind === "ready";
  }

  /** Chooses and prepares the next message while one is on its way, if no pause follows. Never rejects. */
  async #lookAhead({ row, connection, plan }: Parameters<Departures["depart"]>[0], pacing: Pacing): Promise<void> {
    const { log, clock } = this.#deps.runtime;
    const now = clock.now();
    const isNext = () => !this.#changed && !this.#stopping.signal.aborted && this.#nextUp.dueAt > now;
    // With a limit of new chats: whether the next message starts one is known only once this one is recorded.
    if (!isNext() || plan.delayMinMs > 0 || newChatsOf(plan, pacing, now) !== null) return;
    try {
      const next = await this.#nextUp.message({ plan, pacing, connection, now, behind: row.value.id });
      if (!next || next.value.status !== "queued" || !isNext()) return;
      this.#turn = next;
      this.#preparation.of(next.value, connection);
      this.#preparation.leavesNext();
    } catch (error) {
      // The next step will run into the same error and handle it.
      log.debug({ lineId: this.#line.lineId, error: String(error) }, "a line could not prepare the next message ahead");
    }
  }

  /**
   * Returns what holds back the message whose turn it is: the owner paused the queue, or every recipient has opted out.
   */
  async #holdOn({ accountId, to, content }: Message): Promise<"paused" | "opted_out" | null> {
    const { lineId } = this.#line;
    const people = content.kind === "status" ? content.audience : [chatOf(to)];
    const [paused, ...optedOut] = await this.#deps.kv.getMany<unknown>([
      lineKeys.queuePaused(lineId),
      ...people.map((chat) => messageKeys.optedOutChat(accountId, chat)),
    ]);
    if (content.kind === "status") {
      const out = people.filter((_, i) => optedOut[i]!.value !== null).join();
      // Its audience is fixed when it is prepared.
      if (out !== this.#leftOut) this.#preparation.drop();
      this.#leftOut = out;
    }
    return paused!.value !== null ? "paused" : optedOut.every(({ value }) => value !== null) ? "opted_out" : null;
  }

  /** Fails the next waiting messages, because the link is gone. */
  async #fail(error: MessageError): Promise<Next> {
    const ids = await this.#nextUp.first(ENDING_AT_ONCE);
    const ended = await Promise.all(ids.map((id) => this.#deps.recorder.drop(id, error)));
    if (ids.length === 0) return "woken";
    const { lineId } = this.#line;
    const { log, clock } = this.#deps.runtime;
    const count = ended.filter(Boolean).length;
    log.warn({ lineId, count, code: error.code }, "messages of a line were failed");
    if (count > 0) return "now";
    // If they were cancelled in the meantime, others may wait behind them: the line is not idle yet.
    const [first] = await this.#nextUp.first(1);
    return first === ids[0] ? { at: clock.now() + TROUBLE_PAUSE_MS } : "now";
  }

  /** Waits until the next step, a scheduled message is due or a wake-up comes, whichever is first. */
  async #rest(next: Exclude<Next, "now">): Promise<void> {
    const { bell, runtime: { clock } } = this.#deps;
    // When the line's link has ended, so have its scheduled messages: nothing is due.
    const dueAt = this.#flow.kind === "ended" ? Infinity : this.#nextUp.dueAt;
    const until = Math.min(next === "woken" ? Infinity : next.at, dueAt);
    if (until <= clock.now() || this.#waker.woken || this.#stopping.signal.aborted) return;
    if (until < Infinity) bell.ringAt(LINE_TOPIC + this.#line.lineId, until);
    await this.#waker.rest(until);
  }
}

/** Returns the time, or when the message expires; once that is over, it waits for the confirmed time. */
function beforeExpiry({ expiresAt }: Message, at: number, now: number): { at: number } {
  return { at: expiresAt > now ? Math.min(at, expiresAt) : at };
}
