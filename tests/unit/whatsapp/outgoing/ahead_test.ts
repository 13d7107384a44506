import assert from "node:assert/strict";
import { encodeWAMessage, type SignalRepositoryWithLIDStore } from "@whiskeysockets/baileys";
import { makeAhead } from "../../../../src/whatsapp/baileys/outgoing/ahead.ts";

const ANA = "4917000000001:0@lid";
const BOB = "4917000000002:0@lid";

/** A repository that numbers what it encrypts. */
function aRepository() {
  let count = 0;
  const repository = {
    encryptMessage: () => Promise.resolve({ type: "msg", ciphertext: Uint8Array.of(++count) }),
    injectE2ESession: () => Promise.resolve(),
    deleteSession: () => Promise.resolve(),
    migrateSession: () => Promise.resolve({ migrated: 0, skipped: 0, total: 0 }),
  } as unknown as SignalRepositoryWithLIDStore;
  const ahead = makeAhead();
  const around = ahead.around(repository);
  const asked = async (jid: string, conversation: string) =>
    (await around.encryptMessage({ jid, data: encodeWAMessage({ conversation }) })).ciphertext[0];
  return { ahead, around, asked };
}

Deno.test("what was encrypted ahead is given once, for its device and its text alone, however the library pads it", async () => {
  const { ahead, asked } = aRepository();
  await ahead.encrypt({ conversation: "hello" }, [ANA, BOB]);
  assert.equal(await asked(ANA, "another"), 3);
  assert.equal(await asked(ANA, "hello"), 1);
  assert.equal(await asked(BOB, "hello"), 2);
  assert.equal(await asked(ANA, "hello"), 4);
});

Deno.test("a session that begins anew, is dropped or moved forgets what was encrypted ahead", async () => {
  const { ahead, around, asked } = aRepository();
  const changes = [
    () => around.deleteSession([ANA]),
    () => around.injectE2ESession({ jid: ANA, session: null as never }),
    () => around.migrateSession(ANA, BOB),
  ];
  for (const [i, change] of changes.entries()) {
    await ahead.encrypt({ conversation: "hello" }, [ANA]);
    await change();
    assert.equal(await asked(ANA, "hello"), 2 * i + 2);
  }
});
