/** What the network reads of a message, as WhatsApp Web writes it: types, marks of changes, the token for reports. */
import assert from "node:assert/strict";
import { onSharedStage, type Stage } from "../support/stage.ts";
import { sampleFile } from "../support/sample_files.ts";
import { until } from "../support/until.ts";

const onShapes = onSharedStage("shapes of stanzas");

/** The shape of the line's message with this network id. */
const shapeOf = (stage: Stage, line: string, id: string) =>
  until(() => stage.network.switchboard.wire.entries(line).find((entry) => entry.id === id)?.shape, `stanza ${id}`);
/** The shape of the last message that the line sent. */
const lastShape = (stage: Stage, line: string) => stage.network.switchboard.wire.entries(line).at(-1)!.shape;

onShapes(
  "edits, deletions and reactions taken back say so, and hide where they cannot be read",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const messageId = await stage.sendText(line, ANA, "first");
    await stage.status(messageId, "sent");
    const react = async (emoji: string) => {
      const sent = await stage.api.call("POST", "/messages/send/reaction", { messageId, emoji });
      await stage.status(sent.messageId, "sent");
      const { attrs, encs } = lastShape(stage, LINE);
      return [attrs.type, attrs.edit, ...new Set(encs.map((enc) => enc["decrypt-fail"]))];
    };
    assert.deepEqual(await react("👍"), ["reaction", undefined, "hide"]);
    assert.deepEqual(await react(""), ["reaction", "7", "hide"]);
    await stage.api.call("PATCH", `/messages/${messageId}`, { text: "second" });
    assert.deepEqual([lastShape(stage, LINE).attrs.edit, lastShape(stage, LINE).encs[0]!["decrypt-fail"]], [
      "1",
      "hide",
    ]);
    await stage.api.call("POST", `/messages/${messageId}/revoke`);
    assert.deepEqual([lastShape(stage, LINE).attrs.edit, lastShape(stage, LINE).encs[0]!["decrypt-fail"]], [
      "7",
      "hide",
    ]);
  },
);

onShapes(
  "a picture to be viewed once is announced as such, and shows nothing before it is opened",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const file = { file: sampleFile("png").toString("base64"), filename: "a.png" };
    await stage.api.call("POST", "/messages/send/document", {
      sessionId: line.sessionId,
      to: ANA,
      ...file,
      viewOnce: true,
    });
    const { viewOnce, hasPreview, id } = await stage.arrival(ANA, ({ viewOnce }) => viewOnce);
    assert.deepEqual([viewOnce, hasPreview], [true, false]);
    const { attrs, encs, children } = await shapeOf(stage, LINE, id);
    assert.deepEqual([attrs.type, ...new Set(encs.map(({ mediatype }) => mediatype))], ["media", "image"]);
    assert.ok(children.some(({ tag, view_once }) => tag === "meta" && view_once === "true"), JSON.stringify(children));
  },
);

onShapes("every text carries a token by which the network can verify a report of it", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  for (let length = 1; length <= 12; length++) {
    await stage.status(await stage.sendText(line, ANA, "!".repeat(length)), "sent");
    const { reportingToken, children } = lastShape(stage, LINE);
    assert.equal(reportingToken?.length, 32);
    assert.equal(children.filter(({ tag }) => tag === "reporting").length, 1);
  }
});

onShapes(
  "a message to a LID names the number, so that it comes from nobody unknown; others name none",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const { id: group } = await stage.control.call("POST", "/groups", {
      subject: "Boats",
      participants: [LINE, ANA],
      addressingMode: "lid",
    });
    const numberNamed = async (to: string) => {
      await stage.status(await stage.sendText(line, to, "hello"), "sent");
      return lastShape(stage, LINE).attrs.peer_recipient_pn;
    };
    const { lid } = stage.network.switchboard.directory.account(ANA)!;
    assert.deepEqual([await numberNamed(ANA), lastShape(stage, LINE).attrs.to], [`${ANA}@s.whatsapp.net`, lid]);
    assert.equal(await numberNamed(lid), `${ANA}@s.whatsapp.net`);
    assert.equal(await numberNamed(group), undefined);
  },
);

onShapes("a message to a number names none beside it", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  await stage.control.call("POST", "/faults", { line: LINE, kind: "demand_addressing", form: "pn" });
  await stage.status(await stage.sendText(line, ANA, "hello"), "sent");
  const { to, peer_recipient_pn } = lastShape(stage, LINE).attrs;
  assert.deepEqual([to, peer_recipient_pn], [`${ANA}@s.whatsapp.net`, undefined]);
});

onShapes(
  "an account whose chats have not migrated is written from by number, from the first message on",
  async (stage, [LINE, ANA]) => {
    for (const number of [ANA, LINE]) await stage.addPhone(number);
    await stage.control.call("POST", "/faults", { line: LINE, kind: "demand_addressing", form: "pn" });
    const line = await stage.link(LINE);
    await stage.status(await stage.sendText(line, ANA, "hello"), "sent");
    const entries = stage.network.switchboard.wire.entries(LINE);
    assert.deepEqual(entries.map(({ to }) => to), [`${ANA}@s.whatsapp.net`]);
  },
);
