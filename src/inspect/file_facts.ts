/** The facts that phones show of a file before its download: an image's size and preview, duration, waveform, pages. */
import { open, readFile } from "node:fs/promises";
import { parseFile } from "music-metadata";
import { OggOpusDecoder } from "ogg-opus-decoder";
import { imageSize, thumbnail } from "./thumbnail.ts";
import { type FileFacts, type InspectRequest, OVER_MEMORY, type UntrustedFile } from "./inspection.ts";

/** Images up to this size are read whole, for a preview; of larger ones only the beginning. */
const WHOLE_IMAGE_BYTES = 4 * 1024 * 1024;
const IMAGE_HEAD_BYTES = 256 * 1024;

/** How often the process compares its memory with the bound. */
const WATCH_EVERY_MS = 20;

/**
 * Runs in the process that reads one untrusted file (`inspector.ts`): prints the facts as JSON. Throws if the file
 * can't be read.
 */
export async function inspectFile(request: string): Promise<void> {
  const { file, outside, memoryBytes }: InspectRequest = JSON.parse(request);
  const watch = await watchMemory(memoryBytes);
  try {
    const given = async () => new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer());
    if (outside) {
      const { readOutside } = await import("./outside.ts");
      const found = JSON.stringify(await readOutside(outside, await given()));
      await new Blob([found]).stream().pipeTo(Deno.stdout.writable);
      return;
    }
    const facts = await fileFacts(file ?? await given());
    const text = JSON.stringify({
      ...facts,
      jpegThumbnail: facts.jpegThumbnail?.toBase64(),
      waveform: facts.waveform?.toBase64(),
    });
    await Deno.stdout.write(new TextEncoder().encode(text));
  } finally {
    watch.terminate();
  }
}

/**
 * Watches the memory of this process; resolves once it does. In a worker, because reading a file blocks this thread. In
 * this process, because the executable may not read what `/proc` says of another one.
 */
async function watchMemory(mostBytes: number): Promise<Worker> {
  const source = `const sign = Uint8Array.of(${OVER_MEMORY.charCodeAt(0)});
    const look = () => Deno.memoryUsage().rss > ${mostBytes} && Deno.stdout.writeSync(sign);
    setInterval(look, ${WATCH_EVERY_MS});
    look();
    postMessage(null);`;
  const worker = new Worker(`data:application/javascript,${encodeURIComponent(source)}`, { type: "module" });
  await new Promise((resolve) => worker.onmessage = resolve);
  return worker;
}

/**
 * Reads a file, or an image given as bytes, in the caller's process; for an untrusted file ask an inspector. Throws only
 * when the file can't be read.
 */
export async function fileFacts(file: UntrustedFile | Uint8Array): Promise<FileFacts> {
  if (file instanceof Uint8Array) return imageFacts(file);
  switch (file.kind) {
    case "image":
      return imageFacts(await readHead(file.path, file.size <= WHOLE_IMAGE_BYTES ? file.size : IMAGE_HEAD_BYTES));
    case "sticker":
      return { ...imageSize(await readHead(file.path, Math.min(file.size, IMAGE_HEAD_BYTES))) };
    case "voice":
      return await voiceFacts(await readFile(file.path));
    case "video":
    case "audio":
      return await lengthOf(file);
    case "document":
      return pageFacts(await readFile(file.path, "latin1"));
  }
}

/** Size and preview of an image, given whole or as its first bytes. */
function imageFacts(bytes: Uint8Array): FileFacts {
  const dimensions = imageSize(bytes);
  const jpegThumbnail = dimensions && thumbnail(bytes, dimensions);
  return { ...dimensions, ...(jpegThumbnail ? { jpegThumbnail } : {}) };
}

async function readHead(path: string, length: number): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    const bytes = new Uint8Array(length);
    const { bytesRead } = await file.read(bytes, 0, length, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function lengthOf({ path }: UntrustedFile): Promise<FileFacts> {
  const metadata = await parseFile(path, { duration: true, skipCovers: true }).catch(() => null);
  const seconds = metadata?.format.duration;
  return seconds && Number.isFinite(seconds) ? { seconds: Math.max(1, Math.round(seconds)) } : {};
}

/** The relevant tokens of a PDF's objects, in the order of the file; `obj` also matches the end of `endobj`. */
const PDF_TOKEN = /obj|\/Type\s*\/Pages|\/Count\s+\d{1,9}/g;

/** The root of the page tree states how many pages there are, unless it lies in a compressed stream. */
function pageFacts(pdf: string): FileFacts {
  let pageCount = 0;
  let object = { isTree: false, count: 0 };
  const close = () => {
    if (object.isTree) pageCount = Math.max(pageCount, object.count);
    object = { isTree: false, count: 0 };
  };
  for (const [token] of pdf.matchAll(PDF_TOKEN)) {
    if (token.startsWith("/Type")) object.isTree = true;
    else if (token.startsWith("/Count")) object.count ||= Number(token.slice("/Count".length));
    else close();
  }
  close();
  return pageCount > 0 ? { pageCount } : {};
}

/** The bars that apps draw, each from 0 to 100. */
const BARS = 64;
/** About two minutes; longer notes go without a waveform, since decoding takes time. */
const DECODED_BYTES = 256 * 1024;
const OPUS_RATE = 48_000;

/** Resolves to the duration and waveform of a voice note; without those that can't be decoded. Never throws. */
async function voiceFacts(bytes: Uint8Array): Promise<FileFacts> {
  const seconds = secondsOf(bytes);
  const waveform = bytes.length <= DECODED_BYTES ? await waveformOf(bytes).catch(() => null) : null;
  return { ...(seconds ? { seconds } : {}), ...(waveform ? { waveform } : {}) };
}

/** Returns the duration according to the position that the last page states (RFC 7845, section 4). */
function secondsOf(bytes: Uint8Array): number | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = bytes.length - 27; at >= 0; at--) {
    if (view.getUint32(at) !== 0x4f676753) continue; // "OggS"
    const samples = Number(view.getBigInt64(at + 6, true));
    return samples > 0 ? Math.max(1, Math.round(samples / OPUS_RATE)) : null;
  }
  return null;
}

async function waveformOf(bytes: Uint8Array): Promise<Uint8Array | null> {
  const decoder = new OggOpusDecoder();
  try {
    await decoder.ready;
    const { channelData: [channel], samplesDecoded } = await decoder.decodeFile(bytes);
    return channel && samplesDecoded > 0 ? barsOf(channel) : null;
  } finally {
    decoder.free();
  }
}

/** Returns the mean amplitude of each stretch, scaled so that the loudest is 100. */
function barsOf(channel: Float32Array): Uint8Array {
  const means = Array.from({ length: BARS }, (_, bar) => {
    const from = Math.floor(bar * channel.length / BARS);
    const to = Math.max(from + 1, Math.floor((bar + 1) * channel.length / BARS));
    let sum = 0;
    for (let i = from; i < to; i++) sum += Math.abs(channel[i] ?? 0);
    return sum / (to - from);
  });
  const loudest = Math.max(...means);
  return Uint8Array.from(means, (mean) => loudest > 0 ? Math.round(100 * mean / loudest) : 0);
}
