/** What is known of a file before it is downloaded. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import jpeg from "jpeg-js";
import { PNG } from "pngjs";
import { fileFacts } from "../../../src/inspect/file_facts.ts";
import { imageSize, thumbnail } from "../../../src/inspect/thumbnail.ts";
import type { FileFacts, UntrustedFile } from "../../../src/inspect/inspection.ts";
import { systemClock } from "../../../src/runtime.ts";
import { voiceNote } from "../../support/sample_files.ts";
import { tempFolder } from "../../support/temp_folder.ts";

async function factsOf(kind: UntrustedFile["kind"], content: Uint8Array | string): Promise<FileFacts> {
  await using temp = await tempFolder();
  const path = `${temp.path}/file`;
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : new Uint8Array(content);
  await Deno.writeFile(path, bytes);
  return await fileFacts({ path, size: bytes.length, mimetype: "application/octet-stream", kind });
}

function pixels(width: number, height: number): Uint8Array {
  return new Uint8Array(width * height * 4).map((_, i) => i % 4 === 3 ? 255 : i % 251);
}

function jpegOf(width: number, height: number): Buffer {
  return Buffer.from(jpeg.encode({ width, height, data: pixels(width, height) }, 80).data);
}

function pngOf(width: number, height: number): Buffer {
  const png = new PNG({ width, height });
  png.data = Buffer.from(pixels(width, height));
  return PNG.sync.write(png);
}

/** A camera's JPEG: EXIF data with a preview in its second directory, before the image itself. */
function withPreview(image: Buffer, preview: Buffer): Buffer {
  const tiff = Buffer.alloc(8 + 6 + 6 + 2 * 12 + preview.length);
  tiff.write("II*\0", 0, "latin1");
  tiff.writeUInt32LE(8, 4);
  tiff.writeUInt16LE(0, 8);
  tiff.writeUInt32LE(14, 10);
  tiff.writeUInt16LE(2, 14);
  const place = tiff.length - preview.length;
  for (const [i, [tag, value]] of [[0x0201, place], [0x0202, preview.length]].entries()) {
    tiff.writeUInt16LE(tag!, 16 + i * 12);
    tiff.writeUInt16LE(4, 18 + i * 12);
    tiff.writeUInt32LE(1, 20 + i * 12);
    tiff.writeUInt32LE(value!, 24 + i * 12);
  }
  preview.copy(tiff, place);
  const head = Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, 0]);
  head.writeUInt16BE(2 + 6 + tiff.length, 4);
  return Buffer.concat([head, Buffer.from("Exif\0\0", "latin1"), tiff, image.subarray(2)]);
}

const GIF = Buffer.from("R0lGODlhAwACAIAAAP///wAAACwAAAAAAwACAAACAkQBADs=", "base64");
const WEBP_LOSSLESS = Buffer.from("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==", "base64");
const SIZES: [title: string, bytes: Buffer, size: { width: number; height: number }][] = [
  ["a PNG", pngOf(30, 20), { width: 30, height: 20 }],
  ["a JPEG", jpegOf(31, 21), { width: 31, height: 21 }],
  ["a camera's JPEG", withPreview(jpegOf(41, 23), jpegOf(8, 8)), { width: 41, height: 23 }],
  ["a GIF", GIF, { width: 3, height: 2 }],
  ["a WebP", WEBP_LOSSLESS, { width: 1, height: 1 }],
];

for (const [title, bytes, size] of SIZES) {
  Deno.test(`${title} tells its size`, () => assert.deepEqual(imageSize(bytes), size));
  Deno.test(`${title} that breaks off is no error`, () => {
    for (let length = 0; length < Math.min(bytes.length, 64); length++) imageSize(bytes.subarray(0, length));
  });
}

Deno.test("what is no image has no size", () => assert.equal(imageSize(Buffer.from("%PDF-1.7 something else")), null));

Deno.test("a camera's own preview is taken as it is", () => {
  const preview = jpegOf(16, 12);
  const photo = withPreview(jpegOf(64, 48), preview);
  assert.deepEqual(Buffer.from(thumbnail(photo, { width: 64, height: 48 })!), preview);
});

Deno.test("a preview that claims to lie elsewhere is not taken", () => {
  const photo = withPreview(jpegOf(64, 48), jpegOf(16, 12));
  photo.writeUInt32LE(60_000, 12 + 24);
  assert.deepEqual(imageSize(thumbnail(photo, { width: 64, height: 48 })!), { width: 64, height: 48 });
});

for (const [title, image] of [["a PNG", pngOf(640, 480)], ["a JPEG", jpegOf(640, 480)]] as const) {
  Deno.test(`${title} is scaled down to a JPEG of 100 pixels`, () => {
    const preview = thumbnail(image, { width: 640, height: 480 });
    assert.deepEqual(imageSize(preview!), { width: 100, height: 75 });
  });
}

Deno.test("an image that would take long to decode goes without a preview, and so does a broken one", () => {
  assert.equal(thumbnail(pngOf(10, 10), { width: 8000, height: 6000 }), null);
  assert.equal(
    thumbnail(Buffer.concat([pngOf(10, 10).subarray(0, 40), Buffer.alloc(50)]), { width: 10, height: 10 }),
    null,
  );
});

Deno.test("an interlaced PNG and a JPEG of very many scans go without a preview", () => {
  const interlaced = pngOf(10, 10);
  interlaced[28] = 1;
  assert.equal(thumbnail(interlaced, { width: 10, height: 10 }), null);
  const photo = jpegOf(64, 48);
  const scan = photo.subarray(photo.indexOf(Buffer.from([0xff, 0xda])), -2);
  const scans = Array.from({ length: 100 }, () => scan);
  assert.equal(thumbnail(Buffer.concat([photo.subarray(0, -2), ...scans]), { width: 64, height: 48 }), null);
});

Deno.test("a PDF of 64,000 page trees that never end is read in one pass", async () => {
  const trees = "/Type/Pages ".repeat(64_000);
  const begun = systemClock.now();
  assert.equal((await factsOf("document", "1 0 obj <<" + trees)).pageCount, undefined);
  assert.equal((await factsOf("document", "1 0 obj << /Count 4 " + trees)).pageCount, 4);
  assert.ok(systemClock.now() - begun < 5_000, "it took as long as the square of its length");
});

const PDFS: [title: string, pdf: string, pages: number | undefined][] = [
  ["a PDF of three pages", "1 0 obj\n<< /Type /Pages /Kids [2 0 R] /Count 3 >>\nendobj", 3],
  [
    "a PDF whose page tree has branches",
    "<< /Count 2 /Type/Pages >> endobj 5 0 obj <</Type /Pages/Count 7>> endobj",
    7,
  ],
  ["a PDF without a page", "%PDF-1.4 nothing at all", undefined],
  ["a PDF that speaks of pages elsewhere", "1 0 obj << /Type /Page /Count 9 >> endobj", undefined],
];

for (const [title, pdf, pages] of PDFS) {
  Deno.test(`${title} tells ${pages ?? "no"} pages`, async () => {
    assert.equal((await factsOf("document", pdf)).pageCount, pages);
  });
}

Deno.test("each kind of file tells what it can, and nothing else", async () => {
  const png = pngOf(20, 10);
  const image = await factsOf("image", png);
  assert.equal(image.width, 20);
  assert.ok(image.jpegThumbnail);
  assert.deepEqual(await fileFacts(png), image);
  for (const kind of ["video", "audio", "document"] as const) assert.deepEqual(await factsOf(kind, png), {});
});

Deno.test("a voice note has its length and a waveform, silent where it is silent", async () => {
  const { seconds, waveform } = await factsOf("voice", voiceNote(4));
  assert.equal(seconds, 4);
  assert.equal(waveform?.length, 64);
  assert.ok(waveform!.subarray(0, 30).every((height) => height === 0), String(waveform));
  assert.equal(Math.max(...waveform!), 100);
});

Deno.test("a voice note that cannot be decoded goes without a waveform", async () => {
  assert.deepEqual(await factsOf("voice", "no sound at all, but long enough for a page"), {});
});
