/**
 * The supervisor of all lines: gives each a keeper, brings them up one after another at boot, and looks at the rows
 * from time to time, because a wish may come from another process and a ring may be lost (promises 4, 5 and 7).
 */
import { expireMessages } from "../message/expiry.ts";
import { lineKeys } from "./rows.ts";
import type { Connection } from "../whatsapp/connection.ts";
import { type KeeperDeps, LineKeeper } from "./keeper.ts";
import { LINE_STATUSES, type LineStatus } from "./line.ts";
import { LINE_TOPIC } from "./runner.ts";

/** A wish from another process is found within this time. */
const SWEEP_EVERY_MS = 2_000;
/** Every so many sweeps each queue is looked at, should a ring have been lost. */
const SWEEPS_A_QUEUE_LOOK = 5;
/** Between the first connects of two lines at boot: a hundred lines are up within 2 s and none waits for a crowd. */
const STAGGER_MS = 15;

export class Supervisor {
  readonly #deps: KeeperDeps;
  readonly #keepers = new Map<string, LineKeeper>();
  readonly #watchers = new Map<string, Set<() => void>>();
  #cancelSweep: () => void = () => {};
  #deafen: () => void = () => {};
  #sweeping: Promise<void> = Promise.resolve();
  #sweeps = 0;
  #counts = noLines();
  #started = false;
  #stopped: Promise<void> | null = null;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  /** Resolves when every line has its keeper; they come up from then on. Throws StoreError. Idempotent. */
  async start(): Promise<void> {
    if (this.#started) return;
    this.#started = true;
    this.#deafen = this.#deps.bell.hear(LINE_TOPIC, (topic) => {
      this.#keepers.get(topic.slice(LINE_TOPIC.length))?.runner.wake();
    });
    await this.#sweep();
    this.#sweepLater();
  }

  /** Closes every connection, keeps every link, lets messages that are on their way come to their end. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= (async () => {
      this.#cancelSweep();
      await this.#sweeping;
      await Promise.all([...this.#keepers.values()].map((keeper) => keeper.stop()));
      this.#deafen();
    })();
    return this.#stopped;
  }

  /** The owner has a new wish, or a new line. Call it after the commit. */
  wished(line: { id: string; accountId: string }): void {
    this.#keeperOf(line, 0)?.look();
  }

  /** A message was accepted for the line, or taken back: the one behind may have to get ready. Call it after the commit. */
  queueChanged(lineId: string): void {
    this.#keepers.get(lineId)?.runner.queueChanged();
  }

  /** The line's connection, while it is logged in. */
  connection(lineId: string): Connection | null {
    return this.#keepers.get(lineId)?.connection ?? null;
  }

  /** How many lines have each status, as the last sweep found them. */
  countByStatus(): Readonly<Record<LineStatus, number>> {
    return this.#counts;
  }

  /** Calls `look` after each change of the line, also its end; returns the function that unsubscribes. */
  watch(lineId: string, look: () => void): () => void {
    const watchers = this.#watchers.get(lineId) ?? new Set();
    this.#watchers.set(lineId, watchers.add(look));
    return () => {
      watchers.delete(look);
      if (watchers.size === 0) this.#watchers.delete(lineId);
    };
  }

  /** Resolves when all that has happened so far is worked off, and no queue has anything to do now. */
  async idle(): Promise<void> {
    for (const keeper of [...this.#keepers.values()]) {
      await keeper.idle();
      await keeper.runner.resting();
    }
  }

  /** The keeper of the line; a new one begins after `delayMs`. Null once stopped. */
  #keeperOf(line: { id: string; accountId: string }, delayMs: number): LineKeeper | null {
    const known = this.#keepers.get(line.id);
    if (known || this.#stopped) return known ?? null;
    const keeper = new LineKeeper(this.#deps, line, () => this.#changed(line.id));
    this.#keepers.set(line.id, keeper);
    if (delayMs === 0) keeper.start();
    else this.#deps.runtime.clock.after(delayMs, () => keeper.start());
    return keeper;
  }

  #changed(lineId: string): void {
    for (const look of this.#watchers.get(lineId) ?? []) look();
  }

  #sweepLater(): void {
    if (this.#stopped) return;
    this.#cancelSweep = this.#deps.runtime.clock.after(SWEEP_EVERY_MS, () => {
      this.#sweeping = this.#sweep().catch((error) => {
        this.#deps.runtime.log.warn({ error: String(error) }, "the lines could not be looked at");
      }).then(() => this.#sweepLater());
    });
  }

  /** Finds lines that are new or gone, wishes that nobody told of, messages whose time is over, rings that were lost. */
  async #sweep(): Promise<void> {
    const found = new Set<string>();
    const counts = noLines();
    let begun = 0;
    for await (const { value: line } of this.#deps.kv.list({ prefix: lineKeys.lines() })) {
      found.add(line.id);
      counts[line.status]++;
      if (!this.#keepers.has(line.id)) this.#keeperOf(line, STAGGER_MS * begun++);
      else if (line.takenWish !== line.wishNumber) this.#keepers.get(line.id)?.look();
    }
    this.#counts = counts;
    for (const [lineId, keeper] of this.#keepers) if (!found.has(lineId)) await this.#release(lineId, keeper);
    await expireMessages(this.#deps);
    if (++this.#sweeps % SWEEPS_A_QUEUE_LOOK === 0) { for (const { runner } of this.#keepers.values()) runner.wake(); }
  }

  /** The row of the line is gone: so is the line. */
  async #release(lineId: string, keeper: LineKeeper): Promise<void> {
    if ((await this.#deps.kv.get(lineKeys.line(lineId))).value !== null) return; // made after the rows were listed
    this.#keepers.delete(lineId);
    await keeper.stop();
    this.#changed(lineId);
  }
}

function noLines(): Record<LineStatus, number> {
  return Object.fromEntries(LINE_STATUSES.map((status) => [status, 0])) as Record<LineStatus, number>;
}
