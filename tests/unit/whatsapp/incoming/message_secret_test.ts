/** What is added to a message is opened with its secret, by whatever address the adder's app knew both sides. */
import assert from "node:assert/strict";
import { createCipheriv, createHash, randomBytes } from "node:crypto";
import { Buffer } from "node:buffer";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import { makeSeal, sealKey } from "../../../../src/store/seal.ts";
import { Change } from "../../../../src/store/kv.ts";
import { decode } from "../../../../src/whatsapp/baileys/incoming/decode.ts";
import { keepOriginal, keepSent } from "../../../../src/whatsapp/baileys/stored_messages.ts";
import {
  findOriginal,
  keyOf,
  type Original,
  readVote,
} from "../../../../src/whatsapp/baileys/incoming/message_secret.ts";
import type { Incoming } from "../../../../src/whatsapp/incoming.ts";
import { MemoryKv } from "../../../support/memory_kv.ts";
import { testRuntime } from "../../../support/runtime.ts";

const SECRET = Buffer.alloc(32, 7);
const ME = { id: "551:3@s.whatsapp.net", lid: "900@lid" };

Deno.test("the key of an edit is that of the published vector", () => {
  const secret = Uint8Array.from({ length: 32 }, (_, i) => i);
  const jid = "178680451944640@lid";
  const key = keyOf("Message Edit", { secret, networkId: "3EB0C8712CC1E53869085F", author: jid, adder: jid });
  assert.equal(Buffer.from(key).toString("hex"), "544adeff170821f7c260f834a38e53debcf4cdf2013751aef932a8e3ae8beced");
});

type Use = Parameters<typeof keyOf>[0];
interface Sealing {
  author: string;
  adder: string;
  id?: string;
  /** Apps take 12. */
  ivBytes?: number | undefined;
}

/** As an app seals an addition. */
function seal(use: Use, plain: Uint8Array, { author, adder, id = "P1", ivBytes = 12 }: Sealing) {
  const encIv = randomBytes(ivBytes);
  const cipher = createCipheriv("aes-256-gcm", keyOf(use, { secret: SECRET, networkId: id, author, adder }), encIv);
  if (use === "Poll Vote" || use === "Event Response") cipher.setAAD(Buffer.from(`${id}\u0000${adder}`));
  return { encIv, encPayload: Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]) };
}

function voteFor(chosen: string[], people: Sealing): proto.Message.IPollUpdateMessage {
  const selectedOptions = chosen.map((option) => createHash("sha256").update(option).digest());
  const plain = proto.Message.PollVoteMessage.encode({ selectedOptions }).finish();
  return { pollCreationMessageKey: { id: "P1", fromMe: true }, vote: seal("Poll Vote", plain, people) };
}

function poll(selectable = 0, chat: string | null = null): Original {
  const options = ["tea", "coffee", "Ünal 😀"].map((optionName) => ({ optionName }));
  const message = { pollCreationMessage: { name: "?", options, selectableOptionsCount: selectable } };
  return { networkId: "P1", chat, message, secret: SECRET, authors: [] };
}

const VOTER = { chat: "222@lid", addresses: ["222:1@lid", "552@s.whatsapp.net"], fromMe: false, me: [ME.lid, ME.id] };
const chosenIn = async (update: proto.Message.IPollUpdateMessage, original = poll()) =>
  (await readVote(update, VOTER, () => Promise.resolve(original)))?.options ?? null;

for (const author of ["900@lid", "551@s.whatsapp.net"]) {
  for (const adder of ["222@lid", "552@s.whatsapp.net"]) {
    Deno.test(`a vote of ${adder} in the poll of ${author} is read`, async () => {
      assert.deepEqual(await chosenIn(voteFor(["Ünal 😀", "tea", "of another poll"], { author, adder })), [
        "tea",
        "Ünal 😀",
      ]);
      assert.deepEqual(await chosenIn(voteFor([], { author, adder })), []);
    });
  }
}

Deno.test("a vote that chooses more than its poll lets anybody choose is none", async () => {
  const people = { author: "900@lid", adder: "222@lid" };
  assert.equal(await chosenIn(voteFor(["tea", "coffee"], people), poll(1)), null);
  assert.deepEqual(await chosenIn(voteFor(["coffee"], people), poll(1)), ["coffee"]);
  assert.deepEqual(await chosenIn(voteFor([], people), poll(1)), []);
});

Deno.test("a vote that was encrypted for other people, or altered, is not guessed", async () => {
  assert.equal(await chosenIn(voteFor(["tea"], { author: "1@lid", adder: "222@lid" })), null);
  const altered = voteFor(["tea"], { author: "900@lid", adder: "222@lid" });
  altered.vote!.encPayload![0]! ^= 1;
  assert.equal(await chosenIn(altered), null);
});

/** What comes out of the stanza with this message, where the original is known. */
async function read(
  message: proto.IMessage,
  attrs: Record<string, string>,
  original: Original | null,
): Promise<Incoming | undefined> {
  const [incoming] = await decode({ attrs: { id: "V1", t: "1", ...attrs }, plaintext: encodeWAMessage(message) }, {
    me: ME,
    clock: Date,
    phoneOf: () => Promise.resolve(null),
    findOriginal: (id) => Promise.resolve(original?.networkId === id ? original : null),
    isLost: () => Promise.resolve(false),
    timer: () => Promise.resolve(),
    isAdmin: () => Promise.resolve(false),
    media: () => assert.fail("there is no file"),
    history: () => Promise.resolve(),
  });
  return incoming;
}

for (
  const [title, attrs, chosen] of [
    ["in the group of the poll counts", { from: "1@g.us", participant: "222@lid" }, ["tea"]],
    ["from outside of it does not", { from: "222@lid" }, undefined],
    ["from another group does not", { from: "2@g.us", participant: "222@lid" }, undefined],
  ] as const
) {
  Deno.test(`a vote ${title}, for who is in the group could give the poll's secret to others`, async () => {
    const pollUpdateMessage = voteFor(["tea"], { author: "900@lid", adder: "222@lid" });
    const incoming = await read({ pollUpdateMessage }, attrs, poll(0, "1@g.us"));
    assert.deepEqual(incoming?.change?.kind === "vote" ? incoming.change.options : undefined, chosen);
  });
}

const OF_ANA: Original = {
  networkId: "P1",
  chat: "222@lid",
  message: { conversation: "helo" },
  secret: SECRET,
  authors: ["222@lid", "552@s.whatsapp.net"],
};

interface EditOptions {
  people?: Sealing;
  innerId?: string;
  ivBytes?: number;
  type?: number;
}

function edit(options: EditOptions = {}): proto.IMessage {
  const { people = { author: "222@lid", adder: "222@lid" }, innerId = "P1", ivBytes, type = 2 } = options;
  const protocolMessage = { type: 14, key: { id: innerId, fromMe: true }, editedMessage: { conversation: "hello" } };
  const box = seal("Message Edit", proto.Message.encode({ protocolMessage }).finish(), { ...people, ivBytes });
  return {
    secretEncryptedMessage: {
      targetMessageKey: { id: "P1", fromMe: true, remoteJid: "900@lid" },
      secretEncType: type,
      ...box,
    },
  };
}

const IN_CHAT = { from: "222@lid", sender_pn: "552@s.whatsapp.net" };

Deno.test("a sealed edit is an edit of the original, under any address of its author", async () => {
  for (const jid of ["222@lid", "552@s.whatsapp.net"]) {
    const incoming = await read(edit({ people: { author: jid, adder: jid } }), IN_CHAT, OF_ANA);
    assert.deepEqual(incoming?.change, { kind: "edited", target: "P1", text: "hello" });
  }
});

Deno.test("a sealed edit of the owner's, on another device, edits what the owner sent", async () => {
  const own = { ...OF_ANA, chat: "552@s.whatsapp.net", authors: [] };
  const message = edit({ people: { author: "900@lid", adder: "900@lid" } });
  const attrs = { from: "900@lid", recipient: "222@lid" };
  const sent = { deviceSentMessage: { destinationJid: "222@lid", message } };
  assert.deepEqual((await read(sent, attrs, own))?.change, { kind: "edited", target: "P1", text: "hello" });
});

const GROUP = { ...OF_ANA, chat: "1@g.us" };
const REFUSED: Record<string, [message: proto.IMessage, attrs: Record<string, string>, original: Original | null]> = {
  "of a message that nobody knows": [edit(), IN_CHAT, null],
  "by a stranger who has the secret": [
    edit({ people: { author: "222@lid", adder: "333@lid" } }),
    { from: "1@g.us", participant: "333@lid" },
    GROUP,
  ],
  "from another chat": [edit(), { from: "2@g.us", participant: "222@lid" }, GROUP],
  "of what the line sent, by the other person": [
    edit({ people: { author: "900@lid", adder: "222@lid" } }),
    IN_CHAT,
    { ...OF_ANA, authors: [] },
  ],
  "whose inside names another message": [edit({ innerId: "P2" }), IN_CHAT, OF_ANA],
  "with a short iv": [edit({ ivBytes: 11 }), IN_CHAT, OF_ANA],
  "of an unknown kind": [edit({ type: 99 }), IN_CHAT, OF_ANA],
  "sealed for other people": [edit({ people: { author: "1@lid", adder: "222@lid" } }), IN_CHAT, OF_ANA],
};

for (const [title, [message, attrs, original]] of Object.entries(REFUSED)) {
  Deno.test(`a sealed edit ${title} is nothing`, async () => {
    assert.equal(await read(message, attrs, original), undefined);
  });
}

const TARGET = { id: "P1", fromMe: true, remoteJid: "900@lid" };
const PEOPLE = { author: "222@lid", adder: "222@lid" };

Deno.test("a sealed reaction, comment and answer to an event are read as what they are", async () => {
  const emoji = proto.Message.ReactionMessage.encode({ text: "👍" }).finish();
  const reaction = { encReactionMessage: { targetMessageKey: TARGET, ...seal("Enc Reaction", emoji, PEOPLE) } };
  const reacted = await read(reaction, IN_CHAT, OF_ANA);
  assert.deepEqual([reacted?.type, reacted?.text], ["reactionMessage", "👍"]);
  assert.deepEqual(reacted?.details, { target: { messageId: "P1", fromMe: false } });

  const words = proto.Message.encode({ conversation: "well said" }).finish();
  const comment = { encCommentMessage: { targetMessageKey: TARGET, ...seal("Enc Comment", words, PEOPLE) } };
  const commented = await read(comment, IN_CHAT, OF_ANA);
  assert.equal(commented?.text, "well said");
  assert.deepEqual(commented?.details, { kind: "commentMessage", target: { messageId: "P1", fromMe: false } });

  const going = proto.Message.EventResponseMessage.encode({ response: 1, extraGuestCount: 2 }).finish();
  const answer = {
    encEventResponseMessage: { eventCreationMessageKey: TARGET, ...seal("Event Response", going, PEOPLE) },
  };
  const answered = await read(answer, IN_CHAT, { ...OF_ANA, authors: [], secret: SECRET });
  assert.equal(answered, undefined, "it was sealed for another author");
  const forLine = seal("Event Response", going, { author: "900@lid", adder: "222@lid" });
  const came = await read(
    { encEventResponseMessage: { eventCreationMessageKey: TARGET, ...forLine } },
    IN_CHAT,
    { ...OF_ANA, authors: [] },
  );
  assert.deepEqual(came?.details, {
    kind: "eventResponse",
    target: { messageId: "P1", fromMe: true },
    response: "going",
    guests: 2,
  });
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
  const find = async (networkId: string) => {
    const found = await findOriginal({ kv, seal, lineId: "ses_1" }, networkId);
    return found && { chat: found.chat, secret: Buffer.from(found.secret), authors: found.authors };
  };
  const authors = ["222@lid", "552@s.whatsapp.net"];
  assert.deepEqual(await find("P1"), { chat: "1@g.us", secret: SECRET, authors });
  assert.deepEqual(await find("OWN"), { chat: "1@g.us", secret: SECRET, authors: [] });
  assert.deepEqual(await find("SENT"), { chat: "2@g.us", secret: SECRET, authors: [] });
  for (const none of ["T1", "UNKNOWN"]) assert.equal(await find(none), null);
  for await (const { value } of kv.list<Uint8Array>({ prefix: ["wa"] as never })) {
    assert.ok(!Buffer.from(value).includes(SECRET.toString("base64")));
  }
});
