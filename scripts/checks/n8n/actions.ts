/** Every action that the shipped workflows do not use, with what it has to bring about. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { LinkedLine, Stage } from "../../../tests/support/stage.ts";
import { sampleFile, voiceNote } from "../../../tests/support/sample_files.ts";
import { APPROVER, CUSTOMER, LINE } from "./trial.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

export interface Action {
  name: string;
  parameters: Json;
  /** Settings of the node in n8n. */
  settings?: Json;
  /** Judges the objects of its output. */
  gives?: (items: Json[]) => void;
  /** What is then at the customer's phone, or at another. */
  arrives?: (message: Json) => boolean;
  at?: string;
}

/** The answer to the send of this text is lost. */
export const RETRIED = "a text that is retried";
const WRITTEN = "from the phone";
const STICKER = sampleFile("webp");
const NOTE = voiceNote(1);
const DAY = 86_400_000;

const sha256 = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
const idOf = (node: string) => `={{ $('${node}').item.json.messageId }}`;
const inDays = (days: number) => `={{ $now.plus({ days: ${days} }).toISO() }}`;

/** Has the customer write to the line and send it two files; the actions are about these. */
export async function prepareActions(stage: Stage, line: LinkedLine): Promise<Action[]> {
  const send = (message: Json) => stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, ...message });
  async function receive(kind: string, content: Uint8Array, mimetype: string): Promise<string> {
    await send({ file: content.toBase64(), mimetype, kind });
    const { data } = await stage.event(line, ({ data }) => data.media?.mimetype === mimetype);
    return data.media.url;
  }
  await send({ text: WRITTEN });
  await stage.event(line, ({ data }) => data.text === WRITTEN);
  await stage.api.call("POST", "/templates", { name: "hello", language: "en", text: "Hello {{name}}" });
  const sticker = await receive("sticker", STICKER, "image/webp");
  const note = await receive("audio", NOTE, "audio/ogg; codecs=opus");
  return actions(line.sessionId, { sticker, note, schema: new URL("/openapi.json", stage.gateway.baseUrl).href });
}

function actions(sessionId: string, links: Record<"sticker" | "note" | "schema", string>): Action[] {
  const message = { resource: "message", to: CUSTOMER, options: {} };
  const file = { ...message, operation: "sendFile", source: "binary", binaryField: "data" };
  const written = `={{ $('read').all().find(({ json }) => json.text === '${WRITTEN}').json.messageId }}`;
  return [
    {
      name: "lines",
      parameters: { resource: "line", operation: "getAll" },
      gives: ([{ id }]) => assert.equal(id, sessionId),
    },
    {
      name: "check",
      parameters: { resource: "line", operation: "checkNumber", sessionId, number: CUSTOMER },
      gives: ([{ exists }]) => assert.equal(exists, true),
    },
    {
      name: "text",
      parameters: {
        ...message,
        operation: "sendText",
        text: RETRIED,
        options: { tags: "one, two", priority: "high" },
      },
      settings: { retryOnFail: true, maxTries: 2, waitBetweenTries: 0 },
      arrives: ({ text }) => text === RETRIED,
    },
    {
      name: "location",
      parameters: { ...message, operation: "sendLocation", latitude: 51.5, longitude: -0.12, place: "London" },
      arrives: ({ location }) => location?.name === "London",
    },
    {
      name: "contact",
      parameters: {
        ...message,
        operation: "sendContact",
        contacts: { entry: [{ name: "Grace", phone: APPROVER, organization: "" }] },
      },
      arrives: (message) => JSON.stringify(message).includes("Grace"),
    },
    {
      name: "poll",
      parameters: { ...message, operation: "sendPoll", question: "When?", pollOptions: ["Today", "Tomorrow"] },
      arrives: ({ poll }) => JSON.stringify(poll ?? null).includes("Tomorrow"),
    },
    {
      name: "choices",
      parameters: {
        ...message,
        operation: "sendChoices",
        text: "Which?",
        choices: { entry: [{ label: "Red", id: "red" }, { label: "Blue", id: "" }] },
        style: "numbers",
      },
      arrives: ({ text }) => /1\D+Red\n.*2\D+Blue/s.test(text ?? ""),
    },
    {
      name: "template",
      parameters: {
        ...message,
        operation: "sendTemplate",
        template: "hello",
        variables: { entry: [{ name: "name", value: "Ada" }] },
      },
      arrives: ({ text }) => text === "Hello Ada",
    },
    {
      name: "by address",
      parameters: {
        ...message,
        operation: "sendFile",
        sendAs: "file",
        source: "url",
        fileUrl: links.schema,
        filename: "by address.json",
      },
      arrives: ({ filename }) => filename === "by address.json",
    },
    {
      name: "download sticker",
      parameters: { resource: "message", operation: "download", link: links.sticker, binaryField: "data" },
    },
    {
      name: "sticker",
      parameters: { ...file, sendAs: "sticker" },
      arrives: (message) => message.sha256 === sha256(STICKER),
    },
    {
      name: "download note",
      parameters: { resource: "message", operation: "download", link: links.note, binaryField: "data" },
    },
    {
      name: "note",
      parameters: { ...file, sendAs: "voice" },
      arrives: (message) => message.sha256 === sha256(NOTE) && message.voiceNote,
    },
    {
      name: "chats",
      parameters: { resource: "chat", operation: "getAll", sessionId, returnAll: true, filters: {} },
      gives: ([{ number }]) => assert.equal(number, CUSTOMER),
    },
    {
      name: "read",
      parameters: { resource: "chat", operation: "getMessages", sessionId, chat: CUSTOMER, limit: 50 },
      gives: (items) => assert.ok(items.some(({ text }) => text === WRITTEN)),
    },
    {
      name: "reaction",
      parameters: { ...message, operation: "sendReaction", messageId: written, emoji: "👍" },
      arrives: ({ emoji, reaction }) => (reaction?.emoji ?? emoji) === "👍",
    },
    {
      name: "forward",
      parameters: { ...message, operation: "sendForward", to: APPROVER, messageId: written },
      at: APPROVER,
      arrives: ({ text }) => text === WRITTEN,
    },
    { name: "mark read", parameters: { resource: "chat", operation: "markRead", sessionId, chat: CUSTOMER } },
    {
      name: "later",
      parameters: { ...message, operation: "sendText", text: "later", options: { sendAt: inDays(2) } },
    },
    {
      name: "edit",
      parameters: { resource: "message", operation: "edit", messageId: idOf("later"), text: "later, edited" },
      gives: ([{ text }]) => assert.equal(text, "later, edited"),
    },
    {
      name: "move",
      parameters: {
        resource: "queue",
        operation: "reschedule",
        messageId: idOf("later"),
        sendAt: inDays(3),
        priority: "",
      },
      gives: ([{ sendAt }]) => assert.ok(Date.parse(sendAt) > Date.now() + 2.5 * DAY),
    },
    {
      name: "waiting",
      parameters: { resource: "queue", operation: "getAll", sessionId, limit: 50 },
    },
    {
      name: "cancel",
      parameters: { resource: "queue", operation: "cancel", messageId: idOf("later") },
      gives: ([{ error }]) => assert.equal(error.code, "cancelled"),
    },
    {
      name: "delete",
      parameters: { resource: "message", operation: "revoke", messageId: idOf("location") },
      arrives: ({ location, revoked }) => location?.name === "London" && revoked,
    },
    { name: "pause", parameters: { resource: "queue", operation: "pause", sessionId } },
    { name: "resume", parameters: { resource: "queue", operation: "resume", sessionId } },
    {
      name: "status",
      parameters: { ...message, operation: "sendStatus", text: "a status", audience: CUSTOMER },
      arrives: ({ text }) => text === "a status",
    },
    {
      name: "get",
      parameters: { resource: "message", operation: "get", messageId: idOf("text") },
      gives: ([{ tags }]) => assert.deepEqual(tags, ["one", "two"]),
    },
  ];
}

/** `items`: the objects of the action's output. */
export async function judge(stage: Stage, { name, gives, arrives, at = CUSTOMER }: Action, items: Json[]) {
  assert.ok(items.length > 0 || name === "waiting", `${name} gave nothing`);
  gives?.(items);
  if (arrives) await stage.arrival(at, arrives);
}
