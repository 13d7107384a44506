import type {
  IDataObject,
  IExecuteFunctions,
  INodeProperties,
  IWebhookDescription,
  IWebhookFunctions,
  IWebhookResponseData,
} from "n8n-workflow";
import { NodeOperationError } from "n8n-workflow";
import { CHOICES, choicesOf, FROM, idempotencyKeyOf, TEXT, TO } from "./fields";
import { type Item, type Operation, output } from "./operation";
import { call } from "../shared/request";

const MINUTES: Record<string, number> = { minutes: 1, hours: 60, days: 1440 };

const FIELDS: INodeProperties[] = [
  FROM,
  TO,
  TEXT,
  {
    displayName: "Answer",
    name: "answer",
    type: "options",
    options: [
      { name: "Any Text", value: "text", description: "The next message of the chat" },
      { name: "Choice", value: "choice", description: "One of the choices, as a number, a vote or a tap" },
    ],
    default: "text",
  },
  { ...CHOICES, displayOptions: { show: { answer: ["choice"] } } },
  {
    displayName: "Time Limit",
    name: "timeLimit",
    type: "number",
    typeOptions: { minValue: 1 },
    default: 1,
    description: "After this time the workflow goes on with answered: false",
  },
  {
    displayName: "Unit",
    name: "unit",
    type: "options",
    options: [
      { name: "Days", value: "days" },
      { name: "Hours", value: "hours" },
      { name: "Minutes", value: "minutes" },
    ],
    default: "hours",
  },
];

/** Where the execution is woken: n8n makes the address, and signs it with what stands in it. */
export const RESUME: IWebhookDescription[] = [
  {
    name: "default",
    httpMethod: "POST",
    responseMode: "onReceived",
    path: "={{ $nodeId }}",
    restartWebhook: true,
    isFullPath: true,
  },
];

const WEBHOOKS = "/v1/webhooks";

/** Removes the webhooks of executions that went on without an answer; `resume` is the address of one of ours. */
async function sweep(node: IExecuteFunctions, resume: URL): Promise<void> {
  const [begin] = resume.href.split(`/${node.getExecutionId()}/`);
  const { body } = await call(node, { method: "GET", path: WEBHOOKS });
  for (const { id, url } of body.data as { id: string; url: string }[]) {
    const isOver = url.startsWith(`${begin}/`) &&
      Number(new URL(url).searchParams.get("until") ?? Infinity) < Date.now();
    if (isOver) await call(node, { method: "DELETE", path: `${WEBHOOKS}/${id}`, allow: [404] });
  }
}

async function run(item: Item) {
  const { node } = item;
  if (node.getInputData().length > 1) {
    const message = "Send and Wait takes one item at a time";
    throw new NodeOperationError(node.getNode(), message, { description: "Put it into a Loop Over Items" });
  }
  const hasChoices = item.text("answer") === "choice";
  const until = Date.now() + Number(item.value("timeLimit")) * MINUTES[item.text("unit")] * 60_000;
  const asked = { until: String(until) };
  const resume = new URL(node.getSignedResumeUrl(asked));
  await sweep(node, resume);

  // The webhook is there before the question: no answer is too early. What comes before it knows the question is
  // refused, and delivered again.
  const events = [hasChoices ? "choice.made" : "message.received"];
  const created = await call(node, { method: "POST", path: WEBHOOKS, body: { url: resume.href, events } });
  const { id: webhook } = created.body.data as { id: string };
  const atWebhook = `${WEBHOOKS}/${webhook}`;
  let question: IDataObject;
  try {
    const body = {
      sessionId: item.value("sessionId"),
      to: item.text("to"),
      text: item.text("text"),
      ...(hasChoices && { options: choicesOf(item) }),
    };
    const path = `/v1/messages/send/${hasChoices ? "choices" : "text"}`;
    const sent = await call(node, { method: "POST", path, body, idempotencyKey: idempotencyKeyOf(item) });
    const record = await call(node, { method: "GET", path: `/v1/messages/${String(sent.body.messageId)}` });
    const { messageId, to, sessionId } = record.body.data as Record<string, string>;
    const url = node.getSignedResumeUrl({ ...asked, webhook, messageId, to, sessionId });
    await call(node, { method: "PUT", path: atWebhook, body: { url } });
    question = { messageId, to };
  } catch (error) {
    await call(node, { method: "DELETE", path: atWebhook, allow: [404] });
    throw error instanceof NodeOperationError ? error : new NodeOperationError(node.getNode(), error as Error);
  }

  // What the node hands on if nobody answers, for n8n then passes the input through.
  node.getExecuteData().data.main[0] = [{ json: { answered: false, ...question }, pairedItem: { item: 0 } }];
  await node.putExecutionToWait(new Date(until));
  return output(question);
}

/** Whether an event is the answer to the question that the address names. */
function isAnswer(event: IDataObject, question: Record<string, string>): boolean {
  const data = event.data as Record<string, string | null>;
  if (event.event === "choice.made") return data.messageId === question.messageId;
  const to = question.to.replace(/@s\.whatsapp\.net$/, "");
  if (event.sessionId !== question.sessionId) return false;
  if (data.chat!.endsWith("@g.us")) return data.chat === to;
  return [data.number, data.chat, data.from].includes(to);
}

/** Takes an event for a waiting execution: the answer wakes it, anything else is acknowledged. */
export async function answered(this: IWebhookFunctions): Promise<IWebhookResponseData> {
  const question = this.getQueryData() as Record<string, string>;
  if (!question.messageId) {
    this.getResponseObject().status(409).json({ message: "The question is not out yet" });
    return { noWebhookResponse: true };
  }
  const event = this.getBodyData();
  if (!isAnswer(event, question)) return {};
  await call(this, { method: "DELETE", path: `${WEBHOOKS}/${question.webhook}`, allow: [404] });
  const data = event.data as IDataObject;
  const answer = event.event === "choice.made" ? { choice: data.id, text: data.label } : { text: data.text };
  const { messageId, to } = question;
  return { workflowData: [[{ json: { answered: true, messageId, to, ...answer, event } }]] };
}

export const sendAndWait: Operation = {
  option: {
    name: "Send and Wait for Answer",
    value: "sendAndWait",
    action: "Send and wait for the answer",
    description: "Ask something; the workflow goes on with the answer, or when the time is up",
  },
  fields: FIELDS,
  run,
};
