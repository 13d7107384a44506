/**
 * Values as bytes. What JSON gives back as it was is JSON: fast, and readable by whoever looks at the table; everything
 * else is V8's serialisation, which begins with a byte that no JSON begins with.
 */
import v8 from "node:v8";
import { Buffer } from "node:buffer";
import { StoreError } from "../kv.ts";
import { serialise } from "../layers/row_format.ts";

const V8 = 0xff;
/** Deeper values are left to the serialiser. */
const DEEPEST = 32;

/** Throws TypeError when the value cannot be cloned. */
export function valueBytes(value: unknown): Uint8Array {
  return isJson(value, 0) ? Buffer.from(JSON.stringify(value)) : serialise(value);
}

export function valueOfBytes(bytes: Buffer): unknown {
  if (bytes[0] !== V8) return JSON.parse(bytes.toString());
  try {
    // A copy of its own: Deno 2.6 reads byte arrays inside of a view's value from the wrong place.
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
  for (const name of Object.keys(value)) {
    if (name === "toJSON" || name === "__proto__" || !isJson((value as Record<string, unknown>)[name], depth + 1)) {
      return false;
    }
  }
  return true;
}
