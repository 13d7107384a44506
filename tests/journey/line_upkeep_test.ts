/** What a line does by itself on a connection, as the network of today wants it, and how it is told that it was removed. */
import assert from "node:assert/strict";
import { SenderKeyMessage } from "@whiskeysockets/baileys/lib/Signal/Group/sender-key-message.js";
import { childrenOf, element } from "../../src/sandbox/world/stanza.ts";
import { onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915300000041";
const ANA = "4917000000041";
const REMOVED = "This device was removed from the account's linked devices.";

const accountOf = (stage: Stage, number: string) => stage.network.switchboard.directory.account(number)!;
const companionOf = (stage: Stage) => [...accountOf(stage, LINE).companions.values()][0]!;

onStage("one-time keys that many new contacts have used up are refilled by fifty", async (stage) => {
  await stage.linkLine(LINE);
  const { switchboard } = stage.network;
  const { keys, id: device } = companionOf(stage);
  while (keys.preKeyCount > 4) switchboard.takeKeys({ account: accountOf(stage, LINE), device });
  await until(() => keys.preKeyCount > 4, "new keys");
  // The owner's phone may write to the line, and take one of them, at any moment.
  assert.ok(keys.preKeyCount > 50 && keys.preKeyCount <= 54, String(keys.preKeyCount));
});

onStage("the account's name is announced without showing the owner as online", async (stage) => {
  await stage.addPhone(LINE, "Owner");
  const { presence } = stage.network.switchboard;
  const take = presence.take.bind(presence);
  const announced: (string | undefined)[] = [];
  presence.take = (companion, stanza) => {
    if (stanza.attrs.name) announced.push(stanza.attrs.type);
    take(companion, stanza);
  };
  await stage.link(LINE);
  await until(() => announced.length > 0, "the announcement of the name");
  assert.deepEqual([...new Set(announced)], ["unavailable"]);
  assert.equal(companionOf(stage).available, false);
});

onStage("a removal that comes without a code is one, and no other client that took over", async (stage) => {
  const line = await stage.linkLine(LINE);
  companionOf(stage).session!.end(element("stream:error", {}, [element("conflict", { type: "device_removed" })]));
  assert.equal((await stage.sessionStatus(line, "logged_out")).reason, REMOVED);
});

onStage("a post has another key once its audience has shrunk, and not before", async (stage) => {
  const ben = "4917000000042";
  for (const number of [ANA, ben]) await stage.addPhone(number);
  const line = await stage.linkLine(LINE);
  const { relay } = stage.network.switchboard;
  const submit = relay.submit.bind(relay);
  const keyIds: number[] = [];
  relay.submit = (sender, message, options) => {
    const { content } = childrenOf(message, "enc").find(({ attrs }) => attrs.type === "skmsg") ?? {};
    if (content) keyIds.push(new SenderKeyMessage(null, null, null, null, content as Uint8Array).getKeyId());
    return submit(sender, message, options);
  };
  for (const audience of [[ANA, ben], [ANA, ben], [ANA], [ANA]]) {
    const text = `post ${keyIds.length}`;
    await stage.api.call("POST", "/messages/send/status", { sessionId: line.sessionId, text, audience });
    await stage.arrival(ANA, (item) => item.text === text);
  }
  const [first, , third] = keyIds;
  assert.notEqual(third, first, "who left could read on");
  assert.deepEqual(keyIds, [first, first, third, third]);
});
