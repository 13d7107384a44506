/** `paloma sandbox --cloud`: the official API emulated, with its window, approvals of templates, and faults on demand. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { httpClient, type Json } from "../../src/cli/client.ts";
import { answerAsApplication, TOKEN } from "../support/cloud_application.ts";
import { startCommand, tryCommand } from "../support/gateway_process.ts";
import { answering, Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

const ANYWHERE = { PALOMA_PORT: "0", PALOMA_SANDBOX_PORT: "0" };
const CUSTOMER = "447700900002";

Deno.test("the emulated Cloud API keeps its rules, and fails as it is told", async () => {
  const receiver = await Receiver.start(answerAsApplication);
  const asked = ["sandbox", "--cloud", "--json", "--webhook", receiver.url, "--verify-token", TOKEN];
  const sandbox = await startCommand(asked, ANYWHERE);
  try {
    const { cloudUrl, controlUrl, accessToken, phoneNumberId, businessAccountId, verifyToken, appSecret } = JSON.parse(
      sandbox.line,
    );
    assert.equal(verifyToken, TOKEN);
    const control = httpClient(controlUrl);
    const ask = async (path: string, body: Json) => {
      const response = await fetch(`${cloudUrl}/v24.0/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${accessToken}` },
        body: JSON.stringify(body),
      });
      return { status: response.status, ...await response.json() };
    };
    const send = (message: Json) =>
      ask(`${phoneNumberId}/messages`, { messaging_product: "whatsapp", to: `+${CUSTOMER}`, ...message });
    const text = (body: string) => send({ type: "text", text: { body } });
    const refused = async (answer: Promise<Json>) => {
      const { status, error } = await answer;
      return [status, error?.code];
    };
    const fault = (kind: string, more: Json = {}) =>
      control.call("POST", "/faults", { line: phoneNumberId, kind, ...more });
    const posted = () => receiver.requests.filter(({ body }) => body !== "");
    const valuesOf = (name: "messages" | "statuses") =>
      posted().flatMap(({ body }) => JSON.parse(body).entry[0].changes[0].value[name] ?? []);
    const statusesOf = (id: string) =>
      valuesOf("statuses").filter((status) => status.id === id).map(({ status }) => status);
    const isSigned = ({ body, headers }: ReturnType<typeof posted>[number]) =>
      headers["x-hub-signature-256"] === `sha256=${createHmac("sha256", appSecret).update(body).digest("hex")}`;

    // Nobody has written yet: only an approved template may go out.
    assert.deepEqual(await refused(text("too early")), [400, 131047]);
    const template = { name: "hello", language: "en", category: "UTILITY" };
    const components = [{ type: "BODY", text: "Hello {{1}}" }];
    const made = await ask(`${businessAccountId}/message_templates`, { ...template, components });
    assert.deepEqual([made.status, made.error], ["PENDING", undefined]);
    const parameters = [{ type: "text", text: "Ana" }];
    const filled = { name: "hello", language: { code: "en" }, components: [{ type: "body", parameters }] };
    assert.deepEqual(await refused(send({ type: "template", template: filled })), [404, 132001]);
    await control.call("POST", "/templates/hello", { status: "REJECTED" });
    assert.deepEqual(await refused(send({ type: "template", template: filled })), [404, 132001]);
    await control.call("POST", "/templates/hello", { status: "APPROVED" });
    const { messages: [{ id: first }] } = await send({ type: "template", template: filled });
    const arrived = await until(
      async () =>
        (await control.call("GET", `/phones/${CUSTOMER}/messages`)).find(({ text }: Json) => text === "Hello Ana"),
      "the template at the phone",
    );
    await control.call("POST", `/phones/${CUSTOMER}/read`, { id: arrived.id });
    await until(() => statusesOf(first).length === 3 || null, "its statuses");
    assert.deepEqual(statusesOf(first), ["sent", "delivered", "read"]);

    const write = async (text: string) =>
      (await control.call("POST", `/phones/${CUSTOMER}/messages`, { to: phoneNumberId, text })).id;
    const heard = (id: string) => valuesOf("messages").filter((message) => message.id === id);
    const opening = await write("I have a question");
    await until(() => heard(opening).length === 1 || null, "the message");
    assert.ok(posted().every(isSigned));
    const { messages: [{ id: answer }] } = await text("yes?");
    await until(() => statusesOf(answer).includes("delivered") || null, "the answer's statuses");

    await fault("cloud_error", { code: 130429, count: 2 });
    await fault("cloud_error", { code: 131000 });
    assert.deepEqual(await refused(text("1")), [429, 130429]);
    assert.deepEqual(await refused(text("2")), [429, 130429]);
    assert.deepEqual(await refused(text("3")), [500, 131000]);
    await fault("webhook_twice");
    const twice = await write("twice");
    await until(() => heard(twice).length === 2 || null, "both");
    await fault("webhook_lost");
    const lost = await write("lost");
    await fault("webhook_late", { seconds: 0.2 });
    const late = await write("late");
    await fault("bad_signature");
    const forged = await write("forged");
    await until(() => heard(forged).length === 1 || null, "what is signed wrongly");
    assert.deepEqual([heard(lost).length, heard(late).length], [0, 1]);
    assert.deepEqual(posted().filter((request) => !isSigned(request)).length, 1);

    // An application that comes later registers itself, and gets the same secret.
    const override = { override_callback_uri: `${receiver.url}?second`, verify_token: TOKEN };
    assert.equal((await ask(`${businessAccountId}/subscribed_apps`, override)).secret, appSecret);
  } finally {
    assert.equal(await sandbox.end("SIGTERM"), 0);
    await receiver.close();
  }
});

Deno.test("options of the emulation that make no sense are told", async () => {
  const { code, stderr } = await tryCommand(["sandbox", "--webhook", "http://127.0.0.1:1"], ANYWHERE);
  assert.equal(code, 2);
  assert.match(stderr, /belong to --cloud/);
  const both = await tryCommand(["sandbox", "--cloud", "--demo"], ANYWHERE);
  assert.equal(both.code, 2);
  const absent = await Receiver.start(answering(404));
  const unverified = await tryCommand(["sandbox", "--cloud", "--webhook", absent.url], ANYWHERE);
  await absent.close();
  assert.equal(unverified.code, 1);
  assert.match(unverified.stderr, /url: did not verify: it answered the challenge with 404/);
});
