/**
 * An array as the parameter of a statement, in PostgreSQL's binary form: the client's own is a text of hexadecimal
 * digits, twice as long and slow to make and to read. Source: `array_recv` in src/backend/utils/adt/arrayfuncs.c.
 */
import { Buffer } from "node:buffer";

/** What an element is: its type's number in every database. */
const TYPES = { bytea: 17, int8: 20, int4: 23 };

type Element<Type extends keyof typeof TYPES> = { bytea: Uint8Array; int8: bigint; int4: number }[Type] | null;

/** Dimensions, whether there are nulls, type; and of the one dimension its length and its lowest index. */
const HEADER_BYTES = 20;
const EMPTY_BYTES = 12;
const NULL = -1;

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
