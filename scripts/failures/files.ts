/** Media files that are received, uploaded, sent and swept, in a bucket and on disk, while calls of that place break. */
import type { ApiWorld } from "../../tests/support/api_world.ts";
import { plainIncoming } from "../../tests/support/incoming.ts";
import { BucketHere } from "./bucket_here.ts";
import { breakDisk } from "./disk.ts";
import { type Calls, type Fault, STORE_FAULTS } from "./faults.ts";
import { ANA, call, isDone, type Journey, OWN_FILES, pausedLine } from "./journey.ts";

const HOUR_MS = 3_600_000;
/** In a bucket it goes in two parts. */
const FILE = new Uint8Array(9 * 1024 ** 2).map((_, i) => i % 251);
FILE.set(new TextEncoder().encode("%PDF-1.7"));
const CHUNK_BYTES = 1024 ** 2;

const BUCKET_FAULTS = ["unreachable", "unanswered", "torn", "dies"] as const;
const FILE_FAULTS = ["EIO", "short", "dies", "full"] as const;

const onDisk = { breaks: breakFiles, faults: FILE_FAULTS };
const inBucket = { bucket: () => new BucketHere(), breaks: breakBucket, faults: [...STORE_FAULTS, ...BUCKET_FAULTS] };

async function receiveFile(world: ApiWorld, sessionId: string): Promise<boolean> {
  const chunks = Array.from(
    { length: FILE.length / CHUNK_BYTES },
    (_, i) => FILE.slice(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES),
  );
  const taken = await world.network.of(sessionId).receive(plainIncoming({
    networkId: "3A",
    chat: `${ANA}@s.whatsapp.net`,
    number: ANA,
    timestamp: Math.floor(world.runtime.clock.now() / 1_000),
    type: "documentMessage",
    media: {
      mimetype: "application/pdf",
      filename: "invoice.pdf",
      size: FILE.length,
      download: () => Promise.resolve(ReadableStream.from(chunks)),
    } as never,
  }));
  return taken || await isReported(world);
}

/** The network delivers again what was reported, if its answer was lost. */
async function isReported(world: ApiWorld): Promise<boolean> {
  const events = await world.services.events.latest(world.account.id, 10);
  return events.some(({ event }) => event === "message.received");
}

const BOUNDARY = "a-boundary";

/** Sends a form with the file. Repeated by its client, it is the same to the byte. */
async function submit(world: ApiWorld, path: string, fields: Record<string, string>): Promise<Response> {
  const parts = Object.entries(fields).map(([name, value]) =>
    `content-disposition: form-data; name="${name}"\r\n\r\n${value}`
  );
  const head =
    'content-disposition: form-data; name="file"; filename="invoice.pdf"\r\ncontent-type: application/pdf\r\n\r\n';
  const body = new Blob([
    ...parts.map((part) => `--${BOUNDARY}\r\n${part}\r\n`),
    `--${BOUNDARY}\r\n${head}`,
    FILE,
    `\r\n--${BOUNDARY}--\r\n`,
  ]);
  const headers = { "content-type": `multipart/form-data; boundary=${BOUNDARY}`, "idempotency-key": "once" };
  return await world.call("POST", path, { body, headers });
}

/** Resolves to whether the queue of the line goes on. */
async function resumed(world: ApiWorld, sessionId: string): Promise<boolean> {
  return isDone(await call(world, "POST", `/v1/sessions/${sessionId}/queue/resume`));
}

async function sendFile(world: ApiWorld, sessionId: string): Promise<boolean> {
  const sent = await submit(world, "/v1/messages/send/file", { sessionId, to: ANA });
  await sent.arrayBuffer();
  return sent.ok && await resumed(world, sessionId);
}

/** What a client keeps of its upload, by the data that it is in. */
const uploads = new WeakMap<ApiWorld["kv"]["disk"], string>();

/** In the official API's shape: first the file, then a message with it, which is repeated alone. */
async function uploadAndSend(world: ApiWorld, sessionId: string): Promise<boolean> {
  const { disk } = world.kv;
  let id = uploads.get(disk);
  if (id === undefined) {
    const uploaded = await submit(world, `/cloud/${sessionId}/media`, { messaging_product: "whatsapp" });
    const answer = await uploaded.json();
    if (!uploaded.ok) return false;
    uploads.set(disk, id = answer.id as string);
  }
  const json = { messaging_product: "whatsapp", to: ANA, type: "document", document: { id } };
  const status = await call(world, "POST", `/cloud/${sessionId}/messages`, json, { "idempotency-key": `once-${id}` });
  return isDone(status) && await resumed(world, sessionId);
}

/** Two days later all that is over goes, and what a crash left. */
async function sweepFiles(world: ApiWorld): Promise<boolean> {
  const { signal } = new AbortController();
  await world.sweeps["received files"](signal);
  await world.sweeps["orphaned files"](signal);
  return await world.kept() === 0;
}

function later({ runtime: { clock, confirmed } }: ApiWorld): void {
  clock.jump(49 * HOUR_MS);
  confirmed.confirm(clock.wall());
}

const PLACES = { "on disk": onDisk, "in a bucket": inBucket };

export const FILES: readonly Journey[] = Object.entries(PLACES).flatMap(([place, how]): Journey[] => [
  {
    name: `receive a file ${place}`,
    isOnDisk: true,
    event: "message.received",
    prepare: (world) => world.linkedSession(),
    act: receiveFile,
    // It is then reported without its file.
    varies: (fault) => fault === "full" ? OWN_FILES : null,
    ...how,
  },
  {
    name: `send a file ${place}`,
    isOnDisk: true,
    event: "message.sent",
    prepare: pausedLine,
    act: sendFile,
    ...how,
  },
  {
    name: `upload a file ${place} and send it`,
    isOnDisk: true,
    event: "message.sent",
    prepare: pausedLine,
    act: uploadAndSend,
    varies: () => OWN_FILES,
    overAfterMs: 33 * 24 * HOUR_MS,
    ...how,
  },
  {
    name: `sweep a file ${place}`,
    isOnDisk: true,
    async prepare(world) {
      const sessionId = await world.linkedSession();
      await world.runtime.clock.during(receiveFile(world, sessionId));
      later(world);
      return sessionId;
    },
    act: sweepFiles,
    ...how,
  },
]);

function breakFiles(world: ApiWorld, fault: Fault, n: number): Calls | null {
  return (FILE_FAULTS as readonly Fault[]).includes(fault) ? breakDisk(fault, n, () => world.die()) : null;
}

function breakBucket(world: ApiWorld, fault: Fault, n: number, bucket?: BucketHere): Calls | null {
  return (BUCKET_FAULTS as readonly Fault[]).includes(fault) ? bucket!.breaks(fault, n, () => world.die()) : null;
}
