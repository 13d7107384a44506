/** What n8n's editor asks of the package: the test of credentials, and the menus. */
import assert from "node:assert/strict";
import type { Trial } from "./trial.ts";
import { PALOMA } from "./workflows.ts";

export async function editor({ n8n, door, stage, line }: Trial): Promise<void> {
  const test = (apiKey: string) =>
    n8n.rest("POST", "/credentials/test", {
      credentials: { ...PALOMA, type: "palomaApi", data: { baseUrl: `${door.url}/`, apiKey } },
    });
  assert.equal((await test(stage.apiKey)).status, "OK");
  assert.equal((await test("pk_wrong")).status, "Error");

  const options = (methodName: string) =>
    n8n.rest("POST", "/dynamic-node-parameters/options", {
      nodeTypeAndVersion: { name: "n8n-nodes-paloma.paloma", version: 1 },
      path: "parameters",
      methodName,
      credentials: { palomaApi: PALOMA },
      currentNodeParameters: {},
    });
  assert.deepEqual(await options("getLines"), [
    { name: `line ${line.number} (${line.number})`, value: line.sessionId },
  ]);
  assert.deepEqual(await options("getTemplates"), [{ name: "hello", value: "hello" }]);
}
