/** A gateway inside of the test's own process, for what only a test may replace: its clock, or the engine of its network. */
import { startGateway } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { makeLog } from "../../src/ops/log.ts";
import { type Clock, makeIds, systemClock, systemRandom } from "../../src/runtime.ts";
import { onTestStore } from "./test_store.ts";
import type { Environment, RunningGateway } from "./gateway_process.ts";

export interface HereOptions extends Pick<Parameters<typeof startGateway>[0], "openNetwork"> {
  clock?: Clock;
}

/** One at a time: the library below keeps the network's root key in a global place. */
export async function startGatewayHere(env: Environment, options: HereOptions = {}): Promise<RunningGateway> {
  const config = readConfig({ ...onTestStore(env), PALOMA_PORT: "0" });
  let written = "";
  const log = makeLog("trace", { destination: { write: (line: string) => void (written += line) } });
  const { clock = systemClock, openNetwork } = options;
  const runtime = { clock, random: systemRandom, ids: makeIds(clock, systemRandom), log };
  const gateway = await startGateway({ config, runtime, openNetwork });
  return {
    baseUrl: gateway.baseUrl,
    log: () => written,
    async stop() {
      await gateway.stop();
      return 0;
    },
  };
}
