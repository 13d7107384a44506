/** The faults of the control API, as Baileys as it comes meets them: each on one line while another never notices. */
import assert from "node:assert/strict";
import { startNetwork } from "../../src/sandbox/network.ts";
import { type BareClient, sendText, untilClosed } from "../support/bare_baileys.ts";
import { ANA, LINE, onLines } from "../support/two_lines.ts";
import { until } from "../support/until.ts";
import { silentRuntime } from "../support/runtime.ts";

const send = (client: BareClient, text: string, messageId?: string) =>
  sendText(client, `${ANA}@s.whatsapp.net`, text, messageId);

for (
  const [kind, code, stays] of [
    ["drop", 428, true],
    ["replace", 440, true],
    ["restart", 515, true],
    ["unavailable", 503, true],
    ["logout", 401, false],
  ] as const
) {
  onLines(`${kind} closes an open line with ${code} once`, async ({ network, line, cause }) => {
    const closed = untilClosed(line.socket);
    await cause({ kind });
    assert.equal(await closed, code);
    assert.equal(network.switchboard.directory.account(LINE)!.companions.has(1), stays);
    if (stays) await line.reconnect();
  });

  onLines(`${kind} waits for the next connection of a line that is away`, async ({ line, cause }) => {
    await line.close();
    await cause({ kind });
    const reconnecting = line.reconnect();
    assert.equal(await untilClosed(line.socket), code);
    void reconnecting;
    if (stays) await line.reconnect();
  });
}

onLines("nack refuses the next messages with its code and relays none of them", async ({ network, line, cause }) => {
  await cause({ kind: "nack", error: 479, count: 2 });
  const errors = [];
  for (const text of ["one", "two", "three"]) {
    const { written, acknowledged } = send(line, text);
    await written;
    errors.push((await acknowledged).attrs.error);
  }
  assert.deepEqual(errors, ["479", "479", undefined]);
  const ana = network.phone(ANA)!;
  await until(() => ana.idle().then(() => ana.inbox().length > 0));
  assert.deepEqual(ana.inbox().map(({ text }) => text), ["three"]);
  assert.equal(network.switchboard.wire.entries(LINE).length, 3);
});

onLines("hold_acks relays a message at once and acknowledges it later", async ({ network, line, cause, lift }) => {
  await cause({ kind: "hold_acks", seconds: 600 });
  const order: string[] = [];
  const held = send(line, "held");
  const acknowledged = held.acknowledged.then(() => order.push("acknowledged"));
  await held.written;
  await until(() => network.phone(ANA)!.inbox().length === 1);
  order.push("relayed");
  await lift();
  await acknowledged;
  assert.deepEqual(order, ["relayed", "acknowledged"]);
});

onLines(
  "a message whose ack was lost is acknowledged again and relayed once",
  async ({ network, line, cause, lift }) => {
    await cause({ kind: "hold_acks", seconds: 600 });
    const { written, messageId } = send(line, "once");
    await written;
    await until(() => network.phone(ANA)!.inbox().length === 1);
    await line.close();
    await lift();
    await line.reconnect();
    const { attrs } = await send(line, "once", messageId).acknowledged;
    assert.equal(attrs.error, undefined);
    await network.phone(ANA)!.idle();
    assert.deepEqual(network.phone(ANA)!.inbox().map(({ copies }) => copies), [1]);
    assert.equal(network.switchboard.wire.entries(LINE).length, 2);
  },
);

onLines("silence delays both directions and loses nothing", async ({ network, line, cause, lift }) => {
  await cause({ kind: "silence", seconds: 600 });
  const { written } = send(line, "into the silence");
  await network.phone(ANA)!.sendMessage({ to: LINE, text: "out of it" });
  await network.phone(ANA)!.idle();
  assert.equal(network.phone(ANA)!.inbox().filter(({ fromMe }) => !fromMe).length, 0);
  assert.equal(line.received.length, 0);
  await lift();
  await written;
  await until(() => network.phone(ANA)!.inbox().find(({ text }) => text === "into the silence"));
  await until(() => line.received.find(({ message }) => message?.conversation === "out of it"));
});

onLines("silence also holds a new login of the line", async ({ network, line, cause, lift }) => {
  await cause({ kind: "silence", seconds: 600 });
  await line.close();
  let isOpen = false;
  const reconnected = line.reconnect().then(() => isOpen = true);
  await until(() => network.switchboard.directory.account(LINE)!.companions.get(1)!.session !== null);
  assert.equal(isOpen, false);
  await lift();
  await reconnected;
});

onLines("duplicate hands the next incoming message over twice", async ({ network, line, cause }) => {
  await cause({ kind: "duplicate" });
  const stanzas: string[] = [];
  line.socket.ws.on("CB:message", ({ attrs }: { attrs: { id: string } }) => stanzas.push(attrs.id));
  const { id: first } = await network.phone(ANA)!.sendMessage({ to: LINE, text: "twice" });
  const { id: second } = await network.phone(ANA)!.sendMessage({ to: LINE, text: "and once" });
  await until(() => stanzas.includes(second));
  assert.deepEqual(stanzas, [first, first, second]);
});

Deno.test({
  name: "a fault for an unknown line is 404, a wrong one 400, and neither changes anything",
  sanitizeResources: false,
  sanitizeOps: false,
  async fn() {
    const network = await startNetwork({ runtime: silentRuntime() });
    const post = async (path: string, body: string) => {
      const response = await fetch(network.controlUrl + path, { method: "POST", body });
      return [response.status, (await response.json()).code];
    };
    try {
      assert.deepEqual(await post("/faults", JSON.stringify({ line: LINE, kind: "drop" })), [404, "not_found"]);
      network.addPhone(LINE);
      for (
        const [path, body, expected] of [
          ["/faults", "{", [400, "malformed_json"]],
          ["/faults", JSON.stringify({ line: LINE, kind: "earthquake" }), [400, "validation_failed"]],
          ["/faults", JSON.stringify({ line: LINE, kind: "silence", seconds: -1 }), [400, "validation_failed"]],
          ["/faults", JSON.stringify({ line: LINE, kind: "no_keys", device: 9 }), [400, "validation_failed"]],
          [`/phones/${LINE}/passkey/sign`, JSON.stringify({ options: {} }), [404, "not_found"]],
          [`/phones/${LINE}/passkey/confirm`, "{}", [404, "not_found"]],
          ["/phones", JSON.stringify({ number: LINE }), [400, "validation_failed"]],
          ["/phones", JSON.stringify({ number: "12" }), [400, "validation_failed"]],
          ["/phones/4915199999999/scan", JSON.stringify({ qr: "x" }), [404, "not_found"]],
          [`/phones/${LINE}/scan`, JSON.stringify({ qr: "x" }), [400, "validation_failed"]],
          [`/phones/${LINE}/enter-code`, JSON.stringify({ code: "ABCD-EFGH" }), [404, "not_found"]],
          [`/phones/${LINE}/messages`, JSON.stringify({ to: "4915199999999", text: "x" }), [400, "validation_failed"]],
          [`/phones/${LINE}/messages`, JSON.stringify({ to: LINE }), [400, "validation_failed"]],
          [`/phones/${LINE}/read`, JSON.stringify({ id: "x" }), [404, "not_found"]],
          ["/groups", JSON.stringify({ subject: "G", participants: ["4915199999999"] }), [400, "validation_failed"]],
          ["/nowhere", "{}", [404, "not_found"]],
        ] as const
      ) {
        assert.deepEqual(await post(path, body), expected, `${path} ${body}`);
      }
      const account = await (await fetch(`${network.controlUrl}/phones/${LINE}`)).json();
      assert.deepEqual(account, {
        number: LINE,
        lid: network.phone(LINE)!.lid,
        name: LINE,
        devices: [],
        passkey: null,
      });
    } finally {
      await network.close();
    }
  },
});
