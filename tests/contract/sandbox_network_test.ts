/** What the network of 2026 does to clients and carries between them, as Baileys as it comes meets it, while another line never notices. */
import assert from "node:assert/strict";
import { executeWMexQuery } from "@whiskeysockets/baileys/lib/Socket/mex.js";
import { participantHash } from "../../src/sandbox/world/directory.ts";
import { type BinaryNode, child } from "../../src/sandbox/world/stanza.ts";
import { type BareClient, linkedClient, sendText, untilClosed } from "../support/bare_baileys.ts";
import { ANA, LINE, onLines, OTHER } from "../support/two_lines.ts";
import { until } from "../support/until.ts";

const show = ({ socket }: BareClient, type = "available") => socket.sendNode({ tag: "presence", attrs: { type } });

onLines("a status stanza that is not acknowledged cuts the line, and comes again", async ({ line, cause }) => {
  const closed = untilClosed(line.socket);
  await cause({ kind: "status_post", form: "stanza" });
  await closed;
  await line.reconnect();
  await untilClosed(line.socket);
});

onLines("an undecryptable status post that is refused holds back the line", async ({ network, line, cause }) => {
  await cause({ kind: "status_post", form: "undecryptable" });
  const { mailbox } = network.switchboard.directory.account(LINE)!.companions.get(1)!;
  const received: string[] = [];
  line.socket.ws.on("CB:message", ({ attrs }) => received.push(attrs.id));
  await until(() => mailbox.blocked);
  const { id } = await network.phone(ANA)!.sendMessage({ to: LINE, text: "held back" });
  await network.phone(ANA)!.idle();
  assert.equal(mailbox.size > 1, true);
  assert.equal(received.includes(id), false, "the post itself may have come");
});

for (const error of [402, 405, 406, 409, 516]) {
  onLines(`refuse_login ends the next login with ${error}, and the one after it passes`, async ({ line, cause }) => {
    await line.close();
    await cause({ kind: "refuse_login", error });
    const reconnecting = line.reconnect();
    assert.equal(await untilClosed(line.socket), error);
    void reconnecting;
    await line.reconnect();
  });
}

onLines(
  "a device without keys is an error in the answer to the query for its keys",
  async ({ network, line, cause }) => {
    const { lid } = network.switchboard.directory.account(OTHER)!;
    await cause({ kind: "no_keys", line: OTHER, device: 1 });
    const keysOf = async (jid: string) => {
      const answer = await line.socket.query({
        tag: "iq",
        attrs: { to: "@s.whatsapp.net", type: "get", xmlns: "encrypt" },
        content: [{ tag: "key", attrs: {}, content: [{ tag: "user", attrs: { jid } }] }],
      });
      return child(child(child(answer, "list"), "user"), "error")?.attrs.code;
    };
    assert.equal(await keysOf(`${OTHER}@s.whatsapp.net`), undefined);
    assert.equal(await keysOf(`${OTHER}:1@s.whatsapp.net`), "404");
    assert.equal(await keysOf(lid.replace("@", ":1@")), "404");
  },
);

onLines(
  "a restriction is reported, can be asked for, and refuses new chats alone",
  async ({ network, line, cause }) => {
    const updates: unknown[] = [];
    line.socket.ev.on(
      "connection.update",
      ({ reachoutTimeLock }) => reachoutTimeLock && updates.push(reachoutTimeLock),
    );
    const end = Math.floor(Date.now() / 1000) * 1000 + 3_600_000;
    await network.phone(OTHER)!.sendMessage({ to: LINE, text: "write to me" });
    await until(() => line.received.length === 1);
    await cause({ kind: "restrict", until: end });
    await until(() => updates.length === 1);
    const lock = { isActive: true, timeEnforcementEnds: new Date(end), enforcementType: "WEB_COMPANION_ONLY" };
    assert.deepEqual(updates[0], lock);
    assert.deepEqual(await line.socket.fetchAccountReachoutTimelock(), lock);
    const refused = sendText(line, `${ANA}@s.whatsapp.net`, "cold");
    assert.equal((await refused.acknowledged).attrs.error, "463");
    const passed = sendText(line, `${OTHER}@s.whatsapp.net`, "known");
    assert.equal((await passed.acknowledged).attrs.error, undefined);
  },
);

onLines(
  "a cap on new chats is reported, and can be asked for as WhatsApp Web does, not as the library does",
  async ({ line, cause }) => {
    await cause({ kind: "cap_new_chats", limit: 5, until: Date.now() + 3_600_000 });
    await assert.rejects(line.socket.fetchNewChatMessageCap(), /unknown query/);
    const { query, generateMessageTag } = line.socket;
    const variables = { input: { type: "INDIVIDUAL_NEW_CHAT_THREAD" } };
    const cap = await executeWMexQuery<Record<string, unknown>>(
      variables,
      "27910975521856601",
      "xwa2_message_capping_info",
      query,
      generateMessageTag,
    );
    assert.deepEqual([cap.total_quota, cap.used_quota, cap.capping_status], [5, 0, "NONE"]);
  },
);

onLines(
  "typing reaches a line that is available, presence if it subscribed, and its own typing reaches the phone",
  async ({ network, line, other }) => {
    const seen: string[] = [];
    line.socket.ev.on("presence.update", ({ presences }) => {
      seen.push(...Object.values(presences).map(({ lastKnownPresence }) => lastKnownPresence));
    });
    const ana = network.phone(ANA)!;
    await show(line, "unavailable");
    const { companions } = network.switchboard.directory.account(LINE)!;
    await until(() => companions.get(1)!.available === false);
    ana.setTyping(LINE, "typing");
    await show(line);
    await line.socket.presenceSubscribe(ana.jid);
    await until(() => seen.includes("available"));
    assert.deepEqual(seen, ["available"]);
    ana.setTyping(LINE, "typing");
    await until(() => seen.includes("composing"));
    await line.socket.sendPresenceUpdate("composing", ana.jid);
    await until(() => ana.chatStates().some(({ state }) => state === "typing"));
    // The library says of itself that it is available whenever its credentials change: how often nobody knows.
    const before = seen.length;
    await line.socket.presenceSubscribe(network.phone(OTHER)!.jid);
    await show(other);
    await until(() => seen.slice(before).includes("available"));
    const online = seen.length;
    await show(other, "unavailable");
    await until(() => seen.slice(online).includes("unavailable"));
  },
);

onLines("a call rings on the line, which may reject it", async ({ network, line }) => {
  const calls: { id: string; status: string; isVideo?: boolean }[] = [];
  line.socket.ev.on("call", (updates) => calls.push(...updates));
  const ana = network.phone(ANA)!;
  const { callId } = ana.call(LINE, { video: true });
  await until(() => calls.length === 1);
  assert.deepEqual([calls[0]!.id, calls[0]!.status, calls[0]!.isVideo], [callId, "offer", true]);
  await line.socket.rejectCall(callId, ana.jid);
});

onLines("a status post reaches the phones of its audience, and no other", async ({ network, line }) => {
  const ana = network.phone(ANA)!;
  const other = network.phone(OTHER)!;
  await line.socket.sendMessage("status@broadcast", { text: "today" }, { statusJidList: [ana.lid] });
  await until(() => ana.inbox().length === 1);
  const [item] = ana.inbox();
  assert.deepEqual([item!.chat, item!.from, item!.text], ["status@broadcast", `${LINE}@s.whatsapp.net`, "today"]);
  await other.idle();
  assert.deepEqual(other.inbox(), []);
});

onLines("the last stanza is read, and the stream ended, before the network hangs up", async ({ line, cause }) => {
  const seen: string[] = [];
  line.socket.ws.on("frame", ({ tag }: { tag: string }) => seen.push(tag));
  line.socket.ws.on("close", () => seen.push("closed"));
  await cause({ kind: "replace" });
  assert.equal(await untilClosed(line.socket), 440);
  const ends = new Set(["stream:error", "xmlstreamend", "closed"]);
  assert.deepEqual(seen.filter((tag) => ends.has(tag)).slice(0, 2), ["stream:error", "xmlstreamend"]);
});

onLines("a change of devices is one stanza, with hashes of the lists after it", async ({ network, line }) => {
  const second = await linkedClient(network, network.phone(OTHER)!);
  const stanzas: BinaryNode[] = [];
  line.socket.ws.on("CB:notification,type:devices", (stanza: BinaryNode) => stanzas.push(stanza));
  await line.socket.getUSyncDevices([`${OTHER}@s.whatsapp.net`], false, false);
  const { directory, removeCompanion } = network.switchboard;
  const account = directory.account(OTHER)!;
  removeCompanion(account.companions.get(2)!);
  await until(() => stanzas.length === 1);
  const [{ attrs, content }] = stanzas as [BinaryNode];
  assert.deepEqual([attrs.from, attrs.lid], [account.jid, account.lid]);
  const [change] = content as BinaryNode[];
  const [jids, lids] = [account.jid, account.lid].map((jid) => [jid, jid.replace("@", ":1@")]);
  assert.deepEqual(change!.attrs, { device_hash: participantHash(jids!), device_lid_hash: participantHash(lids!) });
  const [device] = change!.content as BinaryNode[];
  const named = { jid: `${OTHER}:2@s.whatsapp.net`, lid: account.lid.replace("@", ":2@"), "key-index": "2" };
  assert.deepEqual([change!.tag, device!.tag, device!.attrs], ["remove", "device", named]);
  await second.close();
});

onLines("a line that watches another hears that it has dropped", async ({ network, line, other, cause }) => {
  const seen: string[] = [];
  other.socket.ws.on("CB:presence", ({ attrs }: BinaryNode) => seen.push(attrs.type ?? "available"));
  await show(other);
  await other.socket.presenceSubscribe(network.phone(LINE)!.jid);
  await show(line);
  await until(() =>
    network.switchboard.directory.account(LINE)!.companions.get(1)!.available && seen.includes("available")
  );
  const online = seen.length;
  await cause({ kind: "drop" });
  await until(() => seen.slice(online).includes("unavailable"));
});
