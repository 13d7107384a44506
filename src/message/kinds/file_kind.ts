/** In which kind a file arrives, chosen from its extension (spec, "Sending messages"). */
import type { FileKind } from "../../whatsapp/outgoing.ts";

/** The specification's table. Whatever is not in it is a document. */
const KINDS: Readonly<Record<string, [FileKind, string]>> = {
  png: ["image", "image/png"],
  jpg: ["image", "image/jpeg"],
  jpeg: ["image", "image/jpeg"],
  gif: ["image", "image/gif"],
  webp: ["image", "image/webp"],
  mp4: ["video", "video/mp4"],
  "3gp": ["video", "video/3gpp"],
  mov: ["video", "video/quicktime"],
  mp3: ["audio", "audio/mpeg"],
  // What phones play as a voice note.
  ogg: ["audio", "audio/ogg; codecs=opus"],
  pdf: ["document", "application/pdf"],
  doc: ["document", "application/msword"],
  docx: ["document", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  xls: ["document", "application/vnd.ms-excel"],
  xlsx: ["document", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ppt: ["document", "application/vnd.ms-powerpoint"],
  pptx: ["document", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
  odt: ["document", "application/vnd.oasis.opendocument.text"],
  ods: ["document", "application/vnd.oasis.opendocument.spreadsheet"],
  odp: ["document", "application/vnd.oasis.opendocument.presentation"],
  rtf: ["document", "application/rtf"],
  txt: ["document", "text/plain"],
  csv: ["document", "text/csv"],
  xml: ["document", "application/xml"],
  json: ["document", "application/json"],
  html: ["document", "text/html"],
  zip: ["document", "application/zip"],
  rar: ["document", "application/vnd.rar"],
  "7z": ["document", "application/x-7z-compressed"],
};

/** Kind and mimetype of a file by its name; case does not matter. */
export function fileKind(filename: string): { kind: FileKind; mimetype: string } {
  const extension = /\.([^.]+)$/.exec(filename)?.[1]?.toLowerCase() ?? "";
  const [kind, mimetype] = (Object.hasOwn(KINDS, extension) && KINDS[extension]) ||
    ["document", "application/octet-stream"];
  return { kind, mimetype };
}
