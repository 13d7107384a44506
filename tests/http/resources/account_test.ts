import assert from "node:assert/strict";
import { type ApiWorld, type CallOptions, withApi } from "../../support/api_world.ts";

const account = (world: ApiWorld, options: CallOptions = {}) => world.call("GET", "/v1/account", options);

Deno.test("what is used and left of a quota goes with the messages and the day", () =>
  withApi(async (world) => {
    const sessionId = await world.linkedSession();
    const quota = async () => {
      const { data: { used, remaining } } = await (await account(world)).json();
      return [used, remaining];
    };
    assert.deepEqual(await quota(), [{ daily: 0, monthly: 0 }, { daily: 3, monthly: 100 }]);
    for (const text of ["one", "two"]) {
      await world.call("POST", "/v1/messages/send/text", { json: { sessionId, to: "34600111222", text } });
    }
    assert.deepEqual(await quota(), [{ daily: 2, monthly: 2 }, { daily: 1, monthly: 98 }]);
    await world.runtime.clock.advance(24 * 60 * 60 * 1000);
    assert.equal((await quota())[0].daily, 0);
  }, { plan: { daily: 3, monthly: 100 } }));
