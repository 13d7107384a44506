/** A gateway whose root key is not the network's: the network could be anybody's. */
import assert from "node:assert/strict";
import { Curve } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { onStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** Pino's number of the level. */
const WARN = 40;
const strangeRoot = Buffer.from(Curve.generateKeyPair().public).toString("hex");

onStage("a gateway does not link on a network of another root key, and says why", async (stage) => {
  const { api } = stage;
  const { data: { _id } } = await api.call("POST", "/sessions", { name: "Office" });
  // Twice: it comes back by itself, and is refused again.
  const refusals = async () =>
    (await stage.logOf({ sessionId: _id, number: "" })).filter(({ kind }) => kind === "untrusted");
  await until(async () => (await refusals()).length > 1, "the second refusal in the log");
  const session = (await api.call("GET", `/sessions/${_id}/status`)).data;
  assert.equal(session.status, "initializing");
  assert.match(session.reason, /did not prove that it is the network/);
  assert.equal((await api.call("GET", `/sessions/${_id}/qr`)).qr, null);
  for (const { level, lineId, reason } of await refusals()) {
    assert.deepEqual([level, lineId, reason], [WARN, _id, session.reason]);
  }
}, { env: { PALOMA_WHATSAPP_ROOT_KEY: strangeRoot } });
