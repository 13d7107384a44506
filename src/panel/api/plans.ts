/** The plan catalogue, which operators edit. */
import { z } from "zod";
import type { Accounts } from "../../account/accounts.ts";
import { parseHours, printHours } from "../../account/hours.ts";
import type { Plan } from "../../account/plan.ts";
import type { Plans } from "../../account/plans.ts";
import { invalid } from "../../errors.ts";
import type { Guard } from "./guard.ts";

const limit = z.number().nullable();

const PlanChange = z.strictObject({
  sessions: z.number(),
  daily: limit,
  monthly: limit,
  delayMinMs: z.number(),
  delayMaxMs: z.number(),
  requestsPerMinute: limit,
  webhooks: z.number().optional(),
  eventStreams: z.number().optional(),
  /** As `plan set --hours` takes them; null: at any time. */
  hours: z.string().max(200).nullable().optional(),
  newChatsDaily: limit.optional(),
  warmUp: z.boolean().optional(),
  typingMs: z.number().optional(),
});

interface PlansDeps {
  guard: Guard;
  accounts: Pick<Accounts, "list">;
  plans: Plans;
}

export function addPlans({ guard, accounts, plans }: PlansDeps): void {
  guard.operator({ method: "GET", path: "/operator/plans" }, async () => {
    const used = new Map<string, number>();
    for (const { plan } of await accounts.list()) used.set(plan, (used.get(plan) ?? 0) + 1);
    return { data: (await plans.list()).map((plan) => ({ ...planView(plan), accounts: used.get(plan.name) ?? 0 })) };
  });

  guard.operator({ method: "PUT", path: "/operator/plans/:name", body: PlanChange }, async ({ param, body, did }) => {
    const { hours: text, ...rest } = body;
    const hours = text == null ? text : parseHours(text);
    if (text && !hours) throw invalid("hours", 'must be like "mon-fri 09:00-18:00 Europe/Madrid"');
    const plan = await plans.set({ ...rest, hours, name: param("name") });
    await did(`plan_set: ${plan.name}`, null);
    return { data: planView(plan) };
  });
}

/** With its hours as a line of text, which is what the form edits. */
function planView(plan: Plan) {
  return { ...plan, hours: plan.hours && printHours(plan.hours) };
}
