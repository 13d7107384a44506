/** The trigger's webhook: there once, verified, and gone when the workflow is switched off. */
import assert from "node:assert/strict";
import { until } from "../../../tests/support/until.ts";
import type { Trial } from "./trial.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** The workflows that begin with the trigger. */
const TRIGGERED = ["agent-with-approval", "inbox-to-slack", "menu-bot"];

/** Those of triggers, not of questions. */
async function webhooks({ stage }: Trial): Promise<Json[]> {
  const { data } = await stage.api.call("GET", "/webhooks");
  return data.filter(({ url }: Json) => !url.includes("/webhook-waiting/"));
}

/** n8n registers them soon after its start. */
export async function registered(trial: Trial): Promise<void> {
  await until(async () => (await webhooks(trial)).length === TRIGGERED.length, "the webhooks of the triggers");
}

async function executions({ n8n }: Trial): Promise<number> {
  return (await n8n.rest("GET", "/executions?limit=100")).results.length;
}

export async function verifies(trial: Trial): Promise<void> {
  const hooks = await webhooks(trial);
  assert.equal(hooks.length, TRIGGERED.length, "one for each trigger, also after n8n was killed and started");
  const before = await executions(trial);
  const headers = { "content-type": "application/json", "webhook-signature": "v1,AAAA", "webhook-timestamp": "1" };
  const answer = await fetch(hooks[0].url, { method: "POST", headers, body: "{}" });
  assert.equal(answer.status, 401, await answer.text());
  for (const { id } of hooks) {
    const { data } = await trial.stage.api.call("POST", `/webhooks/${id}/test`);
    assert.equal(data.status ?? data.responseStatus, 200, JSON.stringify(data));
  }
  assert.equal(await executions(trial), before, "neither starts a workflow");
}

/** Switches each off as the editor does. */
export async function switchesOff(trial: Trial): Promise<void> {
  for (const [i, id] of TRIGGERED.entries()) {
    await trial.n8n.rest("POST", `/workflows/${id}/deactivate`, {});
    assert.equal((await webhooks(trial)).length, TRIGGERED.length - i - 1, `the webhook of ${id}`);
  }
}
