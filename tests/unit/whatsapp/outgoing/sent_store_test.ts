/** Sent messages are kept, sealed, for receivers that ask again, and swept when nobody will. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { proto } from "@whiskeysockets/baileys";
import { openDenoKv } from "../../../../src/store/deno_kv/deno_kv.ts";
import { networkKeys } from "../../../../src/whatsapp/baileys/rows.ts";
import { Change } from "../../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../../src/store/seal.ts";
import { sweepExpired } from "../../../../src/whatsapp/baileys/expiry.ts";
import { makeSentStore } from "../../../../src/whatsapp/baileys/outgoing/sent_store.ts";
import { testRuntime } from "../../../support/runtime.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

Deno.test("a sent message is found by its network id, by another instance too, until it is swept", async () => {
  const runtime = testRuntime();
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const kv = await openDenoKv(":memory:", { runtime });
  try {
    const message = proto.Message.fromObject({ conversation: "a very private sentence" });
    const change = new Change();
    makeSentStore({ kv, seal, lineId: "ses_1", runtime }).keep(change, "3EB0", { chat: "7@lid", message });
    await kv.commit(change);
    const store = makeSentStore({ kv, seal, lineId: "ses_1", runtime });
    const found = await store.find("3EB0");
    assert.deepEqual([found?.chat, found?.message.conversation], ["7@lid", "a very private sentence"]);
    assert.equal(await store.find("3EB1"), undefined);
    assert.equal(await makeSentStore({ kv, seal, lineId: "ses_2", runtime }).find("3EB0"), undefined);
    const { value } = await kv.get(networkKeys.waSent("ses_1", "3EB0"));
    assert.equal(Buffer.from(value!).includes("private"), false);
    assert.equal(await sweepExpired(kv, runtime.clock.now() + 14 * DAY_MS), 0);
    assert.equal(await sweepExpired(kv, runtime.clock.now() + 15 * DAY_MS), 1);
    assert.equal(await store.find("3EB0"), undefined);
  } finally {
    kv.close();
  }
});
