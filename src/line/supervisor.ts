/**
 * The supervisor of all lines: gives each a session, brings them up one after another at boot, and looks at the rows when
 * the store has changed, because what is wanted may be written by another process, and from time to time, because a ring
 * may be lost (promises 4, 5 and 7).
 */
import type { Service } from "../base/service.ts";
import { Loop } from "../base/single_flight.ts";
import { busyLines } from "../message/queue/busy_lines.ts";
import { expireMessages, nextExpiry } from "../message/expiry.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import type { Changes } from "../store/changes.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { Ownership } from "./ownership.ts";
import { lineKeys } from "./rows.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { Outgoing, SendOutcome } from "../whatsapp/outgoing.ts";
import type { LiveLines, Vitals } from "./live.ts";
import { LineSession, type LineSessionDeps } from "./line_session.ts";
import type { LineStatus } from "./line.ts";
import { LINE_TOPIC, type Runner } from "./runner.ts";

/**
 * A store in which nothing changes is swept this often, and each queue in which something waits looked at, should a ring
 * have been lost; but not where the line does so by itself before the next time.
 */
const SWEEP_EVERY_MS = 10_000;
/** A sweep that has left something to do comes again after this time. */
const SWEEP_AGAIN_MS = 2_000;
/** Between the first connects of two lines at boot: a hundred lines are up within 2 s and none waits for a crowd. */
const STAGGER_MS = 15;

interface SupervisorDeps {
  kv: Kv;
  runtime: Runtime;
  bell: Bell;
  changes: Changes;
  ownership: Ownership;
  /** Whether a plan is another one than at the last call. */
  plansChanged(): Promise<boolean>;
  /** What a session works with: whatever it writes goes through its line's own store (promise 9). */
  session(store: Kv): LineSessionDeps;
}

export class Supervisor implements Service, LiveLines {
  readonly #deps: SupervisorDeps;
  readonly #sessions = new Map<string, LineSession>();
  readonly #watchers = new Set<(lineId: string) => void>();
  readonly #deafen: (() => void)[] = [];
  readonly #sweeps: Loop;
  /** When the queues were last looked at. */
  #queuesSeenAt = 0;
  #counts = noLines();
  #degraded = 0;
  #started = false;
  #isStopping = false;
  #stopped: Promise<void> | null = null;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#sweeps = new Loop(deps.runtime.clock, () => this.#sweepOrLater());
  }

  /** Resolves when every line has its session; they come up from then on. Throws StoreError. Idempotent. */
  async start(): Promise<void> {
    if (this.#started) return;
    this.#started = true;
    const { bell, changes, runtime: { clock } } = this.#deps;
    this.#deafen.push(
      bell.hear(LINE_TOPIC, (topic) => {
        if (topic === LINE_TOPIC) { for (const session of this.#sessions.values()) session.runner.wake(); }
        else this.#sessions.get(topic.slice(LINE_TOPIC.length))?.runner.wake();
      }),
      changes.hear(() => void this.#sweeps.now()),
    );
    this.#queuesSeenAt = clock.now();
    this.#sweeps.start(await this.#sweep());
  }

  /** Closes every connection, keeps every link, lets messages that are on their way come to their end. Idempotent. */
  stop(): Promise<void> {
    this.#isStopping = true;
    this.#stopped ??= (async () => {
      await this.#sweeps.stop();
      await Promise.all([...this.#sessions.values()].map((session) => session.stop()));
      for (const deaf of this.#deafen.splice(0)) deaf();
    })();
    return this.#stopped;
  }

  reconcile(line: { id: string; accountId: string }): void {
    this.#sessionOf(line, 0)?.reconcile();
  }

  /** On one machine nothing has to be taken up: the sweep finds the line's row. */
  offer(): void {}

  /** As `reconcile`, of a line whose row another process has written. */
  look(lineId: string): void {
    const session = this.#sessions.get(lineId);
    if (session) session.reconcile();
    else this.taken();
  }

  /** Lines have become this process's: they are brought up. */
  taken(): void {
    void this.#sweeps.now();
  }

  /** The line is, or is about to be, another process's: resolves when nothing is done for it here any more. */
  async drop(lineId: string): Promise<void> {
    const session = this.#sessions.get(lineId);
    this.#sessions.delete(lineId);
    await session?.stop();
  }

  queueChanged(lineId: string): void {
    this.#sessions.get(lineId)?.runner.queueChanged();
  }

  async vitals(lineId: string): Promise<Vitals> {
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
    await this.#deps.ownership.storeOf(lineId)?.commit(change);
    return await ready.send();
  }

  present(lineId: string): Connection | null {
    return this.#sessions.get(lineId)?.connection.present ?? null;
  }

  connection(lineId: string): Connection | null {
    return this.#sessions.get(lineId)?.connection.loggedIn ?? null;
  }

  /** How many lines have each status, as the last sweep found them. */
  countByStatus(): Readonly<Record<LineStatus, number>> {
    return this.#counts;
  }

  /** How many lines are connected and hear nothing, or nothing readable, as the last sweep found them. */
  countDegraded(): number {
    return this.#degraded;
  }

  watch(lineId: string, look: () => void): () => void {
    return this.watchAll((changed) => {
      if (changed === lineId) look();
    });
  }

  watchAll(look: (lineId: string) => void): () => void {
    this.#watchers.add(look);
    return () => void this.#watchers.delete(look);
  }

  /** Resolves when all that has happened so far is worked off, and no queue has anything to do now. */
  async idle(): Promise<void> {
    for (const session of [...this.#sessions.values()]) {
      await session.idle();
      await session.runner.idle();
    }
  }

  /** The session of the line; a new one begins after `delayMs`. Null once stopped, and for a line that is not ours. */
  #sessionOf(line: { id: string; accountId: string }, delayMs: number): LineSession | null {
    const known = this.#sessions.get(line.id);
    if (known || this.#isStopping) return known ?? null;
    const store = this.#deps.ownership.storeOf(line.id);
    if (store === null) return null;
    const session = new LineSession(this.#deps.session(store), line, () => this.#changed(line.id));
    this.#sessions.set(line.id, session);
    if (delayMs === 0) void session.start();
    else this.#deps.runtime.clock.after(delayMs, () => void session.start());
    return session;
  }

  #changed(lineId: string): void {
    for (const look of this.#watchers) look(lineId);
  }

  async #sweepOrLater(): Promise<number> {
    try {
      return await this.#sweep();
    } catch (error) {
      this.#deps.runtime.log.warn({ error: String(error) }, "the lines could not be looked at");
      return SWEEP_AGAIN_MS;
    }
  }

  /**
   * Finds lines that are new or gone, generations that nobody reported, messages whose time is over, rings that were lost.
   * Resolves to how long it is not needed again while the store does not change.
   */
  async #sweep(): Promise<number> {
    const { kv, ownership, plansChanged, runtime: { clock } } = this.#deps;
    const found = new Set<string>();
    const counts = noLines();
    let begun = 0;
    let degraded = 0;
    let isObserved = true;
    for await (const line of ownership.lines()) {
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
    if (Math.abs(clock.now() - this.#queuesSeenAt) >= SWEEP_EVERY_MS) await this.#wakeBusy();
    if (!isObserved) return SWEEP_AGAIN_MS;
    const expiresIn = await nextExpiry(kv) - clock.now();
    // Its time is over, and it is still there: on its way, or of a bulk that is being accepted.
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

  /** The row of the line is gone: so is the line. */
  async #release(lineId: string, session: LineSession): Promise<void> {
    if ((await this.#deps.kv.get(lineKeys.line(lineId))).value !== null) return; // made after the rows were listed
    this.#sessions.delete(lineId);
    await session.stop();
    await this.#deps.ownership.gone(lineId);
    this.#changed(lineId);
  }
}

function noLines(): Record<LineStatus, number> {
  return { initializing: 0, qr: 0, pairing: 0, connected: 0, disconnected: 0, logged_out: 0 };
}
