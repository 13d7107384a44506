/**
 * An image's small preview, and the size that its first bytes give. A camera's JPEG brings a preview of its own; other
 * images are scaled down only while that takes tenths of a second (docs/decisions/0008-thumbnails.md).
 */
import { Buffer } from "node:buffer";
import { imageDimensionsFromData } from "image-dimensions";
import jpegCodec from "jpeg-js";
import { PNG } from "pngjs";
import { unlessMalformed } from "../base/retry.ts";

/** Larger images go without a preview: a JPEG of 1 MP takes about 0.2 s and 50 MB to decode. */
const MAX_PIXELS = 500_000;
/** A progressive JPEG has about ten; each is another pass over all pixels. */
const MAX_SCANS = 20;
const MAX_JPEG_MEMORY_MB = 64;
/** The longer side of the preview: what WhatsApp's own clients send. */
const SIDE = 100;
const QUALITY = 50;
/** Samples along each side of the area that a preview's pixel covers. */
const SAMPLES = 4;
/** A preview travels inside the encrypted message; a larger one is not used. */
const MAX_PREVIEW_BYTES = 16 * 1024;
/** Offset of the byte in a PNG's header. */
const INTERLACE_METHOD = 28;
const START_OF_SCAN = Buffer.from([0xff, 0xda]);
const EXIF_JPEG_OFFSET = 0x0201;
const EXIF_JPEG_LENGTH = 0x0202;

interface ImageSize {
  width: number;
  height: number;
}

/** The size that the image's header gives, or null for another format, or a header that is cut short. */
export function imageSize(bytes: Uint8Array): ImageSize | null {
  const size = imageDimensionsFromData(bytes);
  return size ? { width: size.width, height: size.height } : null;
}

/** The segments of a JPEG up to its image data; `start` and `end` enclose a segment's content. */
function* jpegSegments(data: Buffer): Generator<{ marker: number; start: number; end: number }> {
  let offset = 2;
  while (offset + 4 <= data.length && data[offset] === 0xff) {
    const marker = data[offset + 1]!;
    const end = offset + 2 + data.readUInt16BE(offset + 2);
    if (marker === 0xda) return;
    yield { marker, start: offset + 4, end };
    offset = end;
  }
}

/** Returns a JPEG preview, or null if none can be made cheaply. Never throws. */
export function thumbnail(bytes: Uint8Array, size: ImageSize): Uint8Array | null {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isSmall = size.width * size.height <= MAX_PIXELS;
  return unlessMalformed(() => embedded(data) ?? (isSmall ? scaled(data, size) : null), null);
}

/** Returns the preview that cameras embed in the second directory of the EXIF data. */
function embedded(data: Buffer): Uint8Array | null {
  if (data.length < 4 || data.readUInt16BE(0) !== 0xffd8) return null;
  for (const { marker, start, end } of jpegSegments(data)) {
    if (marker !== 0xe1 || data.toString("latin1", start, start + 4) !== "Exif") continue;
    const tiff = data.subarray(start + 6, end);
    const little = tiff.toString("latin1", 0, 2) === "II";
    const u16 = (at: number) => little ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at);
    const u32 = (at: number) => little ? tiff.readUInt32LE(at) : tiff.readUInt32BE(at);
    const first = u32(4);
    const second = u32(first + 2 + 12 * u16(first));
    if (second === 0) return null;
    const fields = new Map<number, number>();
    for (let i = 0; i < u16(second); i++) {
      const entry = second + 2 + 12 * i;
      fields.set(u16(entry), u32(entry + 8));
    }
    const offset = fields.get(EXIF_JPEG_OFFSET);
    const length = fields.get(EXIF_JPEG_LENGTH);
    if (!offset || !length || length > MAX_PREVIEW_BYTES || offset + length > tiff.length) return null;
    const preview = tiff.subarray(offset, offset + length);
    return preview.readUInt16BE(0) === 0xffd8 ? preview : null;
  }
  return null;
}

function scaled(data: Buffer, { width, height }: ImageSize): Uint8Array | null {
  const pixels = pngPixels(data) ?? jpegPixels(data);
  if (!pixels) return null;
  const factor = Math.min(1, SIDE / Math.max(width, height));
  const small = { width: Math.max(1, Math.round(width * factor)), height: Math.max(1, Math.round(height * factor)) };
  const preview = jpegCodec.encode({ ...small, data: average(pixels, { width, height }, small) }, QUALITY).data;
  return preview.length <= MAX_PREVIEW_BYTES ? preview : null;
}

/** Interlaced images are skipped: `pngjs` unpacks them without a bound, whatever their size. */
function pngPixels(data: Buffer): Uint8Array | null {
  if (data.toString("latin1", 1, 4) !== "PNG" || data[INTERLACE_METHOD] !== 0) return null;
  return PNG.sync.read(data).data;
}

function jpegPixels(data: Buffer): Uint8Array | null {
  if (data.readUInt16BE(0) !== 0xffd8 || scansOf(data) > MAX_SCANS) return null;
  return jpegCodec.decode(data, { useTArray: true, maxMemoryUsageInMB: MAX_JPEG_MEMORY_MB }).data;
}

/** Returns an upper bound for the number of scans: the marker may also occur inside another segment. */
function scansOf(data: Buffer): number {
  let scans = 0;
  for (let at = data.indexOf(START_OF_SCAN); at >= 0; at = data.indexOf(START_OF_SCAN, at + 2)) scans++;
  return scans;
}

/** Each small pixel is the mean of some of the pixels that it covers, on white where they are transparent. */
function average(pixels: Uint8Array, from: ImageSize, to: ImageSize): Uint8Array {
  const small = new Uint8Array(to.width * to.height * 4).fill(255);
  const rows = samples(from.height, to.height);
  const columns = samples(from.width, to.width);
  for (let y = 0; y < to.height; y++) {
    for (let x = 0; x < to.width; x++) {
      let red = 0, green = 0, blue = 0;
      for (const row of rows[y]!) {
        for (const column of columns[x]!) {
          const at = (row * from.width + column) * 4;
          const alpha = pixels[at + 3]! / 255;
          const white = 255 * (1 - alpha);
          red += pixels[at]! * alpha + white;
          green += pixels[at + 1]! * alpha + white;
          blue += pixels[at + 2]! * alpha + white;
        }
      }
      const count = rows[y]!.length * columns[x]!.length;
      small.set([red / count, green / count, blue / count], (y * to.width + x) * 4);
    }
  }
  return small;
}

/** For each place on the small side up to SAMPLES places on the large one, evenly over what it covers. */
function samples(from: number, to: number): number[][] {
  const scale = from / to;
  return Array.from({ length: to }, (_, i) => {
    const count = Math.min(SAMPLES, Math.max(1, Math.floor(scale)));
    return Array.from({ length: count }, (_, k) => Math.min(from - 1, Math.floor((i + (k + 0.5) / count) * scale)));
  });
}
