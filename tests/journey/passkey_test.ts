/** Linking an account that has a passkey, over HTTP alone: the sandbox's authenticator signs as the owner's browser would. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { startGatewayHere } from "../support/gateway_here.ts";
import type { RunningGateway } from "../support/gateway_process.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { type LinkedLine, onStage, openStageWith, type Stage, WITH_REFRESH, withStage } from "../support/stage.ts";
import { ASSERTION } from "../support/api_calls.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";
/** The simulated network's. */
const CHALLENGE_LIFETIME_MS = 600_000;

async function createLine(stage: Stage<RunningGateway>, pairingPhone?: string): Promise<LinkedLine> {
  await stage.control.call("POST", "/phones", { number: LINE, passkey: true });
  return await createSession(stage, pairingPhone);
}

async function createSession(stage: Stage<RunningGateway>, pairingPhone?: string): Promise<LinkedLine> {
  const { data } = await stage.api.call("POST", "/sessions", { name: "With a passkey", pairingPhone });
  return { sessionId: data._id, number: LINE };
}

const linking = (stage: Stage<RunningGateway>, { sessionId }: LinkedLine) =>
  stage.api.call("GET", `/sessions/${sessionId}/qr`);

/** Scans what the gateway shows until the network demands the passkey. */
async function scan(stage: Stage<RunningGateway>, line: LinkedLine): Promise<void> {
  await until(async () => {
    const { qr } = await linking(stage, line);
    if (!qr) return null;
    const { status } = await stage.control.call("POST", `/phones/${LINE}/scan`, { qr });
    return status === "passkey" ? true : null;
  }, "the demand for a passkey");
}

async function typeCode(stage: Stage<RunningGateway>, line: LinkedLine): Promise<void> {
  const { pairingCode: code } = await until(async () => {
    const shown = await linking(stage, line);
    return shown.pairingCode ? shown : null;
  }, "a pairing code");
  const type = (code: string) => stage.control.call("POST", `/phones/${LINE}/enter-code`, { code });
  await assert.rejects(type(code === "ABCDEFGH" ? "HGFEDCBA" : "ABCDEFGH"), /answered 400/);
  assert.equal((await type(code)).status, "passkey");
}

/** What is asked for, once it is another than `last`. */
function asked(stage: Stage<RunningGateway>, { sessionId }: LinkedLine, stageName: string, last?: Json): Promise<Json> {
  return until(async () => {
    const answer = await stage.request("GET", `/sessions/${sessionId}/passkey`);
    if (answer.status === 404) return void await answer.body?.cancel();
    const { data } = await answer.json();
    return data.stage === stageName && data.options?.challenge !== last?.options.challenge || !data.options
      ? data
      : null;
  }, `the passkey's stage ${stageName}`);
}

const sign = async (stage: Stage<RunningGateway>, options: Json): Promise<Json> =>
  (await stage.control.call("POST", `/phones/${LINE}/passkey/sign`, { options })).assertion;

async function give(stage: Stage<RunningGateway>, { sessionId }: LinkedLine, assertion: Json): Promise<Response> {
  return await stage.request("POST", `/sessions/${sessionId}/passkey`, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ assertion }),
  });
}

async function expect(answer: Response, status: number, code: string): Promise<Json> {
  const body = await answer.json();
  assert.deepEqual([answer.status, body.code], [status, code], JSON.stringify(body));
  return body;
}

async function sends(stage: Stage<RunningGateway>, line: LinkedLine): Promise<void> {
  await stage.addPhone(ANA);
  const text = "Sent from a line that was linked with a passkey";
  await stage.status(await stage.sendText(line, ANA, text), "sent");
  await stage.arrival(ANA, (message) => message.text === text);
}

for (const [title, code, begin] of [["a QR", undefined, scan], ["a code", LINE, typeCode]] as const) {
  onStage(
    `an account with a passkey is linked by ${title}: the owner signs, and nobody compares codes`,
    async (stage) => {
      const line = await createLine(stage, code);
      assert.equal((await stage.request("GET", `/sessions/${line.sessionId}/passkey`)).status, 404);
      await begin(stage, line);
      const { options, expiresAt } = await asked(stage, line, "required");
      assert.equal(options.rpId, "whatsapp.com");
      const shown = await stage.session(line);
      assert.deepEqual(shown.passkey, { stage: "required", expiresAt });
      assert.match(shown.reason, /passkey/);
      assert.equal((await linking(stage, line)).qr, null);

      const answer = await give(stage, line, await sign(stage, options));
      assert.equal(answer.status, 200, await answer.clone().text());
      assert.equal((await answer.json()).data.passkey, null);
      assert.equal((await stage.sessionStatus(line, "connected")).passkey, null);
      await sends(stage, line);
      const events = (await stage.events(line)).filter(({ event }) => event === "session.passkey");
      assert.deepEqual(events.map(({ data }) => data), [{ stage: "required", expiresAt }]);
    },
    WITH_REFRESH,
  );
}

onStage(
  "a signature that is none, of another challenge or forged is refused, and the next try links",
  async (stage) => {
    const line = await createLine(stage);
    await expect(await give(stage, line, ASSERTION), 409, "passkey_not_requested");
    await scan(stage, line);
    const first = await asked(stage, line, "required");
    for (const none of [null, {}, { ...ASSERTION, rawId: "not base64!" }, { ...ASSERTION, response: {} }]) {
      await expect(await give(stage, line, none), 400, "validation_failed");
    }
    const confirm = await stage.request("POST", `/sessions/${line.sessionId}/passkey/confirm`);
    await expect(confirm, 409, "passkey_not_requested");

    const other = await sign(stage, { ...first.options, challenge: "b3RoZXI" });
    const refused = await expect(await give(stage, line, other), 422, "passkey_refused");
    assert.match(refused.detail, /another challenge/);
    assert.equal((await stage.session(line)).reason, refused.detail);

    const good = await sign(stage, first.options);
    const { signature } = good.response;
    const forged = { ...good, response: { ...good.response, signature: signature.slice(0, -8) + "AAAAAAAA" } };
    const refusedByNetwork = await expect(await give(stage, line, forged), 422, "passkey_refused");
    assert.match(refusedByNetwork.detail, /401/);
    assert.equal((await stage.session(line)).reason, refusedByNetwork.detail);

    const next = await asked(stage, line, "required", first);
    assert.equal((await give(stage, line, await sign(stage, next.options))).status, 200);
    await stage.sessionStatus(line, "connected");
    await sends(stage, line);
  },
  WITH_REFRESH,
);

Deno.test("without the handoff proof the owner compares codes; meanwhile a second device is refused, and links later", async () => {
  const clock = new LeapClock();
  const open = () =>
    openStageWith((env) => startGatewayHere(env, { clock }), {
      network: { refresh: true, passkeyLifetimeMs: 30 * 60_000 },
    });
  await withStage(open, async (stage) => {
    /** The key of the proof is good for five minutes; these challenges for longer. */
    const outlastProof = () => clock.leap(5 * 60_000);
    const phone = async () => (await stage.control.call("GET", `/phones/${LINE}`)).passkey;
    const first = await createLine(stage);
    await scan(stage, first);
    const assertion = await sign(stage, (await asked(stage, first, "required")).options);
    outlastProof();
    assert.equal((await give(stage, first, assertion)).status, 200);
    const shown = await asked(stage, first, "confirm");
    assert.match(shown.code, /^[0-9A-Z]{4}-[0-9A-Z]{4}$/);
    assert.deepEqual([shown.options, await phone()], [null, { stage: "confirm", code: shown.code }]);
    assert.equal((await stage.session(first)).passkey.stage, "confirm");

    const second = await createSession(stage);
    await scan(stage, second);
    const demand = await asked(stage, second, "required");
    const refused = await expect(
      await give(stage, second, await sign(stage, demand.options)),
      422,
      "passkey_refused",
    );
    assert.match(refused.detail, /409/);
    assert.equal((await stage.session(second)).reason, refused.detail);
    const { options } = await asked(stage, second, "required", demand);

    // The first device's code was another, say: nobody confirms it.
    outlastProof();
    await until(async () => {
      const { status, reason } = await stage.session(first);
      return status === "qr" && /confirmed/.test(reason) ? true : null;
    }, "the first device's next QR, with why its exchange failed");
    assert.equal((await give(stage, second, await sign(stage, options))).status, 200);
    const { code } = await asked(stage, second, "confirm");
    assert.deepEqual(await phone(), { stage: "confirm", code });
    await stage.api.call("POST", `/sessions/${second.sessionId}/passkey/confirm`);
    assert.notEqual((await stage.session(second)).status, "connected", "the phone's owner has not confirmed yet");
    await stage.control.call("POST", `/phones/${LINE}/passkey/confirm`);
    await stage.sessionStatus(second, "connected");
    await sends(stage, second);
  });
});

onStage("a gateway that was killed while a passkey was asked for begins the link anew", async (stage) => {
  const line = await createLine(stage);
  await scan(stage, line);
  const { options } = await asked(stage, line, "required");
  const assertion = await sign(stage, options);
  await stage.gateway.kill();
  await stage.gateway.start();
  await expect(await give(stage, line, assertion), 409, "passkey_not_requested");
  await scan(stage, line);
  const next = await asked(stage, line, "required");
  assert.equal((await give(stage, line, await sign(stage, next.options))).status, 200);
  await stage.sessionStatus(line, "connected");
}, WITH_REFRESH);

Deno.test("a challenge that ran out is replaced by a new QR, which links", async () => {
  const clock = new LeapClock();
  const open = () => openStageWith((env) => startGatewayHere(env, { clock }), { network: { refresh: true, clock } });
  await withStage(open, async (stage) => {
    const line = await createLine(stage);
    await scan(stage, line);
    const { options } = await asked(stage, line, "required");
    const late = await sign(stage, options);
    clock.leap(CHALLENGE_LIFETIME_MS);
    await until(async () => (await stage.session(line)).status === "qr", "a new QR");
    await expect(await give(stage, line, late), 409, "passkey_not_requested");
    await scan(stage, line);
    const next = await asked(stage, line, "required");
    assert.equal((await give(stage, line, await sign(stage, next.options))).status, 200);
    await stage.sessionStatus(line, "connected");
  });
});

Deno.test("a signature that is accepted and leads to nothing is asked for again without the proof, and then links", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env, { clock }), WITH_REFRESH), async (stage) => {
    const line = await createLine(stage);
    await scan(stage, line);
    const first = await asked(stage, line, "required");
    await stage.control.call("POST", "/faults", { line: LINE, kind: "no_continuation", count: 10 });
    assert.equal((await give(stage, line, await sign(stage, first.options))).status, 200);
    clock.leap(60_000);
    const next = await asked(stage, line, "required", first);
    assert.match((await stage.session(line)).reason, /phone did not answer. Sign once more/);
    assert.equal((await give(stage, line, await sign(stage, next.options))).status, 200);
    // Without the proof the owner compares codes.
    await asked(stage, line, "confirm");
    await stage.api.call("POST", `/sessions/${line.sessionId}/passkey/confirm`);
    await stage.control.call("POST", `/phones/${LINE}/passkey/confirm`);
    await stage.sessionStatus(line, "connected");
  });
});
