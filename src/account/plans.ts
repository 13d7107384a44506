/** The plan catalogue: rows that the operator edits (`paloma plan set`). */
import { type FieldError, Problem } from "../errors.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { DEFAULT_PLANS, type Plan, type Plans } from "./plan.ts";
import { accountKeys } from "./rows.ts";

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
