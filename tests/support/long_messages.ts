/** Messages that are long in one field each, and what becomes of them at a line. */
import assert from "node:assert/strict";
import type { proto } from "@whiskeysockets/baileys";
import type { Json } from "../../src/cli/client.ts";
import type { RunningGateway } from "./gateway_process.ts";
import type { LinkedLine, Stage } from "./stage.ts";
import { until } from "./until.ts";

const FRIEND = "552@s.whatsapp.net";
const x = (bytes: number) => "x".repeat(bytes);
const emoji = (bytes: number) => "😀".repeat(bytes / 4);
const accents = (bytes: number) => "é".repeat(bytes / 2);
const characters = (bytes: number) => "语".repeat(bytes / 3);
const answer = (contextInfo: proto.IContextInfo) => ({ extendedTextMessage: { text: "yes", contextInfo } });

/** Each field that can be long, in a message of about so many bytes. What is no text is base64, as in JSON. */
export const LONG: Readonly<Record<string, (bytes: number) => Json>> = {
  text: (bytes) => ({ conversation: x(bytes) }),
  emoji: (bytes) => ({ extendedTextMessage: { text: emoji(bytes) } }),
  accents: (bytes) => ({ conversation: accents(bytes) }),
  escapes: (bytes) => ({ conversation: "\u0007".repeat(bytes) }),
  preview: (bytes) => ({ extendedTextMessage: { text: "see", description: accents(bytes) } }),
  caption: (bytes) => ({ documentMessage: { title: "t", caption: characters(bytes) } }),
  title: (bytes) => ({ documentMessage: { title: characters(bytes) } }),
  picture: (bytes) => ({ imageMessage: { caption: "see", jpegThumbnail: btoa(x(bytes)) } }),
  quote: (bytes) => answer({ stanzaId: "Q", participant: FRIEND, quotedMessage: { conversation: emoji(bytes) } }),
  mentions: (bytes) => answer({ mentionedJid: Array.from({ length: bytes / 20 }, (_, i) => `${1e6 + i}@lid`) }),
  ad: (bytes) => answer({ externalAdReply: { title: "t", body: accents(bytes), sourceUrl: "https://a.example" } }),
  contact: (bytes) => ({ contactMessage: { displayName: "Ana", vcard: characters(bytes) } }),
  contacts: (bytes) => ({
    contactsArrayMessage: { contacts: Array.from({ length: 5 }, () => ({ vcard: accents(bytes / 5) })) },
  }),
  poll: (bytes) => ({
    pollCreationMessage: { name: "tea?", options: [{ optionName: accents(bytes) }, { optionName: "no" }] },
  }),
  options: (bytes) => ({
    pollCreationMessage: { name: "?", options: Array.from({ length: bytes / 10 }, () => ({ optionName: "seven" })) },
  }),
  location: (bytes) => ({ locationMessage: { degreesLatitude: 1, degreesLongitude: 2, address: accents(bytes) } }),
  template: (bytes) => ({ templateMessage: { hydratedTemplate: { hydratedContentText: accents(bytes) } } }),
  interactive: (bytes) => ({ interactiveMessage: { body: { text: "?" }, footer: { text: characters(bytes) } } }),
  flow: (bytes) => ({
    interactiveMessage: {
      nativeFlowMessage: { buttons: [{ name: "x", buttonParamsJson: JSON.stringify({ display_text: x(bytes) }) }] },
    },
  }),
  buttons: (bytes) => ({
    buttonsMessage: { contentText: "?", buttons: [{ buttonId: "a", buttonText: { displayText: emoji(bytes) } }] },
  }),
  list: (bytes) => ({
    listMessage: {
      description: "?",
      sections: [{ rows: Array.from({ length: bytes / 40 }, () => ({ rowId: "row", title: x(30) })) }],
    },
  }),
  order: (bytes) => ({ orderMessage: { orderId: "1", message: accents(bytes) } }),
  product: (bytes) => ({ productMessage: { product: { productId: "1", description: accents(bytes) } } }),
  form: (bytes) => ({
    interactiveResponseMessage: {
      nativeFlowResponseMessage: { name: "flow", paramsJson: JSON.stringify({ a: x(bytes) }) },
    },
  }),
  event: (bytes) => ({ eventMessage: { name: "Fair", description: characters(bytes) } }),
  invitation: (bytes) => ({ groupInviteMessage: { groupJid: "1@g.us", caption: emoji(bytes) } }),
  reaction: (bytes) => ({ reactionMessage: { key: { id: "3EB0", fromMe: true }, text: emoji(bytes) } }),
};

/**
 * Has the phone send each of these messages in each of these sizes to the line, and fails unless each becomes one event
 * and the line still reads what comes after them.
 */
export async function sendLong(
  stage: Stage<RunningGateway>,
  line: LinkedLine,
  { from, kinds, sizes }: { from: string; kinds: readonly string[]; sizes: readonly number[] },
): Promise<{ sent: number; events: number }> {
  const sent: string[] = [];
  const times = new Map<string, number>();
  let after = "now";
  const { data: [last] } = await stage.api.call("GET", `/events?limit=1000&sessionId=${line.sessionId}`)
    .then(({ data }) => ({ data: data.slice(-1) }));
  if (last) after = last.id;

  /** A page of events is kept in memory: few, for each may be long. */
  async function read(): Promise<void> {
    const query = `limit=20&types=message.received,session.disconnected&sessionId=${line.sessionId}&after=${after}`;
    const { data } = await stage.api.call("GET", `/events?${query}`);
    for (const { id, event, data: { messageId } } of data as Json[]) {
      assert.equal(event, "message.received", `the line was lost after ${messageId}`);
      times.set(messageId, (times.get(messageId) ?? 0) + 1);
      after = id;
    }
  }

  for (const bytes of sizes) {
    for (const kind of kinds) {
      const message = { to: line.number, message: LONG[kind]!(bytes) };
      const { id } = await stage.control.call("POST", `/phones/${from}/messages`, message);
      sent.push(id);
    }
    await until(
      async () => {
        await read();
        return sent.every((id) => times.has(id)) || null;
      },
      `an event of each message of ${bytes} bytes; missing: ${
        kinds.filter((_, i) => !times.has(sent.at(i - kinds.length)!))
      }`,
    );
  }
  const { id } = await stage.control.call("POST", `/phones/${from}/messages`, {
    to: line.number,
    text: "still there?",
  });
  await until(async () => {
    await read();
    return times.has(id) || null;
  }, "the text after them");
  assert.deepEqual([...times].filter(([, count]) => count > 1), [], "no message is told twice");
  return { sent: sent.length, events: times.size - 1 };
}
