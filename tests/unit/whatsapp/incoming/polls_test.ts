/** Votes are read with the secret of their poll, by whatever address the voter's app knew both sides. */
import assert from "node:assert/strict";
import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { Buffer } from "node:buffer";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import { makeSeal, sealKey } from "../../../../src/store/seal.ts";
import { Change } from "../../../../src/store/kv.ts";
import { decode } from "../../../../src/whatsapp/baileys/incoming/decode.ts";
import { keepOriginal, keepSent } from "../../../../src/whatsapp/baileys/stored_messages.ts";
import { findPoll, readVote } from "../../../../src/whatsapp/baileys/incoming/polls.ts";
import type { Incoming } from "../../../../src/whatsapp/incoming.ts";
import { MemoryKv } from "../../../support/memory_kv.ts";
import { testRuntime } from "../../../support/runtime.ts";

const SECRET = Buffer.alloc(32, 7);
const POLL = { chat: null, secret: SECRET, options: ["tea", "coffee", "Ünal 😀"], selectable: 0, authors: [] };
const PEOPLE = {
  pollId: "P1",
  creators: ["900@lid", "551:3@s.whatsapp.net"],
  voters: ["222:1@lid", "552@s.whatsapp.net"],
};

/** As an app encrypts a vote. */
function encrypted(
  chosen: string[],
  { creator, voter }: { creator: string; voter: string },
): proto.Message.IPollEncValue {
  const extracted = createHmac("sha256", Buffer.alloc(32)).update(SECRET).digest();
  const info = Buffer.concat([Buffer.from(`P1${creator}${voter}Poll Vote`), Buffer.of(1)]);
  const key = createHmac("sha256", extracted).update(info).digest();
  const encIv = randomBytes(12);
  const selectedOptions = chosen.map((option) => createHash("sha256").update(option).digest());
  const cipher = createCipheriv("aes-256-gcm", key, encIv).setAAD(Buffer.from(`P1\u0000${voter}`));
  const body = cipher.update(proto.Message.PollVoteMessage.encode({ selectedOptions }).finish());
  return { encIv, encPayload: Buffer.concat([body, cipher.final(), cipher.getAuthTag()]) };
}

for (const creator of ["900@lid", "551@s.whatsapp.net"]) {
  for (const voter of ["222@lid", "552@s.whatsapp.net"]) {
    Deno.test(`a vote of ${voter} in the poll of ${creator} is read`, () => {
      const vote = encrypted(["Ünal 😀", "tea", "of another poll"], { creator, voter });
      assert.deepEqual(readVote(vote, POLL, PEOPLE), ["tea", "Ünal 😀"]);
      assert.deepEqual(readVote(encrypted([], { creator, voter }), POLL, PEOPLE), []);
    });
  }
}

Deno.test("a vote that chooses more than its poll lets anybody choose is none", () => {
  const [creator, voter] = ["900@lid", "222@lid"];
  const single = { ...POLL, selectable: 1 };
  assert.equal(readVote(encrypted(["tea", "coffee"], { creator, voter }), single, PEOPLE), null);
  assert.deepEqual(readVote(encrypted(["coffee"], { creator, voter }), single, PEOPLE), ["coffee"]);
  assert.deepEqual(readVote(encrypted([], { creator, voter }), single, PEOPLE), []);
});

for (
  const [title, attrs, chosen] of [
    ["in the group of the poll counts", { from: "1@g.us", participant: "222@lid" }, ["tea"]],
    ["from outside of it does not", { from: "222@lid" }, undefined],
    ["from another group does not", { from: "2@g.us", participant: "222@lid" }, undefined],
  ] as const
) {
  Deno.test(`a vote ${title}, for who is in the group could give the poll's secret to others`, async () => {
    const vote = encrypted(["tea"], { creator: "900@lid", voter: "222@lid" });
    const message = { pollUpdateMessage: { pollCreationMessageKey: { id: "P1", fromMe: true }, vote } };
    const [incoming] = await decode({ attrs: { id: "V1", t: "1", ...attrs }, plaintext: encodeWAMessage(message) }, {
      me: { id: "551:3@s.whatsapp.net", lid: "900@lid" },
      clock: Date,
      phoneOf: () => Promise.resolve(null),
      isLost: () => Promise.resolve(false),
      findPoll: () => Promise.resolve({ ...POLL, chat: "1@g.us" }),
      isAdmin: () => Promise.resolve(false),
      media: () => assert.fail("there is no file"),
      history: () => Promise.resolve(),
    });
    assert.deepEqual(incoming?.change?.kind === "vote" ? incoming.change.options : undefined, chosen);
  });
}

Deno.test("a vote that was encrypted for other people, or altered, is not guessed", () => {
  assert.equal(readVote(encrypted(["tea"], { creator: "1@lid", voter: "222@lid" }), POLL, PEOPLE), null);
  const vote = encrypted(["tea"], { creator: "900@lid", voter: "222@lid" });
  vote.encPayload![0]! ^= 1;
  assert.equal(readVote(vote, POLL, PEOPLE), null);
});

Deno.test("a poll that came in is found again, with its secret sealed, and so is one that was sent", async () => {
  const kv = new MemoryKv();
  const runtime = testRuntime();
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const sentPoll = {
    pollCreationMessageV3: { options: [{ optionName: "a" }], selectableOptionsCount: 1 },
    messageContextInfo: { messageSecret: SECRET },
  };
  const poll = {
    ephemeralMessage: {
      message: { pollCreationMessage: { name: "?", options: [{ optionName: "tea" }, { optionName: "coffee" }] } },
    },
    messageContextInfo: { messageSecret: SECRET },
  };
  const envelope = { chat: "1@g.us", participant: "222@lid", number: "552", fromMe: false, text: "?" };
  const forged = { ...poll, messageContextInfo: { messageSecret: Buffer.alloc(32, 8) } };
  const incoming = (networkId: string, fields: Partial<Incoming>) =>
    ({ ...envelope, networkId, type: "pollCreationMessage", ...fields }) as Incoming;
  const change = new Change();
  const kept = (message: proto.IMessage) => ({
    seal,
    lineId: "ses_1",
    now: runtime.clock.now(),
    plaintext: new Uint8Array([...proto.Message.encode(message).finish(), 1]),
  });
  keepOriginal(change, incoming("P1", {}), kept(poll));
  // In the copy that the owner's phone sends, the secret may stand beside the poll.
  const { messageContextInfo, ...message } = poll;
  keepOriginal(change, incoming("OWN", { fromMe: true }), kept({ deviceSentMessage: { message }, messageContextInfo }));
  keepOriginal(change, incoming("T1", { type: "conversation" }), kept({ conversation: "hi" }));
  keepOriginal(change, incoming("SENT", {}), kept(forged));
  const sent = { networkId: "SENT", chat: "2@g.us", message: sentPoll };
  keepSent(change, sent, { seal, lineId: "ses_1", now: runtime.clock.now() });
  await kv.commit(change);
  const find = (networkId: string) => findPoll({ kv, seal, lineId: "ses_1" }, networkId);
  const options = ["tea", "coffee"];
  assert.deepEqual(await find("P1"), {
    chat: "1@g.us",
    secret: SECRET,
    options,
    selectable: 0,
    authors: ["222@lid", "552@s.whatsapp.net"],
  });
  assert.deepEqual(await find("OWN"), { chat: "1@g.us", secret: SECRET, options, selectable: 0, authors: [] });
  assert.deepEqual(await find("SENT"), {
    chat: "2@g.us",
    secret: new Uint8Array(SECRET),
    options: ["a"],
    selectable: 1,
    authors: [],
  });
  for (const none of ["T1", "UNKNOWN"]) assert.equal(await find(none), null);
  for await (const { value } of kv.list<Uint8Array>({ prefix: ["wa"] as never })) {
    assert.ok(!Buffer.from(value).includes(SECRET.toString("base64")));
  }
});
