/**
 * Throws mutated stanzas and receipts at a line, and mutated protobufs at what reads messages. On loopback, against a
 * gateway of its own. Fails when one is not acknowledged, a connection ends, another line notices, or when a message or
 * a turn of the gateway's event loop takes longer than it may. The same seed throws the same.
 */
import { Buffer } from "node:buffer";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import { type Json, until } from "../src/cli/client.ts";
import { type Random, systemClock } from "../src/runtime.ts";
import { decode, type DecodeContext } from "../src/whatsapp/baileys/incoming/decode.ts";
import { seededRandom } from "../tests/support/runtime.ts";
import { palomaArguments, type RunningGateway, startProgram } from "../tests/support/gateway_process.ts";
import { type LinkedLine, openStageWith, type Stage } from "../tests/support/stage.ts";
import { asksForAck, mutated, strangeStanzas } from "../tests/support/strange_stanzas.ts";
import { parsed, scriptCommand, whole } from "./command.ts";

const LINE = "4915100000001";
const OTHER = "4915100000002";
const ANA = "4917000000001";
const BATCH = 100;
/** For one message, however it was mutated, and for a turn of the gateway's event loop: processor time. */
const MOST_MS = 100;

const KEY = { remoteJid: `${ANA}@s.whatsapp.net`, id: "3EB0A0", fromMe: false };
const FILE = {
  url: "https://mmg.whatsapp.net/x",
  directPath: "/x",
  mediaKey: new Uint8Array(32),
  mimetype: "image/png",
};
const { Type } = proto.Message.ProtocolMessage;
const QUOTE = { stanzaId: "3EB0A1", participant: KEY.remoteJid, quotedMessage: { conversation: "before" } };
const SAMPLES: proto.IMessage[] = [
  { conversation: "hello" },
  { extendedTextMessage: { text: "hello", contextInfo: { ...QUOTE, mentionedJid: [KEY.remoteJid] } } },
  { imageMessage: { ...FILE, caption: "seen once", viewOnce: true } },
  { documentWithCaptionMessage: { message: { documentMessage: { ...FILE, fileName: "a.pdf", caption: "c" } } } },
  { locationMessage: { degreesLatitude: 1, degreesLongitude: 2, name: "here" } },
  { contactMessage: { displayName: "Ana", vcard: "BEGIN:VCARD" } },
  { pollCreationMessage: { name: "?", options: [{ optionName: "a" }], encKey: new Uint8Array(32) } },
  {
    pollUpdateMessage: {
      pollCreationMessageKey: KEY,
      vote: { encPayload: new Uint8Array(40), encIv: new Uint8Array(12) },
    },
  },
  { reactionMessage: { key: KEY, text: "!" } },
  { protocolMessage: { type: Type.REVOKE, key: KEY } },
  { protocolMessage: { type: Type.MESSAGE_EDIT, key: KEY, editedMessage: { conversation: "after" } } },
  { ephemeralMessage: { message: { viewOnceMessageV2: { message: { imageMessage: FILE } } } } },
  { deviceSentMessage: { destinationJid: KEY.remoteJid, message: { conversation: "mine" } } },
  { buttonsResponseMessage: { selectedButtonId: "1", selectedDisplayText: "yes" } },
  { protocolMessage: { type: Type.EPHEMERAL_SETTING, ephemeralExpiration: 86_400 } },
  { secretEncryptedMessage: { targetMessageKey: KEY, encPayload: new Uint8Array(40), encIv: new Uint8Array(12) } },
  { pollCreationMessageV3: { name: "?", options: [{ optionName: "a" }], selectableOptionsCount: 1 } },
  { templateMessage: { hydratedTemplate: { hydratedContentText: "hello", hydratedFooterText: "f" } } },
  { interactiveMessage: { body: { text: "hello" }, nativeFlowMessage: { buttons: [{ name: "quick_reply" }] } } },
  { interactiveResponseMessage: { nativeFlowResponseMessage: { name: "x", paramsJson: '{"id":"1"}' } } },
  { listMessage: { title: "t", description: "d", sections: [{ title: "s", rows: [{ title: "r", rowId: "1" }] }] } },
];
const CONTEXT: DecodeContext = {
  me: { id: `${LINE}:3@s.whatsapp.net`, lid: "901@lid" },
  clock: Date,
  phoneOf: () => Promise.resolve(null),
  findOriginal: () => Promise.resolve(null),
  isLost: () => Promise.resolve(true),
  timer: () => Promise.resolve(),
  isAdmin: () => Promise.resolve(false),
  media: () => ({ mimetype: "image/png", filename: null, size: null, download: () => Promise.reject() }),
  history: () => Promise.resolve(),
};

const command = scriptCommand(
  "fuzz_stanzas",
  "Throws mutated stanzas at a line, and mutated protobufs at what reads messages",
)
  .option("--count <n>", "how many of each", whole, 10_000)
  .option("--seed <n>", "the same seed throws the same", whole, 1);
const { options: { count, seed } } = parsed<{ count: number; seed: number }>(command);
const random = seededRandom(seed);
const broken: string[] = [];

const stage = await openStageWith(startWatched);
let heldMs = 0;
try {
  await throwStanzas(stage);
} finally {
  await stage.abandon();
}
await readProtobufs();
console.log(
  JSON.stringify({ stanzas: count, protobufs: count, seed, heldMs: Math.round(heldMs), broken: broken.length }),
);
for (const sentence of broken.slice(0, 20)) console.log(`BROKEN ${sentence}`);
Deno.exit(broken.length === 0 ? 0 : 1);

/** A gateway that writes its load into its log. */
async function startWatched(env: Record<string, string>): Promise<RunningGateway> {
  const [path, [run, ...args], environment] = palomaArguments(["serve", "--json"], {
    PALOMA_LOG_LEVEL: "debug",
    PALOMA_PORT: "0",
    ...env,
  });
  const tellLoad = new URL("./bench/tell_load.ts", import.meta.url).href;
  const { line, stderr, end } = await startProgram(path, [run!, `--preload=${tellLoad}`, ...args], environment);
  return { baseUrl: JSON.parse(line).baseUrl, log: stderr, stop: () => end("SIGTERM") };
}

/** The longest turn of the gateway's event loop since its log had this length, ms. */
function longestTurn({ gateway }: Pick<Stage<RunningGateway>, "gateway">, since: number): number {
  const lines = gateway.log().slice(since).split("\n").slice(1, -1);
  return Math.max(...lines.filter((text) => text.includes('"load"')).map((text) => JSON.parse(text).heldMs));
}

async function throwStanzas(stage: Stage<RunningGateway>): Promise<void> {
  await stage.addPhone(ANA);
  const lines = [await stage.linkLine(LINE), await stage.linkLine(OTHER)];
  const { jid: group } = await stage.control.call("POST", "/groups", { subject: "G", participants: [LINE, ANA] });
  const account = stage.network.switchboard.directory.account(LINE)!;
  const [companion] = account.companions.values();
  /** Apart from the one reconnection of a line that can decrypt nothing. */
  const isEnd = ({ msg, reason }: Json) => msg === "a line's connection ended" && !/can't be decrypted/.test(reason);
  const endsOf = async (line: LinkedLine): Promise<string[]> =>
    (await stage.logOf(line)).filter(isEnd).map(({ reason }) => reason);
  const before = await Promise.all(lines.map(endsOf));
  const begun = stage.gateway.log().length;
  const stanzas = strangeStanzas({ line: account.jid, peer: `${ANA}@s.whatsapp.net`, group, random });
  for (let thrown = 0; thrown < count; thrown += BATCH) {
    const size = Math.min(BATCH, count - thrown);
    const batch = Array.from({ length: size }, () => mutated(stanzas.next().value!, random));
    for (const stanza of batch) {
      if (asksForAck(stanza)) companion!.mailbox.put(stanza);
      else companion!.session?.send(stanza);
    }
    const waiting = () => batch.filter((stanza) => asksForAck(stanza) && companion!.mailbox.holds(stanza));
    await until(systemClock, () => Promise.resolve(waiting().length === 0 || null), { what: "acks" }).catch(() => {
      broken.push(...waiting().map((stanza) => `not acknowledged: ${JSON.stringify(stanza).slice(0, 300)}`));
    });
    if (broken.length > 20) return;
  }
  heldMs = longestTurn(stage, begun);
  if (heldMs > MOST_MS) broken.push(`the event loop was held for ${heldMs.toFixed()} ms`);
  for (const [i, line] of lines.entries()) {
    const since = (await endsOf(line)).slice(before[i]!.length);
    if (since.length > 0) broken.push(`${line.number} lost its connection: ${since.join(" ")}`);
  }
  for (const line of lines) await stage.status(await stage.sendText(line, ANA, `still there: ${line.number}`), "sent");
}

/** Unreadable messages may be refused, by an Error and soon. */
async function readProtobufs(): Promise<void> {
  for (let i = 0; i < count; i++) {
    const plaintext = spoilt(encodeWAMessage(SAMPLES[i % SAMPLES.length]!), random);
    let tookMs = await readingMs(plaintext);
    // The machine may have been busy with something else.
    for (let again = 0; tookMs > MOST_MS && again < 2; again++) tookMs = Math.min(tookMs, await readingMs(plaintext));
    if (tookMs > MOST_MS) broken.push(`reading took ${tookMs.toFixed()} ms: ${Buffer.from(plaintext).toString("hex")}`);
  }
}

async function readingMs(plaintext: Uint8Array): Promise<number> {
  const begun = performance.now();
  try {
    await decode({ attrs: { id: "M1", t: "1700000000", from: `${ANA}@s.whatsapp.net` }, plaintext }, CONTEXT);
  } catch (error) {
    if (!(error instanceof Error)) broken.push(`reading threw ${typeof error}`);
  }
  return performance.now() - begun;
}

function spoilt(bytes: Uint8Array, random: Random): Uint8Array {
  let spoilt = Uint8Array.from(bytes);
  for (let times = random.between(1, 4); times > 0; times--) {
    const at = random.between(0, spoilt.length - 1);
    switch (random.between(0, 3)) {
      case 0:
        spoilt[at]! ^= 1 << random.between(0, 7);
        break;
      case 1:
        spoilt = spoilt.slice(0, at + 1);
        break;
      case 2:
        spoilt = Uint8Array.from([
          ...spoilt.subarray(0, at),
          ...random.bytes(random.between(1, 40)),
          ...spoilt.subarray(at),
        ]);
        break;
      default:
        spoilt = Uint8Array.from([...spoilt, ...spoilt.subarray(at)]);
    }
  }
  return spoilt;
}
