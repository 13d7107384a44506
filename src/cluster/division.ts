/** Divides leases by a pure function of what every member sees, so that all agree without coordination. */

export interface Share {
  id: string;
  /** Number of leases held. */
  held: number;
  /** False if the member is leaving or has not renewed recently: no share is reserved for it. */
  takes: boolean;
}

/** What a member should do now. */
interface Portion {
  /** The slice of the free leases to take: `take` of them, beginning at `from`. */
  from: number;
  take: number;
  /** Number of leases held beyond its share. */
  surplus: number;
}

const NOTHING: Portion = { from: 0, take: 0, surplus: 0 };

/**
 * Returns the portion of member `id` when `free` leases are free. Shares differ by at most one; members that hold the
 * most get the larger shares, so that nothing moves without need. Free leases are divided among the members that take.
 * A surplus is computed with the leases of the others included, which may yet become free, so that nothing is released
 * too early.
 */
export function portionOf(id: string, members: readonly Share[], free: number): Portion {
  const taking = members.filter(({ takes }) => takes).sort((a, b) => b.held - a.held || (a.id < b.id ? -1 : 1));
  const rank = taking.findIndex((member) => member.id === id);
  if (rank < 0) return NOTHING;
  const missing = missingOf(taking, taking.reduce((sum, { held }) => sum + held, free));
  const from = missing.slice(0, rank).reduce((sum, count) => sum + Math.max(0, count), 0);
  const inTheEnd = missingOf(taking, members.reduce((sum, { held }) => sum + held, free));
  return {
    from,
    take: Math.min(Math.max(0, missing[rank]!), Math.max(0, free - from)),
    surplus: Math.max(0, -inTheEnd[rank]!),
  };
}

/**
 * Returns how many leases each member lacks for an even share of `total`. `members` is sorted, largest holder first.
 */
function missingOf(members: readonly Share[], total: number): number[] {
  const [share, odd] = [Math.floor(total / members.length), total % members.length];
  return members.map(({ held }, rank) => share + (rank < odd ? 1 : 0) - held);
}
