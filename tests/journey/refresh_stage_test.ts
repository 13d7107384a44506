/**
 * The stage of linking that the network brought in on 2026-07-28 (`companion_reg_refresh`): after the scan it asks for a
 * new secret in the QR. It is on in every other test; here is what happens to a gateway that does not handle it.
 */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { baileysNetwork } from "../../src/whatsapp/baileys/network.ts";
import { type HereOptions, startGatewayHere } from "../support/gateway_here.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { openStageWith, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
/** How long the network honours the first ref of a connection, and each of the five after it. */
const REF_LIVES_MS = [60_000, 20_000, 20_000, 20_000, 20_000, 20_000];

const linking = (options: HereOptions, run: Parameters<typeof withStage>[1]) =>
  withStage(() => openStageWith((env) => startGatewayHere(env, options)), run);

Deno.test("with the refresh stage a line links at the second QR", () =>
  linking({}, async (stage) => {
    const line = await stage.linkLine(LINE);
    assert.equal((await stage.session(line)).status, "connected");
    const qrs = (await stage.events(line)).filter(({ event }) => event === "session.qr");
    assert.equal(qrs.length, 2);
    assert.notEqual(qrs[0].data.qr, qrs[1].data.qr);
  }));

Deno.test("a gateway that leaves the refresh stage to the library never links", () => {
  const clock = new LeapClock();
  const openNetwork: HereOptions["openNetwork"] = (options) => baileysNetwork({ ...options, refreshHandled: false });
  return linking({ clock, openNetwork }, async (stage) => {
    const { api, control } = stage;
    await stage.addPhone(LINE);
    const { data } = await api.call("POST", "/sessions", { name: "Deaf to the refresh" });
    const answers: string[] = [];
    const seen = new Set<string>();
    for (const lifeMs of REF_LIVES_MS) {
      const { qr }: Json = await until(async () => {
        const linking = await api.call("GET", `/sessions/${data._id}/qr`);
        return linking.qr && !seen.has(linking.qr) ? linking : null;
      }, "a QR that was not seen before");
      seen.add(qr);
      answers.push((await control.call("POST", `/phones/${LINE}/scan`, { qr })).status);
      clock.leap(lifeMs);
    }
    // Every later QR carries the secret that is spent; the phone asks for another each time, and nothing comes.
    assert.deepEqual(answers, REF_LIVES_MS.map(() => "refresh"));
    assert.deepEqual((await control.call("GET", `/phones/${LINE}`)).devices, []);
    assert.notEqual((await api.call("GET", `/sessions/${data._id}/status`)).data.status, "connected");
  });
});
