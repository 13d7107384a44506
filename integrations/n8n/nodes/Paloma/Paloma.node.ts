import type {
  IDataObject,
  IExecuteFunctions,
  ILoadOptionsFunctions,
  INodeExecutionData,
  INodePropertyOptions,
  INodeType,
  INodeTypeDescription,
  JsonObject,
} from "n8n-workflow";
import { NodeApiError, NodeConnectionTypes } from "n8n-workflow";
import { getLines } from "../shared/lines";
import { call } from "../shared/request";
import { Item, properties } from "./operation";
import { chat } from "./resources/chat";
import { line } from "./resources/line";
import { message } from "./resources/message";
import { proposal } from "./resources/proposal";
import { queue } from "./resources/queue";
import { answered, RESUME } from "./send_and_wait";

const RESOURCES = [chat, line, message, proposal, queue];

async function getTemplates(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
  const { body } = await call(this, { method: "GET", path: "/v1/templates", qs: { limit: 100 } });
  const names = new Set((body.data as IDataObject[]).map(({ name }) => String(name)));
  return [...names].sort().map((name) => ({ name, value: name }));
}

export class Paloma implements INodeType {
  description: INodeTypeDescription = {
    displayName: "Paloma",
    name: "paloma",
    icon: { light: "file:../../icons/paloma.svg", dark: "file:../../icons/paloma.dark.svg" },
    group: ["output"],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: "Send and read WhatsApp messages through Paloma",
    defaults: { name: "Paloma" },
    usableAsTool: true,
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: "palomaApi", required: true }],
    webhooks: RESUME,
    properties: [
      {
        displayName: "Resource",
        name: "resource",
        type: "options",
        noDataExpression: true,
        options: RESOURCES.map(({ option }) => option),
        default: "message",
      },
      ...properties(RESOURCES),
    ],
  };

  methods = { loadOptions: { getLines, getTemplates } };

  webhook = answered;

  /** Items go one after another, so that their messages keep their order. */
  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const resource = this.getNodeParameter("resource", 0);
    const operation = this.getNodeParameter("operation", 0);
    const { run } = RESOURCES.find(({ option }) => option.value === resource)!.operations
      .find(({ option }) => option.value === operation)!;
    const items: INodeExecutionData[] = [];
    for (const index of this.getInputData().keys()) {
      try {
        const results = await run(new Item(this, index));
        items.push(...results.map((result) => ({ ...result, pairedItem: { item: index } })));
      } catch (error) {
        const problem = error instanceof Error ? error : new Error(String(error));
        if (!this.continueOnFail()) throw new NodeApiError(this.getNode(), problem as unknown as JsonObject);
        items.push({ json: { error: problem.message }, pairedItem: { item: index } });
      }
    }
    return [items];
  }
}
