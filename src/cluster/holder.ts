/** Who works for the things that have one holder at a time: lines and webhooks. */
import type { Bell } from "../store/bell.ts";
import type { Change, KeyOf, Kv, PrefixOf } from "../store/kv.ts";

/** Prefix of bell topics that make the members of a cluster check early. */
export const CLUSTER_TOPIC = "cluster/";

/** Tells all members that leases are free, so that they check early. */
export function callMembers(bell: Pick<Bell, "ring">): void {
  bell.ring(`${CLUSTER_TOPIC}free`);
}

/** A kind of things that are held. */
export interface Kind<T> {
  /** `line`, `webhook`. */
  name: string;
  rows: PrefixOf<T>;
  /** Returns a thing's name, unique among its kind. */
  nameOf(row: T): string;
  /** Returns the key of the row of the thing with this name. */
  keyOf(name: string): KeyOf<T>;
}

/** The things of a kind that this process works for, each through a store of its own (promise 9). */
export interface Holder<T> {
  /** Yields the rows of the things held. One that is held and has no row was removed. */
  rows(): AsyncIterable<T>;
  /** Returns the store for writes as the thing's holder; null if this process does not hold it. */
  storeOf(name: string): Kv | null;
  /** Releases a thing whose row is gone. */
  gone(name: string): Promise<void>;
}

/** What a commit that creates or removes a thing adds on a store that many processes share. */
export interface Claims {
  /** Adds what lets a process take the thing. The caller then calls the members. */
  offer<T>(change: Change, kind: Kind<T>, name: string): void;
  /** Adds what makes all later writes of the thing's holder fail. */
  withdraw<T>(change: Change, kind: Kind<T>, name: string): Promise<void>;
}

/** Returns the holder of everything on one machine: the data folder's lock covers it, so no write needs a fence. */
export function soleHolder<T>(kv: Kv, { rows }: Kind<T>): Holder<T> {
  return {
    async *rows() {
      for await (const { value } of kv.list({ prefix: rows })) yield value;
    },
    storeOf: () => kv,
    gone: () => Promise.resolve(),
  };
}
