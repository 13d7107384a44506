/** Lines that are connected and hear nothing: connected anew once, and then said so. */
import assert from "node:assert/strict";
import { startGatewayHere } from "../support/gateway_here.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { openStageWith, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";

Deno.test("a line that hears nothing, or nothing it can read, is connected anew once, and then says why", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env, { clock })), async (stage) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const path = `/sessions/${line.sessionId}`;
    const checking = { headers: { "content-type": "application/json" }, body: JSON.stringify({ number: ANA }) };
    const fault = (kind: string, count: number) => stage.control.call("POST", "/faults", { line: LINE, kind, count });
    const write = (text: string) => {
      stage.secrets.add(text);
      return stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text });
    };
    /** Time passes, in which the network answers pings, until it is so. */
    const passes = (isSo: () => Promise<boolean>, what: string) =>
      until(async () => {
        if (await isSo()) return true;
        // It hears from the network before more time passes: otherwise that would be a silence, which ends a connection.
        const answer = await stage.request("POST", `${path}/check-number`, checking);
        await answer.body?.cancel();
        if (answer.ok) clock.leap(10_000);
        return null;
      }, what);
    const isWell = () =>
      until(async () => {
        const { status, reason } = await stage.session(line);
        return status === "connected" && reason === null;
      }, "a line that is well");
    const ended = async () => (await stage.logOf(line)).filter(({ msg }) => msg === "a line's connection ended");

    await stage.api.call("POST", `${path}/disconnect`);
    await write("kept for a line that does not hear");
    await fault("deaf", 2);
    const before = (await ended()).length;
    await stage.api.call("POST", `${path}/reconnect`);
    await isWell();
    await passes(async () => (await ended()).length > before, "a new connection");
    assert.match((await ended()).at(-1)!.reason, /messages wait, and gives none/);
    const deaf = /messages wait, and gives none/;
    await passes(async () => {
      const { status, reason } = await stage.session(line);
      return status === "connected" && deaf.test(reason ?? "");
    }, "the reason of a line that is connected");
    assert.equal((await ended()).length, before + 1, "another connection would not help either");

    await fault("drop", 1);
    await isWell();
    await stage.event(line, ({ event, data }) => event === "message.received" && data.text.startsWith("kept"));

    await fault("garble", 10_000);
    for (let i = 0; i < 6; i++) await write(`nobody can read this (${i})`);
    await passes(async () => /can't be decrypted/.test((await stage.session(line)).reason ?? ""), "the reason");
    const reported = (await stage.events(line)).filter(({ event }) => event === "session.degraded");
    assert.deepEqual(reported.map(({ data }) => data.reason), [
      "The network says that messages wait, and gives none.",
      "What arrives can't be decrypted.",
    ]);
  });
});
