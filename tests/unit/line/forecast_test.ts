import assert from "node:assert/strict";
import { Forecast } from "../../../src/line/forecast.ts";
import type { Kv } from "../../../src/store/kv.ts";
import { ACCOUNT, connectedWorld } from "../../support/line_world.ts";

const PAUSE_MS = 60_000;

Deno.test("a message that ends while the queue is read is not shown", async () => {
  const world = await connectedWorld({ delays: { minMs: PAUSE_MS, maxMs: PAUSE_MS } });
  await world.accept();
  await world.clock.advance(0);
  const [first, second, third] = [await world.accept(), await world.accept(), await world.accept()];
  /** Cancels the second message between the reads of its place and of itself. */
  const racing = new Proxy<Kv>(world.kv, {
    get: (kv, name: keyof Kv) =>
      name === "getMany"
        ? async (wanted: Parameters<Kv["getMany"]>[0]) => {
          await world.queued.cancel(ACCOUNT, second!.id);
          return await kv.getMany(wanted);
        }
        : (kv[name] as () => unknown).bind(kv),
  });
  const shown = await new Forecast({ kv: racing, clock: world.clock, accounts: world.accounts }).queue(
    ACCOUNT,
    "ses_1",
    {
      limit: 10,
    },
  );
  assert.deepEqual(shown.map(({ message, place }) => [message.id, place]), [[first!.id, 1], [third!.id, 2]]);
  await world.supervisor.stop();
});
