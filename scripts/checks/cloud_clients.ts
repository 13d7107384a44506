/**
 * Clients of the official Cloud API, by their own code: what each can send arrives at the phone, and each webhook is
 * taken by its parser and its check of signatures. The programs are in `cloud_clients/`. Then the example applications,
 * whose tests run against the emulated API.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Json } from "../../src/cli/client.ts";
import { sampleFile } from "../../tests/support/sample_files.ts";
import { openStage, type Stage, withStage } from "../../tests/support/stage.ts";
import { until } from "../../tests/support/until.ts";
import { parsed, scriptCommand } from "../command.ts";
import { run, TOOLS } from "./programs.ts";

const PIP = ["pywa==4.5.0", "heyoo==0.1.2"];
const NPM = [
  "whatsapp-api-js@6.3.0",
  "@great-detail/whatsapp@9.2.0",
  "chat@4.41.0",
  "@chat-adapter/whatsapp@4.41.0",
  "@chat-adapter/state-memory@4.41.0",
];
const PROGRAMS = join(import.meta.dirname!, "cloud_clients");
const ROOT = join(import.meta.dirname!, "../..");
/** Example applications, in `integrations/`, and how their tests are run. */
const EXAMPLES: readonly { name: string; tests: [string, string[]] }[] = [
  { name: "cloud-api-pywa", tests: ["python/bin/python", ["-m", "unittest", "test_app"]] },
  { name: "cloud-api-js", tests: ["node", ["--test", "app.test.mjs"]] },
];
const LINE = "4915200000045";
const ANA = "4917000000045";
/** Whom clients block. */
const BLOCKED = "34600111333";
const TOKEN = "what the application expects";
const FILE_TYPES: Readonly<Record<string, string>> = {
  jpg: "image/jpeg",
  mp4: "video/mp4",
  pdf: "application/pdf",
  mp3: "audio/mpeg",
  ogg: "audio/ogg; codecs=opus",
  webp: "image/webp",
};

const command = scriptCommand("cloud_clients", "Tries clients of the official Cloud API on a linked line")
  .argument("[names...]", "parts of the clients' names; all if left out");
const { args: names } = parsed(command);

const tools = join(TOOLS, "cloud-clients");
const python = join(tools, "python/bin/python");

interface Client {
  /** As it writes itself in its texts. */
  name: string;
  program: [string, string];
  /** How many kinds it can send. */
  sends: number;
  /** What its parser cannot tell. */
  unheard?: readonly string[];
}

const CLIENTS: readonly Client[] = [
  { name: "pywa", program: [python, "with_pywa.py"], sends: 16 },
  {
    name: "heyoo",
    program: [python, "with_heyoo.py"],
    sends: 13,
    unheard: ["echo", "sticker", "contacts", "reaction", "unsupported"],
  },
  { name: "whatsapp-api-js", program: ["node", "with_whatsapp_api_js.mjs"], sends: 15, unheard: ["echo"] },
  { name: "great-detail", program: ["node", "with_great_detail.mjs"], sends: 13 },
  {
    name: "chat-sdk",
    program: ["node", "with_chat_sdk.mjs"],
    sends: 9,
    unheard: ["echo", "contacts", "unsupported", "list_reply", "status"],
  },
];

/** How the phone shows what a client says that it has sent. */
const ARRIVES: Readonly<Record<string, (message: Json, name: string) => boolean>> = {
  text: ({ text }, name) => text === `${name} text ñ😀`,
  reply: ({ text, quoted }, name) => text === `${name} reply` && quoted?.text === `${name} text ñ😀`,
  image: ({ type, caption, size }, name) => type === "imageMessage" && caption === `${name} image` && size > 0,
  image_by_id: ({ type, caption, size }, name) =>
    type === "imageMessage" && caption === `${name} image by id` && size > 0,
  video: ({ type, caption, size }, name) => type === "videoMessage" && caption === `${name} video` && size > 0,
  document: ({ type, caption, size }, name) => type === "documentMessage" && caption === `${name} document` && size > 0,
  document_by_id: ({ type, filename, size }) => type === "documentMessage" && filename === "id.pdf" && size > 0,
  audio: ({ type, voiceNote }) => type === "audioMessage" && !voiceNote,
  voice: ({ type, voiceNote }) => type === "audioMessage" && voiceNote,
  sticker: ({ type, size }) => type === "stickerMessage" && size > 0,
  location: ({ location }) => location?.latitude === 41.5 && location.longitude === 2.25 && location.name === "Shop",
  contacts: ({ contacts }) => contacts?.[0].name === "Bo Li" && contacts[0].vcard.includes("600111222"),
  reaction: ({ reaction }) => reaction?.emoji === "👍",
  buttons: ({ text }, name) => text?.includes(`${name} buttons?`) && text.includes("1. Yes") && text.includes("2. No"),
  list: ({ text }, name) => text?.includes(`${name} list?`) && text.includes("1. Red – warm"),
  link: ({ text }, name) => text?.includes(`${name} link`) && text.includes("https://example.com/"),
};

async function install(): Promise<void> {
  await Deno.mkdir(tools, { recursive: true });
  const wanted = JSON.stringify([PIP, NPM]);
  if (await Deno.readTextFile(join(tools, "versions")).catch(() => "") !== wanted) {
    await Promise.all([
      run(tools, "npm", ["install", "--silent", "--no-audit", "--prefix", ".", ...NPM]),
      run(tools, "python3", ["-m", "venv", "python"]).then(() =>
        run(tools, python, ["-m", "pip", "install", "-q", ...PIP])
      ),
    ]);
    await Deno.writeTextFile(join(tools, "versions"), wanted);
  }
  // Where their packages are found.
  for (const folder of [PROGRAMS, ...EXAMPLES.map(({ name }) => join(ROOT, "integrations", name))]) {
    for await (const { name } of Deno.readDir(folder)) await Deno.copyFile(join(folder, name), join(tools, name));
  }
  for (const ending of Object.keys(FILE_TYPES)) await Deno.writeFile(join(tools, `a.${ending}`), sampleFile(ending));
}

/** A client's program, and the lines of JSON that it has written. */
class Program implements AsyncDisposable {
  readonly lines: Json[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #read: Promise<void>;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  #complaints = "";

  constructor([program, file]: Client["program"], env: Record<string, string>) {
    const piped = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
    this.#child = new Deno.Command(program, { args: [file], cwd: tools, env, ...piped }).spawn();
    this.#stdin = this.#child.stdin.getWriter();
    this.#read = Promise.all([this.#readLines(), this.#readComplaints()]).then(() => {});
  }

  async #readLines(): Promise<void> {
    let unread = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (unread + text).split("\n");
      unread = lines.pop()!;
      this.lines.push(...lines.map((line) => JSON.parse(line)));
    }
  }

  async #readComplaints(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#complaints += text;
      if (/Traceback|Error/.test(text)) this.lines.push({ failed: text });
    }
  }

  /** Waits for a line that fits. Throws when the program has failed. */
  line(what: string, fits: (line: Json) => unknown): Promise<Json> {
    return until(() => {
      const failure = this.lines.find(({ failed }) => failed);
      if (failure) throw new Error(`${what}: ${JSON.stringify(failure)}\n${this.#complaints}`);
      return Promise.resolve(this.lines.find((line) => fits(line)) ?? null);
    }, what);
  }

  async tell(line: Json): Promise<void> {
    await this.#stdin.write(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stdin.close().catch(() => {});
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.#child.status;
    await this.#read;
  }
}

async function tryClient(stage: Stage, client: Client, files: string): Promise<void> {
  const { name } = client;
  await using program = new Program(client.program, {
    CLOUD_URL: new URL("/cloud", stage.gateway.baseUrl).href,
    KEY: stage.apiKey,
    LINE,
    TO: ANA,
    VERIFY_TOKEN: TOKEN,
    FILES: files,
    FOLDER: tools,
  });
  const { listening } = await program.line("a server", ({ listening }) => listening);
  const asked = { url: listening, format: "cloud", verifyToken: TOKEN };
  const { data: { id: webhookId, secret } } = await stage.api.call("POST", "/webhooks", asked);
  await program.tell({ secret });
  await program.line(`${name} to be done`, ({ done }) => done);
  const ids = await judgeSent(stage, client, program);
  const heard = await judgeHeard(stage, client, { program, ids });
  await stage.api.call("DELETE", `/webhooks/${webhookId}`);
  console.log(`${name}: ${Object.keys(ids).length} kinds sent, ${heard} kinds heard`);
}

/** Waits for each message at the phone, and for its statuses; returns their ids by kind. */
async function judgeSent(
  stage: Stage,
  { name, sends, unheard = [] }: Client,
  program: Program,
): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  const arrived = new Map<string, Json>();
  for (const { sent, id } of program.lines.filter(({ sent }) => sent)) {
    arrived.set(sent, await stage.arrival(ANA, (message) => ARRIVES[sent]!(message, name)));
    ids[sent] = id;
  }
  assert.equal(arrived.size, sends, `${name} sent ${[...arrived.keys()]}`);
  if (unheard.includes("status")) return ids;
  const callbackData = name === "heyoo" ? null : "order 7";
  await stage.control.call("POST", `/phones/${ANA}/read`, { id: arrived.get("text")!.id });
  for (const status of ["sent", "delivered", "read"]) {
    const told = await program.line(`${status} of the text`, (line) => line.status === status && line.id === ids.text);
    assert.equal(told.data ?? null, callbackData);
  }
  const order = program.lines.filter(({ status, id }) => status && id === ids.text).map(({ status }) => status);
  assert.deepEqual(order, ["sent", "delivered", "read"]);
  return ids;
}

/** Has the phone write each kind, and waits until the client's parser has told it; returns their number. */
async function judgeHeard(
  stage: Stage,
  { name, unheard = [] }: Client,
  { program, ids }: { program: Program; ids: Record<string, string> },
): Promise<number> {
  const write = async (message: Json) =>
    (await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, ...message })).id;
  const file = (ending: string, kind: string) => ({
    file: sampleFile(ending).toString("base64"),
    filename: `a.${ending}`,
    mimetype: FILE_TYPES[ending],
    kind,
  });
  const hash = async (ending: string) =>
    new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(sampleFile(ending)))).toHex();
  const atPhone = async (kind: string) => (await stage.arrival(ANA, (message) => ARRIVES[kind]!(message, name))).id;
  const contact = { displayName: "Lu", vcard: "BEGIN:VCARD\nVERSION:3.0\nFN:Lu\nTEL;waid=34600111222:+34\nEND:VCARD" };
  const poll = { name: "?", options: [{ optionName: "a" }, { optionName: "b" }], selectableOptionsCount: 1 };
  const quoting = (id: string, text: string) => ({
    message: {
      extendedTextMessage: {
        text,
        contextInfo: { stanzaId: id, participant: `${LINE}@s.whatsapp.net`, quotedMessage: { conversation: "?" } },
      },
    },
  });
  const place = { degreesLatitude: 41.5, degreesLongitude: 2.25 };
  const written: [string, string, () => Promise<string>, string?][] = [
    ["text", `to ${name} ñ😀`, () => write({ text: `to ${name} ñ😀` })],
    ["text", "a reply", async () => await write(quoting(await atPhone("text"), "a reply")), ids.text!],
    ["image", await hash("jpg"), () => write({ ...file("jpg", "image"), caption: "see" })],
    ["document", await hash("pdf"), () => write(file("pdf", "document"))],
    ["audio", await hash("ogg"), () => write(file("ogg", "audio"))],
    ["video", await hash("mp4"), () => write(file("mp4", "video"))],
    ["sticker", await hash("webp"), () => write(file("webp", "sticker"))],
    ["location", "41.5,2.25", () => write({ message: { locationMessage: place } })],
    ["contacts", "Lu", () => write({ message: { contactMessage: contact } })],
    ["unsupported", "131051", () => write({ message: { pollCreationMessage: poll } })],
    ["button_reply", "no", async () => await write(quoting(await atPhone("buttons"), "2")), ids.buttons!],
  ];
  if (ids.list) {
    written.push(["list_reply", "red", async () => await write(quoting(await atPhone("list"), "Red")), ids.list]);
  }
  const answers = ["pywa", "whatsapp-api-js", "chat-sdk"].includes(name);
  let heard = 0;
  for (const [kind, value, act, context] of written) {
    const id = await act();
    if (unheard.includes(kind)) continue;
    const got = await program.line(`${kind} at ${name}`, (line) => line.id === id);
    assert.deepEqual([got.got, got.value, got.sender, got.name], [kind, value, ANA, "Ana Ñ"]);
    if (name !== "heyoo") assert.deepEqual([got.user, got.context ?? undefined], [`DE.${ANA}`, context]);
    heard++;
  }
  if (answers) {
    await program.line(`an answer of ${name}`, ({ answered }) => answered);
    await stage.arrival(ANA, ({ text }) => text === `${name} answers`);
  }
  await stage.control.call("POST", `/phones/${ANA}/react`, { id: await atPhone("text"), emoji: "🎉" });
  if (!unheard.includes("reaction")) {
    await program.line(`reaction at ${name}`, ({ got, value }) => got === "reaction" && value === "🎉");
  }
  const { id } = await stage.control.call("POST", `/phones/${LINE}/messages`, { to: ANA, text: `echo to ${name}` });
  if (!unheard.includes("echo")) await program.line(`echo at ${name}`, (line) => line.got === "echo" && line.id === id);
  return heard + 2 - unheard.filter((kind) => kind === "reaction" || kind === "echo").length;
}

await install();
const files = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
  const ending = request.url.split(".").at(-1)!;
  return new Response(await Deno.readFile(join(tools, `a.${ending}`)), {
    headers: { "content-type": FILE_TYPES[ending]! },
  });
});
const wanted = CLIENTS.filter(({ name }) => names.length === 0 || names.some((part) => name.includes(part)));
for (const client of wanted) {
  await withStage(openStage, async (stage) => {
    await stage.addPhone(ANA, "Ana Ñ");
    await stage.addPhone(BLOCKED);
    await stage.linkLine(LINE);
    await tryClient(stage, client, `http://127.0.0.1:${files.addr.port}`);
  });
}
await files.shutdown();
for (const { name, tests: [program, args] } of EXAMPLES) {
  if (names.length > 0 && !names.some((part) => name.includes(part))) continue;
  const paloma = `${Deno.execPath()} run -A -q --no-check ${join(ROOT, "main.ts")}`;
  await run(tools, program.includes("/") ? join(tools, program) : program, args, { PALOMA: paloma });
  console.log(`${name}: its tests pass on the emulated API`);
}
