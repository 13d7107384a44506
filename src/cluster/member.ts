/**
 * A process among others: it renews one row, whatever it holds, and looks at the rows of the others. A member that has
 * not renewed for 5 s is declared dead, in one commit, by whoever sees it first; its leases are then there to be taken. One
 * that comes back late finds its row gone, drops all it held and joins anew under another name (promise 9). One that is
 * started again in the same place declares the one before it dead, and waits for no silence.
 */
import { Buffer } from "node:buffer";
import type { Service } from "../base/service.ts";
import { singleFlight } from "../base/single_flight.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, firstRow, isRow, type Kv, type Row } from "../store/kv.ts";
import type { Leases, View } from "./leases.ts";
import type { Place } from "./place.ts";
import { clusterKeys, type MemberRow, type Silence } from "./rows.ts";

/** Between two renewals, and two looks at the others. */
const RENEW_EVERY_MS = 1_000;
/** Between the news that something is free and the look. */
const LOOK_SOON_MS = 200;
/** A member that is silent for so long is dead. */
const DEAD_AFTER_MS = 5_000;
/** For one that is silent for so long no share is left: it may be dead too. */
const NO_SHARE_AFTER_MS = 1_500;
/**
 * Looks further apart than this have seen nothing between them: the store was away, or this process stood still. They
 * count as one renewal that did not come.
 */
const LOOKS_APART_MS = 2_500;
/** A newcomer takes nothing for so long: those that start together divide what there is. */
const SETTLE_MS = 1_000;
/** So often what has no lease is looked for: a store that was restored, or written by one machine. */
const ADOPT_EVERY_MS = 5 * 60_000;

/** Topics of the bell that make members look at once. */
const CLUSTER_TOPIC = "cluster/";

/** There is something to be taken: members look before their time. */
export function callMembers(bell: Pick<Bell, "ring">): void {
  bell.ring(`${CLUSTER_TOPIC}free`);
}

interface MemberOptions {
  kv: Kv;
  bell: Bell;
  runtime: Runtime;
  leases: readonly Leases[];
  /** The store was set back to an earlier state. */
  setBack(): Promise<void>;
  /** Null where the process has none. */
  place: Place | null;
}

export class Member implements Service {
  readonly leases: readonly Leases[];
  readonly #options: MemberOptions;
  /** Others as they were last seen, and for how long they have not renewed. */
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
  /** Whether a look was asked for that has not begun. */
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
      // The bell was cut off: so it is by a switch to a server that lagged behind.
      if (topic === CLUSTER_TOPIC) { for (const leases of this.leases) leases.doubt(); }
      this.#soon();
    });
    await this.#tick();
  }

  /** Gives up all it holds, for the others to take, and is no member any more. */
  stop(): Promise<void> {
    return this.#stopped ??= this.#leave();
  }

  async #leave(): Promise<void> {
    this.#leaving = true;
    await this.#tick(); // so that nobody leaves a share for it
    await Promise.all(this.leases.map((leases) => leases.drain(this.#id)));
    this.#isDone = true;
    await this.#tick(); // lets one that is under way end
    this.#deafen();
    if (this.#self) await this.#depart(this.#self);
  }

  /** Many things may become free at once: one look finds them all. */
  #soon(): void {
    if (this.#isAsked || this.#isDone) return;
    this.#isAsked = true;
    this.#cancel();
    this.#cancel = this.#options.runtime.clock.after(LOOK_SOON_MS, () => void this.#tick());
  }

  /** One turn: renew, look, divide. Never rejects. */
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
      log.warn({ error: String(error) }, "the other processes could not be looked at");
    }
    if (this.#isDone || this.#isAsked) return;
    // A turn that took long delays the next one little: how soon a silence is noticed rests on it.
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
    // The others reckon with what this one holds.
    if (taken > 0 && this.#self) await this.#write(this.#self);
    if (left > 0) this.#soon();
  }

  /** Writes that this process lives; finds out when the others think otherwise. */
  async #renew(): Promise<void> {
    const { kv, runtime } = this.#options;
    if (this.#self) {
      if (await this.#write(this.#self)) return;
      // A renewal that seemed to have failed may have been written after all.
      const slot = await kv.get(clusterKeys.member(this.#id));
      if (isRow(slot)) {
        if (slot.value.beat < this.#self.value.beat) await this.#wasSetBack();
        await this.#write(slot);
        return;
      }
      runtime.log.warn({ member: this.#id }, "this process was silent for too long: its leases are gone");
      this.#self = null;
      await Promise.all(this.leases.map((leases) => leases.lost()));
    }
    if (this.#leaving) return;
    this.#id = Buffer.from(runtime.random.bytes(8)).toString("hex");
    // What the one before had is nobody's to divide.
    this.#joinedAt = await this.#succeed() ? -Infinity : runtime.clock.now();
    await this.#write({ key: clusterKeys.member(this.#id), value: null, version: null });
    runtime.log.info({ member: this.#id }, "this process is one of those that share the store");
    callMembers(this.#options.bell);
  }

  /** The store has lost renewals that it had acknowledged, and what else was written then. */
  async #wasSetBack(): Promise<void> {
    this.#options.runtime.log.error({ member: this.#id }, "the store has lost what was written last");
    for (const leases of this.leases) leases.doubt();
    await this.#options.setBack();
  }

  /** Declares dead who was here before; whether there was anybody. */
  async #succeed(): Promise<boolean> {
    const { kv, place } = this.#options;
    const last = await place?.last() ?? null;
    const slot = last === null ? null : await kv.get(clusterKeys.member(last));
    const succeeded = slot !== null && isRow(slot) && await this.#depart(slot);
    await place?.remember(this.#id);
    return succeeded;
  }

  async #write(
    before: { key: Row<MemberRow>["key"]; value: MemberRow | null; version: string | null },
  ): Promise<boolean> {
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
      // Whoever came in the middle of a silence goes on from what others have seen of it.
      const seen = rows.flatMap(({ value: { silent } }) => silent[id]?.version === version ? silent[id].ms : []);
      const ms = Math.max(before?.version === version ? before.ms + watchedMs : 0, ...seen);
      if (id !== this.#id && ms >= DEAD_AFTER_MS && await this.#depart(row)) {
        log.warn({ member: id, held }, "another process is gone: its leases are taken over");
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

  /** Takes the member's row away: from now on its leases are there to be taken. */
  async #depart(row: Row<MemberRow>): Promise<boolean> {
    const { kv, bell } = this.#options;
    const id = String(row.key.at(-1));
    const change = new Change().check(row).delete(row.key).set(clusterKeys.departed(id), true);
    const gone = await kv.commit(change) !== null;
    if (gone && id === this.#id) this.#self = null;
    callMembers(bell);
    return gone;
  }

  /** Forgets members whose leases are all somebody else's, and finds what has no lease. */
  async #tidy({ departed }: View): Promise<void> {
    const { kv, runtime: { clock } } = this.#options;
    for (const id of departed) {
      let held = false;
      for (const { kind } of this.leases) {
        held ||= await firstRow(kv, { prefix: clusterKeys.heldBy(kind, id) }) !== null;
      }
      if (!held) await kv.commit(new Change().delete(clusterKeys.departed(id)));
    }
    if (this.#leaving || clock.now() - this.#adoptedAt < ADOPT_EVERY_MS) return;
    this.#adoptedAt = clock.now();
    for (const leases of this.leases) await leases.adopt();
  }
}
