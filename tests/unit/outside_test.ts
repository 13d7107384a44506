/** Each decoder and parser of the source is listed in decision 0025, with whose bytes it reads and what bounds them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { readFiles } from "../support/house.ts";

const ROOT = join(import.meta.dirname!, "..", "..");
const LIST = "docs/decisions/0025-bytes-from-outside.md";

/** Calls that make values of bytes or text. Those of zod (`.parse(`) read values, and `URL` and `Date` one short text. */
const READERS = [
  /JSON\.parse\(/,
  /(?<!TextDecoder\([^)]*\))(?<!strictUtf8)\.(decode|decodeFile)\(/,
  /\b(unzip|inflate|gunzip|createUnzip|createInflate|createGunzip|brotliDecompress)\w*\(/,
  /DecompressionStream\(/,
  /new (Parser|Tokenizer)\(/,
  /\bdeserialize\(/,
  /\bparseFile\(/,
  /\bPNG\.sync\.read\(/,
  /\bReader\.create\(/,
  /\.json\(\)/,
];
Deno.test("every decoder and parser is listed with what bounds it, and the list names no other file", async () => {
  const files = await readFiles(ROOT, ["src"]);
  const reading = files
    .filter(({ path, code }) => !path.startsWith("sandbox/") && READERS.some((reader) => reader.test(code)))
    .map(({ path }) => `src/${path}`);
  const list = await Deno.readTextFile(join(ROOT, LIST));
  const listed = [...list.matchAll(/^(?:\||-) `(src\/[^`]+)`/gm)].map(([, path]) => path!);
  assert.deepEqual(listed.toSorted(), reading.toSorted());
});
