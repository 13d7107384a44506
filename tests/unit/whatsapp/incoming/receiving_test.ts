/** What earlier connections left in the journal, at the next login. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { encodeWAMessage } from "@whiskeysockets/baileys";
import type { Incoming } from "../../../../src/whatsapp/incoming.ts";
import { takeIncoming } from "../../../../src/whatsapp/baileys/incoming/receiving.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

type Options = Parameters<typeof takeIncoming>[0];

const GROUP = "1@g.us";
const NOW = 1_768_478_400_000;

/** Stanzas of a group's members under one id. */
function stanza(participant: string) {
  return { stanza: `${GROUP}|${participant}|A`, attrs: { id: "A", from: GROUP, participant, t: "1768478400" } };
}

function decrypted(text: string, participant: string, at: number) {
  const plaintext = encodeWAMessage({ conversation: text });
  return { ...stanza(participant), part: text, sequence: at * 1000, plaintext };
}

/** Resolves to the texts that are handed over at a login. */
async function handedOver(left: Options["left"]): Promise<(string | null)[]> {
  const texts: (string | null)[] = [];
  const lidMapping = { getPNForLID: (lid: string) => Promise.resolve(lid.replace("@lid", "@s.whatsapp.net")) };
  const inbox = takeIncoming({
    socket: { ws: new EventEmitter(), signalRepository: { lidMapping } },
    creds: { me: { id: "551:1@s.whatsapp.net" } },
    journal: { settling: () => () => {}, done: () => {}, count: () => {}, wasUndecrypted: () => false },
    left,
    cause: { own: <T>(work: () => T) => work() },
    groups: {},
    moves: {},
    timers: {},
    events: { message: ({ text }: Incoming) => texts.push(text) },
    isOpen: () => true,
    isOver: () => false,
    runtime: testRuntime(),
  } as unknown as Options);
  inbox.open();
  await settle(10);
  await inbox.close();
  return texts;
}

Deno.test("of what an earlier connection left, a message is dropped whose id another member's unreadable one had before", async () => {
  const undecrypted = [{ ...stanza("77@lid"), since: NOW }];
  assert.deepEqual(await handedOver({ decrypted: [decrypted("said", "88@lid", NOW - 1)], undecrypted }), ["said"]);
  assert.deepEqual(await handedOver({ decrypted: [decrypted("forged", "88@lid", NOW + 1)], undecrypted }), []);
});
