/** Encodes changes as the parameters of one call of `paloma.commit`. */
import { Buffer } from "node:buffer";
import type { Change, Mutation } from "../kv.ts";
import { keyBytes } from "../layers/key_bytes.ts";
import { serialise } from "../layers/row_format.ts";
import { signed } from "../limits.ts";

/** The function's codes for kinds of mutations. */
const SET_VALUE = 1, SET_COUNTER = 2, ADD = 3, DELETE = 4;

interface Write {
  kind: number;
  value: Uint8Array | null;
  counter: bigint | null;
}

/** Throws TypeError or RangeError for changes that no engine accepts. */
export function commitParameters(changes: readonly Change[]) {
  const checks = changes.flatMap(({ checks }, i) => checks.map((check) => ({ ...check, i })));
  const writes = changes.flatMap(({ mutations }, i) =>
    [...writesOf(mutations)].map(([key, write]) => ({ key, ...write, i }))
  );
  return [
    checks.map(({ i }) => i),
    checks.map(({ key }) => keyBytes(key)),
    checks.map(({ version }) => version === null ? null : versionNumber(version)),
    writes.map(({ i }) => i),
    writes.map(({ kind }) => kind),
    writes.map(({ key }) => key),
    writes.map(({ value }) => value),
    writes.map(({ counter }) => counter),
  ] as const;
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
