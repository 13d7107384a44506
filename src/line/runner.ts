/**
 * The runner of one line: takes the head of its queue, has it prepared while the pause runs, lets it leave, records what
 * came of it (promises 1 to 4). Strictly one after another, so at most one message of the line is on its way.
 *
 * Nothing is kept in memory that a restart would miss: a message that was on its way when the process died stands as
 * `processing` and goes again under the same network id. Wake-ups may be lost or doubled: each only makes it look.
 */
import { openHours } from "../account/hours.ts";
import type { Plan } from "../account/plan.ts";
import { EXPIRED } from "../message/expiry.ts";
import { chatOf, hasEnded, type Message, type MessageError } from "../message/message.ts";
import { OPTED_OUT, optedOutAmong } from "../message/opt_outs.ts";
import { LineQueue } from "../message/queue.ts";
import { isProved } from "../message/receipts.ts";
import { messageKeys } from "../message/rows.ts";
import type { Alongside, Recorder } from "../message/record.ts";
import { retry } from "../base/retry.ts";
import type { Service } from "../base/service.ts";
import { traceStep } from "../base/trace.ts";
import { sleep } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change } from "../store/kv.ts";
import { STORE_PAUSE_MS } from "../store/retry.ts";
import { Chats, chatsOf, keepKnown, newAmong, writtenAt } from "./chats.ts";
import { type NewChats, newChatsOf, oneMoreChat } from "./new_chats.ts";
import { lineKeys } from "./rows.ts";
import type { Connection, Incoming, SendOutcome } from "../whatsapp/connection.ts";
import { afterDeparture, atStart, delaysOf, nextDeparture, type Pacing, whileDeparting } from "./pacing.ts";
import { askNetwork, Preparation, type PreparationDeps, type Ready } from "./preparation.ts";

export interface RunnerDeps extends PreparationDeps {
  bell: Bell;
  recorder: Recorder;
  /** The account's plan, as it is now. */
  plan(accountId: string): Promise<Plan>;
}

interface RunnerLine {
  lineId: string;
  accountId: string;
  /** Called when the connection left a message without an answer: it may be dead without knowing it. */
  suspect(connection: Connection): void;
}

/** What the line's connection allows now. */
type Flow =
  | { kind: "open"; connection: Connection }
  /** Offline or paused: messages wait and burn no attempt (promise 2). */
  | { kind: "waiting" }
  /** The link is gone for good: what waits fails with this error. */
  | { kind: "ended"; error: MessageError };

/** Attempts of one message: the first and two more (promise 3). */
const MAX_ATTEMPTS = 3;
/** A message in whose company the process died this often is given up, or its line would never move again. */
const MAX_ATTEMPTS_WITH_CRASHES = 10;
/** Pauses before a second and a third attempt after passing trouble (upload, key query, a network that is busy). */
const RETRY_AFTER_MS = [2_000, 8_000];
/** After trouble with the store, or a connection that is open and yet holds. */
const TROUBLE_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = Math.max(TROUBLE_PAUSE_MS, ...RETRY_AFTER_MS);
/** How long a connection may take over the departure of one message. */
const SEND_DEADLINE_MS = 120_000;
/**
 * Nothing waits for ever (docs/queue.md): one departure in so many is of the message that has waited longest, whatever
 * its priority, once that is so long.
 */
const OLDEST_EVERY = 10;
const OLDEST_AFTER_MS = 10 * 60_000;
/** How many messages of an ended line fail at once. */
const ENDING_AT_ONCE = 50;

/** The topics of the bell that wake lines end in their ids. */
export const LINE_TOPIC = "line/";

export class Runner implements Service {
  readonly #deps: RunnerDeps;
  readonly #line: RunnerLine;
  readonly #queue: LineQueue;
  readonly #chats: Chats;
  readonly #preparation: Preparation;
  /** Chats that wrote since the last look. */
  readonly #heard = new Map<string, number>();
  /** Where the queue of each priority ended at the last look; null before the first. */
  #ends: Awaited<ReturnType<LineQueue["ends"]>> | null = null;
  /** When the next scheduled message is due, Unix ms. */
  #dueAt = Infinity;
  #flow: Flow = { kind: "waiting" };
  #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #wakeUp: (() => void) | null = null;
  #woken = false;
  /** Whether rows may have changed since the last look at the queue; our own departures change nothing but the head. */
  #changed = true;
  /** The message whose turn it was at the last look; null when that has to be found out. */
  #turn: Message | null = null;
  #idling: (() => void)[] = [];
  #isIdle = false;
  /** Not before this time after passing trouble; a restart need not keep it. */
  #retryAt = 0;

  constructor(deps: RunnerDeps, line: RunnerLine) {
    this.#deps = deps;
    this.#line = line;
    this.#queue = new LineQueue(deps.kv, line.lineId);
    this.#chats = new Chats(deps.kv, line.lineId);
    this.#preparation = new Preparation(deps, line.lineId, { ready: () => this.#goOn(), again: () => this.wake() });
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
    this.#goOn();
  }

  /** A message came in: what waits for its chat is a reply now. */
  heard(message: Pick<Incoming, "chat" | "number" | "participant" | "timestamp">): void {
    const at = writtenAt(message, this.#deps.runtime.clock.now());
    for (const chat of chatsOf(message)) this.#heard.set(chat, at);
    this.queueChanged();
  }

  /** The connection came, went or ended. */
  use(flow: Flow): void {
    this.#flow = flow;
    this.wake();
  }

  /** Resolves when the runner has nothing to do now: the queue is empty, a pause runs, or the line is offline. */
  idle(): Promise<void> {
    return this.#isIdle && !this.#woken ? Promise.resolve() : new Promise((resolve) => this.#idling.push(resolve));
  }

  async #run(): Promise<void> {
    let recovered = false;
    while (!this.#stopping.signal.aborted) {
      try {
        this.#woken = false;
        if (!recovered) await this.#recover();
        recovered = true;
        await this.#pause(await this.#step());
      } catch (error) {
        // Nobody knows what was written: a message may stand as on its way that never left.
        recovered = false;
        this.#changed = true;
        this.#deps.runtime.log.warn({ lineId: this.#line.lineId, error: String(error) }, "the queue of a line waits");
        await sleep(this.#deps.runtime.clock, TROUBLE_PAUSE_MS, this.#stopping.signal);
      }
    }
    await this.#preparation.end();
    this.#resolveIdle();
  }

  /** A message that was on its way when the last process ended is queued again, in its place, under its network id. */
  async #recover(): Promise<void> {
    await this.#checkClock();
    const head = await this.#departing(await this.#pacing());
    if (head?.status !== "processing") return;
    if (head.attempts < MAX_ATTEMPTS_WITH_CRASHES) await this.#deps.recorder.requeued(head.id, "again");
    else await this.#deps.recorder.failed(head.id, UNACKNOWLEDGED);
  }

  async #checkClock(): Promise<void> {
    const { kv, runtime } = this.#deps;
    const { key, value: kept } = await kv.get(lineKeys.pacing(this.#line.lineId));
    if (kept === null) return;
    const pacing = atStart(kept, runtime.clock.now());
    if (pacing === kept) return;
    runtime.log.warn({ lineId: this.#line.lineId }, "the clock was set back: the pause of a line begins anew");
    await kv.commit(new Change().set(key, pacing));
  }

  /** Does the next thing. Resolves to how long nothing is to be done: 0 go on, infinity until woken. */
  async #step(): Promise<number> {
    const { recorder, runtime } = this.#deps;
    const flow = this.#flow;
    if (flow.kind !== "open") await this.#preparation.end();
    if (flow.kind === "ended") return await this.#fail(flow.error);
    const now = runtime.clock.now();
    if (this.#changed || this.#dueAt <= now) {
      // First of all: what changes meanwhile calls for another look.
      this.#changed = false;
      this.#turn = null;
      await this.#sortIn(now);
    }
    const pacing = await this.#pacing();
    const plan = await this.#deps.plan(this.#line.accountId);
    const newChats = newChatsOf(plan, pacing, now);
    const message = this.#turn ?? await this.#next(flow, { pacing, now, newChats });
    this.#turn = null;
    if (!message) {
      this.#preparation.drop();
      return newChats && newChats.used >= newChats.limit ? newChats.resetsAt - now : Infinity;
    }
    if (isProved(message)) {
      await recorder.proved(message.id);
      return 0;
    }
    if (message.expiresAt <= now) {
      await recorder.dropped(message.id, EXPIRED);
      return 0;
    }
    if (flow.kind === "waiting" || await this.#isPaused()) return Infinity;
    const opensAt = plan.hours === null ? now : openHours(plan.hours, now).opensAt;
    if (opensAt > now) {
      this.#preparation.drop();
      return Math.min(opensAt, message.expiresAt) - now;
    }
    if ((await optedOutAmong(this.#deps.kv, message.accountId, [chatOf(message.to)])).size > 0) {
      await recorder.dropped(message.id, OPTED_OUT);
      return 0;
    }
    // After passing trouble the network is left alone for a while.
    const pause = this.#retryAt - now;
    // A longer one than there is: the clock was set back.
    if (pause > 0 && pause <= LONGEST_PAUSE_MS) return pause;
    const ready = this.#preparation.of(message, flow.connection);
    if (!this.#changed) this.#turn = message;
    const pauseMs = nextDeparture(pacing, now, delaysOf(plan)) - now;
    const wait = this.#preparation.untilTyped(message, { now, pauseMs, typingMs: plan.typingMs });
    // When it expires meanwhile, the next one still has what is left of the pause to get ready.
    if (wait > 0) return Math.min(wait, message.expiresAt - now);
    if (!ready) {
      await this.#nextWake(); // its end is one
      return 0;
    }
    this.#turn = null;
    if (ready.kind === "hold") {
      this.#preparation.drop();
      this.#retryAt = now + TROUBLE_PAUSE_MS;
      return 0;
    }
    return await this.#dispatch(message, { connection: flow.connection, ready, plan, pacing });
  }

  /** The owner holds the queue; it stays so over restarts. */
  async #isPaused(): Promise<boolean> {
    return (await this.#deps.kv.get(lineKeys.queuePaused(this.#line.lineId))).value !== null;
  }

  async #pacing(): Promise<Pacing | null> {
    return (await this.#deps.kv.get(lineKeys.pacing(this.#line.lineId))).value;
  }

  /** The message that is on its way, or may have left and has to go again before any other. */
  async #departing(pacing: Pacing | null): Promise<Message | null> {
    if (!pacing?.departing) return null;
    const { value } = await this.#deps.kv.get(messageKeys.message(pacing.departing));
    return value && !hasEnded(value) ? value : null;
  }

  /** Brings the rows of the queue up to date: messages that are due, and those to chats that wrote. */
  async #sortIn(now: number): Promise<void> {
    const laneOf = (chat: string) => this.#chats.wroteLately(chat, now) ? "reply" : "cold";
    if (this.#ends === null) {
      for (const chat of await this.#chats.load(now)) this.#heard.set(chat, this.#heard.get(chat) ?? 0);
      this.#ends = await this.#queue.ends();
    } else {
      await this.#queue.sortIn(this.#ends, laneOf);
    }
    for (const [chat, at] of [...this.#heard]) {
      this.#chats.heard(chat, at);
      await this.#queue.moveChat(chat, "reply");
      this.#heard.delete(chat);
    }
    this.#dueAt = await this.#queue.release(now, laneOf) ?? Infinity;
  }

  /**
   * The message whose turn it is. While the line may start no new chats, those to new ones let others pass; null when
   * nothing can leave: what ends the restriction wakes the line, and what expires meanwhile is found by the sweep.
   */
  async #next(
    flow: Flow,
    { pacing, now, newChats }: { pacing: Pacing | null; now: number; newChats: NewChats | null },
  ): Promise<Message | null> {
    const lets = async (to: string) => flow.kind !== "open" || await flow.connection.allows(to);
    const departing = await this.#departing(pacing);
    if (departing && (isProved(departing) || await lets(departing.to))) return departing;
    const startsNone = newChats !== null && newChats.used >= newChats.limit;
    const allows = async (chat: string) => await lets(chat) && !(startsNone && await this.#isNew(chat));
    const turn = (pacing?.departures ?? 0) % OLDEST_EVERY === OLDEST_EVERY - 1;
    return await this.#queue.next({
      laneOf: async (chat) => !await allows(chat) ? "held" : this.#chats.wroteLately(chat, now) ? "reply" : "cold",
      oldestBefore: turn ? now - OLDEST_AFTER_MS : null,
    });
  }

  async #isNew(chat: string): Promise<boolean> {
    return (await newAmong(this.#deps.kv, this.#line.lineId, [chat])).size > 0;
  }

  /** Fails what waits, some at a time, because the link is gone. */
  async #fail(error: MessageError): Promise<number> {
    const messages = await this.#queue.first(ENDING_AT_ONCE);
    const ended = await Promise.all(messages.map((message) => this.#deps.recorder.dropped(message.id, error)));
    if (messages.length === 0) return Infinity;
    const { lineId } = this.#line;
    this.#deps.runtime.log.warn({ lineId, count: messages.length, code: error.code }, "messages of a line were failed");
    return ended.some(Boolean) ? 0 : TROUBLE_PAUSE_MS;
  }

  async #dispatch(message: Message, { connection, ready, plan, pacing }: Departure): Promise<number> {
    const { recorder, runtime: { clock, random } } = this.#deps;
    const handedOverAt = clock.now();
    const delays = delaysOf(plan);
    const departing = message.id;
    const chat = chatOf(message.to);
    // Another attempt of the same message starts no chat.
    const startsChat = departing !== pacing?.departing && newChatsOf(plan, pacing, handedOverAt) !== null &&
      await this.#isNew(chat);
    const counts = {
      departures: (pacing?.departures ?? 0) + 1,
      firstDepartureAt: pacing?.firstDepartureAt ?? handedOverAt,
      ...(startsChat
        ? { newChats: oneMoreChat(plan, pacing, handedOverAt) }
        : pacing?.newChats && { newChats: pacing.newChats }),
    };
    const onItsWay = { ...whileDeparting(handedOverAt, { delays, random }), ...counts, departing };
    const dispatched = await recorder.dispatched(message, this.#keepPacing(onItsWay));
    if (!dispatched) return 0; // cancelled or changed in this very moment
    this.#preparation.drop(); // it is used up
    const outcome = await this.#send(message, ready);
    const answeredAt = clock.now();
    this.#log(dispatched, outcome);
    traceDeparture(dispatched, outcome, { handedOverAt, answeredAt });
    const after = { ...afterDeparture(handedOverAt, answeredAt, { delays, random }), ...counts };
    const departed = this.#keepPacing(after);
    const again = this.#keepPacing({ ...after, departing });
    const used: Alongside = (change, sent) => {
      keepKnown(change, this.#line.lineId, chat);
      departed(change.set(lineKeys.lineUsed(this.#line.lineId), answeredAt), sent);
    };
    const last = dispatched.attempts >= MAX_ATTEMPTS;
    switch (outcome.kind) {
      case "sent":
        await this.#record(() => recorder.sent(message.id, answeredAt, used));
        if (startsChat) await this.#queue.moveChat(chat, "cold");
        return 0;
      case "refused": {
        const error = { code: outcome.code, message: outcome.detail };
        await this.#record(() => recorder.failed(message.id, error, departed));
        return 0;
      }
      case "unknown":
        this.#line.suspect(connection);
        await this.#record(() =>
          last ? recorder.failed(message.id, UNACKNOWLEDGED, departed) : recorder.requeued(message.id, "again", again)
        );
        return 0;
      case "retry": {
        const error = {
          code: "send_failed",
          message: `It could not be sent in ${MAX_ATTEMPTS} attempts: ${outcome.detail}`,
        };
        await this.#record(() =>
          last ? recorder.failed(message.id, error, departed) : recorder.requeued(message.id, "again", again)
        );
        this.#retryAt = last ? 0 : answeredAt + (RETRY_AFTER_MS[dispatched.attempts - 1] ?? 0);
        return 0;
      }
      case "restricted":
        // No attempt: it waits with the other cold ones, under its id.
        await this.#record(() => recorder.requeued(message.id, "hold", departed));
        return 0;
      case "hold":
        await this.#record(() => recorder.requeued(message.id, "hold", this.#keepPacing(pacing)));
        this.#retryAt = answeredAt + TROUBLE_PAUSE_MS;
        return 0;
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

  /** Lets the message leave. */
  async #send({ id: messageId }: Message, ready: Ready): Promise<SendOutcome> {
    if (ready.kind !== "ready") return ready;
    return await askNetwork(() => ready.send(), { messageId, limitMs: SEND_DEADLINE_MS }, this.#deps.runtime);
  }

  /** Records an outcome however long the store is in trouble: it must not be lost, nor the message go out again. */
  async #record(commit: () => Promise<unknown>): Promise<void> {
    const { clock, log } = this.#deps.runtime;
    const { signal } = this.#stopping;
    const onRetry = (error: unknown) =>
      log.warn({ lineId: this.#line.lineId, error: String(error) }, "an outcome waits to be kept");
    try {
      await retry(commit, { clock, pauseMs: STORE_PAUSE_MS, signal, onRetry });
    } catch (error) {
      // On stop the message stays `processing`; the next start sends it again under the same network id.
      if (!signal.aborted) throw error;
    }
  }

  #keepPacing(pacing: Pacing | null): Alongside {
    const { lineId } = this.#line;
    return (change) => {
      if (pacing === null) change.delete(lineKeys.pacing(lineId));
      else change.set(lineKeys.pacing(lineId), pacing);
    };
  }

  #goOn(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** Waits for the time to pass or for a wake-up, whichever is first. */
  async #pause(forMs: number): Promise<void> {
    if (forMs <= 0 || this.#woken || this.#stopping.signal.aborted) return;
    const woken = this.#nextWake();
    const { bell, runtime } = this.#deps;
    const until = Math.min(runtime.clock.now() + forMs, this.#dueAt);
    if (until < Infinity) bell.ringAt(LINE_TOPIC + this.#line.lineId, until);
    this.#isIdle = true;
    this.#resolveIdle();
    await woken;
    this.#isIdle = false;
  }

  /** Resolves at the next wake-up, or at once when there was one since the last look. */
  async #nextWake(): Promise<void> {
    if (this.#woken) return;
    await new Promise<void>((resolve) => this.#wakeUp = resolve);
    this.#wakeUp = null;
  }

  #resolveIdle(): void {
    for (const resolve of this.#idling.splice(0)) resolve();
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

interface Departure {
  connection: Connection;
  ready: Ready;
  plan: Plan;
  pacing: Pacing | null;
}

const UNACKNOWLEDGED: MessageError = {
  code: "unacknowledged",
  message: "The network did not confirm it in three attempts; it may have arrived all the same.",
};
