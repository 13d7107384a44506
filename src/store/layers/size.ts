/** Fast upper bounds of the space that keys and values take in the engine. */
import type { Key, KeyPart } from "../kv.ts";

/** Values nested deeper are measured by serialising them. */
const DEEPEST = 64;

/** Returns the bytes of the encoded key: a type byte and a terminator per part, with zero bytes escaped. */
export function keySize(key: Key): number {
  let size = 0;
  for (const part of key) size += partSize(part);
  return size;
}

function partSize(part: KeyPart): number {
  switch (typeof part) {
    case "string":
      return 2 + textSize(part);
    case "number":
      return 9;
    case "bigint":
      return 4 + bigintSize(part);
    case "boolean":
      return 1;
    default:
      return 2 + part.length + part.filter((byte) => byte === 0).length;
  }
}

/** Size as UTF-8, with an escape byte for each zero. */
function textSize(text: string): number {
  let size = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0) size += 2;
    else if (unit < 0x80) size += 1;
    else if (unit < 0x800) size += 2;
    else size += 3;
  }
  return size;
}

const bigintSize = (value: bigint) => value.toString(16).length / 2 + 2;

/**
 * Returns an upper bound of the value's serialised size in bytes. Infinity if only the serialiser can tell: for very
 * deep values, and for views of a larger buffer (the engine would store the whole buffer, pooled secrets included).
 */
export function sizeBound(value: unknown, depth = 0): number {
  switch (typeof value) {
    case "string":
      return 8 + 2 * value.length;
    case "number":
      return 10;
    case "bigint":
      return 8 + bigintSize(value);
    case "object":
      return value === null ? 1 : depth > DEEPEST ? Infinity : objectBound(value, depth + 1);
    default:
      return 1;
  }
}

function objectBound(value: object, depth: number): number {
  let size = 16;
  if (ArrayBuffer.isView(value)) {
    return value.byteLength === value.buffer.byteLength ? size + value.byteLength : Infinity;
  }
  if (Array.isArray(value) || value instanceof Set) {
    for (const item of value) size += 5 + sizeBound(item, depth);
    return size;
  }
  if (value instanceof Map) {
    for (const [key, item] of value) size += sizeBound(key, depth) + sizeBound(item, depth);
    return size;
  }
  if (value instanceof Date) return size;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return Infinity;
  for (const name in value) size += 8 + 2 * name.length + sizeBound((value as Record<string, unknown>)[name], depth);
  return size;
}
