/**
 * Runs the node's own code in Node.js without n8n, quick enough for every check: what n8n gives a node while it runs is
 * stood in for. `alone.ts FOLDER ACTIONS`: where the package was built, and a file with the parameters of each run;
 * prints the outputs. `PALOMA_URL` and `PALOMA_KEY` are the credentials.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { argv, env } from "node:process";

// deno-lint-ignore no-explicit-any
type Json = any;

const [folder, actions] = argv.slice(2) as [string, string];
const credentials = { baseUrl: env.PALOMA_URL!, apiKey: env.PALOMA_KEY! };
const { Paloma } = createRequire(`${folder}/package.json`)("./dist/nodes/Paloma/Paloma.node.js");
const node = new Paloma();

async function request(_type: string, { url, qs, method, headers, body }: Json): Promise<Json> {
  const at = new URL(url);
  for (const [name, value] of Object.entries(qs ?? {})) if (value !== undefined) at.searchParams.set(name, `${value}`);
  const isJson = body && !(body instanceof FormData);
  const answer = await fetch(at, {
    method,
    headers: { ...headers, ...isJson && { "content-type": "application/json" }, "x-api-key": credentials.apiKey },
    body: isJson ? JSON.stringify(body) : body,
  });
  return { statusCode: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.json() };
}

/** The default of a parameter, as it is for this resource, operation and the parameters beside. */
function fallback(name: string, parameters: Json): Json {
  const isShown = ({ displayOptions }: Json) =>
    Object.entries(displayOptions?.show ?? {}).every(([name, values]) =>
      (values as Json[]).includes(parameters[name] ?? fallback(name, parameters))
    );
  return node.description.properties.find((property: Json) => property.name === name && isShown(property))?.default;
}

const outputs: Json[] = [];
for (const [run, parameters] of JSON.parse(readFileSync(actions, "utf8")).entries()) {
  const [items] = await node.execute.call({
    getInputData: () => [{ json: {} }],
    getNode: () => ({ id: "node", name: "Paloma", type: "paloma", typeVersion: 1, parameters }),
    getNodeParameter: (name: string) => parameters[name] ?? fallback(name, parameters),
    getCredentials: () => Promise.resolve(credentials),
    getExecutionId: () => "alone",
    getTimezone: () => "UTC",
    evaluateExpression: () => run,
    continueOnFail: () => false,
    helpers: { httpRequestWithAuthentication: request },
  });
  outputs.push(items.map(({ json }: Json) => json));
}
console.log(JSON.stringify(outputs));
