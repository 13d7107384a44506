/** Every action that the shipped workflows do not use, in one workflow. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { sampleFile, voiceNote } from "../../../tests/support/sample_files.ts";
import { APPROVER, CUSTOMER, LINE, type Trial, write } from "./trial.ts";
import { chain, MANUALLY } from "./workflows.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** The answer to the send of this text is lost. */
export const RETRIED = "a text that is retried";
const WRITTEN = "from the phone";
const STICKER = sampleFile("webp");
const NOTE = voiceNote(1);
const DAY = 86_400_000;

/** Has the customer send a file; resolves to the link under which it can be fetched. */
async function receive({ stage, line }: Trial, kind: string, content: Uint8Array, mimetype: string): Promise<string> {
  const file = content.toBase64();
  await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, file, mimetype, kind });
  const event = await stage.event(
    line,
    ({ event, data }) => event === "message.received" && data.media?.mimetype === mimetype,
  );
  return event.data.media.url;
}

export async function actions(trial: Trial): Promise<Json> {
  const { stage, line: { sessionId } } = trial;
  await write(trial, CUSTOMER, WRITTEN);
  await stage.api.call("POST", "/templates", { name: "hello", language: "en", text: "Hello {{name}}" });
  const sticker = await receive(trial, "sticker", STICKER, "image/webp");
  const note = await receive(trial, "audio", NOTE, "audio/ogg; codecs=opus");

  const to = CUSTOMER;
  const message = { resource: "message", to, options: {} };
  const file = { ...message, operation: "sendFile", source: "binary", binaryField: "data" };
  const written = `={{ $('read').all().find(({ json }) => json.text === '${WRITTEN}').json.messageId }}`;
  const idOf = (node: string) => `={{ $('${node}').item.json.messageId }}`;
  const inDays = (days: number) => `={{ $now.plus({ days: ${days} }).toISO() }}`;
  return chain("actions", MANUALLY, [
    ["lines", { resource: "line", operation: "getAll" }],
    ["check", { resource: "line", operation: "checkNumber", sessionId, number: to }],
    [
      "text",
      { ...message, operation: "sendText", text: RETRIED, options: { tags: "one,two", priority: "high" } },
      { retryOnFail: true, maxTries: 2, waitBetweenTries: 0 },
    ],
    ["location", { ...message, operation: "sendLocation", latitude: 51.5, longitude: -0.12, place: "London" }],
    ["contact", { ...message, operation: "sendContact", contacts: { entry: [{ name: "Grace", phone: APPROVER }] } }],
    ["poll", { ...message, operation: "sendPoll", question: "When?", pollOptions: ["Today", "Tomorrow"] }],
    ["choices", {
      ...message,
      operation: "sendChoices",
      text: "Which?",
      choices: { entry: [{ label: "Red", id: "red" }, { label: "Blue", id: "" }] },
      style: "numbers",
    }],
    ["template", {
      ...message,
      operation: "sendTemplate",
      template: "hello",
      variables: { entry: [{ name: "name", value: "Ada" }] },
    }],
    ["by address", {
      ...message,
      operation: "sendFile",
      source: "url",
      fileUrl: new URL("/openapi.json", stage.gateway.baseUrl).href,
      filename: "by address.json",
    }],
    ["download sticker", { resource: "message", operation: "download", link: sticker, binaryField: "data" }],
    ["sticker", { ...file, sendAs: "sticker" }],
    ["download note", { resource: "message", operation: "download", link: note, binaryField: "data" }],
    ["note", { ...file, sendAs: "voice" }],
    ["chats", { resource: "chat", operation: "getAll", sessionId, returnAll: true, filters: {} }],
    ["read", { resource: "chat", operation: "getMessages", sessionId, chat: to, limit: 50 }],
    ["reaction", { ...message, operation: "sendReaction", messageId: written, emoji: "👍" }],
    ["forward", { ...message, operation: "sendForward", to: APPROVER, messageId: written }],
    ["mark read", { resource: "chat", operation: "markRead", sessionId, chat: to }],
    ["later", { ...message, operation: "sendText", text: "later", options: { sendAt: inDays(2) } }],
    ["edit", { resource: "message", operation: "edit", messageId: idOf("later"), text: "later, edited" }],
    ["move", { resource: "queue", operation: "reschedule", messageId: idOf("later"), sendAt: inDays(3), priority: "" }],
    ["waiting", { resource: "queue", operation: "getAll", sessionId, limit: 50 }],
    ["cancel", { resource: "queue", operation: "cancel", messageId: idOf("later") }],
    ["delete", { resource: "message", operation: "revoke", messageId: idOf("location") }],
    ["pause", { resource: "queue", operation: "pause", sessionId }],
    ["resume", { resource: "queue", operation: "resume", sessionId }],
    ["status", { ...message, operation: "sendStatus", text: "a status", audience: to }],
    ["get", { resource: "message", operation: "get", messageId: idOf("text") }],
  ]);
}

/** `said`: what `n8n execute` wrote. Resolves to the number of actions. */
export async function judgeActions({ stage, door, line }: Trial, said: string): Promise<number> {
  const { error, runData } = JSON.parse(said.slice(said.indexOf("{"))).data.resultData;
  assert.equal(error, undefined, JSON.stringify(error));
  const of = (name: string): Json[] => runData[name][0].data.main[0].map(({ json }: Json) => json);
  assert.deepEqual(of("lines").map(({ id }) => id), [line.sessionId]);
  assert.equal(of("check")[0].exists, true);
  assert.deepEqual(of("get")[0].tags, ["one", "two"]);
  assert.equal(of("chats")[0].number, CUSTOMER);
  const [{ messageId }] = of("later");
  assert.ok(of("waiting").some((waiting) => waiting.messageId === messageId));
  assert.equal(of("edit")[0].text, "later, edited");
  assert.ok(Date.parse(of("move")[0].sendAt) > Date.now() + 2.5 * DAY);
  assert.equal(of("cancel")[0].error.code, "cancelled");

  const customer = (fits: (message: Json) => boolean) => stage.arrival(CUSTOMER, fits);
  const sha256 = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
  await customer(({ text }) => text === "Hello Ada");
  await customer(({ location, revoked }) => location?.name === "London" && revoked);
  await customer(({ poll }) => poll?.question === "When?" || poll?.name === "When?");
  await customer(({ text }) => /1\D+Red\n.*2\D+Blue/s.test(text ?? ""));
  await customer(({ filename }) => filename === "by address.json");
  await customer((message) => message.sha256 === sha256(STICKER) && message.type === "sticker");
  await customer((message) => message.sha256 === sha256(NOTE) && message.voiceNote);
  await customer(({ emoji, reaction }) => (reaction?.emoji ?? emoji) === "👍");
  await stage.arrival(APPROVER, ({ text }) => text === WRITTEN);
  assert.equal(door.lost, 1, "an answer was lost");
  assert.equal(
    (await stage.inbox(CUSTOMER)).filter(({ text }) => text === RETRIED).length,
    1,
    "and the retry sent nothing",
  );
  return Object.keys(runData).length - 1;
}
