/** Plans: the limits of an account. */
import type { Hours } from "./hours.ts";

export interface Plan {
  name: string;
  /** How many sessions an account may have. */
  sessions: number;
  /** Messages accepted per UTC day; null: no limit. */
  daily: number | null;
  /** Messages accepted per UTC month; null: no limit. */
  monthly: number | null;
  /** Bounds of the random pause between two departures of a line, ms. */
  delayMinMs: number;
  delayMaxMs: number;
  /** Requests per minute and key; null: no limit. */
  requestsPerMinute: number | null;
  /** How many webhooks, and how many concurrent event streams, an account may have. */
  webhooks: number;
  eventStreams: number;
  /** How many templates an account may have. */
  templates: number;
  /** How many verifications of an account may be open at a time. */
  verifications: number;
  /** Nothing is sent outside these hours; null: at any time. */
  hours: Hours | null;
  /** New chats that a line may start per day (in the hours' time zone, otherwise UTC); null: no limit. */
  newChatsDaily: number | null;
  /** Whether a line may start fewer new chats in its first weeks (`line/runner/pacing.ts`). */
  warmUp: boolean;
  /** How long "typing" is shown before a message without its own `typing`, ms. */
  typingMs: number;
}

/** Maximum `typing` of a plan and of a send. */
export const MAX_TYPING_MS = 20_000;

/** Defaults for limits that a plan does not set. */
export const UNLIMITED = {
  daily: null,
  monthly: null,
  requestsPerMinute: 600,
  webhooks: 100,
  eventStreams: 20,
  templates: 250,
  verifications: 1_000,
  hours: null,
  newChatsDaily: null,
  warmUp: false,
  typingMs: 0,
} satisfies Partial<Plan>;

/** The plan of an account that is made without one. */
export const DEFAULT_PLAN = "free";

/** Plans of a new data folder (spec: the free plan has 1 session and 100 messages a day). */
export const DEFAULT_PLANS: readonly Plan[] = [
  { ...UNLIMITED, name: "free", sessions: 1, daily: 100, delayMinMs: 5_000, delayMaxMs: 15_000 },
  {
    ...UNLIMITED,
    name: "starter",
    sessions: 3,
    daily: 1_000,
    monthly: 20_000,
    delayMinMs: 4_000,
    delayMaxMs: 10_000,
  },
  { ...UNLIMITED, name: "business", sessions: 20, monthly: 200_000, delayMinMs: 2_000, delayMaxMs: 6_000 },
  // For operators who run the gateway for themselves.
  { ...UNLIMITED, name: "own", sessions: 1_000_000, delayMinMs: 5_000, delayMaxMs: 15_000 },
  { ...UNLIMITED, name: "sandbox", sessions: 1_000, delayMinMs: 0, delayMaxMs: 0, requestsPerMinute: null },
];

/** An operator's change of a plan. */
export type PlanChange = Pick<Plan, "name"> & Partial<Omit<Plan, "name">>;
