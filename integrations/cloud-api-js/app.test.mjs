/** Tests the bot against the emulated Cloud API: `node --test`. `PALOMA` is the command, `paloma` by default. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { makeBot, serve } from "./app.mjs";

const CUSTOMER = "447700900002";
let sandbox, server, ready;

before(async () => {
  const [command, ...args] = (process.env.PALOMA ?? "paloma").split(" ");
  const env = { ...process.env, PALOMA_PORT: "0", PALOMA_SANDBOX_PORT: "0" };
  const stdio = ["ignore", "pipe", "inherit"];
  sandbox = spawn(command, [...args, "sandbox", "--cloud", "--json"], { env, stdio });
  ready = await new Promise((resolve) =>
    createInterface(sandbox.stdout).once("line", (line) => resolve(JSON.parse(line)))
  );
  const { accessToken: token, appSecret, verifyToken, cloudUrl: graphUrl, businessAccountId } = ready;
  server = await serve(makeBot({ token, appSecret, verifyToken, graphUrl }));
  const webhook = { override_callback_uri: `http://127.0.0.1:${server.address().port}/`, verify_token: verifyToken };
  const response = await fetch(`${graphUrl}/v24.0/${businessAccountId}/subscribed_apps`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify(webhook),
  });
  assert.equal(response.status, 200, await response.text());
});

after(() => {
  server?.closeAllConnections();
  server?.close();
  sandbox?.kill();
});

async function control(method, path, body) {
  const response = await fetch(ready.controlUrl + path, { method, ...(body && { body: JSON.stringify(body) }) });
  assert.ok(response.ok, await response.clone().text());
  return await response.json();
}
const write = (text) => control("POST", `/phones/${CUSTOMER}/messages`, { to: ready.phoneNumberId, text });
const shown = async (text) =>
  (await control("GET", `/phones/${CUSTOMER}/messages`)).filter((message) => message.text?.includes(text)).length;

/** Waits until the customer's phone shows the text so many times. */
async function arrives(text, times = 1) {
  for (let i = 0; i < 200; i++) {
    if (await shown(text) >= times) return;
    await sleep(50);
  }
  assert.fail(`${text} did not arrive ${times} times`);
}

test("a guest orders from the list", async () => {
  await write("hello");
  await arrives("What may we bring you?");
  await write("Coffee");
  await arrives("Coffee it is.");
});

test("what comes twice is answered once", async () => {
  await control("POST", "/faults", { line: ready.phoneNumberId, kind: "webhook_twice" });
  await write("Tea");
  await arrives("Tea it is.");
  await write("anything else?");
  await arrives("What may we bring you?", 2);
  assert.equal(await shown("Tea it is."), 1);
});

test("a webhook with a wrong signature is not believed, and comes again", async () => {
  await control("POST", "/faults", { line: ready.phoneNumberId, kind: "bad_signature" });
  await write("1");
  await arrives("Tea it is.", 2);
});
