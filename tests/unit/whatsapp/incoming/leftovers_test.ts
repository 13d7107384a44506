/** Messages that were acknowledged when the link ended, and that no connection will hand over any more. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { encodeWAMessage, proto, type SignalDataSet } from "@whiskeysockets/baileys";
import { makeSeal, sealKey } from "../../../../src/store/seal.ts";
import { openAuthState } from "../../../../src/whatsapp/baileys/auth_state.ts";
import type { JournalEntry } from "../../../../src/whatsapp/baileys/incoming/journal.ts";
import { handOver, leftoversOf } from "../../../../src/whatsapp/baileys/incoming/leftovers.ts";
import { makeMediaHost } from "../../../../src/whatsapp/baileys/media_host.ts";
import type { Incoming } from "../../../../src/whatsapp/incoming.ts";
import { MemoryKv } from "../../../support/memory_kv.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

const lineId = "ses_1";
const ANA = "552@s.whatsapp.net";
const BEN = "77@lid";

/** A linked line whose journal is as the last connection left it. */
async function scene(rows: { journal?: JournalEntry[]; undecryptable?: { id: string; category?: string }[] }) {
  const runtime = testRuntime();
  const options = {
    kv: new MemoryKv(),
    seal: makeSeal(sealKey("a secret of the tests"), runtime.random),
    lineId,
    runtime,
    mediaHost: makeMediaHost({ mediaUrl: null, ca: null }, runtime.clock),
  };
  const auth = await openAuthState(options);
  Object.assign(auth.creds, { me: { id: "551:1@s.whatsapp.net" }, account: { details: Buffer.from([1]) } });
  await auth.saveCreds();
  const undecryptable = (rows.undecryptable ?? []).map(({ id, ...attrs }) => ({
    stanza: `${ANA}||${id}`,
    since: runtime.clock.now(),
    attrs: { id, from: ANA, t: "1768478400", ...attrs },
  }));
  await auth.keys.set({
    journal: Object.fromEntries((rows.journal ?? []).map((entry) => [entry.part, entry])),
    undecryptable: Object.fromEntries(undecryptable.map((entry) => [entry.stanza, entry])),
    "lid-mapping": { "77_reverse": "553" },
  } as SignalDataSet);
  return options;
}

function row(sequence: number, id: string, from = ANA): JournalEntry {
  const plaintext = encodeWAMessage(proto.Message.fromObject({ conversation: `text of ${id}` }));
  return { part: `${id}|x`, stanza: `${from}||${id}`, sequence, attrs: { id, from, t: "1768478400" }, plaintext };
}

const textsOf = (messages: Incoming[]) => messages.map(({ networkId, text }) => [networkId, text]);

Deno.test("they are read in the order in which they came, with the numbers that the line knew", async () => {
  const left = await leftoversOf(await scene({ journal: [row(3, "A"), row(1, "C", BEN), row(2, "B")] }));
  assert.deepEqual(textsOf(left), [["C", "text of C"], ["B", "text of B"], ["A", "text of A"]]);
  assert.deepEqual(left.map(({ number }) => number), ["553", "552", "552"]);
});

Deno.test("nobody sends again what did not decrypt: it is reported, unless it came or was never for people", async () => {
  const undecryptable = [{ id: "A" }, { id: "LOST" }, { id: "PHONE", category: "peer" }];
  const left = await leftoversOf(await scene({ journal: [row(1, "A")], undecryptable }));
  assert.deepEqual(left.map(({ networkId, undecryptable }) => [networkId, undecryptable]), [
    ["A", false],
    ["LOST", true],
  ]);
});

Deno.test("a message of another chat that has the id of one that did not decrypt does not stand for it", async () => {
  const journal = [row(1, "A", "554@s.whatsapp.net")];
  const left = await leftoversOf(await scene({ journal, undecryptable: [{ id: "A" }] }));
  assert.deepEqual(left.map(({ chat, undecryptable }) => [chat, undecryptable]), [
    ["554@s.whatsapp.net", false],
    [ANA, true],
  ]);
});

Deno.test("one that makes no sense keeps back none of the others", async () => {
  const left = await leftoversOf(
    await scene({ journal: [{ ...row(1, "POISON"), plaintext: Uint8Array.of(200, 200, 200, 1) }, row(2, "A")] }),
  );
  assert.deepEqual(textsOf(left), [["A", "text of A"]]);
});

Deno.test("a line whose keys another secret sealed, or that was never linked, has none", async () => {
  const options = await scene({ journal: [row(1, "A")] });
  const seal = makeSeal(sealKey("another secret"), options.runtime.random);
  assert.deepEqual(await leftoversOf({ ...options, seal }), []);
  assert.deepEqual(await leftoversOf({ ...options, lineId: "ses_2" }), []);
});

Deno.test("a chat is handed over in order, and no chat waits for another", async () => {
  const left = await leftoversOf(await scene({ journal: [row(1, "A"), row(2, "B"), row(3, "C", BEN)] }));
  const { promise: slow, resolve } = Promise.withResolvers<void>();
  const received: string[] = [];
  const handed = handOver(left, async ({ networkId }) => {
    received.push(networkId);
    if (networkId === "A") await slow;
    return false;
  });
  await settle();
  assert.deepEqual(received, ["A", "C"]);
  resolve();
  await handed;
  assert.deepEqual(received, ["A", "C", "B"]);
});
