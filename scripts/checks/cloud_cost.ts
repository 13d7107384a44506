/**
 * Prints the processor time of a text by `/v1` and of one by `/cloud`, in the API without a network, in turns:
 * `deno run -A scripts/checks/cloud_cost.ts`.
 */
import process from "node:process";
import { type ApiWorld, type CallOptions, withApi } from "../../tests/support/api_world.ts";

const TO = "34600111222";
const ROUNDS = 40;
const TEXTS_A_ROUND = 100;

/** Resolves to the microseconds of processor time that a request takes. */
async function costOf(world: ApiWorld, path: string, options: CallOptions): Promise<number> {
  const before = process.cpuUsage();
  for (let sent = 0; sent < TEXTS_A_ROUND; sent += 10) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => world.call("POST", path, options)));
    for (const answer of answers) if (!answer.ok) throw new Error(await answer.text());
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / TEXTS_A_ROUND;
}

await withApi(async (world) => {
  const sessionId = await world.linkedSession();
  const { phone } = await world.services.lines.get(world.account.id, sessionId);
  const api = () => costOf(world, "/v1/messages/send/text", { json: { sessionId, to: TO, text: "hello" } });
  const message = { messaging_product: "whatsapp", to: TO, type: "text", text: { body: "hello" } };
  const cloud = () => costOf(world, `/cloud/v21.0/${phone}/messages`, { json: message });
  const sums = { api: 0, cloud: 0 };
  for (let round = -ROUNDS / 4; round < ROUNDS; round++) {
    const costs = { api: await api(), cloud: await cloud() };
    if (round < 0) continue;
    sums.api += costs.api;
    sums.cloud += costs.cloud;
  }
  const shown = (sum: number) => `${Math.round(sum / ROUNDS)} µs`;
  console.log(`/v1 ${shown(sums.api)}, /cloud ${shown(sums.cloud)}: ${(sums.cloud / sums.api).toFixed(2)} times`);
});
