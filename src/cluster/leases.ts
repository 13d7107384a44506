/**
 * Leases on things of one kind (lines, webhooks). Each thing has one holder at a time, and the holder writes through a
 * store that checks the lease in the same commit (promise 9). Members divide the leases evenly (`division.ts`). In a
 * planned move a lease becomes free once its holder has finished its work. The leases of a dead member are taken at
 * once, and its late writes are refused.
 */
import { inBatches } from "../base/batches.ts";
import type { Runtime } from "../runtime.ts";
import { withFence } from "../store/fence.ts";
import { Change, isRow, type Kv, type Row, StoreError } from "../store/kv.ts";
import { portionOf, type Share } from "./division.ts";
import type { Claims, Holder, Kind } from "./holder.ts";
import { leaseKeys, type LeaseRow } from "./rows.ts";

interface LeasesOptions<T> {
  kind: Kind<T>;
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "log">;
  /** Called when leases were taken. */
  taken(): void;
  /** Ends all work for a thing whose lease is lost or about to be released; resolves when that is done. */
  drop(thing: string): Promise<void>;
  /** A thing without a row that has a lease all the same. */
  always?: string;
  /** Called when leases became free, so that other members check. */
  freed(): void;
  /** Called when a write under an old lease was refused. */
  refused(): void;
}

/** The cluster as one member sees it. */
export interface View {
  /** The member's own row, checked whenever it takes leases, so that a member declared dead can take none. */
  self: Row<unknown>;
  selfId: string;
  members: readonly (Omit<Share, "held"> & { held: Readonly<Record<string, number>> })[];
  /** Members that are gone and whose leases may be taken. */
  departed: readonly string[];
}

/** Leases taken in one commit: with the member's row nine checks, of the ten that every engine accepts. */
const TAKEN_A_COMMIT = 8;
/** Most leases taken per turn, so that members that start together share them. */
const TAKEN_AT_ONCE = 250;
/** How long a surplus must last before leases are moved: the other members' counts may be one renewal old. */
const SURPLUS_LASTS_MS = 1_500;
/** Most leases being released at the same time. */
const RELEASED_AT_ONCE = 100;

interface Lease {
  fence: number;
  version: string;
  store: Kv;
  /** Whether it is being released or was lost: no new work may begin. */
  ending: boolean;
}

export class Leases<T = unknown> implements Holder<T> {
  /** The name of the kind. */
  readonly kind: string;
  readonly #options: LeasesOptions<T>;
  readonly #kv: Kv;
  readonly #keys: ReturnType<typeof leaseKeys>;
  readonly #held = new Map<string, Lease>();
  /** Things whose work is being ended here, each with the promise of that. */
  readonly #ending = new Map<string, Promise<void>>();
  /**
   * Whether the state in memory may differ from the rows, after an unanswered commit or one that the store has lost.
   */
  #uncertain = true;
  #surplusSince: number | null = null;

  constructor(options: LeasesOptions<T>) {
    this.#options = options;
    this.#kv = options.kv;
    this.kind = options.kind.name;
    this.#keys = leaseKeys(this.kind);
  }

  /** Number of leases held, including those being released. */
  get count(): number {
    return this.#held.size;
  }

  /** Things whose leases this process holds and is not releasing. */
  things(): string[] {
    return [...this.#held].filter(([, { ending }]) => !ending).map(([thing]) => thing);
  }

  /** Reads the rows of `things()`. A thing without a row was removed, and so is its lease. */
  async *rows(): AsyncGenerator<T> {
    const things = this.things();
    const slots = await this.#kv.getMany(things.map((thing) => this.#options.kind.keyOf(thing)));
    for (const [i, slot] of slots.entries()) {
      if (isRow(slot)) yield slot.value;
      else await this.gone(things[i]!);
    }
  }

  /** Returns the fenced store of a thing; null if this process does not hold its lease. */
  storeOf(thing: string): Kv | null {
    const lease = this.#held.get(thing);
    return lease && !lease.ending ? lease.store : null;
  }

  /** Returns a store that refuses every commit, for things whose lease this process does not hold. */
  refusing(): Kv {
    return withFence(this.#kv, { key: this.#keys.lease(""), version: "none" }, () => {});
  }

  /** Removes the lease of a thing that no longer exists. */
  async gone(thing: string): Promise<void> {
    const lease = this.#held.get(thing);
    if (!lease) return;
    const slot = await this.#kv.get(this.#keys.lease(thing));
    if (slot.version === lease.version) {
      const { key, value } = slot;
      await this.#kv.commit(new Change().check(slot).delete(key).delete(this.#keys.held(value!.holder, thing)));
    }
    if (this.#held.get(thing) === lease) this.#held.delete(thing);
  }

  /** Creates leases for all things that lack one. Afterwards the state in memory is compared with the rows. */
  async adopt(): Promise<void> {
    const { kv, kind, always } = this.#options;
    const known = new Set<string>();
    for await (const { key } of kv.list({ prefix: this.#keys.leases() })) known.add(String(key.at(-1)));
    const things = await Array.fromAsync(kv.list({ prefix: kind.rows }), ({ value }) => kind.nameOf(value));
    let adopted = 0;
    for (const thing of always === undefined ? things : [always, ...things]) {
      if (known.has(thing)) continue;
      const change = new Change().checkAbsent(this.#keys.lease(thing));
      offer(change, kind.name, thing);
      if (await kv.commit(change)) adopted++;
    }
    if (adopted > 0) this.#options.freed();
    this.doubt();
  }

  /**
   * Takes this member's share of the free leases and releases its surplus. `left`: free leases that remain for others.
   */
  async balance(view: View): Promise<{ taken: number; left: number }> {
    const { clock } = this.#options.runtime;
    if (this.#uncertain) await this.#compare(view.selfId);
    const free = await this.#free(view);
    const members = view.members.map(({ id, held, takes }) => ({
      id,
      takes,
      held: id === view.selfId ? this.#held.size : held[this.kind] ?? 0,
    }));
    const { from, take, surplus } = portionOf(view.selfId, members, free.length);
    const taken = take > 0 ? await this.#take(free.slice(from, from + Math.min(take, TAKEN_AT_ONCE)), view) : 0;
    this.#surplusSince = surplus > this.#ending.size ? this.#surplusSince ?? clock.now() : null;
    if (this.#surplusSince !== null && clock.now() - this.#surplusSince >= SURPLUS_LASTS_MS) {
      this.#release(this.things().slice(0, Math.min(surplus - this.#ending.size, RELEASED_AT_ONCE)), view.selfId);
    }
    return { taken, left: free.length - taken };
  }

  /** Called when the store may have lost acknowledged commits: the next turn compares the leases held with the rows. */
  doubt(): void {
    this.#uncertain = true;
  }

  /** Releases all leases for others to take. */
  async drain(selfId: string): Promise<void> {
    this.#release(this.things(), selfId);
    await Promise.all(this.#ending.values());
  }

  /** Called when this member was declared dead: ends all work for its former leases, and resolves when that is done. */
  async lost(): Promise<void> {
    for (const thing of this.things()) this.#lose(thing);
    await Promise.all(this.#ending.values());
    this.#held.clear();
    this.#uncertain = true;
  }

  /** Lists the leases that may be taken: free ones, and those of departed members. */
  async #free({ departed }: View): Promise<string[]> {
    const free: string[] = [];
    for (const holder of ["", ...departed]) {
      for await (const { key } of this.#kv.list({ prefix: this.#keys.heldBy(holder) })) free.push(String(key.at(-1)));
    }
    // If a lease is held here but free by its row, the commit that took it was lost by the store.
    for (const thing of free) this.#lose(thing);
    return free.filter((thing) => !this.#ending.has(thing));
  }

  /**
   * Reconciles the state in memory with the rows: adopts leases that only the rows show, drops those that they do not.
   */
  async #compare(selfId: string): Promise<void> {
    this.#uncertain = false;
    try {
      const rows = await Array.fromAsync(this.#kv.list({ prefix: this.#keys.heldBy(selfId) }));
      const slots = await this.#kv.getMany(rows.map(({ key }) => this.#keys.lease(String(key.at(-1)))));
      const own = new Map(slots.filter(isRow).map((row) => [String(row.key.at(-1)), row]));
      for (const thing of this.things()) {
        if (own.get(thing)?.version !== this.#held.get(thing)!.version) this.#lose(thing);
      }
      for (const [thing, { value: { holder, fence }, version }] of own) {
        if (holder === selfId && !this.#held.has(thing)) this.#hold(thing, { fence, version });
      }
    } catch (error) {
      this.#uncertain = true;
      throw error;
    }
    this.#options.taken();
  }

  async #take(things: readonly string[], view: View): Promise<number> {
    const slots = await this.#kv.getMany(things.map((thing) => this.#keys.lease(thing)));
    const mayTake = slots.filter((slot): slot is Row<LeaseRow> =>
      slot.value !== null && (slot.value.holder === "" || view.departed.includes(slot.value.holder))
    );
    const counts = await Promise.all(
      inBatches(mayTake, TAKEN_A_COMMIT).map(async (batch) => {
        const taken = await this.#takeTogether(batch, view);
        if (taken > 0 || batch.length === 1) return taken;
        // Another member took one of them first: try each by itself.
        return (await Promise.all(batch.map((slot) => this.#takeTogether([slot], view)))).reduce((a, b) => a + b, 0);
      }),
    );
    const taken = counts.reduce((a, b) => a + b, 0);
    if (taken > 0) this.#options.taken();
    return taken;
  }

  async #takeTogether(slots: readonly Row<LeaseRow>[], { self, selfId }: View): Promise<number> {
    const { lease, held } = this.#keys;
    const change = new Change().check(self);
    for (const slot of slots) {
      const thing = String(slot.key.at(-1));
      change.check(slot).set(lease(thing), { holder: selfId, fence: slot.value.fence + 1 })
        .delete(held(slot.value.holder, thing)).set(held(selfId, thing), true);
    }
    try {
      const version = await this.#kv.commit(change);
      if (version === null) return 0;
      for (const { key, value } of slots) this.#hold(String(key.at(-1)), { fence: value.fence + 1, version });
      return slots.length;
    } catch (error) {
      if (error instanceof StoreError) this.#uncertain = true;
      throw error;
    }
  }

  #hold(thing: string, { fence, version }: Pick<Lease, "fence" | "version">): void {
    const store = withFence(this.#kv, { key: this.#keys.lease(thing), version }, () => {
      this.#options.refused();
      if (this.#held.get(thing) === lease) this.#lose(thing);
    });
    const lease: Lease = { fence, version, store, ending: false };
    this.#held.set(thing, lease);
  }

  #lose(thing: string): void {
    this.#end(thing, () => {
      // According to its row the lease may still be this member's, under another version.
      this.#uncertain = true;
      return Promise.resolve();
    });
  }

  #release(things: readonly string[], selfId: string): void {
    const { lease, held } = this.#keys;
    for (const thing of things) {
      this.#end(thing, async ({ fence, version }) => {
        const key = lease(thing);
        await this.#kv.commit(
          new Change().check({ key, version }).set(key, { holder: "", fence: fence + 1 })
            .delete(held(selfId, thing)).set(held("", thing), true),
        );
        this.#options.freed();
      });
    }
  }

  /** Ends the work for the thing, then runs `then` on its lease. */
  #end(thing: string, then: (lease: Lease) => Promise<void>): void {
    const lease = this.#held.get(thing);
    if (!lease || lease.ending) return;
    lease.ending = true;
    const { drop, runtime: { log } } = this.#options;
    const ending = (async () => {
      try {
        await drop(thing);
        await then(lease);
      } catch (error) {
        // By its row the lease is still this member's: the next turn adopts it again.
        this.#uncertain = true;
        log.warn({ kind: this.kind, thing, error: String(error) }, "a lease could not be released");
      } finally {
        this.#ending.delete(thing);
        if (this.#held.get(thing) === lease) this.#held.delete(thing);
      }
    })();
    this.#ending.set(thing, ending);
  }
}

/** Returns what the creators and removers of things add to their commits. */
export function makeClaims(kv: Pick<Kv, "get">): Claims {
  return {
    offer: (change, kind, thing) => offer(change, kind.name, thing),
    // Once the lease is gone, the fence refuses whatever its holder still writes.
    async withdraw(change, { name }, thing) {
      const { lease, held } = leaseKeys(name);
      const slot = await kv.get(lease(thing));
      change.check(slot).delete(slot.key);
      if (slot.value) change.delete(held(slot.value.holder, thing));
    },
  };
}

/** Adds a free lease. */
function offer(change: Change, kind: string, thing: string): void {
  const { lease, held } = leaseKeys(kind);
  change.set(lease(thing), { holder: "", fence: 0 }).set(held("", thing), true);
}
