/**
 * A bound on what a protobuf may hold. The library's decoders make an object of each member, and a member may be two
 * bytes: a message of 2 MB held the thread for a second and took 300 MB.
 */
import protobuf from "protobufjs/minimal.js";

/** Tags and lengths: 20,000 members. No app sends a thousand. */
export const MOST_READS = 40_000;

/** Not that of Node's buffers: it makes three replacement characters of half a character, and apps one. */
class BoundedReader extends protobuf.Reader {
  #left = MOST_READS;

  override uint32(): number {
    if (--this.#left < 0) throw new TooManyMembers();
    return super.uint32();
  }
}

class TooManyMembers extends RangeError {
  override name = "TooManyMembers";
  constructor() {
    super("it has too many members");
  }
}

/** Returns what `read` does; null beyond the bound. */
export function unlessTooMany<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof TooManyMembers) return null;
    throw error;
  }
}

/** What the library's decoders take in the place of bytes from outside. */
export function bounded(bytes: Uint8Array): protobuf.Reader {
  return new BoundedReader(bytes);
}
