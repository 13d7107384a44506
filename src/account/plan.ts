/** Plans: what an account may do. */
import { OperatorError } from "../errors.ts";
import type { Hours } from "./hours.ts";

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
  /** Requests a minute of each key; null is no limit. */
  requestsPerMinute: number | null;
  /** How many webhooks an account may have, and how many event streams at a time. */
  webhooks: number;
  eventStreams: number;
  /** Nothing leaves outside of them; null: at any time. */
  hours: Hours | null;
  /** New chats that a line may start in a day (of the hours' time zone, else UTC); null is no limit. */
  newChatsDaily: number | null;
  /** Whether a line may start fewer than that in its first weeks (`line/new_chats.ts`). */
  warmUp: boolean;
  /** How long "typing" is shown before a message that does not say so itself, milliseconds. */
  typingMs: number;
}

/** Of a plan, and of a send. */
export const MAX_TYPING_MS = 20_000;

/** What a plan does not limit unless it says so. */
export const UNLIMITED = {
  daily: null,
  monthly: null,
  requestsPerMinute: 600,
  webhooks: 100,
  eventStreams: 20,
  hours: null,
  newChatsDaily: null,
  warmUp: false,
  typingMs: 0,
} satisfies Partial<Plan>;

/** Plans that exist in a new data folder (spec: the free plan has 1 session and 100 messages a day). */
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
  // For whoever runs the gateway for themselves.
  { ...UNLIMITED, name: "own", sessions: 1_000_000, delayMinMs: 5_000, delayMaxMs: 15_000 },
  { ...UNLIMITED, name: "sandbox", sessions: 1_000, delayMinMs: 0, delayMaxMs: 0, requestsPerMinute: null },
];

/** An account is on the plan that was to be removed. */
export class PlanInUse extends OperatorError {
  readonly code = "plan_in_use";

  constructor(plan: string) {
    super(`An account is on plan "${plan}"; "paloma account set-plan" puts it on another.`);
    this.name = "PlanInUse";
  }
}

/** The operator's edit. */
export type PlanChange = Pick<Plan, "name"> & Partial<Omit<Plan, "name">>;
