/** What is sent into a chat with disappearing messages says so, in every kind, or the other phone warns. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { sampleFile, voiceNote } from "../support/sample_files.ts";
import { type LinkedLine, onStage, type Stage } from "../support/stage.ts";

const LINE = "4915200000021";
const ANA = "4917000000021";
const DAY = 86_400;
const SET_AT = 1_768_478_400;

const file = (extension: string) => ({ file: sampleFile(extension).toString("base64"), filename: `a.${extension}` });
/** Each kind by its route, and the field of the message that arrives. */
const KINDS: [route: string, body: Json, field: string][] = [
  ["text", { text: "hello" }, "extendedTextMessage"],
  ["document", { ...file("pdf"), caption: "c" }, "documentMessage"],
  ["document", file("png"), "imageMessage"],
  ["document", file("mp4"), "videoMessage"],
  ["document", file("mp3"), "audioMessage"],
  ["document", { ...file("jpg"), viewOnce: true }, "imageMessage"],
  ["voice", { file: voiceNote(1).toString("base64") }, "audioMessage"],
  ["sticker", { file: sampleFile("webp").toString("base64") }, "stickerMessage"],
  ["location", { latitude: 1, longitude: 2 }, "locationMessage"],
  ["contact", { contacts: [{ name: "Ben", phone: "447700900123" }] }, "contactMessage"],
  ["contact", { contacts: ["1", "2"].map((i) => ({ name: i, phone: `44770090012${i}` })) }, "contactsArrayMessage"],
  ["poll", { question: "?", options: ["a", "b"] }, "pollCreationMessageV3"],
  ["poll", { question: "?", options: ["a", "b"], multiple: true }, "pollCreationMessage"],
  ["choices", { text: "?", options: [{ label: "a" }, { label: "b" }], style: "buttons" }, "interactiveMessage"],
];

/** What the phone sees of each kind, and of one that is forwarded: its field, lifetime, and when that was set. */
async function sendAll(stage: Stage, line: LinkedLine, to: string): Promise<unknown[]> {
  const { sessionId } = line;
  const sent: string[] = [];
  for (const [route, body] of KINDS) {
    sent.push((await stage.api.call("POST", `/messages/send/${route}`, { sessionId, to, ...body })).messageId);
  }
  sent.push((await stage.api.call("POST", "/messages/send/forward", { sessionId, to, messageId: sent[0] })).messageId);
  const seen = [];
  for (const messageId of sent) {
    const { data: { networkId } } = await stage.event(
      line,
      ({ event, data }) => event === "message.sent" && data.messageId === messageId,
    );
    const { type, expiration, expirationSetAt } = await stage.arrival(ANA, ({ id }) => id === networkId);
    seen.push([type, expiration, expirationSetAt]);
  }
  return seen;
}

const all = (expiration: number | null, setAt: number | null) =>
  [...KINDS.map(([, , field]) => field), "extendedTextMessage"].map((field) => [field, expiration, setAt]);

onStage("messages into a chat disappear as its people have set it, in every kind, until that ends", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const { lid } = await stage.control.call("GET", `/phones/${ANA}`);
  /** What the next text says of its lifetime. */
  const next = async (text: string, to = ANA) => {
    await stage.sendText(line, to, text);
    const { expiration, expirationSetAt } = await stage.arrival(ANA, (item) => item.text === text);
    return [expiration, expirationSetAt];
  };
  /** Ana writes a message of these fields, and the line has read it. */
  const says = async (message: Json, hideNumber = false) => {
    const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, message, hideNumber });
    return await stage.event(line, ({ data }) => data.messageId === id);
  };
  const setting = (ephemeralExpiration: number, ephemeralSettingTimestamp: number) => ({
    protocolMessage: { type: "EPHEMERAL_SETTING", ephemeralExpiration, ephemeralSettingTimestamp },
  });
  const set = async (by: string, to: string, seconds: number, at: number, hideNumber = false) => {
    await stage.control.call("POST", `/phones/${by}/messages`, { to, message: setting(seconds, at), hideNumber });
    await says({ conversation: `after ${seconds}` }, hideNumber);
  };
  assert.deepEqual(await next("for ever"), [null, null]);

  const contextInfo = { expiration: DAY, ephemeralSettingTimestamp: SET_AT };
  const { data } = await says({ extendedTextMessage: { text: "gone tomorrow", contextInfo } });
  assert.equal(data.details.disappearing, DAY);
  assert.deepEqual(await sendAll(stage, line, ANA), all(DAY, SET_AT));
  assert.deepEqual(await next("by LID", lid), [DAY, SET_AT]);

  // The setting itself comes as a message of its own, here from the @lid; what is older than it does not count.
  await set(ANA, LINE, 7 * DAY, SET_AT + 100, true);
  await says({ extendedTextMessage: { text: "late", contextInfo } });
  assert.deepEqual(await next("a week"), [7 * DAY, SET_AT + 100]);
  await set(ANA, LINE, 0, SET_AT + 200);
  assert.deepEqual(await next("for ever again"), [null, null]);

  // The owner sets it on the phone, and a message says that it is over.
  await set(LINE, ANA, DAY, SET_AT + 300);
  assert.deepEqual(await next("the owner's"), [DAY, SET_AT + 300]);
  const over = { expiration: 0, ephemeralSettingTimestamp: SET_AT + 400 };
  await says({ extendedTextMessage: { text: "over", contextInfo: over } });
  assert.deepEqual(await next("the end"), [null, null]);
});

onStage("messages into a group disappear as the API or a member has set it, until that ends", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const groups = `/sessions/${line.sessionId}/groups`;
  const { data: { id } } = await stage.api.call("POST", groups, { name: "Team", participants: [ANA] });
  await stage.api.call("PATCH", `${groups}/${id}`, { ephemeral: DAY });
  assert.deepEqual(await sendAll(stage, line, id), all(DAY, null));
  const contextInfo = { expiration: DAY };
  const message = { extendedTextMessage: { text: "gone tomorrow", contextInfo } };
  const sent = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: id, message });
  const { data } = await stage.event(line, ({ data }) => data.messageId === sent.id);
  assert.equal(data.details.disappearing, DAY);

  for (const [ephemeral, seen] of [[7 * DAY, 7 * DAY], [0, null]]) {
    await stage.control.call("PATCH", `/groups/${id}`, { ephemeral });
    await stage.event(line, ({ event, data }) => event === "group.updated" && data.group.ephemeral === ephemeral);
    await stage.sendText(line, id, `set to ${ephemeral}`);
    assert.equal((await stage.arrival(ANA, ({ text }) => text === `set to ${ephemeral}`)).expiration, seen);
  }
});
