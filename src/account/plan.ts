/** Plans: what an account may do. */

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

/** The catalogue. Implemented in `plans.ts`. */
export interface Plans {
  /** By name. */
  list(): Promise<Plan[]>;
  get(name: string): Promise<Plan | null>;
  /** Makes the plan or changes it; limits left out stay; a new plan has no quota and 600 requests a minute. Throws Problem validation_failed. */
  set(plan: PlanChange): Promise<Plan>;
  /** Writes the default plans that a data folder lacks; an edited one stays as it is. */
  addDefaults(): Promise<void>;
}

/** The operator's edit; the optional limits may be left out. */
export type PlanChange =
  & Pick<Plan, "name" | "sessions" | "delayMinMs" | "delayMaxMs">
  & Partial<Pick<Plan, "daily" | "monthly" | "requestsPerMinute">>;
