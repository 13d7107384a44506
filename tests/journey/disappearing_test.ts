/** What is sent into a chat with disappearing messages says so, in every kind, or the other phone warns. */
import assert from "node:assert/strict";
import { onStage, type Stage } from "../support/stage.ts";

const LINE = "4915200000021";
const ANA = "4917000000021";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** The lifetime that the phone sees of each kind, sent into the chat. */
async function lifetimes(stage: Stage, sessionId: string, to: string): Promise<Record<string, number | null>> {
  const mark = crypto.randomUUID().slice(0, 8);
  const sends: [string, Record<string, unknown>][] = [
    ["text", { text: mark }],
    ["document", { file: btoa(`a file ${mark}`), filename: `${mark}.txt` }],
    ["document", { file: PNG, filename: `${mark}.png`, caption: mark }],
    ["location", { latitude: 1, longitude: 2, name: mark }],
    ["poll", { question: mark, options: ["a", "b"] }],
    ["contact", { contacts: [{ name: mark, phone: "447700900123" }] }],
  ];
  for (const [kind, body] of sends) await stage.api.call("POST", `/messages/send/${kind}`, { sessionId, to, ...body });
  const seen: Record<string, number | null> = {};
  await stage.arrival(ANA, (item) => {
    if (JSON.stringify(item).includes(mark)) seen[item.type] = item.expiration;
    return Object.keys(seen).length === sends.length;
  });
  return seen;
}

const all = (seconds: number | null) => ({
  extendedTextMessage: seconds,
  documentMessage: seconds,
  imageMessage: seconds,
  locationMessage: seconds,
  pollCreationMessageV3: seconds,
  contactMessage: seconds,
});

onStage(
  "messages into a chat that disappear for the other side disappear from ours too, until that ends",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const says = async (message: Record<string, unknown>, hideNumber = false) => {
      const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, message, hideNumber });
      return id;
    };
    assert.deepEqual(await lifetimes(stage, line.sessionId, ANA), all(null));

    const contextInfo = { expiration: 86_400, ephemeralSettingTimestamp: 1_768_478_400 };
    const id = await says({ extendedTextMessage: { text: "gone tomorrow", contextInfo } });
    const { data } = await stage.event(line, ({ data }) => data.messageId === id);
    assert.equal(data.details.disappearing, 86_400);
    assert.deepEqual(await lifetimes(stage, line.sessionId, ANA), all(86_400));

    // The setting itself comes as a message of its own, here from the @lid.
    const setting = (ephemeralExpiration: number, ephemeralSettingTimestamp: number) => ({
      protocolMessage: { type: "EPHEMERAL_SETTING", ephemeralExpiration, ephemeralSettingTimestamp },
    });
    await says(setting(604_800, 1_768_478_500), true);
    const next = await says({ conversation: "after the setting" }, true);
    await stage.event(line, ({ data }) => data.messageId === next);
    assert.deepEqual(await lifetimes(stage, line.sessionId, ANA), all(604_800));

    await says(setting(0, 1_768_478_600));
    const last = await says({ conversation: "for ever" });
    await stage.event(line, ({ data }) => data.messageId === last);
    assert.deepEqual(await lifetimes(stage, line.sessionId, ANA), all(null));
  },
);

onStage("messages into a group carry the lifetime that the API itself has set there", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const groups = `/sessions/${line.sessionId}/groups`;
  const { data: group } = await stage.api.call("POST", groups, { name: "Team", participants: [ANA] });
  await stage.api.call("PATCH", `${groups}/${group.id}`, { ephemeral: 86_400 });
  assert.deepEqual(await lifetimes(stage, line.sessionId, group.id), all(86_400));
});
