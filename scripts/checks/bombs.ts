/**
 * Small inputs that unpack to large ones, or hold very many members, at 2, 10 and 100 times the size that once held or
 * ended a gateway. A simulated phone or network sends each of them three times to a line of a real gateway, while another account's
 * lines write to each other. A JSON row each: how long the gateway's event loop was held, how far its memory rose, what the
 * neighbours' messages took without it and beside it, and whether the line still receives. Exits 1 where a promise is
 * broken.
 */
import { Buffer } from "node:buffer";
import { createServer } from "node:http";
import process from "node:process";
import { constants, deflateRawSync } from "node:zlib";
import { aesDecryptGCM, aesEncryptGCM, type BinaryNode, encodeBinaryNode, proto } from "@whiskeysockets/baileys";
import { openData } from "../../src/engines.ts";
import { listenOn } from "../../src/base/listening.ts";
import { httpClient, linkByQr } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { element } from "../../src/sandbox/world/stanza.ts";
import { sendFile } from "../../src/sandbox/phone/attachment.ts";
import { palomaArguments, type RunningGateway, startProgram } from "../../tests/support/gateway_process.ts";
import { type LinkedLine, openStageWith, type Stage } from "../../tests/support/stage.ts";
import { silentRuntime } from "../../tests/support/runtime.ts";
import { dataConfigOf } from "../../tests/support/test_store.ts";
import { until } from "../../tests/support/until.ts";
import { parsed, scriptCommand } from "../command.ts";
import { percentile } from "../bench/measure.ts";
import type { GatewayLoad } from "../bench/watch_load.ts";

const [LINE, ANA, ONE, OTHER] = ["4915560000041", "4917560000041", "4915560000042", "4915560000043"] as const;
const ANA_JID = `${ANA}@s.whatsapp.net`;
const MOST_HELD_MS = 100;
const MOST_GROWN_MB = 150;
const MOST_SLOWER = 2;
/** A message that takes less counts as taking this: of a few milliseconds, another process on the machine makes twice as many. */
const LEAST_TRIP_MS = 10;
const EXPLOSIONS = 3;
const TRIPS = 30;
/** The network's frames hold 16 MB, and a file that is read 64 MB. */
const LONGEST_FRAME = 15_000_000;
const LONGEST_FILE = 66_000_000;

/** A gateway that writes its load into its log, and an account beside the stage's. */
interface Watched extends RunningGateway {
  pid: number;
  neighbourKey: string;
}
type World = Stage<Watched> & { line: LinkedLine; companion: string };

interface Bomb {
  bytes: number;
  explode(): Promise<unknown>;
  /** Processes that each explosion has read its file; they are waited for. */
  readers?: number;
  /** What the library's decryption of its frame takes, which is one call, and is allowed beside the rest. */
  frameMs?: number;
}

/** By name: makes the bomb so many times as large as it was; then sets it off. */
const BOMBS: Record<string, (times: number, world: World) => Promise<Bomb>> = {
  /** Was 388 KB that inflate to 200 MB of conversations of 16 bytes. */
  history: (times, world) => historyOf(times, [0x12, 14, 0x0a, 12, ...Buffer.from("1234567890ab")], world),
  /** The same of members that are none: all of them are read. */
  members: (times, world) => historyOf(times, [0x1a, 14, ...Buffer.alloc(14)], world),
  /** Was 8 MB of empty records; says that it is of one byte. */
  async settings(times, { network, line: { number } }) {
    const content = Buffer.alloc(Math.min(8_000_000 * times, LONGEST_FILE), Buffer.from([0x0a, 0]));
    const { url: _, fileLength: _length, ...place } = await sendFile(content, "settings", sending(network));
    const externalMutations = { ...place, fileSizeBytes: 1 };
    const patch = proto.SyncdPatch.encode({ externalMutations }).finish();
    const account = network.switchboard.directory.account(number)!;
    return {
      bytes: content.length,
      readers: 1,
      explode() {
        account.settings.set("regular_high", []);
        network.switchboard.changeSettings({ account, device: 0 }, "regular_high", [patch]);
        return Promise.resolve();
      },
    };
  },
  /** Was 20,000 messages that nobody had asked for. */
  async resends(times, { network, line: { number }, companion }) {
    const webMessageInfoBytes = proto.WebMessageInfo.encode({ key: { remoteJid: "1@lid", id: "A" } }).finish();
    const result = { placeholderMessageResendResponse: { webMessageInfoBytes } };
    const each = proto.Message.PeerDataOperationRequestResponseMessage.encode({ peerDataOperationResult: [result] })
      .finish().length;
    const count = Math.min(20_000 * times, Math.floor(LONGEST_FRAME / each));
    const answer = { peerDataOperationResult: new Array(count).fill(result) };
    const message = { protocolMessage: { peerDataOperationRequestResponseMessage: answer } };
    await Promise.resolve();
    const bytes = count * each;
    return { bytes, frameMs: decryptionMs(bytes), explode: () => network.phone(number)!.tell(companion, message) };
  },
  /** Was 4,990 open tags and 128,000 closing ones. */
  async page(times, stage) {
    const html = "<a>".repeat(4_990 * times) + "</b>".repeat(128_000 * times);
    const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(html));
    const port = await listenOn(server);
    return {
      bytes: html.length,
      explode: async () => {
        const id = await stage.sendText(stage.line, ANA, `see http://127.0.0.1:${port}/`);
        await stage.status(id, "sent");
      },
    };
  },
  /** Was a stranger's message with 10,000 contacts that are empty. */
  async contacts(times, { network, line: { number } }) {
    const contacts = new Array(10_000 * times).fill({});
    const message = { contactsArrayMessage: { contacts } };
    await Promise.resolve();
    return { bytes: contacts.length * 2, explode: () => network.phone(ANA)!.sendMessage({ to: number, message }) };
  },
  /** Was a stranger's quote that mentions 10,000 people. */
  async mentions(times, { network, line: { number } }) {
    const mentionedJid = new Array(10_000 * times).fill("");
    const message = { extendedTextMessage: { text: "see", contextInfo: { stanzaId: "Q", mentionedJid } } };
    await Promise.resolve();
    return {
      bytes: mentionedJid.length * 2,
      explode: () => network.phone(ANA)!.sendMessage({ to: number, message }),
    };
  },
  /** A stranger's receipt for many messages; the network sends one for each. */
  receipts: (times, world) => {
    const items = Array.from({ length: 500 * times }, (_, i) => element("item", { id: `3EB0${i}` }));
    const attrs = { from: ANA_JID, id: "3EB0", type: "read" };
    return stanzas("receipt", { attrs, content: [element("list", {}, items)] }, world);
  },
  /** A group of many members that a stranger has made, and the line is in. */
  group: (times, world) => {
    const participants = Array.from(
      { length: 200 * times },
      (_, i) => element("participant", { jid: `${i + 1}@lid` }),
    );
    const attrs = { creation: "1", creator: ANA_JID, id: "120363", s_t: "1", subject: "many" };
    const create = element("create", { type: "new" }, [element("group", attrs, participants)]);
    const from = { from: "120363@g.us", type: "w:gp2", participant: ANA_JID };
    return stanzas("notification", { attrs: from, content: [create] }, world);
  },
  /** A stanza that nobody knows, of empty children. */
  children: (times, world) => {
    const content = Array.from({ length: 2_000 * times }, () => element("item"));
    return stanzas("notification", { attrs: { from: "s.whatsapp.net", type: "unknown" }, content }, world);
  },
};

const command = scriptCommand(
  "bombs",
  "Small inputs that unpack to large ones, through a whole gateway beside neighbours",
)
  .argument("[bombs...]", `some of ${Object.keys(BOMBS).join(", ")}; all if left out`);
const { args } = parsed(command);
const names = args.length > 0 ? args : Object.keys(BOMBS);

const stage = await openStageWith(startWatched);
let isBroken = false;
try {
  for (const number of [ANA, ONE, OTHER]) await stage.addPhone(number);
  const line = await stage.linkLine(LINE);
  const account = stage.network.switchboard.directory.account(LINE)!;
  const world: World = { ...stage, line, companion: [...account.companions.values()][0]!.jid };
  const trip = await neighbours(stage);
  for (let i = 0; i < TRIPS; i++) await trip();
  await receives(world);
  for (const name of names) {
    for (const times of [2, 10, 100]) isBroken = await measure(name, { times, world, trip }) || isBroken;
  }
} finally {
  await stage.abandon();
}
Deno.exit(isBroken ? 1 : 0);

/** Prints a row; resolves to whether a promise is broken. */
async function measure(
  name: string,
  { times, world, trip }: { times: number; world: World; trip: () => Promise<number> },
): Promise<boolean> {
  const { bytes, explode, readers = 0, frameMs = 0 } = await BOMBS[name]!(times, world);
  const before = (await loadsFrom(world.gateway, world.gateway.log().length))[0]!;
  const alone: number[] = [];
  while (alone.length < TRIPS) alone.push(await trip());
  const since = world.gateway.log().length;
  const seen = new Set<string>();
  let readersBytes = 0;
  const look = setInterval(() => {
    const children = childrenOf(world.gateway.pid);
    for (const child of children) seen.add(child);
    readersBytes = Math.max(readersBytes, children.reduce((sum, child) => sum + residentBytes(child), 0));
  }, 20);
  let isOver = false;
  const exploding = (async () => {
    for (let i = 0; i < EXPLOSIONS; i++) await explode();
    await receives(world);
    const areRead = () => seen.size >= readers * EXPLOSIONS && childrenOf(world.gateway.pid).length === 0;
    await until(areRead, "the readers to end");
  })().finally(() => isOver = true);
  const beside: number[] = [];
  while (!isOver || beside.length < TRIPS) beside.push(await trip());
  const alive = await exploding.then(() => true, () => false);
  clearInterval(look);
  const loads = await loadsFrom(world.gateway, since);
  const most = (of: (load: GatewayLoad) => number) => Math.round(Math.max(...loads.map(of)));
  const tripMs = (trips: number[], percent: number) => Number(percentile(trips, percent).toFixed(1));
  const heldMs = most((load) => load.heldMs);
  const grownMb = most((load) => (load.peakBytes - before.bytes) / 1024 ** 2);
  const broken = [
    ...(heldMs > MOST_HELD_MS + frameMs ? ["held"] : []),
    ...(grownMb > MOST_GROWN_MB ? ["memory"] : []),
    ...(tripMs(beside, 50) > MOST_SLOWER * Math.max(tripMs(alone, 50), LEAST_TRIP_MS) ? ["neighbours"] : []),
    ...(alive ? [] : ["line"]),
  ];
  const [aloneMs, besideMs] = [alone, beside].map((trips) => ({ p50: tripMs(trips, 50), p90: tripMs(trips, 90) }));
  const neighbours = { aloneMs, besideMs, trips: beside.length };
  const readersMb = Math.round(readersBytes / 1024 ** 2);
  console.log(
    JSON.stringify({ bomb: name, times, bytes, heldMs, frameMs, grownMb, readersMb, neighbours, alive, broken }),
  );
  return broken.length > 0;
}

async function startWatched(env: Record<string, string>): Promise<Watched> {
  const data = await openData(dataConfigOf(env), silentRuntime());
  const { apiKey } = await data.accounts.create({ name: "neighbour", plan: "sandbox" }).finally(() => data.close());
  const [path, [run, ...args], environment] = palomaArguments(["serve", "--json"], {
    PALOMA_LOG_LEVEL: "info",
    PALOMA_PORT: "0",
    ...env,
  });
  const tellLoad = new URL("../bench/tell_load.ts", import.meta.url).href;
  const { line, stderr, end, pid } = await startProgram(path, [
    run!,
    `--preload=${tellLoad}`,
    ...args,
  ], environment);
  return { baseUrl: JSON.parse(line).baseUrl, log: stderr, stop: () => end("SIGTERM"), pid, neighbourKey: apiKey };
}

/** Links two lines of the other account; the function has one write to the other, and resolves to how long it took, ms. */
async function neighbours({ gateway, control }: Stage<Watched>): Promise<() => Promise<number>> {
  const api = httpClient(gateway.baseUrl, { "x-api-key": gateway.neighbourKey });
  const sessionIds: string[] = [];
  for (const phone of [ONE, OTHER]) {
    const { data: { _id: sessionId } } = await api.call("POST", "/sessions", { name: phone });
    await linkByQr(systemClock, { api, control, sessionId, phone });
    sessionIds.push(sessionId);
  }
  const waiting = new Map<string, () => void>();
  const server = createServer(async (request, response) => {
    const { data: { text } } = JSON.parse(Buffer.concat(await Array.fromAsync(request)).toString());
    waiting.get(text)?.();
    response.end();
  });
  const url = `http://127.0.0.1:${await listenOn(server)}/`;
  await api.call("POST", "/webhooks", { url, events: ["message.received"] });
  let count = 0;
  return async () => {
    const text = `trip ${count++}`;
    const arrived = Promise.withResolvers<void>();
    waiting.set(text, arrived.resolve);
    const begun = performance.now();
    await api.call("POST", "/messages/send/text", { sessionId: sessionIds[0], to: OTHER, text });
    await arrived.promise;
    return performance.now() - begun;
  };
}

/** Most processor time in which the library decrypts a frame of this length: as often as one is sent. */
function decryptionMs(bytes: number): number {
  const [key, nonce, none] = [Buffer.alloc(32), Buffer.alloc(12), Buffer.alloc(0)];
  const frame = aesEncryptGCM(Buffer.alloc(bytes), key, nonce, none);
  const eachMs = Array.from({ length: EXPLOSIONS }, () => {
    const before = process.threadCpuUsage();
    aesDecryptGCM(frame, key, nonce, none);
    const { user, system } = process.threadCpuUsage(before);
    return Math.round((user + system) / 1000);
  });
  return Math.max(...eachMs);
}

/** Has a friend write to the line, and waits for the event. */
async function receives({ network, line, event }: World): Promise<void> {
  const { id } = await network.phone(ANA)!.sendMessage({ to: LINE, text: "still there?" });
  await event(line, ({ data }) => data.messageId === id);
}

/** What the gateway's log says of its load from this length on; waits for it. */
function loadsFrom({ log }: Watched, since: number): Promise<GatewayLoad[]> {
  return until(() => {
    const lines = log().slice(since).split("\n").slice(0, -1).filter((line) => line.startsWith('{"msg":"load"'));
    // The first may be of the time before.
    return lines.length > 1 && lines.map((line) => JSON.parse(line) as GatewayLoad);
  }, "the gateway's load");
}

/** A stanza that the network hands to the line's companion, each time under another id where it gives none. */
function stanzas(tag: string, { attrs, content }: Omit<BinaryNode, "tag">, { network, line: { number } }: World) {
  const { companions } = network.switchboard.directory.account(number)!;
  const put = () => {
    const all = { id: crypto.randomUUID(), t: String(Math.floor(Date.now() / 1000)), ...attrs };
    for (const { mailbox } of companions.values()) mailbox.put({ tag, attrs: all, content });
    return Promise.resolve();
  };
  return Promise.resolve({ bytes: encodeBinaryNode({ tag, attrs, content }).length, explode: put });
}

/** A part of a history that inflates to 200 MB, so many times: one packed block of it again and again. */
async function historyOf(times: number, member: readonly number[], { network, line: { number }, companion }: World) {
  const plain = Buffer.alloc(2_000_000, Buffer.from(member));
  const block = deflateRawSync(plain, { finishFlush: constants.Z_FULL_FLUSH });
  const blocks = new Array(Math.min(100 * times, Math.floor(LONGEST_FILE / block.length))).fill(block);
  const content = Buffer.concat([Buffer.from([0x78, 0x9c]), ...blocks]);
  const { url: _, ...place } = await sendFile(content, "history", sending(network));
  const type = proto.Message.ProtocolMessage.Type.HISTORY_SYNC_NOTIFICATION;
  const historySyncNotification = { ...place, fileLength: 1, syncType: 2, chunkOrder: 1, progress: 100 };
  const message = { protocolMessage: { type, historySyncNotification } };
  return { bytes: content.length, readers: 1, explode: () => network.phone(number)!.tell(companion, message) };
}

function sending({ media }: World["network"]) {
  return { runtime: { ...silentRuntime(), clock: systemClock }, media };
}

/** The processes that this one has started; none where the system does not tell. */
function childrenOf(pid: number): string[] {
  try {
    return [...Deno.readDirSync(`/proc/${pid}/task`)].flatMap(({ name }) =>
      Deno.readTextFileSync(`/proc/${pid}/task/${name}/children`).trim().split(" ").filter(Boolean)
    );
  } catch {
    return [];
  }
}

/** Resident memory of a process; 0 once it has ended. */
function residentBytes(pid: string): number {
  try {
    return 4096 * Number(Deno.readTextFileSync(`/proc/${pid}/statm`).split(" ")[1]);
  } catch {
    return 0;
  }
}
