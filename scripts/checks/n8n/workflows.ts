/** The workflows of the package, set up as a user does after importing them, and one that does everything else. */
import { join } from "node:path";
import type { Action } from "./actions.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const FOLDER = new URL("../../../integrations/n8n/workflows/", import.meta.url).pathname;
export const PALOMA = { id: "paloma", name: "Paloma" };
/** May only propose. */
export const AGENT = { id: "agent", name: "Paloma, of the agent" };
export const MODEL = { id: "model", name: "Model" };

const CREDENTIALS: Record<string, Json> = {
  "n8n-nodes-paloma.paloma": { palomaApi: PALOMA },
  "n8n-nodes-paloma.palomaTrigger": { palomaApi: PALOMA },
  "@n8n/n8n-nodes-langchain.lmChatOpenAi": { openAiApi: MODEL },
};

function withCredentials(workflow: Json): Json {
  for (const node of workflow.nodes) {
    if (CREDENTIALS[node.type]) node.credentials = CREDENTIALS[node.type];
    if (node.name === "Propose the Draft") node.credentials = { palomaApi: AGENT };
  }
  return workflow;
}

/** Writes the shipped workflows to a folder, each with its file's name as id; `values` are those of their settings. */
export async function shippedWorkflows(folder: string, values: Record<string, string>): Promise<string[]> {
  const ids: string[] = [];
  for await (const { name } of Deno.readDir(FOLDER)) {
    const workflow = JSON.parse(await Deno.readTextFile(join(FOLDER, name)));
    const id = name.replace(".json", "");
    for (const node of workflow.nodes) {
      for (const assignment of node.parameters.assignments?.assignments ?? []) {
        if (values[assignment.name]) assignment.value = values[assignment.name];
      }
    }
    await Deno.writeTextFile(join(folder, name), JSON.stringify({ id, ...withCredentials(workflow) }));
    ids.push(id);
  }
  return ids.sort();
}

/** A workflow of Paloma's nodes, one after another, each run once. */
export function chain(id: string, start: Json, nodes: Pick<Action, "name" | "parameters" | "settings">[]): Json {
  const all = [
    start,
    ...nodes.map(({ name, parameters, settings }) => ({
      id: name,
      name,
      type: "n8n-nodes-paloma.paloma",
      typeVersion: 1,
      parameters,
      executeOnce: true,
      ...settings,
    })),
  ].map((node, i) => ({ ...node, position: [200 * i, 0] }));
  const links = all.slice(1).map(({ name }, i) => [all[i]!.name, { main: [[{ node: name, type: "main", index: 0 }]] }]);
  const connections = Object.fromEntries(links);
  return withCredentials({ id, name: id, nodes: all, connections, settings: { executionOrder: "v1" } });
}

export const MANUALLY = {
  id: "start",
  name: "Start",
  type: "n8n-nodes-base.manualTrigger",
  typeVersion: 1,
  parameters: {},
};

/** Where n8n serves the form of the shipped workflow. */
export async function formPath(): Promise<string> {
  const { nodes } = JSON.parse(await Deno.readTextFile(join(FOLDER, "invoice-from-a-form.json")));
  return nodes.find(({ type }: Json) => type === "n8n-nodes-base.formTrigger").webhookId;
}
