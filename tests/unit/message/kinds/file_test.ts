import assert from "node:assert/strict";
import { refusalOf, withAttachment } from "../../../../src/message/content.ts";
import { askedContent, fileContent } from "../../../../src/message/kinds/file.ts";

function fileKind(filename: string) {
  const { kind, mimetype } = fileContent(null, { filename });
  return { kind, mimetype };
}

/** The table of the specification, as it stands there. */
const TABLE = {
  image: "png jpg jpeg gif webp",
  video: "mp4 3gp mov",
  audio: "mp3 ogg",
  document: "pdf doc docx xls xlsx ppt pptx odt ods odp rtf txt csv xml json html zip rar 7z",
};

for (const [kind, extensions] of Object.entries(TABLE)) {
  Deno.test(`a file arrives as ${kind} for ${extensions}`, () => {
    for (const extension of extensions.split(" ")) {
      for (const name of [`a.${extension}`, `A.B.${extension.toUpperCase()}`, `.${extension}`]) {
        const found = fileKind(name);
        assert.equal(found.kind, kind, name);
        assert.match(found.mimetype, /^[a-z]+\/[a-z0-9.+-]+(; codecs=opus)?$/);
        assert.notEqual(found.mimetype, "application/octet-stream", name);
        if (kind !== "document") assert(found.mimetype.startsWith(`${kind}/`), name);
      }
    }
  });
}

Deno.test("any other extension, and none, is a document", () => {
  for (const name of ["a.exe", "a.png.bak", "png", "a.", "", "a.constructor", "a.__proto__", "a.PNG "]) {
    assert.deepEqual(fileKind(name), { kind: "document", mimetype: "application/octet-stream" }, name);
  }
});

Deno.test("the type of other extensions is told, of documents all the same", () => {
  const rows = {
    "image/heic": "heic",
    "image/jpeg": "jfif",
    "image/svg+xml": "svg",
    "image/tiff": "tif tiff",
    "image/bmp": "bmp",
    "image/avif": "avif",
    "video/x-m4v": "m4v",
    "video/webm": "webm",
    "audio/ogg": "opus oga",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/wav": "wav",
    "audio/amr": "amr",
    "text/vcard": "vcf",
    "text/calendar": "ics",
    "message/rfc822": "eml",
    "application/vnd.ms-excel.sheet.macroenabled.12": "xlsm",
    "application/vnd.ms-word.document.macroenabled.12": "docm",
    "application/pkcs7-mime": "p7m",
    "application/vnd.android.package-archive": "apk",
    "application/gzip": "gz",
  };
  for (const [mimetype, extensions] of Object.entries(rows)) {
    for (const extension of extensions.split(" ")) {
      assert.deepEqual(fileKind(`a.${extension.toUpperCase()}`), { kind: "document", mimetype });
    }
  }
});

Deno.test("a given type counts where the extension tells none", () => {
  const rows: [filename: string, given: string | null, mimetype: string][] = [
    ["scan.pdf", "image/png", "application/pdf"],
    ["scan", "Application/PDF; name=x", "application/pdf"],
    ["Invoice No. 12.2026", "application/pdf", "application/pdf"],
    ["photo", "image/jpeg", "image/jpeg"],
    ["scan", null, "application/octet-stream"],
    ["scan", "", "application/octet-stream"],
    ["scan", "no type", "application/octet-stream"],
    ["scan", "text/html\r\nx: y", "application/octet-stream"],
  ];
  for (const [filename, mimetype, expected] of rows) {
    const content = fileContent(null, { filename, mimetype });
    assert.deepEqual([content.kind, content.mimetype], ["document", expected], filename);
  }
});

Deno.test("ogg has the mimetype that phones play as a voice note", () => {
  assert.equal(fileKind("voice.ogg").mimetype, "audio/ogg; codecs=opus");
});

Deno.test("a kind that was asked for stays, and a file that is none is refused", () => {
  const fetched = { fileId: "med_1", size: 1, sha256: "" };
  const IMAGE = "image/jpeg";
  const rows: readonly [
    kind: "image" | "audio" | "document",
    name: string,
    given: string,
    type: string,
    ok: boolean,
  ][] = [
    ["image", "a.pdf", "image/png", "image/png", true],
    ["image", "a.png", "application/octet-stream", "image/png", true],
    ["image", "a", "application/octet-stream", IMAGE, true],
    ["image", "a", "", IMAGE, true],
    ["image", "a", "text/html; charset=utf-8", "text/html", false],
    ["image", "a.mp4", "", "video/mp4", false],
    ["audio", "a.mp3", "application/ogg", "audio/mpeg", true],
    ["audio", "a", "image/png", "image/png", false],
    ["document", "a.png", "image/png", "image/png", true],
    ["document", "a", "", "application/octet-stream", true],
  ];
  for (const [kind, filename, mimetype, type, isSuitable] of rows) {
    const asked = askedContent(kind, { url: "https://a.example/a" }, { filename: "", mimetype: "" });
    const content = withAttachment(asked, { file: fetched, filename, mimetype });
    assert.deepEqual([content.kind, "mimetype" in content && content.mimetype], [kind, type], filename);
    assert.equal(refusalOf(content, new Uint8Array()) === null, isSuitable, `${kind} ${filename} ${mimetype}`);
  }
});
