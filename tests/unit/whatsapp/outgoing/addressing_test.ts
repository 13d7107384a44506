/** By which of their addresses people are written to, as the network's answers tell. */
import assert from "node:assert/strict";
import { makeAddressing, type Migration } from "../../../../src/whatsapp/baileys/outgoing/addressing.ts";

const NUMBER = "4917000000001@s.whatsapp.net";
const LID = "1@lid";
const STRANGER = "2@lid";
/** The LIDs that came after others. */
const AFTER: Record<string, string> = { "3": "4@lid", "4": STRANGER, "5": LID };

function addressing(creds: Migration = {}) {
  return makeAddressing(
    () => ({
      getLIDsForPNs: (pns) => Promise.resolve(pns.includes(NUMBER) ? [{ pn: NUMBER, lid: LID }] : []),
      getPNForLID: (lid) => Promise.resolve(lid === LID ? "4917000000001:0@s.whatsapp.net" : null),
    }),
    creds,
    (user) => Promise.resolve(AFTER[user] ?? null),
  );
}

Deno.test("somebody without a known number is addressed by the newest of their LIDs", async () => {
  const { of } = addressing();
  assert.deepEqual(await Promise.all(["3@lid", "4@lid", STRANGER, "5@lid"].map(of)), [
    STRANGER,
    STRANGER,
    STRANGER,
    LID,
  ]);
});

Deno.test("people are addressed by LID, by number once that is refused, and by LID again once a number is", async () => {
  const { of, refused } = addressing();
  assert.deepEqual([await of(NUMBER), await of(LID)], [LID, LID]);
  assert.equal(await refused(LID, 400), true);
  assert.equal(await refused(LID, 400), true, "of a message that was encoded before");
  assert.deepEqual([await of(NUMBER), await of(LID), await of(STRANGER)], [NUMBER, NUMBER, STRANGER]);
  assert.equal(await refused(NUMBER, 463), true);
  assert.deepEqual([await of(NUMBER), await of(LID)], [LID, LID]);
});

Deno.test("a refusal is not about the address after a message by LID was taken, with another code, or without another address", async () => {
  const { of, refused, acknowledged } = addressing();
  assert.equal(await refused(STRANGER, 400), false);
  assert.equal(await refused("4917000000009@s.whatsapp.net", 463), false);
  assert.equal(await refused(LID, 463), false);
  assert.equal(await refused(NUMBER, 400), false);
  acknowledged(NUMBER);
  acknowledged(LID);
  assert.equal(await refused(LID, 400), false);
  assert.equal(await of(NUMBER), LID);
});

Deno.test("what the network said at the link counts from the first message on, until a message by LID is taken", async () => {
  const creds: Migration = { chatsAreByLid: false };
  const { of, refused, acknowledged } = addressing(creds);
  assert.deepEqual([await of(NUMBER), await of(LID)], [NUMBER, NUMBER]);
  assert.equal(await refused(NUMBER, 463), true);
  assert.equal(await of(NUMBER), LID);
  assert.equal(creds.chatsAreByLid, false, "a refusal alone says nothing");
  acknowledged(LID);
  assert.equal(creds.chatsAreByLid, true);
  assert.equal(await addressing(creds).of(NUMBER), LID);
});
