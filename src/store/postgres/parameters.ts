/** Encodes arrays of serialised values as parameters, and changes as the parameters of one call of `paloma.commit`. */
import { Buffer } from "node:buffer";
import type { Change, Mutation } from "../kv.ts";
import { keyBytes } from "../layers/key_bytes.ts";
import { serialise } from "../layers/row_format.ts";

/** OIDs of the element types, the same in every database. */
const TYPES = { bytea: 17, int8: 20, int4: 23 };

type Element<Type extends keyof typeof TYPES> = { bytea: Uint8Array; int8: bigint; int4: number }[Type] | null;

/** Number of dimensions, null flag, element type; then the length and lower bound of the only dimension. */
const HEADER_BYTES = 20;
const EMPTY_BYTES = 12;
const NULL = -1;

/**
 * An array parameter in PostgreSQL's binary format. The client's own format is hexadecimal text, twice as long and slow
 * to encode and decode. Source: `array_recv` in src/backend/utils/adt/arrayfuncs.c.
 */
export class ArrayParameter<Type extends keyof typeof TYPES> {
  readonly #type: Type;
  #bytes = Buffer.allocUnsafe(1024);
  #end = HEADER_BYTES;
  #length = 0;
  #hasNulls = false;

  constructor(type: Type) {
    this.#type = type;
  }

  add(element: Element<Type>): void {
    this.#length++;
    if (element === null) {
      this.#reserve(4);
      this.#hasNulls = true;
      this.#end = this.#bytes.writeInt32BE(NULL, this.#end);
    } else if (typeof element === "number") {
      this.#reserve(8);
      this.#end = this.#bytes.writeInt32BE(4, this.#end);
      this.#end = this.#bytes.writeInt32BE(element, this.#end);
    } else if (typeof element === "bigint") {
      this.#reserve(12);
      this.#end = this.#bytes.writeInt32BE(8, this.#end);
      this.#end = this.#bytes.writeBigInt64BE(element, this.#end);
    } else {
      this.#reserve(4 + element.length);
      this.#end = this.#bytes.writeInt32BE(element.length, this.#end);
      this.#bytes.set(element, this.#end);
      this.#end += element.length;
    }
  }

  bytes(): Buffer {
    const isEmpty = this.#length === 0;
    this.#bytes.writeInt32BE(isEmpty ? 0 : 1, 0);
    this.#bytes.writeInt32BE(this.#hasNulls ? 1 : 0, 4);
    this.#bytes.writeInt32BE(TYPES[this.#type], 8);
    this.#bytes.writeInt32BE(this.#length, 12);
    this.#bytes.writeInt32BE(1, 16);
    return this.#bytes.subarray(0, isEmpty ? EMPTY_BYTES : this.#end);
  }

  #reserve(size: number): void {
    if (this.#end + size <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#end + size));
    this.#bytes.copy(grown, 0, 0, this.#end);
    this.#bytes = grown;
  }
}

/** The function's codes for kinds of mutations. */
const SET_VALUE = 1, SET_COUNTER = 2, ADD = 3, DELETE = 4;

interface Write {
  kind: number;
  value: Uint8Array | null;
  counter: bigint | null;
}

/** Throws TypeError or RangeError for changes that no engine accepts. */
export function commitParameters(changes: readonly Change[]): Buffer[] {
  const checkChange = new ArrayParameter("int4");
  const checkKey = new ArrayParameter("bytea");
  const checkVersion = new ArrayParameter("int8");
  const number = new ArrayParameter("int4");
  const kinds = new ArrayParameter("int4");
  const keys = new ArrayParameter("bytea");
  const values = new ArrayParameter("bytea");
  const counters = new ArrayParameter("int8");
  for (const [i, { checks, mutations }] of changes.entries()) {
    for (const { key, version } of checks) {
      checkChange.add(i);
      checkKey.add(keyBytes(key));
      checkVersion.add(version === null ? null : versionNumber(version));
    }
    for (const [key, { kind, value, counter }] of writesOf(mutations)) {
      number.add(i);
      kinds.add(kind);
      keys.add(key);
      values.add(value);
      counters.add(counter);
    }
  }
  return [checkChange, checkKey, checkVersion, number, kinds, keys, values, counters].map((array) => array.bytes());
}

/** A version that is not this engine's becomes one that matches no row. */
function versionNumber(version: string): bigint {
  return /^\d+$/.test(version) ? BigInt(version) : -1n;
}

/** Combines the mutations of each key into one write with the same result. */
function writesOf(mutations: readonly Mutation[]): Iterable<[Buffer, Write]> {
  const writes = new Map<string, [Buffer, Write]>();
  let lastSet: { value: unknown; write: Write } | null = null;
  for (const mutation of mutations) {
    const key = keyBytes(mutation.key);
    const name = key.toString("latin1");
    // A message's two queue rows are adjacent and share one value, which is encoded once.
    const isSame: boolean = mutation.kind === "set" && lastSet !== null && Object.is(lastSet.value, mutation.value);
    const write: Write = isSame ? lastSet!.write : after(writes.get(name)?.[1], mutation);
    if (mutation.kind === "set") lastSet = { value: mutation.value, write };
    writes.set(name, [key, write]);
  }
  return writes.values();
}

function after(before: Write | undefined, mutation: Mutation): Write {
  if (mutation.kind === "delete") return { kind: DELETE, value: null, counter: null };
  if (mutation.kind === "set") {
    if (typeof mutation.value === "bigint") {
      return { kind: SET_COUNTER, value: null, counter: signed(mutation.value) };
    }
    return { kind: SET_VALUE, value: serialise(mutation.value), counter: null };
  }
  const amount = signed(mutation.amount);
  switch (before?.kind) {
    case undefined:
      return { kind: ADD, value: null, counter: amount };
    case DELETE:
      return { kind: SET_COUNTER, value: null, counter: amount };
    case SET_VALUE:
      throw new TypeError("only a counter can be added to");
    default:
      return { ...before!, counter: signed(before!.counter! + amount) };
  }
}

function signed(value: bigint): bigint {
  if (BigInt.asIntN(64, value) !== value) throw new RangeError("a counter holds a signed 64-bit number");
  return value;
}
