/** Reading a QR from its picture, as a camera would. */
import { Buffer } from "node:buffer";
import jsqr from "jsqr";
import { PNG } from "pngjs";

// The library is CommonJS with a default export of its own.
const find = jsqr as unknown as typeof jsqr.default;

export const PNG_DATA_URL = "data:image/png;base64,";

/** The text of the QR that the PNG shows; null when it shows none. Throws on what is no PNG. */
export function readQrPng(dataUrl: string): string | null {
  const { data, width, height } = PNG.sync.read(Buffer.from(dataUrl.slice(PNG_DATA_URL.length), "base64"));
  return find(new Uint8ClampedArray(data), width, height)?.data ?? null;
}
