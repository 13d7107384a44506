/** The trigger's webhook: there once, verified, and gone when the workflow is switched off. */
import assert from "node:assert/strict";
import { until } from "../../../tests/support/until.ts";
import { CUSTOMER, type Trial, write } from "./trial.ts";

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

/** Neither a request that is not signed nor a test of the webhook starts a workflow; what comes after them does. */
export async function verifies(trial: Trial): Promise<void> {
  const { stage, outside: { posted } } = trial;
  const hooks = await webhooks(trial);
  assert.equal(hooks.length, TRIGGERED.length, "one for each trigger, also after n8n was killed and started");
  const now = String(Math.floor(Date.now() / 1000));
  const headers = { "content-type": "application/json", "webhook-signature": "v1,AAAA", "webhook-timestamp": now };
  const body = JSON.stringify({ event: "message.received", sessionName: "nobody", data: { text: "forged" } });
  for (const { id, url } of hooks) {
    const answer = await fetch(url, { method: "POST", headers, body });
    assert.equal(answer.status, 401, await answer.text());
    const { eventId } = (await stage.api.call("POST", `/webhooks/${id}/test`)).data;
    await until(async () => {
      const { data } = await stage.api.call("GET", `/webhooks/${id}/deliveries`);
      return data.some((delivery: Json) => delivery.eventId === eventId && delivery.status === "delivered");
    }, "a test to be delivered");
  }
  await write(trial, CUSTOMER, "after them");
  await until(() => posted.some(({ text }) => text.includes("after them")), "a post");
  assert.deepEqual(posted.filter(({ text }) => /forged|undefined/.test(text)), []);
}

/** Switches each off as the editor does; n8n takes its triggers down soon afterwards. */
export async function switchesOff(trial: Trial): Promise<void> {
  for (const [i, id] of TRIGGERED.entries()) {
    await trial.n8n.rest("POST", `/workflows/${id}/deactivate`, {});
    const left = TRIGGERED.length - i - 1;
    await until(async () => (await webhooks(trial)).length === left, `the webhook of ${id} to go`);
  }
}
