/** Plans: what an account may do. The catalogue is rows that the operator edits (`paloma plan set`). */
import { type FieldError, Problem } from "../errors.ts";
import { accountKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";

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

/** The catalogue. */
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

export function makePlans(kv: Kv): Plans {
  return {
    async list() {
      const plans: Plan[] = [];
      for await (const row of kv.list({ prefix: accountKeys.plans() })) plans.push(row.value);
      return plans;
    },
    async get(name) {
      return (await kv.get(accountKeys.plan(name))).value;
    },
    set(edit) {
      return retryOnConflict(kv, async () => {
        const slot = await kv.get(accountKeys.plan(edit.name));
        const { name, sessions, delayMinMs, delayMaxMs } = edit;
        const limit = (of: "daily" | "monthly" | "requestsPerMinute", inNewPlan: number | null) =>
          edit[of] === undefined ? (slot.value ? slot.value[of] : inNewPlan) : edit[of];
        const plan: Plan = {
          name,
          sessions,
          delayMinMs,
          delayMaxMs,
          daily: limit("daily", null),
          monthly: limit("monthly", null),
          requestsPerMinute: limit("requestsPerMinute", 600),
        };
        validatePlan(plan);
        return { change: new Change().check(slot).set(slot.key, plan), result: plan };
      });
    },
    async addDefaults() {
      for (const plan of DEFAULT_PLANS) {
        // A failed check means that the plan is there, which is what was wanted.
        await kv.commit(new Change().checkAbsent(accountKeys.plan(plan.name)).set(accountKeys.plan(plan.name), plan));
      }
    },
  };
}

const DAY_MS = 24 * 60 * 60 * 1000;

function validatePlan(plan: Plan): void {
  const errors: FieldError[] = [];
  const whole = (path: keyof Plan, least: number, most: number) => {
    const value = plan[path];
    if (value === null || (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most)) return;
    errors.push({ path, message: `must be a whole number from ${least} to ${most}` });
  };
  if (!/^[a-z0-9][a-z0-9_-]{0,39}$/.test(plan.name)) {
    errors.push({ path: "name", message: "must be 1 to 40 of a-z, 0-9, _ and -" });
  }
  whole("sessions", 0, 1_000_000);
  whole("daily", 0, 1_000_000_000);
  whole("monthly", 0, 1_000_000_000);
  whole("delayMinMs", 0, DAY_MS);
  whole("delayMaxMs", 0, DAY_MS);
  whole("requestsPerMinute", 1, 1_000_000_000);
  if (plan.delayMinMs > plan.delayMaxMs) errors.push({ path: "delayMinMs", message: "must not be above delayMaxMs" });
  if (errors.length) {
    throw new Problem("validation_failed", errors.map(({ path, message }) => `${path} ${message}`).join("; "), {
      errors,
    });
  }
}
