/** Media files that are received and swept, in a bucket and on disk, while calls of that place break. */
import type { ApiWorld } from "../../tests/support/api_world.ts";
import { plainIncoming } from "../../tests/support/incoming.ts";
import { BucketHere } from "./bucket_here.ts";
import { breakDisk } from "./disk.ts";
import { type Calls, type Fault, FAULTS } from "./faults.ts";
import { ANA, type Journey } from "./journey.ts";

const HOUR_MS = 3_600_000;
/** In a bucket it goes in two parts. */
const FILE = new Uint8Array(9 * 1024 ** 2).map((_, i) => i % 251);
const CHUNK_BYTES = 1024 ** 2;

const BUCKET_FAULTS = ["unreachable", "unanswered", "torn", "dies"] as const;
/** On a full disk, a message is reported without its file. */
const FILE_FAULTS = ["EIO", "short", "dies"] as const;

const onDisk = { breaks: breakFiles, faults: FILE_FAULTS };
const inBucket = { bucket: () => new BucketHere(), breaks: breakBucket, faults: [...FAULTS, ...BUCKET_FAULTS] };

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
  return events.some(({ event, data }) => event === "message.received" && JSON.stringify(data).includes("/media/"));
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
