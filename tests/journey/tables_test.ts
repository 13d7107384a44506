/** The tables of `tests/http` on the whole product: a gateway process, Baileys, the simulated network. */
import assert from "node:assert/strict";
import pino from "pino";
import { httpClient, linkByQr } from "../../src/cli/client.ts";
import { openDataFolder } from "../../src/data_folder.ts";
import { systemClock, systemRuntime } from "../../src/runtime.ts";
import { TABLES } from "../http/tables/all.ts";
import { contractStage, operations } from "../support/api_contract.ts";
import { runTable } from "../support/api_table.ts";
import type { ApiStage, CallOptions } from "../support/api_world.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

/** No address is allowed beyond the public internet, as the tables expect. */
const CLOSED = { env: { PALOMA_OUTBOUND_ALLOW: "" } };

Deno.test("a real gateway answers as the tables say, and only what its reference describes", (t) =>
  withStage(() => openStage(CLOSED), async (stage) => {
    const asked = new Set<string>();
    for (const [i, [name, cases]] of Object.entries(TABLES).entries()) {
      const number = `49155610000${String(i).padStart(2, "0")}`;
      const tabled = contractStage(await newAccount(stage, number), (operationId) => asked.add(operationId));
      const session = await tabled.linkedSession();
      await t.step(name, (step) => runTable(step, { stage: tabled, session }, cases));
    }
    const all = operations().map(({ operation }) => operation.operationId);
    // Files that came in have tests of their own.
    assert.deepEqual(all.filter((operationId) => !asked.has(operationId)), ["getMedia"]);
  }));

/** An account of its own for a table, with a line of this number. */
async function newAccount(stage: Stage, number: string): Promise<ApiStage> {
  const data = await openDataFolder(
    { dataDir: stage.dataDir, secretKey: null },
    systemRuntime(pino({ level: "silent" })),
  );
  const { apiKey } = await data.accounts.create({ name: number, plan: "sandbox" }).finally(() => data.close());
  stage.secrets.add(apiKey);
  const root = stage.gateway.baseUrl.replace(/\/v1$/, "");
  return {
    apiKey,
    async linkedSession() {
      const { control } = stage;
      await stage.addPhone(number);
      const api = stage.secrets.watch(httpClient(stage.gateway.baseUrl, { "x-api-key": apiKey }));
      const { data } = await api.call("POST", "/sessions", { name: "Support line" });
      await linkByQr(systemClock, { api, control, sessionId: data._id, phone: number });
      return data._id;
    },
    call(method: string, path: string, { json, body, headers = {}, key = apiKey }: CallOptions = {}) {
      stage.secrets.read(json);
      return fetch(root + path, {
        method,
        headers: {
          ...(key === null ? {} : { "x-api-key": key }),
          ...(json === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        body: json === undefined ? body : JSON.stringify(json),
      });
    },
  };
}
