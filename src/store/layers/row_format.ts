/**
 * The format of an engine's row for a value of any size. Most values are stored as they are. The others become bytes
 * with a tag in front: the given bytes, another serialised value, or a head that names the chunks of a large value.
 */
import v8 from "node:v8";
import { Buffer } from "node:buffer";
import { sizeBound } from "../limits.ts";

/** Below Deno KV's 64 KiB a value. */
export const CHUNK_BYTES = 60 * 1024;
const SERIALISED = 1;
const HEAD = 2;
const BYTES = 3;

/** Locates a large value. */
export interface Head {
  stageId: string;
  index: number;
  parts: number;
}

/**
 * Encodes a value: the row's value with an upper bound of its size, or the bytes that must be split. Throws TypeError
 * if the value cannot be serialised.
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

/** Encodes the row of a large value. */
export function headRow(head: Head): Uint8Array {
  return tagged(HEAD, Buffer.from(JSON.stringify(head)));
}

/** Decodes a row into its value, or the head that locates it. */
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

/** Turns Buffers into plain byte arrays, as the engine's own serialiser does. */
class Serialiser extends v8.DefaultSerializer {
  _writeHostObject(view: ArrayBufferView): void {
    const plain = view instanceof Buffer ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : view;
    // deno-lint-ignore no-explicit-any -- Node.js documents this hook, its type declarations leave it out
    (v8.DefaultSerializer.prototype as any)._writeHostObject.call(this, plain);
  }
}

/** Serialises a value. Throws TypeError if part of it cannot be cloned. */
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
