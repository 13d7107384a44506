/** A received file outlives a hiccup of the media host: the ingest on the real adapter, a real host and a real disk. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import type { WAMessage } from "@whiskeysockets/baileys";
import { openDiskMediaStore } from "../../../../src/media/disk_store.ts";
import { makeMediaIngest } from "../../../../src/media/ingest.ts";
import { withFairWrites } from "../../../../src/media/fair_shares.ts";
import type { Clock } from "../../../../src/runtime.ts";
import { incomingMedia } from "../../../../src/whatsapp/baileys/incoming/media.ts";
import { makeMediaHost } from "../../../../src/whatsapp/baileys/media_host.ts";
import {
  cutBetweenChunks,
  cutShort,
  dropped,
  type MediaAnswer,
  mediaServer,
  status,
  uploaded,
  whole,
  withoutLength,
} from "../../../support/media_server.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { plainIncoming } from "../../../support/incoming.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

const PLAIN = Buffer.from("a picture of a dog ".repeat(5_000));
const { file: FILE, bytes: BYTES } = await uploaded(PLAIN);

/** Pauses between tries pass at once and are written down; deadlines never come. */
function pausesPassAtOnce(pauses: number[], passing: (pause: number) => void = () => {}): Clock {
  return {
    now: () => Date.UTC(2026, 0, 15, 12),
    after(delayMs, run) {
      if (delayMs > 10_000) return () => {};
      pauses.push(delayMs);
      passing(pauses.length);
      queueMicrotask(run);
      return () => {};
    },
  };
}

/** Takes one picture from a host that gives these answers in turn; the last one stands. */
async function take(
  answers: MediaAnswer[],
  { passing, signal = new AbortController().signal, isOpen = () => true }: {
    passing?: (pause: number) => void;
    signal?: AbortSignal;
    isOpen?: () => boolean;
  } = {},
) {
  await using temp = await tempFolder();
  const server = mediaServer(() => answers[Math.min(server.asked.length, answers.length) - 1]!);
  const pauses: number[] = [];
  const runtime = { ...testRuntime(), clock: pausesPassAtOnce(pauses, passing) };
  const store = await openDiskMediaStore(join(temp.path, "media"), runtime);
  const links = { sign: (id: string) => `https://gateway.test/media/${id}`, verify: () => true };
  const host = makeMediaHost({ mediaUrl: server.url, ca: null }, runtime.clock);
  const file = { ...FILE };
  const updateMediaMessage = (message: WAMessage) => {
    file.directPath = "/v/new";
    return Promise.resolve(message);
  };
  const source = { host, runtime, socket: () => isOpen() ? { updateMediaMessage } : null };
  const message = { key: { id: "M1" }, message: { imageMessage: file } };
  const incoming = plainIncoming({
    type: "imageMessage",
    text: null,
    media: incomingMedia(source, message, { kind: "image", file }),
  });
  try {
    const taken = await makeMediaIngest({ media: withFairWrites(store, runtime.clock), links, runtime }).take(
      "acc_1",
      incoming,
      signal,
    )
      .catch((error: unknown) => ({ error }));
    const onDisk: string[] = [];
    for await (const files of store.folders()) {
      for (const { path } of files) onDisk.push(Buffer.from(await Deno.readFile(path)).toString("latin1"));
    }
    return { taken, pauses, asked: server.asked, onDisk };
  } finally {
    await server.close();
  }
}

type Got = Awaited<ReturnType<typeof take>>;
/** The event's media; fails when the take was refused. */
function mediaOf({ taken }: Got) {
  assert.ok(taken && "media" in taken, String(taken && "error" in taken && taken.error));
  return taken.media;
}

const HICCUPS: [title: string, answer: MediaAnswer][] = [
  ["answers 503", status(503)],
  ["answers 429", status(429)],
  ["drops the connection", dropped],
  ["breaks off in the middle", cutShort(BYTES)],
  ["breaks off between chunks", cutBetweenChunks(BYTES)],
  ["ends early without having told a length", withoutLength(BYTES.subarray(0, 50_000))],
  ["gives a shorter file", whole(BYTES.subarray(0, 50_000))],
];

for (const [title, answer] of HICCUPS) {
  Deno.test(`a file whose host ${title} once is had a second later, whole and once on disk`, async () => {
    const got = await take([answer, whole(BYTES)]);
    const { url, size, reason } = mediaOf(got);
    assert.deepEqual([reason, size], [undefined, PLAIN.length]);
    assert.match(url!, /^https:/);
    assert.deepEqual([got.asked.length, got.pauses], [2, [1_000]]);
    assert.deepEqual(got.onDisk, [PLAIN.toString("latin1")]);
  });
}

Deno.test("a file whose host stays in trouble is given up after three tries, with what the trouble was", async () => {
  const got = await take([status(503)]);
  assert.deepEqual([mediaOf(got).url, mediaOf(got).reason], [null, "the media host answered 503"]);
  assert.deepEqual([got.asked.length, got.pauses], [3, [1_000, 4_000]]);
  assert.deepEqual(got.onDisk, []);
});

Deno.test("a file that breaks off each time leaves nothing on disk", async () => {
  const got = await take([cutShort(BYTES)]);
  assert.equal(mediaOf(got).url, null);
  assert.equal(got.asked.length, 3);
  assert.deepEqual(got.onDisk, []);
});

Deno.test("a file that was altered is not tried again", async () => {
  const got = await take([whole(Buffer.from(BYTES.map((byte, i) => i === 5_000 ? byte ^ 1 : byte)))]);
  assert.match(mediaOf(got).reason!, /altered/);
  assert.deepEqual([got.asked.length, got.pauses], [1, []]);
  assert.deepEqual(got.onDisk, []);
});

Deno.test("a file that is gone while the line is offline is asked for once the line is back", async () => {
  let open = false;
  const got = await take([status(404), status(404), whole(BYTES)], { isOpen: () => open, passing: () => open = true });
  assert.equal(mediaOf(got).reason, undefined);
  assert.deepEqual(got.asked, [FILE.directPath, FILE.directPath, "/v/new"]);
  assert.deepEqual(got.onDisk, [PLAIN.toString("latin1")]);
});

Deno.test("a hiccup after the new upload is tried again at the new place, without asking the phone twice", async () => {
  const got = await take([status(404), cutShort(BYTES), whole(BYTES)]);
  assert.equal(mediaOf(got).reason, undefined);
  assert.deepEqual(got.asked, [FILE.directPath, "/v/new", "/v/new"]);
});

Deno.test("a gateway that stops while a file is to be tried again gives no answer about it", async () => {
  const stop = new AbortController();
  const got = await take([status(503), whole(BYTES)], { signal: stop.signal, passing: () => stop.abort() });
  assert.ok(got.taken && "error" in got.taken);
  assert.equal(got.asked.length, 1);
  assert.deepEqual(got.onDisk, []);
});
