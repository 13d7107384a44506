/**
 * Hostile files of nine formats, made from a seed: crafted to cost their reader time or memory, or a sound file that was
 * damaged. The same seed makes the same files again.
 */
import { Buffer } from "node:buffer";
import { crc32, deflateSync, gzipSync } from "node:zlib";
import jpeg from "jpeg-js";
import { PNG } from "pngjs";
import { PAGELESS_PDF, sampleFile, voiceNote } from "./sample_files.ts";

export interface HostileFile {
  /** Ends in the extension of its format. */
  name: string;
  mimetype: string;
  bytes: Buffer;
}

/** A whole number from 0 up to the limit, which is not reached. */
type Below = (limit: number) => number;

/** `count` files, format by format in turn. */
export function* hostileFiles({ count, seed }: { count: number; seed: number }): Generator<HostileFile> {
  const below = mulberry32(seed);
  for (let i = 0; i < count; i++) {
    const { extension, mimetype, sound, crafted } = FORMATS[i % FORMATS.length]!;
    // Most that is crafted stays whole: damage would mostly end a reader early.
    const bytes = below(3) === 0
      ? damaged(sound(below), below)
      : below(4) === 0
      ? cut(crafted(below), below)
      : crafted(below);
    yield { name: `${i}.${extension}`, mimetype, bytes };
  }
}

function mulberry32(seed: number): Below {
  let state = seed;
  return (limit) => {
    state = state + 0x6d2b79f5 | 0;
    let t = Math.imul(state ^ state >>> 15, 1 | state);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) % limit;
  };
}

function damaged(bytes: Buffer, below: Below): Buffer {
  const copy = Buffer.from(bytes);
  for (let i = 1 + below(20); i > 0 && copy.length > 0; i--) copy[below(copy.length)] = below(256);
  return below(4) === 0 ? cut(copy, below) : copy;
}

function cut(bytes: Buffer, below: Below): Buffer {
  return bytes.subarray(0, 1 + below(bytes.length));
}

interface Format {
  extension: string;
  mimetype: string;
  sound(below: Below): Buffer;
  crafted(below: Below): Buffer;
}

const FORMATS: readonly Format[] = [
  {
    extension: "pdf",
    mimetype: "application/pdf",
    sound: () => Buffer.from(PAGELESS_PDF),
    crafted(below) {
      const words = [
        "/Type/Pages ",
        "/Type" + " ".repeat(900),
        "obj ",
        "/Count 9",
        "/Count" + " ".repeat(999),
        "endobj ",
      ];
      const text = words[below(words.length)]!.repeat(1 + below(60_000)).slice(0, 7e6);
      return Buffer.from("%PDF-1.4\n" + text);
    },
  },
  {
    extension: "png",
    mimetype: "image/png",
    sound: (below) => PNG.sync.write(new PNG({ width: 1 + below(400), height: 1 + below(400) })),
    crafted: pngBomb,
  },
  {
    extension: "jpg",
    mimetype: "image/jpeg",
    sound(below) {
      const [width, height] = [1 + below(700), 1 + below(700)];
      return Buffer.from(jpeg.encode({ width, height, data: Buffer.alloc(width * height * 4, below(256)) }, 50).data);
    },
    crafted: jpegOfScans,
  },
  {
    extension: "gif",
    mimetype: "image/gif",
    sound: () => sampleFile("gif"),
    crafted: (below) => Buffer.concat([Buffer.from("GIF89a"), Buffer.alloc(2 + below(4_000_000), below(256))]),
  },
  {
    extension: "webp",
    mimetype: "image/webp",
    sound: () => Buffer.from(sampleFile("webp")),
    crafted(below) {
      const head = `RIFF\xff\xff\xff\xffWEBPVP8${["X", "L", " "][below(3)]}`;
      return Buffer.concat([Buffer.from(head, "latin1"), Buffer.alloc(below(2_000_000), 0xff)]);
    },
  },
  { extension: "mp4", mimetype: "video/mp4", sound: () => sampleFile("mp4"), crafted: boxesInBoxes },
  {
    extension: "ogg",
    mimetype: "audio/ogg; codecs=opus",
    sound: (below) => voiceNote(1 + below(20)),
    crafted: oggPages,
  },
  {
    extension: "zip",
    mimetype: "application/zip",
    sound: () => sampleFile("zip"),
    crafted(below) {
      const bomb = Buffer.concat([Buffer.from("PK\x03\x04"), gzipSync(Buffer.alloc(1_000_000))]);
      return Buffer.concat(Array.from({ length: 1 + below(50) }, () => bomb));
    },
  },
  {
    extension: "svg",
    mimetype: "image/svg+xml",
    sound: () => Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/></svg>"),
    crafted: (below) => Buffer.from("<svg>" + ["<g>", "<g a='", "&lol;", "<!--"][below(4)]!.repeat(1 + below(500_000))),
  },
];

const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");
let packedZeros: Buffer | null = null;

/** A few pixels, or very many; 64 MB of zeros in each of up to 40 chunks, with checksums that are right. */
function pngBomb(below: Below): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(1 + below(3) * below(50_000), 0);
  header.writeUInt32BE(1 + below(3) * below(50_000), 4);
  header.set([[1, 2, 4, 8, 16][below(5)]!, [0, 2, 3, 4, 6][below(5)]!, 0, 0, below(2)], 8);
  packedZeros ??= deflateSync(new Uint8Array(64 * 1024 ** 2));
  const chunks = Array.from({ length: 1 + below(40) }, () => pngChunk("IDAT", packedZeros!));
  return Buffer.concat([SIGNATURE, pngChunk("IHDR", header), ...chunks, pngChunk("IEND", Buffer.alloc(0))]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, "latin1");
  bytes.set(data, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

/** Up to 300,000 scans, each of them another pass over all pixels. */
function jpegOfScans(below: Below): Buffer {
  const frame = Buffer.from("ffc0001108000000000301220002110103110100", "hex").subarray(0, 19);
  frame.writeUInt16BE(1 + below(800), 5);
  frame.writeUInt16BE(1 + below(800), 7);
  const scan = Buffer.from("ffda000c03010002110311003f00" + "00".repeat(below(40)), "hex");
  const scans = Array.from({ length: 1 + below(300_000) }, () => scan);
  return Buffer.concat([Buffer.from("ffd8", "hex"), frame, ...scans]);
}

/** Boxes that hold themselves many times over, or say that they are as long as anything. */
function boxesInBoxes(below: Below): Buffer {
  const box = (type: string, data: Buffer, size = data.length + 8) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(size >>> 0, 0);
    head.write(type, 4, "latin1");
    return Buffer.concat([head, data]);
  };
  let inner = box("stsz", Buffer.alloc(12, 0xff));
  for (const type of ["stbl", "minf", "mdia", "trak", "moov"]) {
    const copies = Array.from({ length: 1 + below(30) }, () => inner);
    inner = box(type, Buffer.concat(copies), below(2) ? undefined : below(2 ** 31));
    if (inner.length > 2 ** 21) break;
  }
  return Buffer.concat([box("ftyp", Buffer.from("isom\0\0\x02\0isom")), inner]);
}

function oggPages(below: Below): Buffer {
  const page = Buffer.alloc(27 + 255 + below(60_000));
  page.write("OggS", 0, "latin1");
  page[26] = 255;
  page.fill(below(256), 27, 27 + 255);
  page.write("OpusHead", 282, "latin1");
  return Buffer.concat(Array.from({ length: 1 + below(200) }, () => page));
}
