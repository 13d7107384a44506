/**
 * How much memory the gateway's process needs for large uploads, one and
 * four at a time, until they are at the phone with the same SHA-256. Linux only: it reads /proc. Exit 1 when a single
 * upload takes more than 1.5 times the file plus 50 MB over the idle process, or four take more than four times that.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createHash } from "node:crypto";
import { request } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { until } from "../../src/cli/client.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import { openStage, type Stage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand } from "../command.ts";
import { residentBytes } from "../proc.ts";

const MIB = 1024 ** 2;
/** The goal's unit. */
const MB = 1_000_000;
/** Divides into groups of base64 without padding in between. */
const CHUNK_BYTES = 48 * 1024;
const LINE = "4915560000001";
const CUSTOMER = "4917560000001";

interface Form {
  name: string;
  path: string;
  size: number;
  contentType: string;
  /** The body around the file. */
  around(filename: string): [before: string, after: string];
  encode(chunk: Buffer): Buffer;
  encodedSize(size: number): number;
}

const FORMS: readonly Form[] = [
  {
    name: "100 MiB multipart",
    path: "/messages/send/file",
    size: 100 * MIB,
    contentType: "multipart/form-data; boundary=b",
    around: (filename) => [
      `--b\r\nContent-Disposition: form-data; name="to"\r\n\r\n${CUSTOMER}\r\n` +
      `--b\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\n\r\n`,
      "\r\n--b--\r\n",
    ],
    encode: (chunk) => chunk,
    encodedSize: (size) => size,
  },
  {
    name: "35 MiB base64",
    path: "/messages/send/document",
    size: 35 * MIB,
    contentType: "application/json",
    around: (filename) => [`{"to":"${CUSTOMER}","filename":"${filename}","file":"`, '"}'],
    encode: (chunk) => Buffer.from(chunk.toString("base64")),
    encodedSize: (size) => 4 * Math.ceil(size / 3),
  },
];

parsed(scriptCommand("upload_memory", "Prints how much memory large uploads take, one and four at a time"));
const stage = await openStage();
await stage.addPhone(CUSTOMER);
await stage.linkLine(LINE);
let failed = false;
// The first upload loads code and fills pools, so the idle process is measured after one.
await upload(stage, FORMS[1]!, { filename: "warm-up.bin", size: CHUNK_BYTES });

for (const form of FORMS) {
  for (const count of [1, 4]) {
    const idle = await settledMemory(stage.gateway.pid);
    await resetPeak(stage.gateway.pid);
    const begun = systemClock.now();
    const names = Array.from({ length: count }, (_, i) => `${form.size}-${count}-${i}.bin`);
    await Promise.all(names.map((filename) => upload(stage, form, { filename, size: form.size })));
    const peak = await residentBytes(stage.gateway.pid, "VmHWM") - idle;
    const allowed = count * (1.5 * form.size + 50 * MB);
    failed ||= peak > allowed;
    console.log(
      `${form.name} x ${count}: peak ${megabytes(peak)} over ${megabytes(idle)} idle ` +
        `(at most ${megabytes(allowed)}), same SHA-256 at the phone, ${systemClock.now() - begun} ms`,
    );
  }
}
await stage.end();
Deno.exit(failed ? 1 : 0);

/** Sends the file and waits until the phone has it, unchanged. */
async function upload(stage: Stage, form: Form, file: { filename: string; size: number }): Promise<void> {
  const hash = createHash("sha256");
  const [before, after] = form.around(file.filename);
  async function* body() {
    yield Buffer.from(before);
    for (const chunk of contentOf(file)) {
      hash.update(chunk);
      yield form.encode(chunk);
    }
    yield Buffer.from(after);
  }
  const length = before.length + form.encodedSize(file.size) + after.length;
  const status = await send(stage, { path: form.path, contentType: form.contentType, length, body: body() });
  if (status !== 202) throw new Error(`${form.name}: status ${status}`);
  const arrived = await until(
    systemClock,
    async () => (await stage.inbox(CUSTOMER)).find(({ filename }) => filename === file.filename),
    { what: file.filename, timeoutMs: 180_000 },
  );
  const sha256 = hash.digest("hex");
  if (arrived.sha256 !== sha256) throw new Error(`${file.filename} arrived changed: ${JSON.stringify(arrived)}`);
}

function send(
  stage: Stage,
  { path, contentType, length, body }: {
    path: string;
    contentType: string;
    length: number;
    body: AsyncIterable<Buffer>;
  },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "x-api-key": stage.apiKey, "content-type": contentType, "content-length": String(length) };
    const posting = request(stage.gateway.baseUrl + path, { method: "POST", headers }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    posting.on("error", reject);
    pipeline(Readable.from(body, { objectMode: false }), posting).catch(reject);
  });
}

/** Bytes that look random and are the same for the same name. */
function* contentOf({ filename, size }: { filename: string; size: number }): Generator<Buffer> {
  const cipher = createCipheriv("aes-128-ctr", createHash("md5").update(filename).digest(), Buffer.alloc(16));
  for (let at = 0; at < size; at += CHUNK_BYTES) yield cipher.update(Buffer.alloc(Math.min(CHUNK_BYTES, size - at)));
}

/** Resident memory once it has stopped falling. */
async function settledMemory(pid: number): Promise<number> {
  let lowest = Infinity;
  for (let still = 0; still < 5; still++) {
    await sleep(systemClock, 500);
    const now = await residentBytes(pid);
    if (now < 0.98 * lowest) still = 0;
    lowest = Math.min(lowest, now);
  }
  return lowest;
}

/** Resets VmHWM, the peak. */
async function resetPeak(pid: number): Promise<void> {
  await Deno.writeTextFile(`/proc/${pid}/clear_refs`, "5");
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / MB)} MB`;
}
