/** Many changes as the parameters of one call of `paloma.commit`, and its answer as an answer for each. */
import type { Buffer } from "node:buffer";
import { nameOfKey } from "../key_name.ts";
import type { Change, Key, Mutation } from "../kv.ts";
import { keyBytes } from "../layers/key_bytes.ts";
import { valueBytes } from "./value.ts";

/** What the function calls the kinds of mutations. */
const SET_VALUE = 1, SET_COUNTER = 2, ADD = 3, DELETE = 4;

interface Write {
  kind: number;
  key: Key;
  value: Buffer | Uint8Array | null;
  counter: bigint | null;
}

export const COMMIT = "select version, failed from paloma.commit($1, $2, $3, $4, $5, $6, $7, $8)";

/** Throws TypeError and RangeError for what no engine takes. */
export function commitParameters(changes: readonly Change[]): unknown[][] {
  const columns: unknown[][] = Array.from({ length: 8 }, () => []);
  const add = (first: number, values: readonly unknown[]) =>
    values.forEach((value, i) => columns[first + i]!.push(value));
  for (const [number, change] of changes.entries()) {
    for (const { key, version } of change.checks) add(0, [number, keyBytes(key), version]);
    for (const { kind, key, value, counter } of writesOf(change.mutations)) {
      add(3, [number, kind, keyBytes(key), value, counter?.toString() ?? null]);
    }
  }
  return columns;
}

/** One write a key, which does what the mutations do one after another. */
function writesOf(mutations: readonly Mutation[]): Iterable<Write> {
  const writes = new Map<string, Write>();
  for (const mutation of mutations) {
    const name = nameOfKey(mutation.key);
    writes.set(name, after(writes.get(name), mutation));
  }
  return writes.values();
}

function after(before: Write | undefined, mutation: Mutation): Write {
  const { key } = mutation;
  if (mutation.kind === "delete") return { kind: DELETE, key, value: null, counter: null };
  if (mutation.kind === "set") {
    if (typeof mutation.value === "bigint") {
      return { kind: SET_COUNTER, key, value: null, counter: signed(mutation.value) };
    }
    return { kind: SET_VALUE, key, value: valueBytes(mutation.value), counter: null };
  }
  const amount = signed(mutation.amount);
  switch (before?.kind) {
    case undefined:
      return { kind: ADD, key, value: null, counter: amount };
    case DELETE:
      return { kind: SET_COUNTER, key, value: null, counter: amount };
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
