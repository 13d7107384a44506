/** Profiles and blocks on the simulated network, as Baileys as it comes works them. */
import assert from "node:assert/strict";
import { type BinaryNode, getBinaryNodeChild, getBinaryNodeChildren, proto } from "@whiskeysockets/baileys";
import { executeWMexQuery } from "@whiskeysockets/baileys/lib/Socket/mex.js";
import { ANA, LINE, onLines, OTHER } from "../support/two_lines.ts";
import { until } from "../support/until.ts";

const jidOf = (number: string) => `${number}@s.whatsapp.net`;

async function refused(work: Promise<unknown>, code: number): Promise<void> {
  await assert.rejects(work, (error: { data?: number }) => error.data === code);
}

onLines(
  "an owner's picture and words are seen by others, and the blocked are listed",
  async ({ network, line, other }) => {
    const change = (input: Record<string, unknown>) =>
      executeWMexQuery(
        { input },
        "9152604461510864",
        "xwa2_update_text_status",
        line.socket.query,
        line.socket.generateMessageTag,
      );
    assert.deepEqual(await change({ text: "open till ten", ephemeral_duration_sec: 0 }), { result: "SUCCESS" });
    await assert.rejects(change({ text: "open till nine" }), "of another form");
    await line.socket.updateProfileStatus("open till eight");
    const [status] = (await other.socket.fetchStatus(jidOf(LINE)))!;
    assert.equal((status!.status as { status: string }).status, "open till ten");
    await refused(line.socket.query({ tag: "iq", attrs: { to: "s.whatsapp.net", type: "get", xmlns: "status" } }), 501);
    assert.equal(network.switchboard.directory.account(LINE)!.about, "open till ten", "the old query changes nothing");
    await refused(other.socket.profilePictureUrl(jidOf(LINE), "image"), 404);
    const picture = { tag: "picture", attrs: { type: "image" }, content: new Uint8Array([255, 216, 255]) };
    await line.socket.query({
      tag: "iq",
      attrs: { to: "s.whatsapp.net", type: "set", xmlns: "w:profile:picture" },
      content: [picture],
    });
    const url = await other.socket.profilePictureUrl(jidOf(LINE), "image");
    const client = Deno.createHttpClient({ caCerts: [network.caPem] });
    assert.deepEqual([...new Uint8Array(await (await fetch(url!, { client })).arrayBuffer())], [255, 216, 255]);
    client.close();
    await line.socket.onWhatsApp(ANA);
    const { lid } = network.switchboard.directory.account(ANA)!;
    await line.socket.updateBlockStatus(jidOf(ANA), "block");
    assert.deepEqual(await line.socket.fetchBlocklist(), [lid]);
    await line.socket.updateBlockStatus(jidOf(ANA), "unblock");
    assert.deepEqual(await line.socket.fetchBlocklist(), []);
  },
);

onLines("nobody blocks themselves, by number or by LID", async ({ network, line }) => {
  for (const own of [jidOf(LINE), network.switchboard.directory.account(LINE)!.lid]) {
    await refused(line.socket.updateBlockStatus(own, "block"), 400);
  }
  assert.deepEqual(await line.socket.fetchBlocklist(), []);
});

onLines("whom a line has blocked does not reach it, until it unblocks them", async ({ network, line, other }) => {
  const ana = network.phone(ANA)!;
  const calls: string[] = [];
  const typed: string[] = [];
  line.socket.ev.on("call", (updates) => calls.push(...updates.map(({ id }) => id)));
  line.socket.ws.on("CB:chatstate", ({ attrs }: BinaryNode) => typed.push(attrs.from!));
  await line.socket.presenceSubscribe(ana.jid);
  await line.socket.onWhatsApp(ANA);
  await line.socket.updateBlockStatus(jidOf(ANA), "block");
  await ana.sendMessage({ to: LINE, text: "blocked" });
  ana.call(LINE, { video: false });
  ana.setTyping(LINE, "typing");
  await line.socket.updateBlockStatus(jidOf(ANA), "unblock");
  ana.setTyping(LINE, "typing");
  const { callId } = ana.call(LINE, { video: false });
  await ana.sendMessage({ to: LINE, text: "unblocked" });
  await until(() => line.received.length > 0 && calls.length > 0 && typed.length > 0);
  assert.deepEqual(line.received.map(({ message }) => message?.conversation), ["unblocked"]);
  assert.deepEqual([calls, typed], [[callId], [ana.jid]]);
  await ana.sendMessage({ to: OTHER, text: "nobody else has blocked" });
  await until(() => other.received.length > 0);
});

onLines(
  "privacy settings are kept, each by itself, and a value that there is not is refused",
  async ({ line, other }) => {
    const fresh = await line.socket.fetchPrivacySettings(true);
    await line.socket.updateLastSeenPrivacy("contacts");
    await line.socket.updateReadReceiptsPrivacy("none");
    const changed = { ...fresh, last: "contacts", readreceipts: "none" };
    assert.deepEqual(await line.socket.fetchPrivacySettings(true), changed);
    await refused(line.socket.updateOnlinePrivacy("nobody at all" as "all"), 400);
    await line.reconnect();
    assert.deepEqual(await line.socket.fetchPrivacySettings(true), changed);
    assert.deepEqual(await other.socket.fetchPrivacySettings(true), fresh);
  },
);

onLines("each change of shared settings reaches a client, whoever made the one before", async ({ line, cause }) => {
  const { socket } = line;
  const versions = new Set<number>();
  socket.ws.on("CB:iq,type:result", (stanza: BinaryNode) => {
    const collection = getBinaryNodeChild(getBinaryNodeChild(stanza, "sync"), "collection");
    for (const { content } of getBinaryNodeChildren(getBinaryNodeChild(collection, "patches"), "patch")) {
      versions.add(Number(proto.SyncdPatch.decode(content as Uint8Array).version?.version));
    }
  });
  await until(() => socket.authState.creds.myAppStateKeyId);
  for (const version of [1, 2]) {
    await cause({ kind: "new_salt" });
    await until(() => versions.has(version));
  }
  await socket.chatModify({ mute: null }, jidOf(ANA));
  await cause({ kind: "new_salt" });
  await until(() => versions.has(4));
  assert.deepEqual([...versions], [1, 2, 4], "its own it has already");

  const patch = { tag: "patch", attrs: {}, content: proto.SyncdPatch.encode({}).finish() };
  const collection = { tag: "collection", attrs: { name: "regular_high", version: "3" }, content: [patch] };
  const sync = { tag: "sync", attrs: {}, content: [collection] };
  const attrs = { to: "s.whatsapp.net", type: "set", xmlns: "w:sync:app:state" };
  const answer = await socket.query({ tag: "iq", attrs, content: [sync] });
  const refused = getBinaryNodeChild(getBinaryNodeChild(answer, "sync"), "collection");
  assert.deepEqual([refused?.attrs.version, getBinaryNodeChild(refused, "error")?.attrs.code], ["4", "409"]);
});

onLines(
  "a business has a profile of the form that clients read, and nobody else has one",
  async ({ network, line }) => {
    network.switchboard.directory.account(ANA)!.business = { description: "Boats", category: "Shop", email: "a@b.c" };
    const profile = await line.socket.getBusinessProfile(jidOf(ANA));
    const { wid, description, category, email } = profile!;
    assert.deepEqual([wid, description, category, email], [jidOf(ANA), "Boats", "Shop", "a@b.c"]);
    assert.equal(await line.socket.getBusinessProfile(jidOf(LINE)), undefined);
  },
);
