/**
 * The node's own code without n8n, quick enough for every check: what n8n gives a node while it runs is stood in for,
 * the gateway and the phones are real. Expressions are n8n's, so actions that take one are left to `--real`.
 */
import { createRequire } from "node:module";
import { join } from "node:path";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Runs a node with these parameters on one item; resolves to the items of its output. */
export type RunNode = (parameters: Json) => Promise<Json[]>;

/** `folder`: where the package was built. */
export function nodeOf(folder: string, credentials: { baseUrl: string; apiKey: string }): RunNode {
  const { Paloma } = createRequire(join(folder, "package.json"))("./dist/nodes/Paloma/Paloma.node.js");
  const node = new Paloma();
  let runs = 0;

  async function request(_type: string, { url, qs, method, headers, body }: Json): Promise<Json> {
    const query = new URLSearchParams(Object.entries(qs ?? {}).filter(([, value]) => value !== undefined) as []);
    const sent = body && !(body instanceof FormData) ? JSON.stringify(body) : body;
    const type: Record<string, string> = typeof sent === "string" ? { "content-type": "application/json" } : {};
    const answer = await fetch(`${url}?${query}`, {
      method,
      headers: { ...headers, ...type, "x-api-key": credentials.apiKey },
      body: sent,
    });
    const text = await answer.text();
    return { statusCode: answer.status, headers: Object.fromEntries(answer.headers), body: JSON.parse(text) };
  }

  return async (parameters) => {
    const run = runs++;
    const shown = node.description.properties.filter(({ displayOptions }: Json) =>
      Object.entries(displayOptions?.show ?? {}).every(([name, values]) =>
        (values as Json[]).includes(parameters[name] ?? "file")
      )
    );
    const defaults = Object.fromEntries(shown.map((property: Json) => [property.name, property.default]));
    const [items] = await node.execute.call({
      getInputData: () => [{ json: {} }],
      getNode: () => ({ id: "node", name: "Paloma", type: "paloma", typeVersion: 1, parameters }),
      getNodeParameter: (name: string, _index: number, fallback: Json) =>
        parameters[name] ?? defaults[name] ?? fallback,
      getCredentials: () => Promise.resolve(credentials),
      getExecutionId: () => "alone",
      getTimezone: () => "UTC",
      evaluateExpression: () => run,
      continueOnFail: () => false,
      helpers: { httpRequestWithAuthentication: request },
    });
    return items.map(({ json }: Json) => json);
  };
}
