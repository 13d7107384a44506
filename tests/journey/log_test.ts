/** Promise 6: no key, credential, message text, QR or code in a log. Every stage's end searches for them; here the search is proved. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { inspect } from "node:util";
import { openData } from "../../src/engines.ts";
import { readLink } from "../../src/whatsapp/baileys/auth_state.ts";
import { findLeaks } from "../support/leaks.ts";
import { type LinkedLine, onStage, openStage, type Stage, WITH_REFRESH } from "../support/stage.ts";
import { dataConfigOf } from "../support/test_store.ts";
import { until } from "../support/until.ts";
import { silentRuntime } from "../support/runtime.ts";

const ANA = "4917000000001";
const TEXT = 'Ana\'s "secret" order:\n3 × Käse, 2 € 🧀';

/** The private key of the line's identity, as its data folder holds it. */
async function identityKey({ dataDir }: Stage, { sessionId: lineId }: LinkedLine): Promise<Buffer> {
  const data = await openData(dataConfigOf(dataDir), silentRuntime());
  try {
    return Buffer.from((await readLink({ ...data, lineId }))!.signedIdentityKey.private);
  } finally {
    data.close();
  }
}

/** Sends a text and hears one. */
async function chat(stage: Stage, line: LinkedLine): Promise<void> {
  await stage.status(await stage.sendText(line, ANA, TEXT), "sent");
  await stage.control.call("POST", `/phones/${ANA}/messages`, {
    to: line.number,
    text: "Nobody else needs to know this",
  });
  await stage.event(line, ({ event }) => event === "message.received");
}

onStage(
  "links, chats, drops, webhooks and a log-out leave none of their secrets in a log at trace level",
  async (stage) => {
    const { api, control } = stage;
    await stage.addPhone(ANA);
    const line = await stage.linkLine("4915100000001");
    await api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/gone", events: ["message.received"] });
    await chat(stage, line);
    await control.call("POST", "/faults", { line: line.number, kind: "drop" });
    // The event, for the state itself may be over between two looks.
    await stage.event(line, ({ event }) => event === "session.disconnected");
    await stage.sessionStatus(line, "connected");

    await stage.addPhone("4915100000002");
    const { data } = await api.call("POST", "/sessions", { name: "By code", pairingPhone: "4915100000002" });
    const code = await until(
      async () => (await api.call("GET", `/sessions/${data._id}/qr`)).pairingCode,
      "a pairing code",
    );
    await control.call("POST", "/phones/4915100000002/enter-code", { code });
    const second = { sessionId: data._id, number: "4915100000002" };
    await stage.sessionStatus(second, "connected");
    await stage.secrets.readData(stage.env);
    await api.call("POST", `/sessions/${second.sessionId}/logout`);

    const known = [...stage.secrets];
    for (const secret of [TEXT, "Nobody else needs to know this", stage.apiKey, code]) {
      assert.ok(known.includes(secret), "a secret was not remembered");
    }
    assert.ok(known.some((secret) => typeof secret === "string" && secret.startsWith("whsec_")));
    assert.ok(known.some((secret) => typeof secret === "string" && secret.startsWith("2@")), "no QR was remembered");
    const key = await identityKey(stage, line);
    assert.ok(
      known.some((secret) => typeof secret !== "string" && key.equals(secret)),
      "the identity was not remembered",
    );
    assert.match(stage.gateway.log(), /a line changed/);
  },
  WITH_REFRESH,
);

onStage("a secret that is planted in the log is found, whatever form it was printed in", async (stage) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine("4915100000001");
  await chat(stage, line);
  const key = await identityKey(stage, line);
  const code = "XK4Q7WZ2";
  stage.secrets.add(code);
  const bytes = new Uint8Array(key);
  const planted: Record<string, string> = {
    "a text": JSON.stringify({ msg: TEXT }),
    "a text inside of JSON": JSON.stringify({ msg: JSON.stringify({ conversation: TEXT }) }),
    "a text in an encoded message": Buffer.from(`\x0a\x20${TEXT}\x12`).toString("base64"),
    "an API key": JSON.stringify({ headers: { "x-api-key": stage.apiKey } }),
    "a pairing code": `the code is ${code}.`,
    "a key in base64": JSON.stringify({ key: key.toString("base64") }),
    "a key in base64 without padding": key.toString("base64").replace(/=+$/, ""),
    "a key in base64url": key.toString("base64url"),
    "a key inside of a longer base64": Buffer.concat([Buffer.from("x"), key, Buffer.from("yz")]).toString("base64"),
    "a key in hex": key.toString("hex"),
    "a key in upper-case hex": key.toString("hex").toUpperCase(),
    "a buffer as JSON": JSON.stringify({ privKey: key }),
    "bytes as JSON": JSON.stringify({ privKey: bytes }),
    "a printed buffer": inspect({ privKey: key }),
    "printed bytes": inspect({ currentRatchet: { ephemeralKeyPair: { privKey: bytes } } }, { depth: 9 }),
    "printed bytes in a line of JSON": JSON.stringify({ msg: inspect({ privKey: bytes }) }),
    "bytes as JSON in a line of JSON": JSON.stringify({ msg: JSON.stringify({ privKey: bytes }) }),
  };
  const log = stage.gateway.log();
  assert.deepEqual(findLeaks(log, stage.secrets), []);
  for (const [form, text] of Object.entries(planted)) {
    const found = findLeaks(`${log}${text}\n{"level":30,"msg":"and so on"}\n`, stage.secrets);
    assert.ok(found.length > 0, `${form} was not found`);
  }
});

Deno.test("a test fails when a secret is planted in its gateway's log", async () => {
  const stage = await openStage();
  const { log } = stage.gateway;
  stage.gateway.log = () => `${log()}{"level":20,"msg":"request","headers":{"x-api-key":"${stage.apiKey}"}}\n`;
  await assert.rejects(() => stage.end(), /the log holds secrets/);
});
