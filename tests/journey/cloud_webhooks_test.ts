/** Webhooks in the shape of the official API, on the whole product: the handshake, what phones write, and statuses. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { Application, TOKEN } from "../support/cloud_application.ts";
import { Receiver } from "../support/receiver.ts";
import { onStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000044";
const ANA = "4917000000044";
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

onStage(
  "an application that knows the official API is told what phones write, and what becomes of its messages",
  async (stage) => {
    await stage.addPhone(ANA, "Ana Ñ");
    const line = await stage.linkLine(LINE);
    const application = await Application.start();
    const hook = await application.register(stage);
    assert.deepEqual([hook.format, hook.chats], ["cloud", "direct"]);

    const write = async (message: Json) =>
      (await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, ...message })).id;
    const written = await write({ text: "¿Está listo? 😀" });
    const text = await application.message("the text", ({ type }) => type === "text");
    assert.deepEqual([text.id, text.from, text.text.body], [written, ANA, "¿Está listo? 😀"]);
    assert.equal(text.from_user_id, `DE.${ANA}`);
    const [{ contacts, metadata }] = application.values() as [Json];
    assert.deepEqual(contacts, [{ profile: { name: "Ana Ñ" }, wa_id: ANA, user_id: `DE.${ANA}` }]);
    assert.deepEqual(metadata, { display_phone_number: LINE, phone_number_id: LINE });

    await write({ file: PIXEL, filename: "dot.png", mimetype: "image/png", kind: "image", caption: "see" });
    const image = await application.message("the image", ({ type }) => type === "image");
    assert.match(image.image.id, /^\d+$/);
    assert.deepEqual([image.image.mime_type, image.image.caption], ["image/png", "see"]);
    await write({ message: { locationMessage: { degreesLatitude: 41.5, degreesLongitude: 2.25, name: "Shop" } } });
    const place = await application.message("the location", ({ type }) => type === "location");
    assert.deepEqual(place.location, { latitude: 41.5, longitude: 2.25, name: "Shop" });

    const options = [{ id: "yes", label: "Sí" }, { id: "no", label: "No" }];
    const asked = await stage.api.call("POST", "/messages/send/choices", {
      sessionId: line.sessionId,
      to: ANA,
      text: "Tea?",
      options,
    });
    const arrived = await stage.arrival(ANA, ({ text }) => text?.startsWith("Tea?"));
    await write({ text: "1" });
    const answer = await application.message("the answer", ({ type }) => type === "interactive");
    assert.deepEqual(answer.interactive, { type: "button_reply", button_reply: { id: "yes", title: "Sí" } });
    assert.deepEqual(answer.context, { from: LINE, id: asked.messageId });
    await stage.control.call("POST", `/phones/${ANA}/react`, { id: arrived.id, emoji: "❤️" });
    const reaction = await application.message("the reaction", ({ type }) => type === "reaction");
    assert.deepEqual(reaction.reaction, { message_id: asked.messageId, emoji: "❤️" });

    await stage.control.call("POST", `/phones/${LINE}/messages`, { to: ANA, text: "by the owner" });
    const echo = await application.message("the echo", ({ to }) => to === ANA);
    assert.deepEqual([echo.from, echo.text.body, echo.to_user_id], [LINE, "by the owner", `DE.${ANA}`]);

    await stage.control.call("POST", `/phones/${ANA}/read`, { id: arrived.id });
    await until(() => Promise.resolve(application.statuses(asked.messageId).length === 3 || null), "three statuses");
    assert.deepEqual(application.statuses(asked.messageId).map(({ status }) => status), ["sent", "delivered", "read"]);
    const lost = await stage.sendText(line, "4917000000099", "to nobody");
    const [failed] = await until(() => {
      const statuses = application.statuses(lost);
      return Promise.resolve(statuses.length > 0 ? statuses : null);
    }, "the failure") as [Json];
    assert.deepEqual([failed.status, failed.errors[0].code, failed.recipient_id], ["failed", 131026, "4917000000099"]);

    const { data: { eventId } } = await stage.api.call("POST", `/webhooks/${application.webhookId}/test`);
    await until(() => Promise.resolve(application.statuses(eventId)[0]), "the test");
    // A choice that was written is told once, as the message.
    const told = application.values().flatMap(({ messages = [] }) => messages).filter(({ type }) =>
      type === "interactive"
    );
    assert.equal(told.length, 1);
    await application.receiver.close();
  },
);

onStage("a target that does not give the challenge back is not registered", async (stage) => {
  const application = await Application.start();
  const refusal = async (body: Json, path = "/webhooks", method = "POST") => {
    const response = await stage.request(method, path, {
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
    const { errors: [{ path: at, message }] } = await response.json();
    assert.equal(response.status, 400);
    return `${at}: ${message}`;
  };
  const asked = { url: application.receiver.url, format: "cloud", verifyToken: "another" };
  assert.equal(await refusal(asked), "url: did not verify: it answered the challenge with 403");
  const { verifyToken: _, ...without } = asked;
  assert.equal(await refusal(without), "verifyToken: belongs to the format cloud");
  assert.equal(
    await refusal({ ...without, format: "paloma", verifyToken: "x" }),
    "verifyToken: belongs to the format cloud",
  );
  const events = ["session.connected"];
  assert.equal(
    await refusal({ ...asked, verifyToken: TOKEN, events }),
    "events: the format cloud has no session.connected",
  );
  assert.deepEqual((await stage.api.call("GET", "/webhooks")).data, []);

  const { id } = await application.register(stage);
  const silent = await Receiver.start();
  assert.equal(
    await refusal({ url: silent.url }, `/webhooks/${id}`, "PUT"),
    "url: did not verify: it did not answer the challenge",
  );
  const moved = `${application.receiver.url}?tenant=7`;
  const { data } = await stage.api.call("PUT", `/webhooks/${id}`, { url: moved });
  assert.equal(data.url, moved);
  assert.match(application.receiver.requests.at(-1)!.path, /^\/hook\?tenant=7&hub\.mode=subscribe&/);
  await silent.close();
  await application.receiver.close();
});

onStage("an application registers by its subscription", async (stage) => {
  const line = await stage.linkLine(LINE);
  const application = await Application.start();
  const ask = async (method: string, body?: Json) => {
    const response = await fetch(new URL(`/cloud/v24.0/${line.number}/subscribed_apps`, stage.gateway.baseUrl), {
      method,
      headers: { authorization: `Bearer ${stage.apiKey}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, ...await response.json() };
  };
  assert.deepEqual(await ask("POST"), { status: 200, success: true });
  const override = { override_callback_uri: application.receiver.url, verify_token: TOKEN };
  const wrong = await ask("POST", { ...override, verify_token: "another" });
  assert.deepEqual([wrong.status, wrong.error.code], [400, 100]);
  assert.deepEqual((await ask("GET")).data, []);
  const { success, secret } = await ask("POST", override);
  assert.equal(success, true);
  application.secret = secret;
  assert.deepEqual(await ask("POST", override), { status: 200, success: true });
  const [{ override_callback_uri }, ...others] = (await ask("GET")).data;
  assert.deepEqual([override_callback_uri, others], [application.receiver.url, []]);

  await stage.addPhone(ANA, "Ana");
  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "hello" });
  await application.message("the text", ({ text }) => text?.body === "hello");
  assert.deepEqual(await ask("DELETE"), { status: 200, success: true });
  assert.deepEqual((await ask("GET")).data, []);
  await application.receiver.close();
});
