/** The smallest real file of each kind: what a phone, a viewer or a player would open. */
import { Buffer } from "node:buffer";
import jpeg from "jpeg-js";
import { PNG } from "pngjs";
import { invoicePdf } from "../../src/cli/demo.ts";

/** Pixels across and down of every image here. */
export const IMAGE_SIZE = { width: 6, height: 4 };

function png(): Buffer {
  const image = new PNG({ ...IMAGE_SIZE });
  image.data = Buffer.from(pixels());
  return PNG.sync.write(image);
}

function jpg(): Buffer {
  return Buffer.from(jpeg.encode({ ...IMAGE_SIZE, data: pixels() }, 80).data);
}

function pixels(): Uint8Array {
  return new Uint8Array(IMAGE_SIZE.width * IMAGE_SIZE.height * 4).map((_, i) => i % 4 === 3 ? 255 : 7 * i % 251);
}

/** One plain picture, two colours, LZW with a minimum code size of 2: each pixel after a clear code. */
function gif(): Buffer {
  const { width, height } = IMAGE_SIZE;
  const codes: number[] = [];
  for (let i = 0; i < width * height; i++) codes.push(4, i % 2);
  codes.push(5);
  const packed = Buffer.alloc(Math.ceil(codes.length * 3 / 8));
  codes.forEach((code, i) => {
    for (let bit = 0; bit < 3; bit++) {
      const at = i * 3 + bit;
      if (code & (1 << bit)) packed[at >> 3]! |= 1 << (at & 7);
    }
  });
  const size = [width, 0, height, 0];
  return Buffer.concat([
    Buffer.from("GIF89a", "latin1"),
    Buffer.from([...size, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]),
    Buffer.from([0x2c, 0, 0, 0, 0, ...size, 0, 2, packed.length]),
    packed,
    Buffer.from([0, 0x3b]),
  ]);
}

/** Lossless, one colour. */
const WEBP = Buffer.from("UklGRh4AAABXRUJQVlA4TBEAAAAvBcAAAAdQkTIUp/+BiOh/AAA=", "base64");

/** A movie of two seconds without a track: MP4, 3GP and QuickTime differ in their brand. */
function movie(brand: string): Buffer {
  const header = Buffer.alloc(100);
  header.writeUInt32BE(1_000, 12);
  header.writeUInt32BE(2_000, 16);
  header.writeUInt32BE(0x00010000, 20);
  header.writeUInt32BE(1, 96);
  const type = box(
    "ftyp",
    Buffer.concat([Buffer.from(brand, "latin1"), Buffer.alloc(4), Buffer.from(brand, "latin1")]),
  );
  return Buffer.concat([type, box("moov", box("mvhd", header))]);
}

function box(type: string, content: Buffer): Buffer {
  const head = Buffer.from(`____${type}`, "latin1");
  head.writeUInt32BE(8 + content.length);
  return Buffer.concat([head, content]);
}

/** A second of silence: MPEG 1 layer III at 128 kbit/s and 44.1 kHz has frames of 417 bytes. */
function mp3(): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xfffb9000);
  return Buffer.concat(Array.from({ length: 39 }, () => frame));
}

/** Opus with a page of heads, one of tags and one of silence. */
function ogg(): Buffer {
  const head = Buffer.from("OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0", "latin1");
  const tags = Buffer.from("OpusTags\x04\0\0\0test\0\0\0\0", "latin1");
  const silence = Buffer.from([0xf8, 0xff, 0xfe]);
  return Buffer.concat([oggPage(head, 0, 2), oggPage(tags, 1, 0), oggPage(silence, 2, 4)]);
}

/** A voice note of so many seconds: the first half is silence, the other noise. */
export function voiceNote(seconds: number): Buffer {
  const head = Buffer.from("OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0", "latin1");
  const tags = Buffer.from("OpusTags\x04\0\0\0test\0\0\0\0", "latin1");
  const packets = Array.from({ length: seconds * 50 }, (_, i) => {
    if (i < seconds * 25) return Buffer.from([0xf8, 0xff, 0xfe]);
    return Buffer.from([0xf8, ...Array.from({ length: 60 }, (_, k) => (i * 131 + k * 97 + k * k * 7) % 256)]);
  });
  return Buffer.concat([
    oggPage(head, 0, 2),
    oggPage(tags, 1, 0),
    ...packets.map((packet, i) => oggPage(packet, i + 2, i + 1 === packets.length ? 4 : 0, 960 * (i + 1))),
  ]);
}

function oggPage(packet: Buffer, sequence: number, flags: number, samples = sequence === 2 ? 960 : 0): Buffer {
  const head = Buffer.alloc(28);
  head.write("OggS", 0, "latin1");
  head[5] = flags;
  head.writeUInt32LE(samples, 6);
  head.writeUInt32LE(1, 14);
  head.writeUInt32LE(sequence, 18);
  head[26] = 1;
  head[27] = packet.length;
  const page = Buffer.concat([head, packet]);
  page.writeUInt32LE(oggChecksum(page), 22);
  return page;
}

/** CRC-32 with the polynomial of Ogg, unreflected. */
function oggChecksum(page: Buffer): number {
  let sum = 0;
  for (const byte of page) {
    sum ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80000000 ? (sum << 1) ^ 0x04c11db7 : sum << 1;
  }
  return sum >>> 0;
}

/** An archive without an entry; office documents are archives. */
const EMPTY_ZIP = Buffer.concat([Buffer.from("PK\x05\x06", "latin1"), Buffer.alloc(18)]);

/** A PDF whose page tree is empty. */
export const PAGELESS_PDF = Buffer.from(
  "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [] /Count 0 >>\nendobj\n" +
    "xref\n0 3\n0000000000 65535 f \n0000000009 00000 n \n0000000058 00000 n \ntrailer\n<< /Size 3 /Root 1 0 R >>\n" +
    "startxref\n110\n%%EOF\n",
  "latin1",
);

/** By extension. Those that are missing need no content of their own. */
const BY_EXTENSION: Readonly<Record<string, () => Buffer>> = {
  png,
  jpg,
  jpeg: jpg,
  gif,
  webp: () => WEBP,
  mp4: () => movie("isom"),
  "3gp": () => movie("3gp4"),
  mov: () => movie("qt  "),
  mp3,
  ogg,
  pdf: () => invoicePdf("Invoice 1042"),
  docx: () => EMPTY_ZIP,
  xlsx: () => EMPTY_ZIP,
  pptx: () => EMPTY_ZIP,
  zip: () => EMPTY_ZIP,
  rtf: () => Buffer.from("{\\rtf1 Hello}"),
  csv: () => Buffer.from("name,total\nAna,3\n"),
  xml: () => Buffer.from("<invoice number='1042'/>"),
  json: () => Buffer.from('{"invoice":1042}'),
  html: () => Buffer.from("<!doctype html><title>Invoice</title>"),
};

/** A file with this extension, in lower case. Of an unknown one: some text that names it. */
export function sampleFile(extension: string): Buffer {
  return BY_EXTENSION[extension]?.() ?? Buffer.from(`a file with the extension "${extension}"`);
}
