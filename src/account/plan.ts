/** Plans: what an account may do. The catalogue is rows that the operator edits (`paloma plan set`). */

export interface Plan {
  name: string;
  /** How many sessions an account may have. */
  sessions: number;
  /** Messages accepted in a UTC day; null is no limit. */
  daily: number | null;
  /** Messages accepted in a UTC month; null is no limit. */
  monthly: number | null;
  /** Bounds of the random pause between two departures of a line, milliseconds. */
  delayMinMs: number;
  delayMaxMs: number;
  /** Requests a minute for one key; null is no limit. */
  requestsPerMinute: number | null;
}

/** Plans that exist in a new data folder (spec: the free plan has 1 session and 100 messages a day). */
export const DEFAULT_PLANS: readonly Plan[] = [
  {
    name: "free",
    sessions: 1,
    daily: 100,
    monthly: null,
    delayMinMs: 5_000,
    delayMaxMs: 15_000,
    requestsPerMinute: 600,
  },
  {
    name: "starter",
    sessions: 3,
    daily: 1_000,
    monthly: 20_000,
    delayMinMs: 4_000,
    delayMaxMs: 10_000,
    requestsPerMinute: 600,
  },
  {
    name: "business",
    sessions: 20,
    daily: null,
    monthly: 200_000,
    delayMinMs: 2_000,
    delayMaxMs: 6_000,
    requestsPerMinute: 600,
  },
  {
    name: "sandbox",
    sessions: 1_000,
    daily: null,
    monthly: null,
    delayMinMs: 0,
    delayMaxMs: 0,
    requestsPerMinute: null,
  },
];
