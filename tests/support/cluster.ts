/** Workers that share lines, on a store, a network and a clock that a simulation holds in its hands. */
import { callMembers } from "../../src/cluster/holder.ts";
import { Leases, makeClaims } from "../../src/cluster/leases.ts";
import { Member } from "../../src/cluster/member.ts";
import type { Line } from "../../src/line/line.ts";
import { LINE } from "../../src/line/rows.ts";
import type { Bell } from "../../src/store/bell.ts";
import { Change, key, type Kv } from "../../src/store/kv.ts";
import { MemoryDisk, MemoryKv } from "./memory_kv.ts";
import { ManualClock, testRuntime } from "./runtime.ts";
import { SkewedClock } from "./skewed_clock.ts";

/** Between two first connects of one worker, and how long the network takes over one. */
const STAGGER_MS = 15;
const CONNECT_MS = 200;
const CLOSE_MS = 50;

/** Rings reach every process, after what a notification takes. */
class SharedBell implements Bell {
  readonly #heard = new Set<{ prefix: string; wake: (topic: string) => void }>();
  constructor(readonly clock: ManualClock) {}
  ring(topic: string): void {
    this.clock.after(2, () => {
      for (const { prefix, wake } of [...this.#heard]) if (topic.startsWith(prefix)) wake(topic);
    });
  }
  ringAt(topic: string, atMs: number): void {
    this.clock.after(atMs - this.clock.now(), () => this.ring(topic));
  }
  hear(prefix: string, wake: (topic: string) => void): () => void {
    const ear = { prefix, wake };
    this.#heard.add(ear);
    return () => void this.#heard.delete(ear);
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
  /** Every process is told that it may have missed rings. */
  cut(): void {
    for (const { prefix, wake } of [...this.#heard]) wake(prefix);
  }
}

/** What a line's owner writes. */
export const written = (line: string) => key<string>("written", line);

export class SimulatedWorker {
  /** Lines whose socket is open. */
  readonly open = new Set<string>();
  readonly member: Member;
  readonly kv: MemoryKv;
  leases!: Leases<Line>;
  refused = 0;
  /** While true this process stands still: what its timers and the bell call comes when it goes on. */
  #frozen: (() => void)[] | null = null;
  #opening = new Map<string, () => void>();
  #readyAt = 0;
  readonly clock: SkewedClock;

  /** `aheadMs`: how wrong its clock is. */
  constructor(readonly name: string, readonly cluster: Cluster, aheadMs: number) {
    this.clock = new SkewedClock(cluster.clock, aheadMs);
    this.kv = new MemoryKv(cluster.disk);
    const real = testRuntime(cluster.seed++, cluster.clock);
    const clock = {
      now: () => this.clock.now(),
      after: (delayMs: number, run: () => void) => cluster.clock.after(delayMs, () => this.#run(run)),
    };
    const bell: Bell = {
      ring: (topic) => cluster.bell.ring(topic),
      ringAt: (topic, at) => cluster.bell.ringAt(topic, at),
      hear: (prefix, wake) => cluster.bell.hear(prefix, (topic) => this.#run(() => wake(topic))),
      close: () => Promise.resolve(),
    };
    const runtime = { ...real, clock };
    this.leases = new Leases({
      kind: LINE,
      kv: this.kv,
      runtime,
      freed: () => callMembers(bell),
      refused: () => this.refused++,
      taken: () => this.#connect(),
      drop: (line) => this.#close(line),
    });
    this.member = new Member({
      place: {
        last: () => Promise.resolve(cluster.places.get(name) ?? null),
        remember: (id) => Promise.resolve(void cluster.places.set(name, id)),
      },
      kv: this.kv,
      bell,
      runtime,
      leases: [this.leases],
      setBack: () => Promise.resolve(void cluster.setbacks++),
    });
  }

  /** The process is no more. */
  kill(): void {
    this.kv.commitsLeft = -1;
    this.#frozen = [];
    this.open.clear();
    this.cluster.workers.delete(this);
  }

  freeze(): void {
    this.#frozen = [];
  }

  thaw(): void {
    const missed = this.#frozen ?? [];
    this.#frozen = null;
    for (const run of missed) run();
  }

  async stop(): Promise<void> {
    await this.member.stop();
    this.cluster.workers.delete(this);
  }

  /** The store as the line's owner has it now, to write through later. */
  storeOf(line: string): Kv | null {
    return this.leases.storeOf(line);
  }

  #run(run: () => void): void {
    if (this.#frozen) this.#frozen.push(run);
    else run();
  }

  #connect(): void {
    const { clock } = this.cluster;
    for (const line of this.leases.things()) {
      if (this.open.has(line) || this.#opening.has(line)) continue;
      this.#readyAt = Math.max(clock.now(), this.#readyAt + STAGGER_MS);
      const cancel = clock.after(this.#readyAt + CONNECT_MS - clock.now(), () =>
        this.#run(() => {
          this.#opening.delete(line);
          this.open.add(line);
        }));
      this.#opening.set(line, cancel);
    }
  }

  #close(line: string): Promise<void> {
    this.#opening.get(line)?.();
    this.#opening.delete(line);
    return new Promise((resolve) =>
      this.cluster.clock.after(CLOSE_MS, () => {
        this.open.delete(line);
        resolve();
      })
    );
  }
}

export class Cluster {
  readonly clock = new ManualClock();
  readonly disk = new MemoryDisk();
  readonly bell = new SharedBell(this.clock);
  readonly workers = new Set<SimulatedWorker>();
  /** Which member was last under each worker's name. */
  readonly places = new Map<string, string>();
  /** How often a worker has found that the store was set back. */
  setbacks = 0;
  seed = 1;
  #named = 0;

  constructor(readonly lines: number) {}

  async makeLines(): Promise<void> {
    const kv = new MemoryKv(this.disk);
    for (let i = 0; i < this.lines; i++) {
      const change = new Change();
      makeClaims(kv).offer(change, LINE, `ses_${String(i).padStart(6, "0")}`);
      await kv.commit(change);
    }
  }

  /** A new worker, or one that is started again in the place of that name. */
  async join(name = `w${this.#named++}`, aheadMs = 0): Promise<SimulatedWorker> {
    const worker = new SimulatedWorker(name, this, aheadMs);
    this.workers.add(worker);
    await worker.member.start();
    return worker;
  }

  /** The store as it was when this was called, with its clients cut off, comes back by the function. */
  lag(): () => void {
    const lose = this.disk.remember();
    return () => {
      lose();
      this.bell.cut();
    };
  }

  /** Whether each socket's worker may write for its line. */
  async canWrite(): Promise<boolean> {
    for (const worker of this.workers) {
      for (const line of worker.open) {
        const store = worker.storeOf(line);
        if (!await store?.commit(new Change().set(written(line), worker.name)).catch(() => null)) return false;
      }
    }
    return true;
  }

  /** How many sockets each worker has, fewest first. */
  spread(): number[] {
    return [...this.workers].map(({ open }) => open.size).sort((a, b) => a - b);
  }

  get up(): number {
    return this.spread().reduce((sum, count) => sum + count, 0);
  }

  /** Lines that two workers have a socket of. */
  get doubled(): number {
    const seen = new Set<string>();
    let doubled = 0;
    for (const { open } of this.workers) for (const line of open) seen.has(line) ? doubled++ : seen.add(line);
    return doubled;
  }

  get isEven(): boolean {
    const spread = this.spread();
    return this.up === this.lines && spread.at(-1)! - spread[0]! <= 1;
  }

  /** Lets time pass until it is so; answers how long that took. Throws after `limitMs`. */
  async until(isSo: () => boolean, limitMs: number, stepMs = 100): Promise<number> {
    const begun = this.clock.now();
    while (!isSo()) {
      if (this.clock.now() - begun > limitMs) throw new Error(`waited in vain: ${this.up} up, ${this.spread()}`);
      await this.clock.advance(stepMs);
      await untilQuiet(this.disk);
    }
    return this.clock.now() - begun;
  }
}

/** The store in memory settles within some turns of the event loop; more of them where much is written. */
async function untilQuiet(disk: MemoryDisk): Promise<void> {
  for (let before = -1; before !== disk.commits;) {
    before = disk.commits;
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  }
}
