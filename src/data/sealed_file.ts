/**
 * A file of any size sealed under a passphrase, as frames that are sealed separately. Each frame holds its number and
 * whether it is the last, so that none can be removed, moved or cut off.
 */
import { Buffer } from "node:buffer";
import { readUpTo, writeAll } from "../base/files.ts";
import { OperatorError } from "../errors.ts";
import type { Random } from "../runtime.ts";
import { makeSeal, passphraseKey, unsealed } from "../store/seal.ts";

const MAGIC = Buffer.from("paloma sealed 1\n");
const SALT_BYTES = 16;
const FRAME_BYTES = 1024 * 1024;
/** Size of a frame's head: its number, and 1 if it is the last frame. */
const HEAD_BYTES = 5;

/** Whether the file was written by `sealFile`. */
export async function isSealedFile(path: string): Promise<boolean> {
  using file = await Deno.open(path);
  return Buffer.compare(await readUpTo(file, MAGIC.length), MAGIC) === 0;
}

/** What a file is sealed with. */
export interface FileSeal {
  passphrase: string;
  random: Random;
  /** Tests have a cheap one. */
  keyOf?: typeof passphraseKey;
}

/** Seals what is left to read of `source` into the empty file `to`. */
export async function sealFile(
  source: Deno.FsFile,
  to: string,
  { passphrase, random, keyOf = passphraseKey }: FileSeal,
): Promise<void> {
  const salt = random.bytes(SALT_BYTES);
  const seal = makeSeal(keyOf(passphrase, salt), random);
  using target = await Deno.open(to, { write: true });
  await writeAll(target, Buffer.concat([MAGIC, salt]));
  let next = await readUpTo(source, FRAME_BYTES);
  for (let number = 0;; number++) {
    const bytes = next;
    next = await readUpTo(source, FRAME_BYTES);
    const last = next.length === 0;
    const frame = Buffer.alloc(HEAD_BYTES + bytes.length);
    frame.writeUInt32BE(number);
    frame[HEAD_BYTES - 1] = last ? 1 : 0;
    frame.set(bytes, HEAD_BYTES);
    const sealed = seal.seal(frame);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(sealed.length);
    await writeAll(target, Buffer.concat([length, sealed]));
    if (last) return;
  }
}

/** Writes the unsealed contents to a file. Throws OperatorError for another passphrase or a damaged file. */
export async function openSealedFile(
  from: string,
  target: Deno.FsFile,
  { passphrase, random, keyOf = passphraseKey }: FileSeal,
): Promise<void> {
  using source = await Deno.open(from);
  await readUpTo(source, MAGIC.length);
  const seal = makeSeal(keyOf(passphrase, await readUpTo(source, SALT_BYTES)), random);
  for (let number = 0;; number++) {
    const plain = unsealed(seal, await readFrame(source));
    if (plain === null || new DataView(plain.buffer, plain.byteOffset).getUint32(0) !== number) throw damaged(from);
    await writeAll(target, plain.subarray(HEAD_BYTES));
    if (plain[HEAD_BYTES - 1] === 1) return;
  }
}

/** Reads the next frame; a shorter one if the file is cut off. */
async function readFrame(file: Deno.FsFile): Promise<Buffer> {
  const length = await readUpTo(file, 4);
  return length.length < 4 ? length : await readUpTo(file, Math.min(length.readUInt32BE(), 2 * FRAME_BYTES));
}

function damaged(path: string): OperatorError {
  const message = `${path} does not open: the passphrase is another one, or the file is damaged`;
  return new OperatorError("sealed_file_unusable", message);
}
