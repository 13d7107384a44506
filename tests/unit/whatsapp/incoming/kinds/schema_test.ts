/**
 * The whole schema, field by field: whatever a person reads in a message of any kind stands in its text or its details,
 * and whoever an event names is named in one form.
 */
import assert from "node:assert/strict";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import type { z } from "zod";
import { contentOf } from "../../../../../src/whatsapp/baileys/incoming/content.ts";
import { decode, type DecodeContext } from "../../../../../src/whatsapp/baileys/incoming/decode.ts";
import { DETAILS, DETAILS_OF_KINDS, OtherDetails } from "../../../../../src/event/details.ts";
import { rowsOf } from "../../../../../src/whatsapp/baileys/incoming/kinds/kinds.ts";
import { madeAtRandom, MESSAGE } from "../../../../support/protobuf.ts";
import { seededRandom } from "../../../../support/runtime.ts";

const ROWS = rowsOf(() => null);
const KINDS = MESSAGE.fieldsArray.filter(({ name }) => "read" in ROWS[name as keyof typeof ROWS]);
/** Enough for each form of each kind to be chosen. */
const SEEDS = 20;
/** Fields below the kind's own. */
const DEPTH = 3;

/** Ends of the names of fields that no person reads, by the reason. */
const NOT_READ: Readonly<Record<string, RegExp>> = {
  address: /(url|Url|URL|Path|Jid|participant|requestFrom)$/,
  key: /(Key|Sha256|Hash|[a-z]Id|placeholderKey\.id|orderRequestMessageId\.id|background\.id)$/,
  program: /(Json|paymentExtendedMetadata\.platform|transactionData|nativeFlowInfo\.name|catalogType|capabilities)$/,
  format: /(mimetype|Mimetype|accessibilityLabel|accessibilityText|codeLanguage)$/,
  language: /(namespace|elementName|fallbackL[gc]|deterministicL[gc])$/,
  file: /(documentMessage\.title|ileName)$/,
  // Posts are no events.
  status: /(nnotations\.[\w.]+|statusAttributions\.[\w.]+)$/,
  source: /(externalAdReply\.\w+|conversion\w+|entryPoint\w+|utm\.\w+|ctwaSignals|smb\w+|dataSharingContext\.[\w.]+)$/,
  repeated: /(latexExpression|[cC]urrencyCode(Iso4217)?)$/,
  unshown: /(Image\.caption|stickers\.emojis|groupSubject|trustBannerType|creatorName)$/,
};
/** Ends that these would leave out, but that are read. */
const READ =
  /((urlButton|actionLink|product|ocation(Message)?)\.url|externalAdReply\.(title|body)|groupMentions\.groupSubject)$/;

const isRead = (path: string) => READ.test(path) || !Object.values(NOT_READ).some((end) => end.test(path));

const overWire = (message: proto.Message) => proto.Message.decode(proto.Message.encode(message).finish());

Deno.test("every word that a person reads, at any of three depths, is in the text or in the details", () => {
  const lost = new Set<string>();
  const read = new Set<string>();
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = seededRandom(seed);
    for (const kind of KINDS) {
      const { message, words } = madeAtRandom(kind, { depth: DEPTH, random });
      const content = contentOf(overWire(message));
      const shown = JSON.stringify([content?.text, content?.details, content?.ad, content?.media?.file.fileName]);
      for (const { path, value } of words.filter(({ path }) => isRead(path))) {
        read.add(path);
        if (!shown.includes(value)) lost.add(path);
      }
    }
  }
  assert.deepEqual([...lost], []);
  assert.ok(read.size > 300, `only ${read.size} fields were read`);
});

Deno.test("no reason for not reading a field is of none", () => {
  const paths = new Set<string>();
  for (let seed = 0; seed < SEEDS; seed++) {
    for (const kind of KINDS) {
      const { words } = madeAtRandom(kind, { depth: DEPTH, random: seededRandom(seed) });
      for (const { path } of words) paths.add(path);
    }
  }
  for (const [reason, ends] of Object.entries(NOT_READ)) {
    assert.ok([...paths].some((path) => ends.test(path)), `${reason} leaves nothing out`);
  }
});

const kindsOf = ({ shape }: (typeof DETAILS_OF_KINDS)[number]) => shape.kind.options as string[];
/** By the type of a message, or the kind of an `unknown` one. */
const SCHEMAS: Readonly<Record<string, z.ZodObject>> = {
  ...DETAILS,
  ...Object.fromEntries(DETAILS_OF_KINDS.flatMap((schema) => kindsOf(schema).map((kind) => [kind, schema]))),
};

Deno.test("the details of each kind have the members that their schema names, and no others", () => {
  const described = new Set<string>();
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = seededRandom(seed);
    for (const kind of KINDS) {
      const content = contentOf(overWire(madeAtRandom(kind, { depth: DEPTH, random }).message));
      const { type, details } = content!;
      const schema = SCHEMAS[type === "unknown" ? details!.kind as string : type] ?? OtherDetails;
      const told = JSON.parse(JSON.stringify(details ?? {}));
      // What a schema does not name is no part of what it returns.
      assert.deepEqual(schema.parse(told), told, kind.name);
      for (const member of Object.keys(details ?? {})) described.add(member);
    }
  }
  assert.ok(described.size > 40, [...described].join());
});

const ME = { id: "491500000001:3@s.whatsapp.net", lid: "1001:3@lid" };
const CONTEXT = {
  me: ME,
  clock: { now: () => 1_768_478_400_000 },
  phoneOf: () => Promise.resolve(null),
  findOriginal: () => Promise.resolve(null),
  timer: () => Promise.resolve(),
  isLost: () => Promise.resolve(false),
  isAdmin: () => Promise.resolve(false),
  media: () => null,
  history: () => Promise.resolve(),
} as unknown as DecodeContext;

/** Where messages come from, as the network writes it. */
const FROM: readonly Record<string, string>[] = [
  { from: "4915100000002:7@s.whatsapp.net" },
  { from: "2002:12@lid", sender_pn: "4915100000002@s.whatsapp.net" },
  { from: "4915100000002:99@hosted" },
  { from: "2002:99@hosted.lid" },
  { from: "120363000000000001@g.us", participant: "2002:12@lid" },
  { from: "120363000000000001@g.us", participant: "4915100000002:99@hosted" },
];
const ADDRESS = /[\w.:-]+@[a-z][\w.]*/g;
const NORMAL = /^[\w.-]+@(s\.whatsapp\.net|lid|g\.us)$/;
/** A channel is no chat of a line, but can be named. */
const CHANNEL = /"(channel|forwardedFrom)":\{"id":"[^"]*"/g;

Deno.test("every address in every event is in normal form, whoever wrote it in whatever form", async () => {
  let found = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = seededRandom(seed);
    for (const kind of MESSAGE.fieldsArray) {
      const { message } = madeAtRandom(kind, { depth: DEPTH, random });
      const attrs = { id: `3EB0${seed}`, t: "1768478400", ...FROM[seed % FROM.length]! };
      const plaintext = encodeWAMessage(overWire(message));
      const incoming = await decode({ attrs, plaintext }, CONTEXT);
      for (const address of JSON.stringify(incoming).replaceAll(CHANNEL, "").match(ADDRESS) ?? []) {
        assert.match(address, NORMAL, `${kind.name} from ${JSON.stringify(attrs)}: ${JSON.stringify(incoming)}`);
        found++;
      }
    }
  }
  assert.ok(found > 1_000, `only ${found} were found`);
});

Deno.test("the line itself is named by its number, and what is no address is not told", async () => {
  const contextInfo = {
    stanzaId: "Q",
    participant: "1001:9@lid",
    mentionedJid: ["1001@lid", "491500000001:4@s.whatsapp.net", "nobody", "@lid", "", "2002:1@lid", "2002@lid"],
  };
  const message = { orderMessage: { sellerJid: "1001@lid", orderId: "1", contextInfo } };
  const attrs = { id: "3EB0", t: "1768478400", from: "2002@lid" };
  const [incoming] = await decode({ attrs, plaintext: encodeWAMessage(message) }, CONTEXT);
  const line = "491500000001@s.whatsapp.net";
  assert.deepEqual(incoming!.mentions, [line, "2002@lid"]);
  assert.deepEqual([incoming!.quoted?.participant, incoming!.quoted?.fromMe], [line, true]);
  assert.deepEqual(incoming!.details?.order, { id: "1", seller: line });
  const strange = { ...message.orderMessage, sellerJid: "me", contextInfo: { stanzaId: "Q", participant: "me" } };
  const [other] = await decode({ attrs, plaintext: encodeWAMessage({ orderMessage: strange }) }, CONTEXT);
  assert.deepEqual([other!.details?.order, other!.quoted?.participant], [{ id: "1" }, null]);
});
