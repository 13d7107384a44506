/**
 * The stage of linking that the network brought in on 2026-07-28 (`companion_reg_refresh`): after the scan it asks for a
 * new secret in the QR. `tests/contract/sandbox_baileys_test.ts` shows that a client that does not handle it never links.
 */
import assert from "node:assert/strict";
import { startGatewayHere } from "../support/gateway_here.ts";
import { openStageWith, WITH_REFRESH, withStage } from "../support/stage.ts";

Deno.test("with the refresh stage a line links at the second QR", () =>
  withStage(() => openStageWith(startGatewayHere, WITH_REFRESH), async (stage) => {
    const line = await stage.linkLine("4915100000001");
    assert.equal((await stage.session(line)).status, "connected");
    const qrs = (await stage.events(line)).filter(({ event }) => event === "session.qr");
    assert.equal(qrs.length, 2);
    assert.notEqual(qrs[0].data.qr, qrs[1].data.qr);
  }));
