/** The plan catalogue: rows that the operator edits (`paloma plan set`). */
import { type FieldError, notFound, OperatorError, Problem } from "../errors.ts";
import { Change, isRow, type Kv, retryOnConflict } from "../store/kv.ts";
import { hoursRefusal } from "./hours.ts";
import { DEFAULT_PLANS, MAX_TYPING_MS, type Plan, type PlanChange, UNLIMITED } from "./plan.ts";
import { accountKeys, type PlanRecord } from "./rows.ts";

const NEEDED = ["sessions", "delayMinMs", "delayMaxMs"] as const;

export class Plans {
  readonly #kv: Kv;

  constructor(kv: Kv) {
    this.#kv = kv;
  }

  /** Lists all plans by name. */
  async list(): Promise<Plan[]> {
    return await Array.fromAsync(this.#kv.list({ prefix: accountKeys.plans() }), ({ value }) => planOf(value));
  }

  async get(name: string): Promise<Plan | null> {
    const { value } = await this.#kv.get(accountKeys.plan(name));
    return value && planOf(value);
  }

  /**
   * Creates or changes a plan; omitted fields stay as they are. A new plan needs `sessions` and the pauses; without
   * further fields its only other limit is 600 requests a minute. Throws Problem validation_failed.
   */
  set(edit: PlanChange): Promise<Plan> {
    return retryOnConflict(this.#kv, async () => {
      const slot = await this.#kv.get(accountKeys.plan(edit.name));
      const plan = edited(slot.value, edit);
      const change = new Change().check(slot).set(slot.key, plan).add(accountKeys.planChanges(), 1);
      return { change, result: plan };
    });
  }

  /**
   * Removes a plan; a removed default plan is not added again. Throws Problem not_found, OperatorError if it is in use.
   */
  async remove(name: string): Promise<void> {
    await retryOnConflict(this.#kv, async () => {
      const slot = await this.#kv.get(accountKeys.plan(name));
      if (slot.value === null) throw notFound("plan");
      // Counts every assignment too, so that the commit fails if an account gets the plan while the accounts are searched.
      const changes = await this.#kv.get(accountKeys.planChanges());
      if (await this.#isUsed(name)) {
        const message = `An account is on plan "${name}"; "paloma account set-plan" puts it on another.`;
        throw new OperatorError("plan_in_use", message);
      }
      const change = new Change().check(slot).check(changes).delete(slot.key).set(accountKeys.removedPlan(name), true);
      return { change, result: undefined };
    });
  }

  /** Adds the default plans to the change that begins a new data folder. */
  putDefaults(change: Change): void {
    for (const plan of DEFAULT_PLANS) change.set(accountKeys.plan(plan.name), plan);
  }

  /** Writes the default plans that a data folder lacks; existing ones stay as they are. */
  addDefaults(): Promise<void> {
    return retryOnConflict(this.#kv, async () => {
      const change = new Change();
      await Promise.all(DEFAULT_PLANS.map(async (plan) => {
        const row = accountKeys.plan(plan.name);
        const slots = await this.#kv.getMany<unknown>([row, accountKeys.removedPlan(plan.name)]);
        // The plan exists or was removed by the operator.
        if (slots.some(isRow)) return;
        for (const slot of slots) change.check(slot);
        change.set(row, plan);
      }));
      return { change, result: undefined };
    });
  }

  async #isUsed(name: string): Promise<boolean> {
    for await (const { value } of this.#kv.list({ prefix: accountKeys.accounts() })) {
      if (value.plan === name) return true;
    }
    return false;
  }
}

function planOf(record: PlanRecord): Plan {
  return { ...UNLIMITED, ...record };
}

/** Returns the plan after the edit. Throws Problem validation_failed. */
function edited(record: PlanRecord | null, edit: PlanChange): Plan {
  const given = Object.fromEntries(Object.entries(edit).filter(([, value]) => value !== undefined));
  const missing = record ? [] : NEEDED.filter((path) => !(path in given));
  refuse(missing.map((path) => ({ path, message: "is needed for a new plan" })));
  const plan = { ...UNLIMITED, ...record, ...given } as Plan;
  refuse(errorsOf(plan));
  return plan;
}

const DAY_MS = 24 * 60 * 60 * 1000;

function errorsOf(plan: Plan): FieldError[] {
  const errors: FieldError[] = [];
  const whole = (path: keyof Plan, least: number, most: number) => {
    const value = plan[path];
    if (value === null || (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most)) return;
    errors.push({ path, message: `must be a whole number from ${least} to ${most}` });
  };
  if (!/^[a-z0-9][a-z0-9_-]{0,39}$/.test(plan.name)) {
    errors.push({ path: "name", message: "must be 1 to 40 characters: a-z, 0-9, _ and -" });
  }
  whole("sessions", 0, 1_000_000);
  whole("daily", 0, 1_000_000_000);
  whole("monthly", 0, 1_000_000_000);
  whole("delayMinMs", 0, DAY_MS);
  whole("delayMaxMs", 0, DAY_MS);
  whole("requestsPerMinute", 1, 1_000_000_000);
  whole("webhooks", 0, 10_000);
  whole("eventStreams", 0, 10_000);
  whole("templates", 0, 10_000);
  whole("verifications", 0, 1_000_000);
  whole("newChatsDaily", 0, 1_000_000_000);
  whole("typingMs", 0, MAX_TYPING_MS);
  if (plan.delayMinMs > plan.delayMaxMs) {
    errors.push({ path: "delayMinMs", message: "must not exceed the maximum pause" });
  }
  const wrong = plan.hours && hoursRefusal(plan.hours);
  if (wrong) errors.push({ path: "hours", message: wrong });
  return errors;
}

function refuse(errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  throw new Problem("validation_failed", errors.map(({ path, message }) => `${path} ${message}`).join("; "), {
    errors: [...errors],
  });
}
