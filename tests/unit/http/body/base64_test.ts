import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Problem } from "../../../../src/errors.ts";
import { Base64Decoder } from "../../../../src/http/body/json_upload.ts";
import { seededRandom } from "../../../support/runtime.ts";

function decode(pieces: string[]): Buffer {
  const decoder = new Base64Decoder("file");
  return Buffer.concat([...pieces.map((piece) => decoder.push(Buffer.from(piece, "latin1"))), decoder.end()]);
}

Deno.test("base64 gives the same bytes wherever it is cut", () => {
  const random = seededRandom(7);
  for (let length = 0; length < 40; length++) {
    const bytes = random.bytes(length);
    for (const prefix of ["", "data:application/pdf;base64,"]) {
      const text = prefix + Buffer.from(bytes).toString("base64");
      for (let cut = 0; cut <= text.length; cut++) {
        assert.deepEqual([...decode([text.slice(0, cut), text.slice(cut)])], [...bytes]);
      }
      assert.deepEqual([...decode([...text])], [...bytes]);
    }
  }
});

Deno.test("content that begins like a prefix is content", () => {
  for (const text of ["data", "dataAAAA", "da", "dat="]) {
    assert.deepEqual([...decode([...text])], [...Buffer.from(text, "base64")], text);
  }
});

Deno.test("what is not base64 is refused", () => {
  const texts = [
    "aGVs*",
    "a",
    "aG=VsbG8",
    "aGVsbG8==x",
    "aGVsbG8===",
    "QQ=",
    "QUJD=",
    "_-_-",
    "data:,x",
    "data:x/y;base64",
    "é",
  ];
  for (const text of texts) {
    for (const pieces of [[text], [...text]]) {
      assert.throws(
        () => decode(pieces),
        (error) => error instanceof Problem && error.code === "validation_failed",
        text,
      );
    }
  }
});

Deno.test("a prefix that does not end is refused before it fills the memory", () => {
  const decoder = new Base64Decoder("file");
  assert.throws(() => {
    for (let i = 0; i < 300; i++) decoder.push(Buffer.from(i === 0 ? "data:" : "x"));
  }, /prefix/);
});
