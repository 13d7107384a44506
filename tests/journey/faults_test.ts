/**
 * Each fault of the sandbox's control API on one line: what its status, queue, events and log say, how it comes back, and
 * that the other line of the same gateway never notices. A line that goes silent is in `half_open_test.ts`.
 */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { type LinkedLine, onSharedStage, onStage, type Run, type Stage, type StageOptions } from "../support/stage.ts";
import { until } from "../support/until.ts";

const REMOVED = "This device was removed from the account's linked devices.";

interface Scene extends Stage {
  line: LinkedLine;
  customer: string;
  /** Causes the fault on the line, while a text of the other line is on its way. */
  cause(fault: { kind: string; [option: string]: unknown }): Promise<void>;
  /** Ends what still holds of the line's faults. */
  lift(): Promise<void>;
  /** Sends a text of the line to the customer. */
  send(text: string): Promise<string>;
  /** Waits for the text; it must have come once. */
  arrives(text: string): Promise<Json>;
}

const onSharedLine = onSharedStage("faults of a line");

function onFault(name: string, run: (scene: Scene) => Promise<void>, options?: StageOptions): void {
  const play: Run = async (stage, [first, second, customer]) => {
    await stage.addPhone(customer);
    const [line, other] = await Promise.all([stage.linkLine(first), stage.linkLine(second)]);
    const meanwhile: Promise<void>[] = [];
    const scene: Scene = {
      ...stage,
      line,
      customer,
      async cause(fault) {
        await stage.control.call("POST", "/faults", { line: line.number, ...fault });
        const text = `the other line lives on, ${meanwhile.length}`;
        meanwhile.push(flows(stage, other, { customer, text }));
      },
      lift: async () => void await stage.control.call("DELETE", `/faults/${line.number}`),
      send: (text) => stage.sendText(line, customer, text),
      async arrives(text) {
        await stage.arrival(customer, (message) => message.text === text);
        const all = (await stage.inbox(customer)).filter((message) => message.text === text);
        assert.deepEqual(all.map(({ copies }) => copies), [1], `${text}: not once`);
        return all[0];
      },
    };
    await run(scene);
    await Promise.all(meanwhile);
    assert.deepEqual(transitions(await stage.events(other)), ["connected"], "the other line noticed");
    assert.deepEqual(await ends(stage, other), ["restart 515"], "the other line's connection ended");
  };
  if (options) onStage(name, play, options);
  else onSharedLine(name, play);
}

async function flows(
  stage: Stage,
  line: LinkedLine,
  { customer, text }: { customer: string; text: string },
): Promise<void> {
  const messageId = await stage.sendText(line, customer, text);
  await stage.arrival(customer, (message) => message.text === text);
  await stage.status(messageId, "sent");
}

/** What the events say of the session, as `connected` or `disconnected: why`. */
function transitions(events: Json[]): string[] {
  return events.flatMap(({ event, data }) => {
    if (event === "session.connected") return "connected";
    return event === "session.disconnected" ? `${data.status}: ${data.reason}` : [];
  });
}

/** How the line's connections ended, from the log; the first is the 515 that follows a link. */
async function ends(stage: Stage, line: LinkedLine): Promise<string[]> {
  return (await stage.logOf(line)).filter(({ msg }) => msg === "a line's connection ended")
    .map(({ kind, code }) => code === undefined || code === null ? kind : `${kind} ${code}`);
}

for (
  const [kind, end, reason] of [
    ["drop", "lost", "The connection to the network was lost."],
    ["unavailable", "unavailable 503", "The network is not available now."],
  ] as const
) {
  onFault(`${kind}: the line comes back by itself, what was sent meanwhile waits and leaves`, async (scene) => {
    const { line } = scene;
    await scene.cause({ kind, count: 1_000 }); // until it is lifted: however slow the machine, there is time to look
    assert.equal((await scene.sessionStatus(line, "disconnected")).reason, reason);
    const messageId = await scene.send("written while the line was away");
    const [waiting, ...more] = await scene.queue(line);
    assert.deepEqual(more, []);
    assert.deepEqual(waiting, {
      messageId,
      to: scene.customer,
      status: "queued",
      priority: "normal",
      position: 1,
      estimatedDeparture: null,
      waitsFor: { kind: "line", until: null },
    });

    await scene.lift();
    assert.equal((await scene.sessionStatus(line, "connected")).reason, null);
    await scene.status(messageId, "sent");
    await scene.arrives("written while the line was away");
    assert.deepEqual(await scene.queue(line), []);
    assert.deepEqual(transitions(await scene.events(line)), ["connected", `disconnected: ${reason}`, "connected"]);
    assert.deepEqual([...new Set(await ends(scene, line))], ["restart 515", end]);
  });
}

onFault("restart: the line logs in again at once", async (scene) => {
  const { line } = scene;
  await scene.cause({ kind: "restart" });
  const messageId = await scene.send("sent into the restart");
  await scene.status(messageId, "sent");
  await scene.arrives("sent into the restart");
  await scene.sessionStatus(line, "connected");
  assert.deepEqual(transitions(await scene.events(line)), [
    "connected",
    "disconnected: The network asked to connect again.",
    "connected",
  ]);
  assert.deepEqual(await ends(scene, line), ["restart 515", "restart 515"]);
});

onFault("replace: the line stays away until its owner asks, what is sent waits", async (scene) => {
  const { api, line } = scene;
  const reason = "Another client took over this link.";
  await scene.cause({ kind: "replace" });
  assert.equal((await scene.sessionStatus(line, "disconnected")).reason, reason);
  const messageId = await scene.send("written while another client had the link");
  await scene.cause({ kind: "unavailable" }); // would end the log-in of a line that fights back
  const [waiting] = await scene.queue(line);
  assert.deepEqual([waiting.messageId, waiting.status, waiting.estimatedDeparture], [messageId, "queued", null]);
  assert.deepEqual(await ends(scene, line), ["restart 515", "replaced 440"]);

  await api.call("POST", `/sessions/${line.sessionId}/reconnect`);
  await scene.status(messageId, "sent");
  await scene.arrives("written while another client had the link");
  assert.deepEqual(transitions(await scene.events(line)), ["connected", `disconnected: ${reason}`, "connected"]);
  assert.deepEqual(await ends(scene, line), ["restart 515", "replaced 440", "unavailable 503"]);
});

onFault("logout: the link is gone, what waits fails and says why, and a new QR links again", async (scene) => {
  const { api, control, line } = scene;
  const first = await scene.send("leaves at once");
  await scene.status(first, "sent");
  const second = await scene.send("waits for its pause");
  await scene.cause({ kind: "logout" });

  assert.equal((await scene.sessionStatus(line, "logged_out")).reason, REMOVED);
  await scene.status(second, "failed");
  const { data: history } = await api.call("GET", "/messages/history?status=failed");
  assert.deepEqual(history.map((item: Json) => [item.messageId, item.error.code]), [[second, "session_logged_out"]]);
  assert.deepEqual(await scene.queue(line), []);
  assert.deepEqual((await control.call("GET", `/phones/${line.number}`)).devices, []);
  const refused = await scene.request("POST", "/messages/send/text", {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ sessionId: line.sessionId, to: scene.customer, text: "to nowhere" }),
  });
  assert.deepEqual([refused.status, (await refused.json()).code], [409, "session_not_connected"]);

  const events = await scene.events(line);
  assert.deepEqual(transitions(events), ["connected", `logged_out: ${REMOVED}`]);
  assert.equal(events.find(({ event }) => event === "message.failed").data.error.code, "session_logged_out");
  assert.deepEqual(await ends(scene, line), ["restart 515", "logged_out 401"]);
  const [failed] = (await scene.logOf(line)).filter(({ msg }) => msg === "messages of a line were failed");
  assert.deepEqual([failed.count, failed.code], [1, "session_logged_out"]);

  await api.call("POST", `/sessions/${line.sessionId}/reconnect`);
  const { qr } = await until(async () => {
    const shown = await api.call("GET", `/sessions/${line.sessionId}/qr`);
    return shown.qr === null ? null : shown;
  }, "a QR");
  assert.match(qr, /^data:image\/png/);
}, { plan: { delayMinMs: 60_000, delayMaxMs: 60_000, daily: null } });

onFault("hold_acks: processing until the ack is there, and nothing overtakes", async (scene) => {
  const { line } = scene;
  await scene.cause({ kind: "hold_acks", seconds: 600 });
  const first = await scene.send("acknowledged late");
  const second = await scene.send("right behind it");
  await scene.arrives("acknowledged late");
  assert.deepEqual((await scene.queue(line)).map((m) => [m.messageId, m.status, m.position]), [
    [first, "processing", 1],
    [second, "queued", 2],
  ]);
  await scene.lift();
  await scene.status(second, "sent");
  await scene.arrives("right behind it");
  await scene.status(first, "sent");
  assert.equal((await wireOf(scene)).length, 2);
  assert.deepEqual(transitions(await scene.events(line)), ["connected"]);
  assert.deepEqual(await attempts(scene, line), ["sent", "sent"]);
});

onFault(
  "hold_acks, then drop: a message whose ack was lost is sent under its one id, and arrives once",
  async (scene) => {
    await scene.cause({ kind: "hold_acks", seconds: 600 });
    const messageId = await scene.send("its ack is lost");
    const { id } = await scene.arrives("its ack is lost");
    await scene.cause({ kind: "drop" });
    await scene.lift();
    await scene.status(messageId, "sent");
    await scene.arrives("its ack is lost");
    assert.deepEqual([...new Set((await wireOf(scene)).map((entry) => entry.id))], [id]);
    assert.equal((await attempts(scene, scene.line))[0], "unknown");
  },
);

onFault("nack: a final refusal fails the message at once, and the next one leaves", async (scene) => {
  const { api, line } = scene;
  await scene.cause({ kind: "nack", error: 479 });
  const refused = await scene.send("refused for good");
  const next = await scene.send("the one after it");
  await scene.status(refused, "failed");
  await scene.status(next, "sent");
  await scene.arrives("the one after it");
  assert.equal((await wireOf(scene)).length, 2);
  const { data: [failed] } = await api.call("GET", "/messages/history?status=failed");
  assert.deepEqual([failed.messageId, failed.error], [refused, {
    code: "refused",
    message: "The network refused the message (error 479).",
  }]);
  const failures = (await scene.events(line)).filter(({ event }) => event === "message.failed");
  assert.deepEqual(failures.map(({ data }) => data.messageId), [refused]);
  assert.equal((await scene.session(line)).status, "connected");
  assert.deepEqual(await attempts(scene, line), ["refused: refused", "sent"]);
});

onFault("nack: a passing refusal is tried again under the same id", async (scene) => {
  await scene.cause({ kind: "nack", error: 503 });
  const messageId = await scene.send("refused for now");
  await scene.status(messageId, "sent");
  const { id } = await scene.arrives("refused for now");
  assert.deepEqual((await wireOf(scene)).map((entry) => entry.id), [id, id]);
  assert.deepEqual(await attempts(scene, scene.line), ["retry", "sent"]);
});

onFault("duplicate: a message that the network delivers twice is one event", async (scene) => {
  const { control, line } = scene;
  await scene.cause({ kind: "duplicate" });
  await control.call("POST", `/phones/${scene.customer}/messages`, { to: line.number, text: "delivered twice" });
  await control.call("POST", `/phones/${scene.customer}/messages`, { to: line.number, text: "and the last one" });
  const received = await until(async () => {
    const all = (await scene.events(line)).filter(({ event }) => event === "message.received");
    return all.at(-1)?.data.text === "and the last one" ? all : null;
  }, "the last message in the feed");
  assert.deepEqual(received.map(({ data }) => data.text), ["delivered twice", "and the last one"]);
});

/** What came of the line's attempts to send, from the log. */
async function attempts(stage: Stage, line: LinkedLine): Promise<string[]> {
  return (await stage.logOf(line)).flatMap(({ outcome, code }) =>
    outcome ? [code ? `${outcome}: ${code}` : outcome] : []
  );
}

/** The line's message stanzas as the server saw them. */
function wireOf({ control, line }: Scene): Promise<Json[]> {
  return control.call("GET", `/wire?line=${line.number}`);
}
