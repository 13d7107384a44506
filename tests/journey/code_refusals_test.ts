/** Links by code that the network refuses, ends or takes over: each is shown, and the next code links. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { startGatewayHere } from "../support/gateway_here.ts";
import type { RunningGateway } from "../support/gateway_process.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { type LinkedLine, onStage, openStageWith, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
/** The simulated network's. */
const CODE_LIFETIME_MS = 180_000;

type AnyStage = Stage<RunningGateway>;

async function createByCode(stage: AnyStage): Promise<LinkedLine> {
  await stage.addPhone(LINE);
  const { data } = await stage.api.call("POST", "/sessions", { name: "By code", pairingPhone: LINE });
  return { sessionId: data._id, number: LINE };
}

/** The code that is shown, once it is another one than `last`. */
const nextCode = (stage: AnyStage, { sessionId }: LinkedLine, last: string | null = null): Promise<string> =>
  until(async () => {
    const { pairingCode } = await stage.api.call("GET", `/sessions/${sessionId}/qr`);
    return pairingCode !== last && pairingCode;
  }, "a code");

const type = (stage: AnyStage, code: string): Promise<Json> =>
  stage.control.call("POST", `/phones/${LINE}/enter-code`, { code });

const fault = (stage: AnyStage, kind: string, more: Json = {}) =>
  stage.control.call("POST", "/faults", { line: LINE, kind, ...more });

async function links(stage: AnyStage, line: LinkedLine, code: string): Promise<void> {
  assert.equal((await type(stage, code)).status, "linked");
  await stage.sessionStatus(line, "connected");
}

onStage("a link that the network refuses after the code was typed is told beside the next code", async (stage) => {
  const line = await createByCode(stage);
  const code = await nextCode(stage, line);
  await fault(stage, "refuse_finish");
  await assert.rejects(type(stage, code), /answered 400/);
  const next = await nextCode(stage, line, code);
  assert.match((await stage.session(line)).reason, /refused the link by this code \(error 400\)/);
  await links(stage, line, next);
});

onStage("a refused code says what the owner can do, and when", async (stage) => {
  await stage.addPhone(LINE);
  await fault(stage, "refuse_code", { error: 452 });
  const { data } = await stage.api.call("POST", "/sessions", { name: "By code", pairingPhone: LINE });
  const line = { sessionId: data._id, number: LINE };
  for (
    const [error, more, reason] of [
      [429, { backoff: 5400 }, /linked by QR \(error 452\)\.$/],
      [403, {}, /no more codes for now.*\(error 429\); it may ask again in 90 min\.$/],
      [null, {}, /does not let this number be linked by code \(error 403\)\.$/],
    ] as const
  ) {
    await until(async () => reason.test((await stage.session(line)).reason ?? ""), String(reason));
    if (error !== null) await fault(stage, "refuse_code", { error, ...more });
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
  }
  await links(stage, line, await nextCode(stage, line));
});

Deno.test("a code that only a person may replace is not replaced until somebody asks", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env), { network: { clock } }), async (stage) => {
    const line = await createByCode(stage);
    const code = await nextCode(stage, line);
    await fault(stage, "manual_refresh");
    clock.leap(CODE_LIFETIME_MS);
    assert.match((await stage.sessionStatus(line, "disconnected")).reason, /ask for a new one/);
    assert.equal((await stage.api.call("GET", `/sessions/${line.sessionId}/qr`)).pairingCode, null);
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    await links(stage, line, await nextCode(stage, line, code));
  });
});

Deno.test("a phone that does not complete the link within a minute is told, and the next code links", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env, { clock })), async (stage) => {
    const line = await createByCode(stage);
    const code = await nextCode(stage, line);
    const wrong = code === "ABCDEFGH" ? "HGFEDCBA" : "ABCDEFGH";
    await assert.rejects(type(stage, wrong), /answered 400/);
    clock.leap(60_000);
    const next = await nextCode(stage, line, code);
    assert.match((await stage.session(line)).reason, /did not complete the link/);
    await links(stage, line, next);
  });
});
