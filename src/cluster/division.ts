/** How leases are divided: a pure function of what every member sees, so that all come to the same without asking. */

export interface Share {
  id: string;
  /** Leases that it holds. */
  held: number;
  /** False of one that gives its own up, or has not renewed of late: nothing is left for it. */
  takes: boolean;
}

/** What a member is to do now. */
interface Portion {
  /** Its place among the free ones: from `from`, `take` of them. */
  from: number;
  take: number;
  /** How many it holds beyond its share. */
  surplus: number;
}

const NOTHING: Portion = { from: 0, take: 0, surplus: 0 };

/**
 * The portion of the member `id`, with `free` leases that nobody holds. Shares differ by at most one; those who hold more
 * keep the odd ones, so that nothing moves without need. What is free is divided among those who take; what the others
 * hold may come to them too, so nobody gives anything up before that.
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

/** How many each lacks of its even part of `total`, those first who hold the most. */
function missingOf(members: readonly Share[], total: number): number[] {
  const [share, odd] = [Math.floor(total / members.length), total % members.length];
  return members.map(({ held }, rank) => share + (rank < odd ? 1 : 0) - held);
}
