/**
 * The runner of one line: takes the head of its queue, has it prepared while the pause runs, and lets it leave (promises
 * 1 to 4). Strictly one after another, so at most one message of the line is on its way.
 *
 * Nothing is kept in memory that a restart would miss: a message that was on its way when the process died stands as
 * `processing` and goes again under the same network id. Wake-ups may be lost or doubled: each only makes it look.
 */
import { openHours } from "../account/hours.ts";
import type { Plan } from "../account/plan.ts";
import { EXPIRED } from "../message/expiry.ts";
import { chatOf, type Message, type MessageError } from "../message/message.ts";
import { OPTED_OUT } from "../message/opt_outs.ts";
import { isProved } from "../message/receipts.ts";
import { messageKeys } from "../message/rows.ts";
import type { MessageRow, Recorder } from "../message/record.ts";
import type { Service } from "../base/service.ts";
import { sleep } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { TROUBLE_PAUSE_MS } from "./attempts.ts";
import { type DepartingLine, Departures } from "./departures.ts";
import { type NewChats, newChatsOf } from "./new_chats.ts";
import { NextUp } from "./next_up.ts";
import { lineKeys } from "./rows.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import { delaysOf, nextDeparture, type Pacing } from "./pacing.ts";
import { Preparation } from "./preparation.ts";
import { makePrepare, type PrepareDeps } from "./prepare.ts";
import { Waker } from "./waker.ts";

export interface RunnerDeps extends PrepareDeps {
  bell: Bell;
  recorder: Recorder;
  /** The account's plan, as it is now. */
  plan(accountId: string): Promise<Plan>;
}

interface RunnerLine extends Pick<DepartingLine, "lineId" | "suspect"> {
  accountId: string;
}

/** What the line's connection allows now. */
type Flow =
  | { kind: "open"; connection: Connection }
  /** Offline or paused: messages wait and burn no attempt (promise 2). */
  | { kind: "waiting" }
  /** The link is gone for good: what waits fails with this error. */
  | { kind: "ended"; error: MessageError };

/** Whose turn it is, and what it may leave by. */
interface Turn {
  row: MessageRow;
  connection: Connection;
  plan: Plan;
  pacing: Pacing | null;
  newChats: NewChats | null;
  now: number;
}

/** How many messages of an ended line fail at once. */
const ENDING_AT_ONCE = 50;

/** The topics of the bell that wake lines end in their ids. */
export const LINE_TOPIC = "line/";

export class Runner implements Service {
  readonly #deps: RunnerDeps;
  readonly #line: RunnerLine;
  readonly #nextUp: NextUp;
  readonly #departures: Departures;
  readonly #preparation: Preparation;
  readonly #waker = new Waker();
  #flow: Flow = { kind: "waiting" };
  #stopping = new AbortController();
  #running: Promise<void> | null = null;
  /** Whether rows may have changed since the last look at the queue; our own departures change nothing but the head. */
  #changed = true;
  /** The message whose turn it was at the last look; null when that has to be found out. */
  #turn: MessageRow | null = null;

  constructor(deps: RunnerDeps, line: RunnerLine) {
    this.#deps = deps;
    this.#line = line;
    this.#nextUp = new NextUp({ kv: deps.kv, clock: deps.runtime.clock }, line.lineId);
    this.#departures = new Departures(deps, { ...line, signal: this.#stopping.signal });
    this.#preparation = new Preparation(makePrepare(deps, line.lineId), {
      ready: () => this.#waker.wake(),
      again: () => this.wake(),
    });
  }

  /** Resolves at once. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return Promise.resolve();
  }

  /** Begins no further message, and resolves when the one on its way is recorded. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#running;
  }

  /** A message was accepted, or taken back. While the line is offline all wait: a look at the queue would be in vain. */
  queueChanged(): void {
    if (this.#flow.kind !== "waiting") this.wake();
  }

  /** Something may have changed: a receipt came, the bell rang. */
  wake(): void {
    this.#changed = true;
    this.#waker.wake();
  }

  /** A message came in: what waits for its chat is a reply now. */
  heard(message: Pick<Incoming, "chat" | "number" | "participant" | "timestamp">): void {
    if (this.#nextUp.heard(message, this.#deps.runtime.clock.now())) this.queueChanged();
  }

  /** The connection came, went or ended. */
  use(flow: Flow): void {
    this.#flow = flow;
    this.wake();
  }

  /** Resolves when no message that was acknowledged is still to be recorded. */
  recorded(): Promise<void> {
    return this.#departures.recorded();
  }

  /** When it looks by itself, Unix ms: infinity when nothing is to be done, a time that has passed while it works. */
  get restsUntil(): number {
    return this.#waker.restsUntil;
  }

  /** Resolves when the runner has nothing to do now: the queue is empty, a pause runs, or the line is offline. */
  idle(): Promise<void> {
    return this.#waker.idle();
  }

  async #run(): Promise<void> {
    let recovered = false;
    while (!this.#stopping.signal.aborted) {
      try {
        this.#waker.looks();
        if (!recovered) await this.#departures.recover((pacing) => this.#nextUp.departing(pacing));
        recovered = true;
        const forMs = await this.#step();
        if (forMs > 0) await this.#departures.settle();
        await this.#pause(forMs);
      } catch (error) {
        // Nobody knows what was written: a message may stand as on its way that never left.
        recovered = false;
        this.#changed = true;
        this.#deps.runtime.log.warn({ lineId: this.#line.lineId, error: String(error) }, "the queue of a line waits");
        await sleep(this.#deps.runtime.clock, TROUBLE_PAUSE_MS, this.#stopping.signal);
      }
    }
    await this.#departures.settle();
    await this.#preparation.end();
    this.#waker.end();
  }

  /** Does the next thing. Resolves to how long nothing is to be done: 0 go on, infinity until woken. */
  async #step(): Promise<number> {
    const flow = this.#flow;
    // What was acknowledged is recorded with the departure of the next, where that can follow at once.
    if (!this.#follows(flow)) await this.#departures.settle();
    if (flow.kind !== "open") await this.#preparation.end();
    if (flow.kind === "ended") return await this.#fail(flow.error);
    const now = this.#deps.runtime.clock.now();
    if (this.#changed || this.#nextUp.dueAt <= now) {
      // First of all: what changes meanwhile calls for another look.
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
      return newChats && newChats.used >= newChats.limit ? newChats.resetsAt - now : Infinity;
    }
    const heldMs = await this.#holdBack(row.value, { plan, connection, now });
    if (heldMs !== null || connection === null) return heldMs ?? Infinity;
    return await this.#takeTurn({ row, connection, plan, pacing, newChats, now });
  }

  /** Ends the message whose turn it is, or holds it back: as `#step`. Null: it may leave. */
  async #holdBack(
    message: Message,
    { plan, connection, now }: Pick<Turn, "plan" | "now"> & { connection: Connection | null },
  ): Promise<number | null> {
    const { recorder } = this.#deps;
    if (isProved(message)) {
      await recorder.proved(message.id);
      return 0;
    }
    if (message.expiresAt <= now) {
      await recorder.dropped(message.id, EXPIRED);
      return 0;
    }
    const hold = await this.#holdOn(message);
    if (connection === null || hold === "paused") return Infinity;
    const opensAt = plan.hours === null ? now : openHours(plan.hours, now).opensAt;
    if (opensAt > now) {
      this.#preparation.drop();
      return Math.min(opensAt, message.expiresAt) - now;
    }
    if (hold === "opted_out") {
      await recorder.dropped(message.id, OPTED_OUT);
      return 0;
    }
    return this.#departures.restMs(now) || null;
  }

  /** Has the message prepared, waits for its time, and lets it leave: as `#step`. */
  async #takeTurn({ row, connection, plan, pacing, newChats, now }: Turn): Promise<number> {
    const message = row.value;
    const ready = this.#preparation.of(message, connection);
    if (!this.#changed) this.#turn = row;
    const pauseMs = nextDeparture(pacing, now, delaysOf(plan)) - now;
    const wait = this.#preparation.untilTyped(message, { now, pauseMs, typingMs: plan.typingMs });
    // When it expires meanwhile, the next one still has what is left of the pause to get ready.
    if (wait > 0) return Math.min(wait, message.expiresAt - now);
    if (!ready) {
      await this.#departures.settle();
      await this.#waker.next(); // its end is one
      return 0;
    }
    this.#turn = null;
    this.#preparation.drop(); // it is used up, or holds
    if (ready.kind === "hold") {
      this.#departures.rest(now);
      return 0;
    }
    // It is encrypted while the commit that lets it leave is flushed.
    if (ready.kind === "ready") ready.leavesNext();
    const chat = chatOf(message.to);
    // Another attempt of the same message starts no chat.
    const startsChat = message.id !== pacing?.departing && newChats !== null && await this.#nextUp.isNew(chat);
    const departure = { row, connection, ready, plan, startsChat };
    const departed = await this.#departures.depart(departure, (pacing) => this.#lookAhead(departure, pacing));
    // Somebody has changed it, and that was not heard of.
    if (!departed) this.#changed = true;
    // What was chosen meanwhile rests on its acknowledgement: it may go again, first, or others be held back like it.
    if (!this.#departures.isAcknowledged()) this.#turn = null;
    if (startsChat) {
      await this.#departures.settle();
      await this.#nextUp.started(chat);
    }
    return 0;
  }

  /** Whether the next message can leave at once. */
  #follows(flow: Flow): boolean {
    if (flow.kind !== "open" || this.#changed || this.#turn === null) return false;
    return this.#preparation.of(this.#turn.value, flow.connection)?.kind === "ready";
  }

  /** While a message is on its way and no pause follows, the one behind it gets ready. Never rejects. */
  async #lookAhead({ row, connection, plan }: Parameters<Departures["depart"]>[0], pacing: Pacing): Promise<void> {
    const { log, clock } = this.#deps.runtime;
    const now = clock.now();
    const isNext = () => !this.#changed && !this.#stopping.signal.aborted && this.#nextUp.dueAt > now;
    // Whether its chat is new is known only once this one is recorded.
    if (!isNext() || plan.delayMinMs > 0 || newChatsOf(plan, pacing, now) !== null) return;
    try {
      const next = await this.#nextUp.message({ plan, pacing, connection, now, behind: row.value.id });
      if (!next || next.value.status !== "queued" || !isNext()) return;
      this.#turn = next;
      this.#preparation.of(next.value, connection);
      this.#preparation.leavesNext();
    } catch (error) {
      // The next step meets it too.
      log.debug({ lineId: this.#line.lineId, error: String(error) }, "a line could not look ahead");
    }
  }

  /** What may hold a message back whose turn it is: the owner holds the queue, or nobody may write to the recipient. */
  async #holdOn({ accountId, to, content }: Message): Promise<"paused" | "opted_out" | null> {
    const { lineId } = this.#line;
    const people = content.kind === "status" ? content.audience : [chatOf(to)];
    const [paused, ...optedOut] = await this.#deps.kv.getMany<unknown>([
      lineKeys.queuePaused(lineId),
      ...people.map((chat) => messageKeys.optedOutChat(accountId, chat)),
    ]);
    return paused!.value !== null ? "paused" : optedOut.every(({ value }) => value !== null) ? "opted_out" : null;
  }

  /** Fails what waits, some at a time, because the link is gone. */
  async #fail(error: MessageError): Promise<number> {
    const ids = await this.#nextUp.first(ENDING_AT_ONCE);
    const ended = await Promise.all(ids.map((id) => this.#deps.recorder.dropped(id, error)));
    if (ids.length === 0) return Infinity;
    const { lineId } = this.#line;
    this.#deps.runtime.log.warn({ lineId, count: ids.length, code: error.code }, "messages of a line were failed");
    return ended.some(Boolean) ? 0 : TROUBLE_PAUSE_MS;
  }

  /** Waits for the time to pass or for a wake-up, whichever is first. */
  async #pause(forMs: number): Promise<void> {
    if (forMs <= 0 || this.#waker.woken || this.#stopping.signal.aborted) return;
    const { bell, runtime } = this.#deps;
    // Of a queue that has ended, what was scheduled has ended too: nothing is due.
    const dueAt = this.#flow.kind === "ended" ? Infinity : this.#nextUp.dueAt;
    const until = Math.min(runtime.clock.now() + forMs, dueAt);
    if (until < Infinity) bell.ringAt(LINE_TOPIC + this.#line.lineId, until);
    await this.#waker.rest(until);
  }
}
