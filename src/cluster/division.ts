/** How leases are divided: a pure function of what every member sees, so that all come to the same without asking. */

export interface Share {
  id: string;
  /** Leases that it holds. */
  held: number;
  leaving: boolean;
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
 * keep the odd ones, so that nothing moves without need.
 */
export function portionOf(id: string, members: readonly Share[], free: number): Portion {
  const staying = members.filter(({ leaving }) => !leaving)
    .sort((a, b) => b.held - a.held || (a.id < b.id ? -1 : 1));
  if (staying.length === 0) return NOTHING;
  const total = members.reduce((sum, { held }) => sum + held, free);
  const share = Math.floor(total / staying.length);
  const odd = total % staying.length;
  let from = 0;
  for (const [rank, member] of staying.entries()) {
    const missing = share + (rank < odd ? 1 : 0) - member.held;
    if (member.id === id) {
      const take = Math.min(Math.max(0, missing), Math.max(0, free - from));
      return { from, take, surplus: Math.max(0, -missing) };
    }
    from += Math.max(0, missing);
  }
  return NOTHING;
}
