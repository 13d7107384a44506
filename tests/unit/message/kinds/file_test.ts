import assert from "node:assert/strict";
import { fileContent } from "../../../../src/message/kinds/file.ts";

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
  for (const name of ["a.exe", "a.webm", "a.png.bak", "png", "a.", "", "a.constructor", "a.__proto__", "a.PNG "]) {
    assert.deepEqual(fileKind(name), { kind: "document", mimetype: "application/octet-stream" }, name);
  }
});

Deno.test("ogg has the mimetype that phones play as a voice note", () => {
  assert.equal(fileKind("voice.ogg").mimetype, "audio/ogg; codecs=opus");
});
