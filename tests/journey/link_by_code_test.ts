/** Linking by a code that the owner types on the phone, over HTTP alone. */
import assert from "node:assert/strict";
import { startGatewayHere } from "../support/gateway_here.ts";
import type { RunningGateway } from "../support/gateway_process.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { onStage, openStageWith, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";
/** The simulated network's. */
const CODE_LIFETIME_MS = 180_000;

/** How far linking is, once it shows a code other than `last`. */
function nextCode(stage: Stage<RunningGateway>, sessionId: string, last: string | null = null) {
  return until(async () => {
    const linking = await stage.api.call("GET", `/sessions/${sessionId}/qr`);
    return linking.pairingCode && linking.pairingCode !== last ? linking : null;
  }, "a pairing code");
}

async function createByCode(stage: Stage<RunningGateway>) {
  await stage.addPhone(LINE);
  const { data } = await stage.api.call("POST", "/sessions", { name: "By code", pairingPhone: LINE });
  return { sessionId: data._id, number: LINE };
}

onStage("a line is linked by the code that the API shows, and sends", async (stage) => {
  const { api, control } = stage;
  await stage.addPhone(ANA);
  const line = await createByCode(stage);
  const { status, qr, pairingCode } = await nextCode(stage, line.sessionId);
  assert.deepEqual({ status, qr }, { status: "pairing", qr: null });
  assert.match(pairingCode, /^[0-9A-Z]{8}$/);

  const wrong = pairingCode === "ABCDEFGH" ? "HGFEDCBA" : "ABCDEFGH";
  await assert.rejects(control.call("POST", `/phones/${LINE}/enter-code`, { code: wrong }), /answered 400/);
  assert.equal((await control.call("POST", `/phones/${LINE}/enter-code`, { code: pairingCode })).status, "linked");
  assert.equal((await stage.sessionStatus(line, "connected")).phone, LINE);
  assert.deepEqual(await api.call("GET", `/sessions/${line.sessionId}/qr`), {
    status: "connected",
    qr: null,
    pairingCode: null,
  });

  const messageId = await stage.sendText(line, ANA, "Sent from a line that was linked by code");
  await stage.status(messageId, "sent");
  await stage.arrival(ANA, ({ text }) => text === "Sent from a line that was linked by code");
  assert.ok((await stage.events(line)).every(({ event }) => event !== "session.qr"), "a code link shows no QR");
});

Deno.test("a code that ran out is replaced on the same connection, and the new one links", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env), { network: { clock } }), async (stage) => {
    const line = await createByCode(stage);
    const first = await nextCode(stage, line.sessionId);
    clock.leap(CODE_LIFETIME_MS);
    const second = await nextCode(stage, line.sessionId, first.pairingCode);
    const typed = { code: second.pairingCode };
    assert.equal((await stage.control.call("POST", `/phones/${LINE}/enter-code`, typed)).status, "linked");
    await stage.sessionStatus(line, "connected");
  });
});

Deno.test("a code is good for longer than the six refs of a QR together", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env, { clock })), async (stage) => {
    const line = await createByCode(stage);
    const { pairingCode: code } = await nextCode(stage, line.sessionId);
    // The refs live 60 s and five times 20 s.
    for (let passed = 0; passed < 175_000; passed += 35_000) {
      clock.leap(35_000);
      const { status, pairingCode } = await stage.api.call("GET", `/sessions/${line.sessionId}/qr`);
      assert.deepEqual({ status, pairingCode }, { status: "pairing", pairingCode: code });
    }
    assert.equal((await stage.control.call("POST", `/phones/${LINE}/enter-code`, { code })).status, "linked");
    await stage.sessionStatus(line, "connected");
  });
});
