/** Every table of requests and answers once more, on a real gateway with a line linked over the real protocol. */
import { TABLES } from "../http/tables/all.ts";
import { contractStage } from "../support/api_contract.ts";
import { runTable } from "../support/api_table.ts";
import { type ApiStage, requestOf } from "../support/api_world.ts";
import { onStage, type Stage } from "../support/stage.ts";

/** Numbers of the lines, one a table. */
const FIRST_LINE = 4915550110000;

function apiStage(stage: Stage): ApiStage {
  let lines = 0;
  const root = new URL("/", stage.gateway.baseUrl).href.slice(0, -1);
  return {
    apiKey: stage.apiKey,
    call: (method, path, options = {}) => fetch(root + path, requestOf(method, options, stage.apiKey)),
    linkedSession: async () => (await stage.linkLine(String(FIRST_LINE + lines++))).sessionId,
  };
}

onStage("a real gateway answers every table as its reference says", async (stage) => {
  const api = apiStage(stage);
  for (const [name, cases] of Object.entries(TABLES)) {
    const session = await api.linkedSession();
    const t = { step: async (step: string, run: () => Promise<void>) => await named(`${name}: ${step}`, run) };
    await runTable(t, { stage: contractStage(api, () => {}), session }, cases);
    // Gone already where the table deleted it.
    await (await stage.request("DELETE", `/sessions/${session}`)).body?.cancel();
  }
});

async function named(what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (cause) {
    throw new Error(what, { cause });
  }
}
