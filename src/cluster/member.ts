/**
 * Membership of a process in the cluster. A member renews one row, however many leases it holds, and watches the rows
 * of the others. A member that has not renewed for 5 s is declared dead in one commit, by the first member to notice,
 * and its leases become free. If it comes back late, it finds its row gone, drops everything it held and joins again
 * under a new id (promise 9). A process restarted in the same place declares its predecessor dead at once, without
 * waiting.
 */
import type { Service } from "../base/service.ts";
import { singleFlight } from "../base/single_flight.ts";
import { callMembers, CLUSTER_TOPIC } from "./holder.ts";
import type { Leases, View } from "./leases.ts";
import type { Place } from "./place.ts";
import { clusterKeys, leaseKeys, type MemberRow, type Silence } from "./rows.ts";
import { type Clock, type Runtime, sleep } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, firstRow, isRow, type Kv, type Row, type Slot } from "../store/kv.ts";

/** Interval at which a member renews its row and checks the others. */
const RENEW_EVERY_MS = 1_000;
/** Delay between a ring about free leases and the resulting check. */
const LOOK_SOON_MS = 200;
/** A member silent for this long is declared dead. */
const DEAD_AFTER_MS = 5_000;
/** No share is reserved for a member silent for this long: it may be dead too. */
const NO_SHARE_AFTER_MS = 1_500;
/**
 * Two checks further apart than this prove nothing about the time between them, because the store was unreachable or
 * this process was suspended. They count as a single missed renewal.
 */
const LOOKS_APART_MS = 2_500;
/** A new member takes no lease for this long, so that members started together divide them. */
const SETTLE_MS = 1_000;
/** How often things without a lease are looked for, such as those of a restored store. */
const ADOPT_EVERY_MS = 5 * 60_000;

interface MemberOptions {
  kv: Kv;
  bell: Bell;
  runtime: Runtime;
  leases: readonly Leases[];
  /** Called when the store was set back to an earlier state. */
  setBack(): Promise<void>;
  /** Null if the process has none. */
  place: Place | null;
}

export class Member implements Service {
  readonly leases: readonly Leases[];
  readonly #options: MemberOptions;
  /** Versions of the members' rows when last read, and how long they have been unchanged. */
  #others = new Map<string, Silence>();
  #self: Row<MemberRow> | null = null;
  #id = "";
  #joinedAt = 0;
  #lookedAt = -Infinity;
  #adoptedAt = -Infinity;
  #leaving = false;
  #started = false;
  #isDone = false;
  #stopped: Promise<void> | null = null;
  /** Whether an early check was requested and has not begun. */
  #isAsked = false;
  #cancel: () => void = () => {};
  #deafen: () => void = () => {};
  readonly #tick = singleFlight(() => this.#turn());

  constructor(options: MemberOptions) {
    this.#options = options;
    this.leases = options.leases;
  }

  async start(): Promise<void> {
    if (this.#started) return;
    this.#started = true;
    this.#deafen = this.#options.bell.hear(CLUSTER_TOPIC, (topic) => {
      // The bell lost its connection, as happens when a lagging standby is promoted: leases may have been lost with it.
      if (topic === CLUSTER_TOPIC) { for (const leases of this.leases) leases.doubt(); }
      this.#soon();
    });
    await this.#tick();
  }

  /** Releases all leases for the others to take, then leaves the cluster. Never rejects. */
  stop(): Promise<void> {
    return this.#stopped ??= this.#leave();
  }

  async #leave(): Promise<void> {
    this.#leaving = true;
    await this.#tick(); // so that the others reserve no share for it
    await Promise.all(this.leases.map((leases) => leases.drain(this.#id)));
    this.#isDone = true;
    await this.#tick(); // waits for a turn in progress
    this.#deafen();
    try {
      if (this.#self) await this.#depart(this.#self);
    } catch (error) {
      const { log } = this.#options.runtime;
      log.warn(
        { error: String(error) },
        "leaving the cluster failed: the other members will notice by this one's silence",
      );
    }
  }

  /** Schedules an early check. Many leases may become free at once, and one check finds them all. */
  #soon(): void {
    if (this.#isAsked || this.#isDone) return;
    this.#isAsked = true;
    this.#cancel();
    this.#cancel = this.#options.runtime.clock.after(LOOK_SOON_MS, () => void this.#tick());
  }

  /** One turn: renew, check the others, balance. Never rejects. */
  async #turn(): Promise<void> {
    this.#cancel();
    this.#isAsked = false;
    if (this.#isDone) return;
    const { clock, log } = this.#options.runtime;
    const begunAt = clock.now();
    try {
      await this.#renew();
      if (this.#self) {
        const view = await this.#look(this.#self);
        const isSettled = clock.now() - this.#joinedAt >= SETTLE_MS;
        if (!this.#leaving && isSettled) await this.#balance(view);
        await this.#tidy(view);
      }
    } catch (error) {
      log.warn({ error: String(error) }, "the other members could not be checked");
    }
    if (this.#isDone || this.#isAsked) return;
    // A slow turn barely delays the next one, because failure detection depends on regular checks.
    const restMs = Math.max(LOOK_SOON_MS, RENEW_EVERY_MS - (clock.now() - begunAt));
    this.#cancel = clock.after(restMs, () => void this.#tick());
  }

  async #balance(view: View): Promise<void> {
    let taken = 0;
    let left = 0;
    for (const leases of this.leases) {
      const outcome = await leases.balance(view);
      taken += outcome.taken;
      left += outcome.left;
    }
    // The others divide by the counts in this row.
    if (taken > 0 && this.#self) await this.#write(this.#self);
    if (left > 0) this.#soon();
  }

  /**
   * Renews the member's row, or joins. If the others have declared this process dead, drops its leases and joins again.
   */
  async #renew(): Promise<void> {
    const { kv, runtime } = this.#options;
    if (this.#self) {
      if (await this.#write(this.#self)) return;
      // A renewal that appeared to fail may have been written.
      const slot = await kv.get(clusterKeys.member(this.#id));
      if (isRow(slot)) {
        if (slot.value.beat < this.#self.value.beat) await this.#wasSetBack();
        await this.#write(slot);
        return;
      }
      runtime.log.warn(
        { member: this.#id },
        "declared dead by the other members after a silence: this process has lost its leases",
      );
      this.#self = null;
      await Promise.all(this.leases.map((leases) => leases.lost()));
    }
    if (this.#leaving) return;
    this.#id = runtime.random.bytes(8).toHex();
    // A successor takes leases at once: it inherits those of its predecessor.
    this.#joinedAt = await this.#succeed() ? -Infinity : runtime.clock.now();
    await this.#write({ key: clusterKeys.member(this.#id), value: null, version: null });
    runtime.log.info({ member: this.#id }, "joined the cluster");
    callMembers(this.#options.bell);
  }

  /** The store has lost acknowledged renewals, and so also other recent commits. */
  async #wasSetBack(): Promise<void> {
    this.#options.runtime.log.error({ member: this.#id }, "the store has lost its latest commits");
    for (const leases of this.leases) leases.doubt();
    await this.#options.setBack();
  }

  /** Declares the predecessor in this place dead. Resolves to whether there was one. */
  async #succeed(): Promise<boolean> {
    const { kv, place } = this.#options;
    const last = await place?.last() ?? null;
    const slot = last === null ? null : await kv.get(clusterKeys.member(last));
    const succeeded = slot !== null && isRow(slot) && await this.#depart(slot);
    await place?.remember(this.#id);
    return succeeded;
  }

  async #write(before: Slot<MemberRow>): Promise<boolean> {
    const value: MemberRow = {
      beat: (before.value?.beat ?? 0) + 1,
      held: Object.fromEntries(this.leases.map((leases) => [leases.kind, leases.count])),
      leaving: this.#leaving,
      silent: Object.fromEntries([...this.#others].filter(([, { ms }]) => ms >= NO_SHARE_AFTER_MS)),
    };
    const key = clusterKeys.member(this.#id);
    const version = await this.#options.kv.commit(new Change().check(before).set(key, value));
    if (version !== null) this.#self = { key, value, version };
    return version !== null;
  }

  async #look(self: Row<MemberRow>): Promise<View> {
    const { kv, runtime: { clock, log } } = this.#options;
    const now = clock.now();
    const apart = now - this.#lookedAt;
    const watchedMs = apart <= LOOKS_APART_MS ? apart : RENEW_EVERY_MS;
    const rows = await Array.fromAsync(kv.list({ prefix: clusterKeys.members() }));
    const members = [];
    const others = new Map<string, Silence>();
    for (const row of rows) {
      const { key, version, value: { held, leaving } } = row;
      const id = String(key.at(-1));
      const before = this.#others.get(id);
      // A member that joined during a silence continues from what the others have observed.
      const seen = rows.flatMap(({ value: { silent } }) => silent[id]?.version === version ? silent[id].ms : []);
      const ms = Math.max(before?.version === version ? before.ms + watchedMs : 0, ...seen);
      if (id !== this.#id && ms >= DEAD_AFTER_MS && await this.#depart(row)) {
        log.warn({ member: id, held }, "another member is dead: its leases are free");
        continue;
      }
      others.set(id, { version, ms });
      members.push({ id, held, takes: !leaving && (id === this.#id || ms < NO_SHARE_AFTER_MS) });
    }
    this.#lookedAt = now;
    this.#others = others;
    const gone = kv.list({ prefix: clusterKeys.departeds() });
    const departed = await Array.fromAsync(gone, ({ key }) => String(key.at(-1)));
    return { self, selfId: this.#id, members, departed };
  }

  /** Removes a member's row, which frees its leases. Resolves to whether this call did so. */
  async #depart(row: Row<MemberRow>): Promise<boolean> {
    const { kv, bell } = this.#options;
    const id = String(row.key.at(-1));
    const change = new Change().check(row).delete(row.key).set(clusterKeys.departed(id), true);
    const gone = await kv.commit(change) !== null;
    if (gone && id === this.#id) this.#self = null;
    callMembers(bell);
    return gone;
  }

  /** Forgets departed members whose leases have all been taken, and gives leases to things without one. */
  async #tidy({ departed }: View): Promise<void> {
    const { kv, runtime: { clock } } = this.#options;
    for (const id of departed) {
      let held = false;
      for (const { kind } of this.leases) {
        held ||= await firstRow(kv, { prefix: leaseKeys(kind).heldBy(id) }) !== null;
      }
      if (!held) await kv.commit(new Change().delete(clusterKeys.departed(id)));
    }
    if (this.#leaving || clock.now() - this.#adoptedAt < ADOPT_EVERY_MS) return;
    this.#adoptedAt = clock.now();
    for (const leases of this.leases) await leases.adopt();
  }
}

/** Resolves to the rows of all running members, on any machine, for commands. API processes are not members. */
export async function membersAtWork(kv: Pick<Kv, "list">, clock: Clock): Promise<MemberRow[]> {
  const look = () => Array.fromAsync(kv.list({ prefix: clusterKeys.members() }));
  // Every renewal is a new version.
  const before = new Set((await look()).map(({ version }) => version));
  await sleep(clock, LOOKS_APART_MS);
  return (await look()).filter(({ version }) => !before.has(version)).map(({ value }) => value);
}
