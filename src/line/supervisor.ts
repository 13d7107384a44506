/**
 * The supervisor of this process's lines: gives each a session, and brings them up one after another at boot. It reads
 * the rows whenever the store has changed, because another process may have written a wanted state, and from time to
 * time, because a ring of the bell may be lost (promises 4, 5 and 7).
 */
import type { Service } from "../base/service.ts";
import { Loop, type OnDemand, onDemand } from "../base/single_flight.ts";
import { busyLines, expireMessages, nextExpiry } from "../message/queue/across_lines.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell, Changes } from "../store/bell.ts";
import { QUEUE_TOPIC } from "../message/queue/place.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { Holder } from "../cluster/holder.ts";
import { lineKeys } from "./rows.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { Outgoing, SendOutcome } from "../whatsapp/outgoing.ts";
import { CHANGED_TOPIC, LINE_TOPIC, type LineHealth, type LiveLines, WANTED_TOPIC } from "./live.ts";
import type { LineSession } from "./line_session.ts";
import type { Line, LineStatus } from "./line.ts";
import type { Runner } from "./runner/runner.ts";

/**
 * Interval of sweeps while the store does not change, and of waking the lines whose queues are not empty, in case a
 * ring was lost. A line that wakes by itself before the next time is left alone.
 */
const SWEEP_EVERY_MS = 10_000;
/** Time until the next sweep if the last one failed, or left something to do. */
const SWEEP_AGAIN_MS = 2_000;
/** Time between the first connects of two lines at boot, so that a hundred lines are up within 2 s without a burst. */
const STAGGER_MS = 15;

interface SupervisorDeps {
  kv: Kv;
  runtime: Runtime;
  bell: Bell;
  changes: Changes;
  holder: Holder<Line>;
  /** Resolves to whether a plan has changed since the last call. */
  plansChanged(): Promise<boolean>;
  /** Loads what makes sessions; called with the first line, since a process without lines needs none of it. */
  sessions(): Promise<MakeSession>;
}

/** Makes a session, which writes only through `store`, its line's own (promise 9). */
export type MakeSession = (store: Kv, line: { id: string; accountId: string }, changed: () => void) => LineSession;

export class Supervisor implements Service, LiveLines {
  readonly #deps: SupervisorDeps;
  readonly #sessions = new Map<string, LineSession>();
  readonly #makeSession: OnDemand<MakeSession>;
  readonly #unsubscribe: (() => void)[] = [];
  readonly #sweeps: Loop;
  /** When the queues were last checked, Unix ms. */
  #queuesSeenAt = 0;
  #counts = noLines();
  #degraded = 0;
  #started = false;
  #isStopping = false;
  #stopped: Promise<void> | null = null;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#makeSession = onDemand(deps.sessions);
    this.#sweeps = new Loop(deps.runtime.clock, () => this.#sweepOrLater());
  }

  /** Gives every line a session, which then begins to bring it up. Throws StoreError. Idempotent. */
  async start(): Promise<void> {
    if (this.#started) return;
    this.#started = true;
    const { bell, changes, runtime: { clock } } = this.#deps;
    this.#unsubscribe.push(
      bell.hear(LINE_TOPIC, (topic) => {
        if (topic === LINE_TOPIC) { for (const session of this.#sessions.values()) session.runner.wake(); }
        else this.#sessions.get(topic.slice(LINE_TOPIC.length))?.runner.wake();
      }),
      bell.hear(QUEUE_TOPIC, (topic) => this.#sessions.get(topic.slice(QUEUE_TOPIC.length))?.runner.queueChanged()),
      bell.hear(WANTED_TOPIC, (topic) => this.#reconcile(topic.slice(WANTED_TOPIC.length))),
      changes.hear(() => this.taken()),
    );
    this.#queuesSeenAt = clock.now();
    this.#sweeps.start(await this.#sweep());
  }

  /**
   * Stops every session, which keeps its link and waits a limited time for a message that is on its way. Idempotent.
   */
  stop(): Promise<void> {
    this.#isStopping = true;
    this.#stopped ??= (async () => {
      await this.#sweeps.stop();
      await Promise.all([...this.#sessions.values()].map((session) => session.stop()));
      for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    })();
    return this.#stopped;
  }

  /** Brings up a new line, or has the session of one take up its wanted state. */
  #reconcile(topic: string): void {
    const [accountId, id] = topic.split("/");
    if (accountId && id && this.#makeSession.made()) this.#sessionOf({ id, accountId }, 0)?.reconcile();
    else this.taken();
  }

  /** Brings up lines that this process has just become the owner of. */
  taken(): void {
    void this.#sweeps.now();
  }

  /** Stops the session of a line that another process owns, or is about to. Resolves when it is stopped. */
  async drop(lineId: string): Promise<void> {
    const session = this.#sessions.get(lineId);
    this.#sessions.delete(lineId);
    await session?.stop();
  }

  async health(lineId: string): Promise<LineHealth> {
    const session = this.#sessions.get(lineId);
    return {
      connection: await session?.connection.present?.health() ?? null,
      connectedSince: session?.connection.openedAt ?? null,
    };
  }

  async deliver(lineId: string, message: Outgoing): Promise<SendOutcome> {
    const connection = this.connection(lineId);
    if (!connection) return { kind: "hold", detail: "The session is not connected to the messaging network." };
    const ready = await connection.prepare(message, new AbortController().signal);
    if (ready.kind !== "ready") return ready;
    const change = new Change();
    ready.keep(change);
    await this.#deps.holder.storeOf(lineId)?.commit(change);
    return await ready.send();
  }

  present(lineId: string): Connection | null {
    return this.#sessions.get(lineId)?.connection.present ?? null;
  }

  connection(lineId: string): Connection | null {
    return this.#sessions.get(lineId)?.connection.loggedIn ?? null;
  }

  /** Returns the number of lines by status, as of the last sweep. */
  countByStatus(): Readonly<Record<LineStatus, number>> {
    return this.#counts;
  }

  /** Returns the number of lines that are connected but receive nothing, or nothing readable, as of the last sweep. */
  countDegraded(): number {
    return this.#degraded;
  }

  /** Resolves when no session has a task left, and no queue has anything to do. */
  async idle(): Promise<void> {
    for (const session of [...this.#sessions.values()]) {
      await session.idle();
      await session.runner.idle();
    }
  }

  /**
   * Returns the line's session; a new one starts after `delayMs`. Null while stopping, for a line that is not ours, and
   * before sessions can be made.
   */
  #sessionOf(line: { id: string; accountId: string }, delayMs: number): LineSession | null {
    const known = this.#sessions.get(line.id);
    if (known || this.#isStopping) return known ?? null;
    const store = this.#deps.holder.storeOf(line.id);
    const session = store && this.#makeSession.made()?.(store, line, () => this.#changed(line.id));
    if (!session) return null;
    this.#sessions.set(line.id, session);
    if (delayMs === 0) void session.start();
    else this.#deps.runtime.clock.after(delayMs, () => void session.start());
    return session;
  }

  #changed(lineId: string): void {
    this.#deps.bell.ring(CHANGED_TOPIC + lineId);
  }

  async #sweepOrLater(): Promise<number> {
    try {
      return await this.#sweep();
    } catch (error) {
      this.#deps.runtime.log.warn({ error: String(error) }, "a sweep of the lines failed");
      return SWEEP_AGAIN_MS;
    }
  }

  /**
   * Finds new and deleted lines, unannounced generations, expired messages, changed plans, and work whose ring was
   * lost. Resolves to the milliseconds until the next sweep, if the store does not change before.
   */
  async #sweep(): Promise<number> {
    const { kv, holder, plansChanged, runtime: { clock, confirmed } } = this.#deps;
    const found = new Set<string>();
    const counts = noLines();
    let begun = 0;
    let degraded = 0;
    let isObserved = true;
    for await (const line of holder.rows()) {
      await this.#makeSession.need();
      found.add(line.id);
      counts[line.status]++;
      if (line.status === "connected" && line.reason !== null) degraded++;
      if (!this.#sessions.has(line.id)) this.#sessionOf(line, STAGGER_MS * begun++);
      else if (line.observedGeneration !== line.generation) {
        isObserved = false;
        this.#sessions.get(line.id)?.reconcile();
      }
    }
    this.#counts = counts;
    this.#degraded = degraded;
    for (const [lineId, session] of this.#sessions) if (!found.has(lineId)) await this.#release(lineId, session);
    await expireMessages(this.#deps, (lineId) => this.#sessions.get(lineId)?.recorder ?? null);
    if (await plansChanged()) { for (const { runner } of this.#sessions.values()) runner.wake(); }
    if (clock.now() - this.#queuesSeenAt >= SWEEP_EVERY_MS) await this.#wakeBusy();
    if (!isObserved) return SWEEP_AGAIN_MS;
    const expiresIn = await nextExpiry(kv) - confirmed.now();
    // An expired message still has its row: it is on its way, or belongs to a bulk that is being accepted.
    return expiresIn <= 0 ? SWEEP_AGAIN_MS : Math.min(expiresIn, SWEEP_EVERY_MS);
  }

  async #wakeBusy(): Promise<void> {
    const { kv, runtime: { clock } } = this.#deps;
    this.#queuesSeenAt = clock.now();
    const looksSoon = ({ restsUntil }: Runner) =>
      restsUntil > this.#queuesSeenAt && restsUntil <= this.#queuesSeenAt + SWEEP_EVERY_MS;
    const others = [...this.#sessions].flatMap(([lineId, { runner }]) => looksSoon(runner) ? [] : lineId);
    for (const lineId of await busyLines(kv, others, this.#queuesSeenAt)) {
      this.#sessions.get(lineId)?.runner.wake();
    }
  }

  /** Releases a line whose row is gone. */
  async #release(lineId: string, session: LineSession): Promise<void> {
    if ((await this.#deps.kv.get(lineKeys.line(lineId))).value !== null) return; // created after the rows were listed
    this.#sessions.delete(lineId);
    await session.stop();
    await this.#deps.holder.gone(lineId);
    this.#changed(lineId);
  }
}

function noLines(): Record<LineStatus, number> {
  return { initializing: 0, qr: 0, pairing: 0, connected: 0, disconnected: 0, logged_out: 0 };
}
