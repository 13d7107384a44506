/**
 * The format of an engine's row for a value of any size. Most values are stored as they are. The others become bytes:
 * the serialised value, or a head that names the chunks of a large one.
 *
 * Values that survive JSON unchanged are serialised as JSON, which is fast and readable. What V8's deserialiser makes
 * stays in memory until a full collection, and those come late: it is left for what nothing else can hold.
 */
import v8 from "node:v8";
import { Buffer } from "node:buffer";
import { StoreError } from "../kv.ts";
import { sizeBound } from "../limits.ts";

/** Below Deno KV's 64 KiB a value. */
export const CHUNK_BYTES = 60 * 1024;
/** Values nested deeper are left to V8's serialiser. */
const DEEPEST = 32;

/** First bytes, none of which begins JSON. Rows of earlier versions have `WRAPPED` before what V8 serialised. */
const WRAPPED = 1;
const HEAD = 2;
const BYTES = 3;
/** JSON in two bytes a character, where UTF-8 takes three for most of them: a commit holds no more than V8's two. */
const WIDE = 4;
const V8 = 0xff;

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
  const bytes = serialise(value);
  return bytes.length <= CHUNK_BYTES
    ? { kind: "row", value: bytes, bytes: sizeBound(bytes) }
    : { kind: "large", bytes };
}

/** Encodes the row of a large value. */
export function headRow(head: Head): Uint8Array {
  return tagged(HEAD, Buffer.from(JSON.stringify(head)));
}

/** Decodes a row into its value, or the head that locates it. Throws as `deserialise` does. */
export function decodeRow(row: unknown): { kind: "value"; value: unknown } | { kind: "head"; head: Head } {
  if (!(row instanceof Uint8Array)) return { kind: "value", value: row };
  if (row[0] === HEAD) return { kind: "head", head: JSON.parse(Buffer.from(row.subarray(1)).toString()) };
  return { kind: "value", value: deserialise(row[0] === WRAPPED ? row.subarray(1) : row) };
}

function tagged(tag: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
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
  if (value instanceof Uint8Array) return tagged(BYTES, value);
  if (isJson(value, 0)) {
    const text = JSON.stringify(value);
    const bytes = new TextEncoder().encode(text);
    return bytes.length <= 2 * text.length ? bytes : tagged(WIDE, Buffer.from(text, "utf16le"));
  }
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

/** Returns the value that was serialised. Throws StoreError if a newer build has written it. */
export function deserialise(bytes: Uint8Array): unknown {
  if (bytes[0] === BYTES) return new Uint8Array(bytes.subarray(1));
  if (bytes[0] === WIDE) {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + 1, bytes.length - 1).toString("utf16le"));
  }
  if (bytes[0] !== V8) return JSON.parse(new TextDecoder().decode(bytes));
  try {
    // A copy, because Deno 2.6 reads byte arrays inside a view from the wrong offset.
    return v8.deserialize(new Uint8Array(bytes));
  } catch (cause) {
    throw new StoreError("unavailable", "a newer build of Paloma wrote this data: use that one", { cause });
  }
}

function isJson(value: unknown, depth: number): boolean {
  if (value === null || typeof value === "boolean" || typeof value === "string") return true;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object" || depth > DEEPEST) return false;
  if (Array.isArray(value)) {
    return Object.keys(value).length === value.length && value.every((item) => isJson(item, depth + 1));
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  return Object.entries(value).every(([name, member]) =>
    name !== "toJSON" && name !== "__proto__" && isJson(member, depth + 1)
  );
}
