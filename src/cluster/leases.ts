/**
 * Leases on things of one kind (lines, webhooks): each thing has one holder at a time, and whatever the holder writes for
 * it goes through a store that checks the lease in the same commit (promise 9). Members divide them evenly
 * (`division.ts`). A lease that moves as planned is free only when its holder has come to the end of its work for it; one
 * of a member that died is taken at once, and what the dead one still writes is refused.
 */
import { piecesOf } from "../base/batches.ts";
import type { Runtime } from "../runtime.ts";
import { withFence } from "../store/fence.ts";
import { Change, isRow, type KeyOf, type Kv, type Row, type Slot, StoreError } from "../store/kv.ts";
import { portionOf, type Share } from "./division.ts";
import { clusterKeys, type LeaseRow } from "./rows.ts";

/** What a process does with the things that are its own. */
interface LeaseHolder {
  /** More things are this process's. */
  taken(): void;
  /** The thing is, or is about to be, somebody else's: resolves when nothing is done for it here any more. */
  drop(thing: string): Promise<void>;
}

interface LeasesOptions {
  /** `line`, `webhook`. */
  kind: string;
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "log">;
  holder: LeaseHolder;
  /** Everything there is of the kind: what has no lease yet gets one. */
  all(): AsyncIterable<string>;
  /** Something is free: the others may look. */
  freed(): void;
  /** A write under an old lease was refused. */
  refused(): void;
}

/** What the members are, as one of them sees it. */
export interface View {
  /** Its row, checked by what it takes: a member that was declared dead takes nothing. */
  self: Row<unknown>;
  selfId: string;
  members: readonly (Omit<Share, "held"> & { held: Readonly<Record<string, number>> })[];
  /** Members that are gone and whose leases are to be had. */
  departed: readonly string[];
}

/** Leases in one commit: with the member's row nine of the ten checks that every engine takes. */
const TAKEN_A_COMMIT = 8;
/** Leases taken in one look: a crowd that starts together shares them before one has them all. */
const TAKEN_AT_ONCE = 250;
/** A surplus has to last so long before it moves: the counts of the others are up to a renewal old. */
const SURPLUS_LASTS_MS = 1_500;
/** Things that are let go at once. */
const RELEASED_AT_ONCE = 100;

interface Lease {
  fence: number;
  version: string;
  store: Kv;
  /** It is let go: nothing new is begun. */
  ending: boolean;
}

export class Leases {
  readonly kind: string;
  readonly #options: LeasesOptions;
  readonly #held = new Map<string, Lease>();
  /** Things whose work here has not come to its end yet, by what ends it. */
  readonly #ending = new Map<string, Promise<void>>();
  /** What is remembered here may not be what the rows say: a commit that was not answered, or one that the store has lost. */
  #uncertain = true;
  #surplusSince: number | null = null;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.kind = options.kind;
  }

  /** How many this process holds, those that are about to go included. */
  get count(): number {
    return this.#held.size;
  }

  /** The things that are this process's. */
  things(): string[] {
    return [...this.#held].filter(([, { ending }]) => !ending).map(([thing]) => thing);
  }

  /** The rows of the things that are this process's; one that has none is gone. */
  async *rows<T extends object>(keyOf: (thing: string) => KeyOf<T>): AsyncGenerator<T> {
    const things = this.things();
    const slots = await this.#options.kv.getMany(things.map(keyOf));
    for (const [i, { value }] of slots.entries()) {
      if (value) yield value;
      else await this.gone(things[i]!);
    }
  }

  /** The store as the holder writes it; null for what is not, or not any more, this process's. */
  storeOf(thing: string): Kv | null {
    const lease = this.#held.get(thing);
    return lease && !lease.ending ? lease.store : null;
  }

  /** A store for what is not, or no more, this process's: it refuses every commit. */
  refusing(): Kv {
    const { kv, kind } = this.#options;
    return withFence(kv, { key: clusterKeys.lease(kind, ""), version: "none" }, () => {});
  }

  /** Adds to the commit that makes a thing that it is there to be taken. Call `freed` after it. */
  static offer(change: Change, kind: string, thing: string): void {
    change.set(clusterKeys.lease(kind, thing), { holder: "", fence: 0 });
    change.set(clusterKeys.held(kind, "", thing), true);
  }

  /** The thing is no more, and neither is its lease. */
  async gone(thing: string): Promise<void> {
    const lease = this.#held.get(thing);
    if (!lease) return;
    const { kv, kind } = this.#options;
    const slot = await kv.get(clusterKeys.lease(kind, thing));
    if (slot.version === lease.version) {
      await kv.commit(
        new Change().check(slot).delete(slot.key).delete(clusterKeys.held(kind, slot.value!.holder, thing)),
      );
    }
    if (this.#held.get(thing) === lease) this.#held.delete(thing);
  }

  /** Gives everything there is of the kind a lease; what this member holds is compared with its rows after that. */
  async adopt(): Promise<void> {
    const { kv, kind, all } = this.#options;
    const known = new Set<string>();
    for await (const { key } of kv.list({ prefix: clusterKeys.leases(kind) })) known.add(String(key.at(-1)));
    let adopted = 0;
    for await (const thing of all()) {
      if (known.has(thing)) continue;
      const lease = clusterKeys.lease(kind, thing);
      const change = new Change().checkAbsent(lease);
      Leases.offer(change, kind, thing);
      if (await kv.commit(change)) adopted++;
    }
    if (adopted > 0) this.#options.freed();
    this.doubt();
  }

  /** Takes what is this member's share, and lets go of what is beyond it. `left`: how many nobody had and others take. */
  async balance(view: View): Promise<{ taken: number; left: number }> {
    const { kind, runtime: { clock } } = this.#options;
    if (this.#uncertain) await this.#compare(view.selfId);
    const free = await this.#free(view);
    const members = view.members.map(({ id, held, takes }) => ({
      id,
      takes,
      held: id === view.selfId ? this.#held.size : held[kind] ?? 0,
    }));
    const { from, take, surplus } = portionOf(view.selfId, members, free.length);
    const taken = take > 0 ? await this.#take(free.slice(from, from + Math.min(take, TAKEN_AT_ONCE)), view) : 0;
    this.#surplusSince = surplus > this.#ending.size ? this.#surplusSince ?? clock.now() : null;
    if (this.#surplusSince !== null && clock.now() - this.#surplusSince >= SURPLUS_LASTS_MS) {
      this.#release(this.things().slice(0, Math.min(surplus - this.#ending.size, RELEASED_AT_ONCE)), view.selfId);
    }
    return { taken, left: free.length - taken };
  }

  /** The store may have lost what it had acknowledged: the next look compares all that is held with its rows. */
  doubt(): void {
    this.#uncertain = true;
  }

  /** Lets go of everything, and gives it up for others to take. */
  async drain(selfId: string): Promise<void> {
    this.#release(this.things(), selfId);
    await Promise.all(this.#ending.values());
  }

  /** This member was declared dead: what it held is somebody else's. Resolves when its work has come to its end. */
  async lost(): Promise<void> {
    for (const thing of this.things()) this.#lose(thing);
    await Promise.all(this.#ending.values());
    this.#held.clear();
    this.#uncertain = true;
  }

  /** Leases that nobody has: free ones, and those of members that are gone. */
  async #free({ departed }: View): Promise<string[]> {
    const { kv, kind } = this.#options;
    const free: string[] = [];
    for (const holder of ["", ...departed]) {
      for await (const { key } of kv.list({ prefix: clusterKeys.heldBy(kind, holder) })) free.push(String(key.at(-1)));
    }
    // One that is held here and free by its row was taken in a commit that the store has lost.
    for (const thing of free) this.#lose(thing);
    return free.filter((thing) => !this.#ending.has(thing));
  }

  /** Takes up what this member holds by its rows and does not know of, and loses what is its own only here. */
  async #compare(selfId: string): Promise<void> {
    const { kv, kind, holder } = this.#options;
    this.#uncertain = false;
    try {
      const rows = await Array.fromAsync(kv.list({ prefix: clusterKeys.heldBy(kind, selfId) }));
      const slots = await kv.getMany(rows.map(({ key }) => clusterKeys.lease(kind, String(key.at(-1)))));
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
    holder.taken();
  }

  async #take(things: readonly string[], view: View): Promise<number> {
    const { kv, kind, holder } = this.#options;
    const slots = await kv.getMany(things.map((thing) => clusterKeys.lease(kind, thing)));
    const mayTake = slots.filter((slot): slot is Row<LeaseRow> =>
      slot.value !== null && (slot.value.holder === "" || view.departed.includes(slot.value.holder))
    );
    const counts = await Promise.all(
      piecesOf(mayTake, TAKEN_A_COMMIT).map(async (batch) => {
        const taken = await this.#takeTogether(batch, view);
        if (taken > 0 || batch.length === 1) return taken;
        // Somebody was faster at one of them.
        return (await Promise.all(batch.map((slot) => this.#takeTogether([slot], view)))).reduce((a, b) => a + b, 0);
      }),
    );
    const taken = counts.reduce((a, b) => a + b, 0);
    if (taken > 0) holder.taken();
    return taken;
  }

  async #takeTogether(slots: readonly Row<LeaseRow>[], { self, selfId }: View): Promise<number> {
    const { kv, kind } = this.#options;
    const change = new Change().check(self);
    for (const slot of slots) {
      const thing = String(slot.key.at(-1));
      change.check(slot).set(clusterKeys.lease(kind, thing), { holder: selfId, fence: slot.value.fence + 1 })
        .delete(clusterKeys.held(kind, slot.value.holder, thing)).set(clusterKeys.held(kind, selfId, thing), true);
    }
    try {
      const version = await kv.commit(change);
      if (version === null) return 0;
      for (const { key, value } of slots) this.#hold(String(key.at(-1)), { fence: value.fence + 1, version });
      return slots.length;
    } catch (error) {
      if (error instanceof StoreError) this.#uncertain = true;
      throw error;
    }
  }

  #hold(thing: string, { fence, version }: Pick<Lease, "fence" | "version">): void {
    const { kv, kind, refused } = this.#options;
    const store = withFence(kv, { key: clusterKeys.lease(kind, thing), version }, () => {
      refused();
      if (this.#held.get(thing) === lease) this.#lose(thing);
    });
    const lease: Lease = { fence, version, store, ending: false };
    this.#held.set(thing, lease);
  }

  #lose(thing: string): void {
    this.#end(thing, () => {
      // By its row it may be this member's all the same, under another version.
      this.#uncertain = true;
      return Promise.resolve();
    });
  }

  #release(things: readonly string[], selfId: string): void {
    const { kv, kind, freed } = this.#options;
    for (const thing of things) {
      this.#end(thing, async ({ fence, version }) => {
        const slot: Slot<LeaseRow> = { key: clusterKeys.lease(kind, thing), value: null, version };
        await kv.commit(
          new Change().check(slot).set(clusterKeys.lease(kind, thing), { holder: "", fence: fence + 1 })
            .delete(clusterKeys.held(kind, selfId, thing)).set(clusterKeys.held(kind, "", thing), true),
        );
        freed();
      });
    }
  }

  /** Ends the work for the thing, then does what is to be done with its lease. */
  #end(thing: string, then: (lease: Lease) => Promise<void>): void {
    const lease = this.#held.get(thing);
    if (!lease || lease.ending) return;
    lease.ending = true;
    const { holder, runtime: { log }, kind } = this.#options;
    const ending = (async () => {
      try {
        await holder.drop(thing);
        await then(lease);
      } catch (error) {
        // The row still says that it is ours: the next look takes it up again.
        this.#uncertain = true;
        log.warn({ kind, thing, error: String(error) }, "a lease could not be given up");
      } finally {
        this.#ending.delete(thing);
        if (this.#held.get(thing) === lease) this.#held.delete(thing);
      }
    })();
    this.#ending.set(thing, ending);
  }
}
