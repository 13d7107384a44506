/** Send and Wait: an answer, none in time, and n8n killed in between. */
import assert from "node:assert/strict";
import { until } from "../../../tests/support/until.ts";
import { APPROVER, CUSTOMER, post, SILENT, type Trial, write } from "./trial.ts";
import { chain } from "./workflows.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Asks who is named, and says to them what came of it. */
export function asking(): Json {
  const start = {
    id: "start",
    name: "Start",
    type: "n8n-nodes-base.webhook",
    typeVersion: 2.1,
    webhookId: "asking",
    parameters: { httpMethod: "POST", path: "asking", options: {} },
  };
  const to = "={{ $('Start').item.json.body.to }}";
  return chain("asking", start, [
    {
      name: "ask",
      parameters: {
        resource: "message",
        operation: "sendAndWait",
        to,
        text: "How many?",
        answer: "text",
        timeLimit: "={{ $json.body.minutes }}",
        unit: "minutes",
      },
    },
    {
      name: "say",
      parameters: {
        resource: "message",
        operation: "sendText",
        to,
        text: "={{ $json.answered ? 'You said ' + $json.text : 'No answer' }}",
        options: {},
      },
    },
  ]);
}

const webhooks = async ({ stage }: Trial): Promise<string[]> => {
  const { data } = await stage.api.call("GET", "/webhooks");
  return data.map(({ url }: Json) => url).filter((url: string) => /\/webhook-waiting\/\d+\/ask\?/.test(url));
};

export async function nobodyAnswers(trial: Trial): Promise<void> {
  await post(trial, "asking", { to: SILENT, minutes: 0.02 });
  await trial.stage.arrival(SILENT, ({ text }) => text === "No answer");
}

export async function somebodyAnswers(trial: Trial): Promise<void> {
  const { stage, n8n } = trial;
  await post(trial, "asking", { to: CUSTOMER, minutes: 10 });
  await stage.arrival(CUSTOMER, ({ text }) => text === "How many?");
  const [url, ...others] = await webhooks(trial);
  assert.deepEqual(others, [], "the webhook of the question that nobody answered is gone");
  const forged = await fetch(url!.replace(/until=\d+/, "until=1"), { method: "POST", body: "{}" });
  assert.equal(forged.status, 401, await forged.text());
  // A node that was still at work when n8n was killed is lost with it.
  await until(async () => {
    const { results } = await n8n.rest("GET", "/executions?limit=100");
    return results.some(({ workflowId, status }: Json) => workflowId === "asking" && status === "waiting");
  }, "the execution to wait");
  await n8n.kill();
  await n8n.start();
  await write(trial, APPROVER, "not mine to answer");
  await write(trial, CUSTOMER, "three");
  await stage.arrival(CUSTOMER, ({ text }) => text === "You said three");
  assert.deepEqual(await webhooks(trial), []);
}
