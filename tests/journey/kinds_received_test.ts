/**
 * What people, companies and their customers send, by groups of kinds: it arrives whole, is quoted, answered, reacted to
 * and read, and stands in the chat of the API, of the panel and on the terminal of `paloma listen`.
 */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { sendFile } from "../../src/sandbox/phone/attachment.ts";
import { runCommand } from "../support/gateway_process.ts";
import { listen } from "../support/listening.ts";
import { silentRuntime } from "../support/runtime.ts";
import { type LinkedLine, onStage, openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000031";
const ANA = "4917000000031";

interface Kind {
  kind: string;
  message: Json;
  text: string | null;
  details: Json;
  /** The header's file, which the message gets before it is sent. */
  file?: "document" | "image";
  isForwardable?: true;
}

const PAY = { name: "cta_url", buttonParamsJson: '{"display_text":"Pay","url":"https://pay.example/7"}' };
const key = { remoteJid: `${LINE}@s.whatsapp.net`, id: "3EB0F00D", fromMe: false };
const target = { messageId: key.id, fromMe: true };

const GROUPS: Readonly<Record<string, readonly Kind[]>> = {
  "people's words, places and contacts": [
    {
      kind: "conversation",
      message: { conversation: "hello there" },
      text: "hello there",
      details: {},
      isForwardable: true,
    },
    {
      kind: "locationMessage",
      message: { locationMessage: { degreesLatitude: 1.5, degreesLongitude: 2.5, name: "Café" } },
      text: "Café",
      details: { latitude: 1.5, longitude: 2.5, name: "Café" },
      isForwardable: true,
    },
    {
      kind: "contactMessage",
      message: { contactMessage: { displayName: "Carla", vcard: "TEL:+34 600 111 222" } },
      text: "Carla",
      details: { contacts: [{ name: "Carla", vcard: "TEL:+34 600 111 222", phones: ["34600111222"] }] },
      isForwardable: true,
    },
    {
      kind: "pollCreationMessage",
      message: { pollCreationMessage: { name: "Tea?", options: [{ optionName: "yes" }], selectableOptionsCount: 1 } },
      text: "Tea?",
      details: { options: ["yes"], selectable: 1 },
    },
  ],
  "what companies write": [
    {
      kind: "templateMessage",
      message: {
        templateMessage: {
          hydratedTemplate: {
            hydratedContentText: "Your code is 123",
            hydratedButtons: [{ quickReplyButton: { id: "ok", displayText: "OK" } }],
          },
        },
      },
      text: "Your code is 123",
      details: { buttons: [{ id: "ok", text: "OK" }] },
    },
    {
      kind: "interactiveMessage",
      message: {
        interactiveMessage: {
          header: {
            hasMediaAttachment: true,
            documentMessage: { mimetype: "application/pdf", fileName: "invoice.pdf" },
          },
          body: { text: "Your invoice" },
          footer: { text: "Acme" },
          nativeFlowMessage: { buttons: [PAY] },
        },
      },
      text: "Your invoice",
      details: { footer: "Acme", buttons: [{ text: "Pay", url: "https://pay.example/7" }] },
      file: "document",
    },
    {
      kind: "interactiveMessage",
      message: {
        viewOnceMessage: {
          message: {
            interactiveMessage: {
              body: { text: "Look" },
              carouselMessage: { cards: [{ header: { title: "One" }, body: { text: "First" } }] },
            },
          },
        },
      },
      text: "Look",
      details: { cards: [{ text: "First", header: "One" }] },
    },
    {
      kind: "buttonsMessage",
      message: {
        buttonsMessage: {
          contentText: "Pick",
          imageMessage: { mimetype: "image/png" },
          buttons: [{ buttonId: "a", buttonText: { displayText: "A" } }],
        },
      },
      text: "Pick",
      details: { buttons: [{ id: "a", text: "A" }] },
      file: "image",
    },
    {
      kind: "listMessage",
      message: {
        listMessage: {
          title: "Menu",
          description: "Choose",
          sections: [{ title: "Hot", rows: [{ rowId: "t", title: "Green tea" }] }],
        },
      },
      text: "Choose",
      details: { header: "Menu", buttons: [{ id: "t", text: "Green tea", section: "Hot" }] },
    },
    {
      kind: "highlyStructuredMessage",
      message: { highlyStructuredMessage: { elementName: "otp", params: ["987"] } },
      text: "987",
      details: { template: "otp" },
    },
  ],
  "orders, products and payments": [
    {
      kind: "orderMessage",
      message: { orderMessage: { orderId: "1", token: "T", itemCount: 2, message: "two please" } },
      text: "two please",
      details: { order: { id: "1", token: "T", itemCount: 2 } },
    },
    {
      kind: "productMessage",
      message: {
        productMessage: {
          body: "Is it there?",
          product: { productId: "P", title: "Kettle", productImage: { mimetype: "image/png" } },
        },
      },
      text: "Is it there?",
      details: { product: { id: "P", title: "Kettle" } },
      file: "image",
    },
    {
      kind: "invoiceMessage",
      message: { invoiceMessage: { note: "March", token: "T" } },
      text: "March",
      details: { invoice: { token: "T" } },
    },
    {
      kind: "requestPaymentMessage",
      message: {
        requestPaymentMessage: {
          noteMessage: { conversation: "lunch" },
          amount1000: 9_000,
          currencyCodeIso4217: "BRL",
        },
      },
      text: "lunch",
      details: { payment: { amount: 9, currency: "BRL" } },
    },
    {
      kind: "sendPaymentMessage",
      message: { sendPaymentMessage: { noteMessage: { conversation: "paid" } } },
      text: "paid",
      details: {},
    },
    {
      kind: "declinePaymentRequestMessage",
      message: { declinePaymentRequestMessage: { key } },
      text: null,
      details: { target },
    },
  ],
  "answers and taps": [
    {
      kind: "interactiveResponseMessage",
      message: {
        interactiveResponseMessage: {
          body: { text: "Yes, I do" },
          nativeFlowResponseMessage: { name: "quick_reply", paramsJson: '{"id":"yes"}' },
        },
      },
      text: "Yes, I do",
      details: { selectedId: "yes", flow: "quick_reply" },
    },
    {
      kind: "templateButtonReplyMessage",
      message: { templateButtonReplyMessage: { selectedId: "ok", selectedDisplayText: "All right" } },
      text: "All right",
      details: { selectedId: "ok" },
    },
    {
      kind: "buttonsResponseMessage",
      message: { buttonsResponseMessage: { selectedButtonId: "2", selectedDisplayText: "The second" } },
      text: "The second",
      details: { selectedId: "2" },
    },
    {
      kind: "listResponseMessage",
      message: { listResponseMessage: { title: "The row", singleSelectReply: { selectedRowId: "10" } } },
      text: "The row",
      details: { selectedId: "10" },
    },
    {
      kind: "commentMessage",
      message: { commentMessage: { message: { conversation: "well said" }, targetMessageKey: key } },
      text: "well said",
      details: { target },
    },
  ],
  "events, invitations and what else there is": [
    {
      kind: "eventMessage",
      message: { eventMessage: { name: "Fair", description: "Hall 3" } },
      text: "Fair",
      details: { event: { name: "Fair", description: "Hall 3" } },
    },
    {
      kind: "groupInviteMessage",
      message: { groupInviteMessage: { groupJid: "1@g.us", inviteCode: "x", groupName: "Team" } },
      text: "Team",
      details: { invite: { groupId: "1@g.us", code: "x", name: "Team" } },
    },
    {
      kind: "newsletterAdminInviteMessage",
      message: { newsletterAdminInviteMessage: { newsletterJid: "1@newsletter", newsletterName: "Daily" } },
      text: "Daily",
      details: { channel: { id: "1@newsletter", name: "Daily" } },
    },
    {
      kind: "scheduledCallCreationMessage",
      message: { scheduledCallCreationMessage: { title: "Demo", scheduledTimestampMs: 1_768_478_400_000 } },
      text: "Demo",
      details: { call: { startsAt: "2026-01-15T12:00:00.000Z" } },
    },
    {
      kind: "stickerPackMessage",
      message: { stickerPackMessage: { stickerPackId: "S", name: "Cats" } },
      text: "Cats",
      details: { stickerPack: { id: "S", name: "Cats" } },
    },
    {
      kind: "pollResultSnapshotMessage",
      message: {
        pollResultSnapshotMessage: { name: "Coffee?", pollVotes: [{ optionName: "Yes", optionVoteCount: 3 }] },
      },
      text: "Coffee?",
      details: { votes: [{ name: "Yes", votes: 3 }] },
    },
    {
      kind: "richResponseMessage",
      message: { richResponseMessage: { submessages: [{ messageText: "An answer" }] } },
      text: "An answer",
      details: {},
    },
  ],
};

const FILE = new TextEncoder().encode("%PDF-1.4 the file of a header");

/** The message with its header's file on the network's media host. */
async function withFile({ message, file }: Kind, { network: { media } }: Stage): Promise<Json> {
  if (!file) return message;
  const sealed = await sendFile(FILE, file, { runtime: silentRuntime(), media });
  const stated = Object.fromEntries(
    Object.entries(sealed).map(([name, value]) => [name, value instanceof Uint8Array ? value.toBase64() : value]),
  );
  const filled = (_: string, value: Json): Json => value?.mimetype ? { ...value, ...stated } : value;
  return JSON.parse(JSON.stringify(message), filled);
}

/** Somebody with a login at the panel; resolves to what they read of the account through it. */
async function visitor({ gateway, env, accountId }: Stage): Promise<(path: string) => Promise<Json>> {
  const { origin } = new URL(gateway.baseUrl);
  const [, token] = JSON.parse(await runCommand(["operator", "link", "--json"], env)).url.split("#");
  const joined = await fetch(`${origin}/panel/api/join`, {
    method: "POST",
    headers: { "x-paloma-panel": "1" },
    body: JSON.stringify({ token, login: "root", password: "a dove on the roof" }),
  });
  assert.equal(joined.status, 200, await joined.text());
  const cookie = joined.headers.get("set-cookie")!.split(";")[0]!;
  return async (path) => {
    const response = await fetch(`${origin}/panel/api/accounts/${accountId}/v1${path}`, { headers: { cookie } });
    const body = await response.text();
    assert.equal(response.status, 200, body);
    return JSON.parse(body);
  };
}

Deno.test("whatever is sent is read whole and can be answered", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const listening = listen(stage, []);
    await listening.says(/Listening to/);
    const inPanel = await visitor(stage);
    for (const [group, kinds] of Object.entries(GROUPS)) {
      await t.step(group, () => exchange(kinds, { stage, line, listening, inPanel }));
    }
    assert.equal(await listening.end(), 0);
  }));

interface Scene {
  stage: Stage;
  line: LinkedLine;
  listening: ReturnType<typeof listen>;
  inPanel: (path: string) => Promise<Json>;
}

async function exchange(kinds: readonly Kind[], { stage, line, listening, inPanel }: Scene): Promise<void> {
  const { api, control } = stage;
  const { sessionId } = line;
  const say = async (message: Json) =>
    (await control.call("POST", `/phones/${ANA}/messages`, { to: LINE, message })).id;
  const heard = (id: string) => stage.event(line, ({ data }) => data.messageId === id);
  const chat = `/sessions/${sessionId}/chats/${ANA}`;

  const arrived: (Kind & { id: string; sent: Json })[] = [];
  for (const kind of kinds) {
    const sent = await withFile(kind, stage);
    arrived.push({ ...kind, sent, id: await say(sent) });
  }
  for (const { id, kind, text, details, file } of arrived) {
    const { event, data } = await heard(id);
    const isKnown = data.type === kind;
    assert.ok(isKnown || data.type === "unknown", kind);
    assert.deepEqual([event, data.text], ["message.received", text], kind);
    assert.deepEqual(data.details ?? {}, isKnown ? details : { kind, ...details }, kind);
    assert.equal(data.media !== undefined, file !== undefined, `${kind}: a file`);
    if (!file) continue;
    assert.deepEqual(new Uint8Array(await (await fetch(data.media.url)).arrayBuffer()), FILE, kind);
  }

  const reactions: string[] = [];
  // Answered, reacted to and read by the line; quoted and reacted to by whoever wrote it.
  for (const { id, kind, sent } of arrived) {
    await api.call("POST", "/messages/send/text", { sessionId, to: ANA, text: `re ${id}`, replyTo: id });
    const reaction = await api.call("POST", "/messages/send/reaction", { messageId: id, emoji: "👍" });
    reactions.push(reaction.messageId);
    await api.call("POST", `${chat}/read`, { messageId: id });
    const contextInfo = { stanzaId: id, participant: `${ANA}@s.whatsapp.net`, quotedMessage: sent };
    await say({ extendedTextMessage: { text: `about ${id}`, contextInfo } });
    await say({ reactionMessage: { key: { ...key, id, fromMe: true }, text: "🌻" } });
    assert.ok(kind);
  }
  for (const { id, kind, text, isForwardable } of arrived) {
    assert.equal((await stage.arrival(ANA, (item) => item.text === `re ${id}`)).quoted.id, id, kind);
    await stage.arrival(ANA, ({ reaction }) => reaction?.id === id);
    const about = await stage.event(line, ({ data }) => data.text === `about ${id}`);
    const quoted = { messageId: id, fromMe: false, participant: `${ANA}@s.whatsapp.net`, text };
    assert.deepEqual(about.data.quoted, quoted, kind);
    await stage.event(line, ({ data }) => data.type === "reactionMessage" && data.details.target.messageId === id);
    const forward = api.call("POST", "/messages/send/forward", { sessionId, to: ANA, messageId: id });
    if (isForwardable) await forward;
    else await assert.rejects(forward, /400.*forwarded/, kind);
  }

  // The phone may have a reaction before the gateway knows that it was sent.
  for (const id of reactions) await stage.status(id, "sent");
  for (const read of [(path: string) => api.call("GET", path), inPanel]) {
    const shown: Json[] = (await read(`${chat}/messages?limit=100`)).data;
    for (const { id, kind, text, details, file } of arrived) {
      const one = shown.find(({ messageId }) => messageId === id);
      assert.ok(one, `${kind} is not in the chat`);
      assert.deepEqual([one.text, Boolean(one.media?.url)], [text, file !== undefined], kind);
      const { kind: named, ...rest } = one.details ?? {};
      assert.deepEqual([named ?? one.type, rest], [kind, details]);
      assert.deepEqual(one.reactions.map(({ emoji }: Json) => emoji).sort(), ["🌻", "👍"].sort(), kind);
    }
  }
  for (const { kind, text } of arrived) {
    const printed = `${kind}${text === null ? "" : `: ${text}`}`;
    await until(() => listening.lines.some((line) => line.includes(printed)) || null, `${printed} at the terminal`);
  }
}

onStage("what the owner's own app sends of these kinds is an echo, whole", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  for (const kinds of Object.values(GROUPS)) {
    const sent = await Promise.all(kinds.map(async (kind) => {
      const message = await withFile(kind, stage);
      const { id } = await stage.control.call("POST", `/phones/${LINE}/messages`, { to: ANA, message });
      return { ...kind, id };
    }));
    for (const { id, kind, text, details, file } of sent) {
      const { event, data } = await stage.event(line, ({ data }) => data.messageId === id);
      assert.deepEqual([event, data.text, data.media !== undefined], ["message.echo", text, file !== undefined], kind);
      const { kind: named = data.type, target: _, ...rest } = data.details ?? {};
      const { target: __, ...wanted } = details;
      assert.deepEqual([named, rest], [kind, wanted]);
    }
  }
});

onStage(
  "an edit that is sealed is an edit, of a text, of a caption, and by the owner too; what is withheld is told at once",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const edits = async (number: string, message: Json, plain: boolean) => {
      const { id } = await stage.control.call("POST", `/phones/${number}/messages`, message);
      await stage.event(line, ({ data }) => data.messageId === id);
      const text = `edited ${crypto.randomUUID()}`;
      await stage.control.call("POST", `/phones/${number}/edit`, { id, text, plain });
      const { event, data } = await stage.event(line, ({ data }) => data.text === text);
      assert.deepEqual([event, data.messageId, data.number], ["message.edited", id, number]);
      return { id, text };
    };
    for (const plain of [false, true]) {
      await edits(ANA, { to: LINE, text: "helo", hideNumber: plain }, plain);
      await edits(LINE, { to: ANA, text: "my own" }, plain);
    }
    const picture = { to: LINE, file: btoa("a picture"), kind: "image", mimetype: "image/png", caption: "helo" };
    for (const [what, message] of Object.entries({ text: { to: LINE, text: "to be quoted" }, picture })) {
      const { id, text } = await edits(ANA, message, what === "picture");
      const answer = { sessionId: line.sessionId, to: ANA, text: `re ${what}`, replyTo: id };
      await stage.api.call("POST", "/messages/send/text", answer);
      const { quoted } = await stage.arrival(ANA, (item) => item.text === `re ${what}`);
      assert.deepEqual([quoted.id, quoted.text], [id, text], "it is quoted as it reads now");
    }

    for (const [type, withheld] of [["view_once", "view_once"], ["hosted_unavailable_fanout", "hosted"]] as const) {
      const stanza = { tag: "message", content: [{ tag: "unavailable", attrs: { type } }] };
      const { id } = await stage.control.call("POST", `/phones/${ANA}/stanzas`, { to: LINE, stanza });
      const { data } = await stage.event(line, ({ data }) => data.messageId === id);
      assert.deepEqual(data.details, { withheld });
      assert.equal(data.viewOnce, withheld === "view_once" ? true : undefined);
    }
  },
);
