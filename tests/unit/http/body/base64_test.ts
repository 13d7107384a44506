import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Problem } from "../../../../src/errors.ts";
import { Base64Decoder } from "../../../../src/http/body/base64.ts";
import { seededRandom } from "../../../support/runtime.ts";

function decode(chunks: string[]): Buffer {
  const decoder = new Base64Decoder("file");
  return Buffer.concat([...chunks.map((chunk) => decoder.push(Buffer.from(chunk, "latin1"))), decoder.end()]);
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
    // A + that was decoded as a blank, wherever it was.
    "aGVs bG8=",
    " aGVsbG8=",
    "aGVsbG8= ",
    "aGV  bG8=",
    "data:x/y;base64, aGVs",
    "aGVs\t bG8=",
    "da ",
    // Cut off behind a prefix, which is written by what also pads.
    "data:x/y;base64,aGVsbG8",
    "data:x/y;base64,aGVsbA",
    "data:x/y;base64,aGVsbG8=\nQ",
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
    for (const chunks of [[text], [...text]]) {
      assert.throws(
        () => decode(chunks),
        (error) => error instanceof Problem && error.code === "validation_failed",
        text,
      );
    }
  }
});

Deno.test("line breaks and the blanks beside them do not count", () => {
  for (
    const text of [
      "aGVs\r\nbG8=",
      "aGVs \n bG8=",
      "\n aGVsbG8=\n",
      "aG\n\n\tVs\tbG8= \r\n",
      "data:x/y; base64,\naGVsbG8=",
    ]
  ) {
    for (const chunks of [[text], [...text]]) assert.equal(decode(chunks).toString(), "hello", JSON.stringify(text));
  }
});

Deno.test("what is wrong with a text is said", () => {
  const rows: [text: string, message: RegExp][] = [
    ["aGVs bG8=", /a \+ was decoded as a blank/],
    ["_-_-", /base64url/],
    ["[object Object]", /characters that are not base64/],
    ["%PDF", /characters that are not base64/],
    ["aGVsb", /cut off/],
    ["aGVsbG8==x", /padded in the wrong place/],
  ];
  for (const [text, message] of rows) assert.throws(() => decode([text]), message);
});

Deno.test("white space within a group of four characters do not pile up", () => {
  let longest = 0;
  const original = Uint8Array.prototype.setFromBase64;
  Uint8Array.prototype.setFromBase64 = function (text, options) {
    longest = Math.max(longest, text.length);
    return original.call(this, text, options);
  };
  try {
    for (const [start, end] of [["a", "Q=="], ["aG", "U="], ["aGV", "s"], ["aA=", "="]] as const) {
      const decoded = decode([start, ...Array.from({ length: 100 }, () => " \r\n ".repeat(75)), end]);
      assert.deepEqual(decoded, Buffer.from(start + end, "base64"));
    }
  } finally {
    Uint8Array.prototype.setFromBase64 = original;
  }
  assert.ok(longest <= 304, `${longest} characters are decoded at a time`);
});

Deno.test("a prefix that does not end is refused before it fills the memory", () => {
  const decoder = new Base64Decoder("file");
  assert.throws(() => {
    for (let i = 0; i < 300; i++) decoder.push(Buffer.from(i === 0 ? "data:" : "x"));
  }, /prefix/);
});
