/**
 * What stands in a row of the engine for a value of any size. Most values stand there as they are. The others are bytes
 * with a tag in front: bytes as they were given, another serialised value, or a head that names the chunks in which it
 * lies.
 */
import v8 from "node:v8";
import { Buffer } from "node:buffer";
import { sizeBound } from "./size.ts";

/** Below Deno KV's 64 KiB a value. */
export const CHUNK_BYTES = 60 * 1024;
const SERIALISED = 1;
const HEAD = 2;
const BYTES = 3;

/** Where a large value lies. */
export interface Head {
  stageId: string;
  index: number;
  parts: number;
}

/**
 * A row's value as it is written, with how many bytes it takes at most, or the bytes that must be split. Throws TypeError
 * when it cannot be serialised.
 */
export function encodeValue(
  value: unknown,
): { kind: "row"; value: unknown; bytes: number } | { kind: "large"; bytes: Uint8Array } {
  const bound = ArrayBuffer.isView(value) ? Infinity : sizeBound(value);
  if (bound <= CHUNK_BYTES) return { kind: "row", value, bytes: bound };
  if (value instanceof Uint8Array && value.length < CHUNK_BYTES) return taggedRow(BYTES, value);
  const bytes = serialise(value);
  return bytes.length < CHUNK_BYTES ? taggedRow(SERIALISED, bytes) : { kind: "large", bytes };
}

function taggedRow(tag: number, body: Uint8Array): { kind: "row"; value: Uint8Array; bytes: number } {
  const value = tagged(tag, body);
  return { kind: "row", value, bytes: sizeBound(value) };
}

/** The row that stands for a large value. */
export function headRow(head: Head): Uint8Array {
  return tagged(HEAD, Buffer.from(JSON.stringify(head)));
}

/** The value of a row, or the head that says where it lies. */
export function decodeRow(row: unknown): { kind: "value"; value: unknown } | { kind: "head"; head: Head } {
  if (!(row instanceof Uint8Array)) return { kind: "value", value: row };
  // A copy, not a view: Deno 2.6 reads byte arrays inside the value from the wrong place of a view (2.9 does not).
  const body = row.slice(1);
  if (row[0] === BYTES) return { kind: "value", value: body };
  if (row[0] === SERIALISED) return { kind: "value", value: v8.deserialize(body) };
  return { kind: "head", head: JSON.parse(Buffer.from(body).toString()) };
}

function tagged(tag: number, body: Uint8Array): Uint8Array {
  const row = new Uint8Array(body.length + 1);
  row[0] = tag;
  row.set(body, 1);
  return row;
}

/** Buffers become plain byte arrays, as they do in a row that the engine serialises. */
class Serialiser extends v8.DefaultSerializer {
  _writeHostObject(view: ArrayBufferView): void {
    const plain = view instanceof Buffer ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : view;
    // deno-lint-ignore no-explicit-any -- Node.js documents this hook, its type declarations leave it out
    (v8.DefaultSerializer.prototype as any)._writeHostObject.call(this, plain);
  }
}

/** Throws TypeError when the value holds something that cannot be cloned. */
export function serialise(value: unknown): Uint8Array<ArrayBuffer> {
  const serialiser = new Serialiser();
  serialiser.writeHeader();
  try {
    serialiser.writeValue(value);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new TypeError("the value cannot be stored: it holds something that cannot be cloned", { cause: error });
  }
  return new Uint8Array(serialiser.releaseBuffer());
}
