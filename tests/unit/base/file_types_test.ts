import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  extensionFor,
  extensionIn,
  HEAD_BYTES,
  isOggOpus,
  isPdf,
  isWebp,
  typeOfExtension,
} from "../../../src/base/file_types.ts";

Deno.test("a type has its usual extension, however it is written", () => {
  const rows: [mimetype: string, extension: string | null][] = [
    ["image/jpeg", "jpg"],
    ["image/jpg", "jpg"],
    ["IMAGE/PNG ; x=y", "png"],
    ["image/heic", "heic"],
    ["image/avif", "avif"],
    ["video/webm", "webm"],
    ["audio/ogg; codecs=opus", "ogg"],
    ["audio/ogg", "ogg"],
    ["audio/mp4", "m4a"],
    ["text/plain; charset=utf-8", "txt"],
    ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
    ["application/octet-stream", null],
    ["constructor", null],
    ["", null],
  ];
  for (const [mimetype, extension] of rows) assert.equal(extensionFor(mimetype), extension, mimetype);
});

Deno.test("what an extension means can be said in an answer's header", () => {
  for (const extension of ["jpg", "ogg", "p7m", "xlsm", "7z"]) {
    const mimetype = typeOfExtension(extension)!;
    assert.match(mimetype, /^[a-z]+\/[a-z0-9.+-]+(; codecs=opus)?$/);
    assert.equal(extensionFor(mimetype), extension);
  }
  assert.deepEqual(["", "exe", "constructor", "JPG"].map(typeOfExtension), [null, null, null, null]);
  assert.deepEqual(["a.B.PDF", "a.", "a", ".pdf"].map(extensionIn), ["pdf", "", "", "pdf"]);
});

Deno.test("a format shows in the first bytes of a file", () => {
  const pdf = (before: number) => Buffer.concat([Buffer.alloc(before, "x"), Buffer.from("%PDF-1.7")]);
  assert.deepEqual([0, 3, HEAD_BYTES - 5, HEAD_BYTES - 4, 2000].map((before) => isPdf(pdf(before))), [
    true,
    true,
    true,
    false,
    false,
  ]);
  assert.ok(isWebp(Buffer.from("RIFF\x01\x02\x03\x04WEBPVP8L", "latin1")));
  assert.ok(!isWebp(Buffer.from("RIFF\x01\x02\x03\x04WAVEfmt ", "latin1")));
  assert.ok(isOggOpus(Buffer.from("OggS\0\x02OpusHead", "latin1")));
  for (const head of ["OggS\0\x02\x01vorbis", "OpusHead", "", "ID3"]) {
    assert.ok(!isOggOpus(Buffer.from(head, "latin1")), head);
  }
});
