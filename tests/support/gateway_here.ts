/** A gateway inside of the test's own process, for what only a test may replace: its clock. */
import { startGateway } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { makeLog } from "../../src/ops/log.ts";
import { type Clock, makeIds, systemClock, systemRandom } from "../../src/runtime.ts";
import { confirmedBy } from "./runtime.ts";
import { onTestStore } from "./test_store.ts";
import type { Environment, RunningGateway } from "./gateway_process.ts";

/** One at a time: the library below keeps the network's root key in a global place. */
export async function startGatewayHere(
  env: Environment,
  { clock = systemClock }: { clock?: Clock } = {},
): Promise<RunningGateway> {
  const config = readConfig({ ...onTestStore(env), PALOMA_PORT: "0" });
  let written = "";
  const log = makeLog("trace", { destination: { write: (line: string) => void (written += line) } });
  const runtime = {
    clock,
    confirmed: confirmedBy(clock),
    random: systemRandom,
    ids: makeIds(clock, systemRandom),
    log,
  };
  const gateway = await startGateway({ config, runtime });
  return {
    baseUrl: gateway.baseUrl,
    log: () => written,
    async stop() {
      await gateway.stop();
      return 0;
    },
  };
}
