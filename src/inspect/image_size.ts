/** Width and height of an image from its first bytes: PNG, JPEG, GIF and WebP. */
import { Buffer } from "node:buffer";

export interface ImageSize {
  width: number;
  height: number;
}

/** The size that the image's header gives, or null for another format, or a header that is cut short. */
export function imageSize(bytes: Uint8Array): ImageSize | null {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return png(data) ?? gif(data) ?? webp(data) ?? jpeg(data);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function png(data: Buffer): ImageSize | null {
  if (data.toString("latin1", 1, 4) !== "PNG") return null;
  return { width: data.readUInt32BE(16), height: data.readUInt32BE(20) };
}

function gif(data: Buffer): ImageSize | null {
  if (data.toString("latin1", 0, 4) !== "GIF8") return null;
  return { width: data.readUInt16LE(6), height: data.readUInt16LE(8) };
}

/** The three forms of WebP: lossy, lossless, and extended (with a canvas of its own). */
function webp(data: Buffer): ImageSize | null {
  if (data.toString("latin1", 0, 4) !== "RIFF" || data.toString("latin1", 8, 12) !== "WEBP") return null;
  switch (data.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: data.readUInt16LE(26) & 0x3fff, height: data.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = data.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: data.readUIntLE(24, 3) + 1, height: data.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}

/** Start-of-frame markers carry the size; 0xC4, 0xC8 and 0xCC look like them but are not. */
function jpeg(data: Buffer): ImageSize | null {
  if (data.readUInt16BE(0) !== 0xffd8) return null;
  for (const { marker, start } of jpegSegments(data)) {
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: data.readUInt16BE(start + 3), height: data.readUInt16BE(start + 1) };
  }
  return null;
}

/** The segments of a JPEG up to its image data; `start` and `end` enclose a segment's content. */
export function* jpegSegments(data: Buffer): Generator<{ marker: number; start: number; end: number }> {
  let offset = 2;
  while (offset + 4 <= data.length && data[offset] === 0xff) {
    const marker = data[offset + 1]!;
    const end = offset + 2 + data.readUInt16BE(offset + 2);
    if (marker === 0xda) return;
    yield { marker, start: offset + 4, end };
    offset = end;
  }
}
