/** A line's life as its owner leads it: pause, reconnect, log out, delete, and the gateway's own restart. */
import assert from "node:assert/strict";
import { type Json, linkByQr } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { accepted, post, refused } from "../support/api_calls.ts";
import { type LinkedLine, onSharedStage, onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const onLine = onSharedStage("a line's life");

/** The session when it has come where the action leads; the answer itself waits for that no longer than 5 s. */
async function act(stage: Stage, line: LinkedLine, [action, status]: readonly [string, string]): Promise<Json> {
  await stage.api.call("POST", `/sessions/${line.sessionId}/${action}`);
  return await stage.sessionStatus(line, status);
}

const PAUSE = ["disconnect", "disconnected"] as const;
const RECONNECT = ["reconnect", "connected"] as const;

/** The phone's devices, once none is available: whoever is keeps the phone from ringing. */
const devicesOf = async ({ control }: Stage, number: string): Promise<Json[]> =>
  await until(async () => {
    const { devices } = await control.call("GET", `/phones/${number}`);
    return devices.every(({ available }: Json) => !available) ? devices : null;
  }, "the line to let the phone ring");

/** How many QRs the line has shown in its life. */
const qrsOf = async (stage: Stage, line: LinkedLine): Promise<number> =>
  (await stage.events(line)).filter(({ event }) => event === "session.qr").length;

onLine(
  "a paused line keeps its link; what is sent meanwhile leaves when it is reconnected, without a QR",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const [device] = await devicesOf(stage, LINE);

    assert.equal((await act(stage, line, PAUSE)).reason, "The owner disconnected it.");
    const messageId = await stage.sendText(line, ANA, "written while the line was paused");
    const [waiting] = await stage.queue(line);
    assert.deepEqual([waiting.messageId, waiting.status, waiting.estimatedDeparture], [messageId, "queued", null]);
    assert.deepEqual(await stage.inbox(ANA), []);

    await act(stage, line, RECONNECT);
    await stage.status(messageId, "sent");
    await stage.arrival(ANA, ({ text }) => text === "written while the line was paused");
    assert.deepEqual(await devicesOf(stage, LINE), [device]);
    assert.equal(await qrsOf(stage, line), 1);
  },
);

onLine(
  "a message that could not leave in its time fails as expired, and those behind it live on",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    await act(stage, line, PAUSE);
    const { messageId } = await stage.api.call("POST", "/messages/send/text", {
      sessionId: line.sessionId,
      to: ANA,
      text: "only worth something within a second",
      ttl: 1,
    });
    const next = await stage.sendText(line, ANA, "worth something tomorrow too");
    await stage.status(messageId, "failed");
    const { data: [failed] } = await stage.api.call("GET", "/messages/history?status=failed");
    assert.deepEqual([failed.messageId, failed.error.code], [messageId, "expired"]);
    assert.deepEqual((await stage.queue(line)).map((message) => message.messageId), [next]);
    await act(stage, line, RECONNECT);
    await stage.status(next, "sent");
    await stage.arrival(ANA, ({ text }) => text === "worth something tomorrow too");
    assert.deepEqual((await stage.inbox(ANA)).map(({ text }) => text), ["worth something tomorrow too"]);
  },
);

onLine(
  "a log-out unlinks the device on the phone; a reconnect shows a new QR, which links again",
  async (stage, [LINE]) => {
    const { api, control } = stage;
    const line = await stage.linkLine(LINE);
    assert.equal((await devicesOf(stage, LINE)).length, 1);

    const out = await act(stage, line, ["logout", "logged_out"]);
    assert.deepEqual([out.reason, out.phone], ["The owner logged it out.", LINE]);
    assert.deepEqual(await devicesOf(stage, LINE), []);
    assert.deepEqual(await api.call("GET", `/sessions/${line.sessionId}/qr`), {
      status: "logged_out",
      qr: null,
      pairingCode: null,
    });

    await act(stage, line, ["reconnect", "qr"]);
    assert.ok((await qrsOf(stage, line)) > 1, "no new QR");
    await linkByQr(systemClock, { api, control, sessionId: line.sessionId, phone: LINE });
    assert.equal((await devicesOf(stage, LINE)).length, 1);
  },
);

onLine(
  "what a session's last number sent, received and blocked means nothing to its next number",
  async (stage, [LINE, ANA, NEXT]) => {
    const { api, control } = stage;
    await stage.addPhone(ANA);
    await stage.addPhone(NEXT);
    const line = await stage.linkLine(LINE);
    const { id: gid } = await control.call("POST", "/groups", { subject: "Team", participants: [ANA, LINE, NEXT] });
    const path = `/sessions/${line.sessionId}`;
    await api.call("PUT", `${path}/contacts/${NEXT}/block`);
    const blocked = async () => (await api.call("GET", `${path}/blocklist`)).data.length;
    assert.equal(await blocked(), 1);
    const sent = new Map<string, string>();
    for (const to of [ANA, gid]) sent.set(to, await stage.sendText(line, to, "from the first number"));
    for (const messageId of sent.values()) await stage.status(messageId, "sent");
    await control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "to the first number" });
    const { data: heard } = await stage.event(line, ({ event }) => event === "message.received");

    await act(stage, line, ["logout", "logged_out"]);
    await act(stage, line, ["reconnect", "qr"]);
    await linkByQr(systemClock, { api, control, sessionId: line.sessionId, phone: NEXT });
    const send = (kind: string, json: object) => post(stage, `/messages/send/${kind}`, { json });
    for (const [to, messageId] of sent) {
      const sends = { text: { to, text: "as I said", replyTo: messageId }, reaction: { messageId, emoji: "👍" } };
      for (const [kind, json] of Object.entries(sends)) {
        const { body } = await refused(send(kind, json), 400, "validation_failed");
        assert.match(JSON.stringify(body), /sent from another number/);
      }
    }
    await refused(send("reaction", { messageId: heard.messageId, emoji: "👍" }), 404, "not_found");
    await refused(
      post(stage, `${path}/chats/${heard.chat}/read`, { json: { messageId: heard.messageId } }),
      404,
      "not_found",
    );

    assert.equal(await blocked(), 0);
    const messageId = await stage.sendText(line, ANA, "from the next number");
    await stage.status(messageId, "sent");
    const { id } = await stage.arrival(ANA, ({ text }) => text === "from the next number");
    await accepted(send("reaction", { messageId, emoji: "👍" }));
    await stage.arrival(ANA, ({ reaction }) => reaction?.id === id);
  },
);

onStage(
  "a deleted session is unlinked on the phone, its messages fail, and its place is free",
  async (stage, [LINE, ANA]) => {
    const { api } = stage;
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    await act(stage, line, PAUSE);
    const messageId = await stage.sendText(line, ANA, "never to leave this gateway");

    // A paused line comes up once more, so that the phone does not go on listing a dead device.
    assert.equal((await api.call("DELETE", `/sessions/${line.sessionId}`)).data._id, line.sessionId);
    assert.equal((await stage.request("GET", `/sessions/${line.sessionId}/status`)).status, 404);
    assert.deepEqual((await api.call("GET", "/sessions")).data, []);
    await stage.status(messageId, "failed");
    await until(async () => (await devicesOf(stage, LINE)).length === 0, "the phone to forget the device");
    const { data: [failed] } = await api.call("GET", "/messages/history?status=failed");
    assert.equal(failed.error.code, "session_deleted");
    assert.equal(
      (await stage.request("POST", "/sessions", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: "the next one" }),
      })).status,
      201,
    );
  },
  { plan: { sessions: 1, daily: null, delayMinMs: 0, delayMaxMs: 0 } },
);

onStage(
  "after a restart of the gateway every line is back without a QR, a paused one stays paused",
  async (stage, [LINE, ANA, SECOND, THIRD]) => {
    await stage.addPhone(ANA);
    const numbers = [LINE, SECOND, THIRD];
    const [first, second, third] = await Promise.all(numbers.map((number) => stage.linkLine(number)));
    await act(stage, third!, PAUSE);
    const messageId = await stage.sendText(third!, ANA, "waits through the restart");

    assert.equal(await stage.gateway.stop(), 0);
    await stage.gateway.start();
    await Promise.all([first!, second!].map((line) => stage.sessionStatus(line, "connected")));
    assert.equal((await stage.session(third!)).status, "disconnected");
    await stage.status(await stage.sendText(second!, ANA, "sent after the restart"), "sent");
    assert.equal((await stage.api.call("GET", `/messages/${messageId}/status`)).status, "queued");

    await act(stage, third!, RECONNECT);
    await stage.status(messageId, "sent");
    for (const line of [first!, second!, third!]) assert.equal(await qrsOf(stage, line), 1);
  },
);

onStage(
  "a line that is dropped while it is being linked goes on, and the API always shows a QR that works",
  async (stage, [LINE]) => {
    const { api, control } = stage;
    await stage.addPhone(LINE);
    const { data } = await api.call("POST", "/sessions", { name: "Interrupted" });
    await until(async () => (await api.call("GET", `/sessions/${data._id}/qr`)).qr, "a QR");
    await stage.gateway.kill();
    await stage.gateway.start();
    await linkByQr(systemClock, { api, control, sessionId: data._id, phone: LINE });
    assert.equal((await devicesOf(stage, LINE)).length, 1);
  },
);
