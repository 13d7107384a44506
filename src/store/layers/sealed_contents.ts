/**
 * Seals contents at rest for accounts that opted in: rows of certain families, whose values name their account, are
 * written as bytes that only the secret key opens. Readers see the plain values. Rows written before the choice was
 * changed stay readable. Keys are never sealed.
 */
import { Change, type KeyPart, type Mutation, type Slot } from "../kv.ts";
import type { Seal } from "../seal.ts";
import type { ChunkedKv } from "./chunk.ts";
import { deserialise, serialise } from "./row_format.ts";

interface ContentsOptions {
  seal: Seal;
  /** First key parts of the families that hold contents. */
  families: ReadonlySet<KeyPart>;
  /** Whether the account's contents are to be sealed; a promise only if the answer must be read from the store. */
  isChosen(accountId: string): boolean | Promise<boolean>;
}

export function withSealedContents(kv: ChunkedKv, { seal, families, isChosen }: ContentsOptions): ChunkedKv {
  const accountOf = (mutation: Mutation): string | null => {
    if (mutation.kind !== "set" || !families.has(mutation.key[0]!)) return null;
    return accountNamedBy(mutation.value);
  };

  /**
   * Returns the opted-in accounts whose contents the change may write. The sequence names the account of ordered rows.
   */
  async function chosenIn({ mutations, orderedBuilds }: Change): Promise<ReadonlySet<string>> {
    const named = new Set<string>();
    for (const mutation of mutations) {
      const accountId = accountOf(mutation);
      if (accountId !== null) named.add(accountId);
    }
    for (const { sequence } of orderedBuilds) named.add(String(sequence.at(-1)));
    const chosen = new Set<string>();
    for (const accountId of named) {
      const answer = isChosen(accountId);
      if (answer === true || (answer !== false && await answer)) chosen.add(accountId);
    }
    return chosen;
  }

  function sealed(mutation: Mutation, chosen: ReadonlySet<string>): Mutation {
    const accountId = accountOf(mutation);
    if (mutation.kind !== "set" || accountId === null || !chosen.has(accountId)) return mutation;
    return { ...mutation, value: seal.seal(serialise(mutation.value)) };
  }

  function opened<S extends Slot<unknown>>(slot: S): S {
    const sealed = families.has(slot.key[0]!) && contentsOf(slot.value);
    return sealed ? { ...slot, value: deserialise(seal.open(sealed)) } : slot;
  }

  return {
    ...kv,
    get: async (key) => opened(await kv.get(key)),
    getMany: async (keys) => (await kv.getMany(keys)).map((slot) => opened(slot)),
    async *list(range, options) {
      for await (const row of kv.list(range, options)) yield opened(row);
    },
    async commit(change, options) {
      const chosen = await chosenIn(change);
      if (chosen.size === 0) return await kv.commit(change, options);
      const all = (mutations: readonly Mutation[]) => mutations.map((mutation) => sealed(mutation, chosen));
      const written = new Change().include({ ...change, mutations: all(change.mutations), orderedBuilds: [] });
      for (const { sequence, build } of change.orderedBuilds) {
        written.ordered(sequence, (...place) => all(build(...place)));
      }
      return await kv.commit(written, options);
    },
    async *rows() {
      for await (const row of kv.rows()) yield opened(row);
    },
  };
}

/** Returns the account that a row's value names as its own; null if it names none. */
export function accountNamedBy(value: unknown): string | null {
  const isNamed = typeof value === "object" && value !== null && "accountId" in value;
  return isNamed && typeof value.accountId === "string" ? value.accountId : null;
}

/** Returns what the row holds in place of its value; null if that is not sealed. Earlier versions wrote a record. */
function contentsOf(value: unknown): Uint8Array | null {
  if (value instanceof Uint8Array) return value;
  const isSealed = typeof value === "object" && value !== null && "contents" in value;
  return isSealed && value.contents instanceof Uint8Array ? value.contents : null;
}
