/** Going through a long range of rows some at a time: each stretch begins where the last one ended. */
import type { Key, Kv, PrefixOf, Row } from "./kv.ts";

interface StretchOptions<T> {
  prefix: PrefixOf<T>;
  /** Null: from the first row on. */
  from: Key | null;
  /** Most rows that are read. */
  limit: number;
}

export class Stretch<T> {
  readonly #kv: Kv;
  readonly #options: StretchOptions<T>;
  #read = 0;
  #last: Key | null = null;

  constructor(kv: Kv, options: StretchOptions<T>) {
    this.#kv = kv;
    this.#options = options;
  }

  /** To be read once. Throws StoreError. */
  async *rows(): AsyncGenerator<Row<T>> {
    const { prefix, from, limit } = this.#options;
    for await (const row of this.#kv.list<T>({ prefix, ...(from ? { start: from } : {}) }, { limit })) {
      this.#read++;
      this.#last = row.key;
      yield row;
    }
  }

  /** Where the next stretch begins; null at the end. The row there is read once more, or has gone. */
  get next(): Key | null {
    return this.#read === this.#options.limit ? this.#last : null;
  }
}
