/** What a file is: its MIME type by its name, its extension by its type, and the signs of formats in its first bytes. */
import { Buffer } from "node:buffer";

/** The type of a file of which nothing is known. */
export const UNKNOWN_TYPE = "application/octet-stream";

const OFFICE = "application/vnd.openxmlformats-officedocument";
const OPEN_DOCUMENT = "application/vnd.oasis.opendocument";

/** Types and their extensions, the usual one first. The first type of an extension counts. */
const TYPES: readonly [mimetype: string, extensions: string][] = [
  ["image/png", "png"],
  ["image/jpeg", "jpg jpeg jfif jpe"],
  ["image/jpg", "jpg"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
  ["image/heic", "heic"],
  ["image/heif", "heif"],
  ["image/avif", "avif"],
  ["image/svg+xml", "svg"],
  ["image/tiff", "tif tiff"],
  ["image/bmp", "bmp"],
  ["image/vnd.microsoft.icon", "ico"],
  ["image/x-icon", "ico"],
  ["video/mp4", "mp4"],
  ["video/x-m4v", "m4v"],
  ["video/3gpp", "3gp"],
  ["video/quicktime", "mov"],
  ["video/webm", "webm"],
  ["video/x-matroska", "mkv"],
  ["video/x-msvideo", "avi"],
  ["video/mpeg", "mpg mpeg"],
  ["video/x-ms-wmv", "wmv"],
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"],
  // The format that phones play as a voice note, also if only the extension promises it.
  ["audio/ogg; codecs=opus", "ogg"],
  ["audio/ogg", "ogg oga opus"],
  ["audio/opus", "opus"],
  ["audio/mp4", "m4a"],
  ["audio/x-m4a", "m4a"],
  ["audio/aac", "aac"],
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/amr", "amr"],
  ["audio/flac", "flac"],
  ["audio/webm", "webm"],
  ["audio/midi", "mid midi"],
  ["application/pdf", "pdf"],
  ["application/msword", "doc dot"],
  [`${OFFICE}.wordprocessingml.document`, "docx"],
  [`${OFFICE}.wordprocessingml.template`, "dotx"],
  ["application/vnd.ms-word.document.macroenabled.12", "docm"],
  ["application/vnd.ms-excel", "xls xlt"],
  [`${OFFICE}.spreadsheetml.sheet`, "xlsx"],
  [`${OFFICE}.spreadsheetml.template`, "xltx"],
  ["application/vnd.ms-excel.sheet.macroenabled.12", "xlsm"],
  ["application/vnd.ms-excel.sheet.binary.macroenabled.12", "xlsb"],
  ["application/vnd.ms-powerpoint", "ppt pps"],
  [`${OFFICE}.presentationml.presentation`, "pptx"],
  [`${OFFICE}.presentationml.slideshow`, "ppsx"],
  ["application/vnd.ms-powerpoint.presentation.macroenabled.12", "pptm"],
  ["application/vnd.ms-outlook", "msg"],
  ["application/vnd.visio", "vsd"],
  [`${OPEN_DOCUMENT}.text`, "odt"],
  [`${OPEN_DOCUMENT}.spreadsheet`, "ods"],
  [`${OPEN_DOCUMENT}.presentation`, "odp"],
  [`${OPEN_DOCUMENT}.graphics`, "odg"],
  ["application/rtf", "rtf"],
  ["text/rtf", "rtf"],
  ["text/plain", "txt text log"],
  ["text/markdown", "md"],
  ["text/csv", "csv"],
  ["text/tab-separated-values", "tsv"],
  ["application/xml", "xml"],
  ["text/xml", "xml"],
  ["application/json", "json"],
  ["application/yaml", "yaml yml"],
  ["text/html", "html htm"],
  ["text/vcard", "vcf"],
  ["text/x-vcard", "vcf"],
  ["text/calendar", "ics"],
  ["message/rfc822", "eml"],
  ["application/pkcs7-mime", "p7m"],
  ["application/pkcs7-signature", "p7s"],
  ["application/pgp-encrypted", "pgp"],
  ["application/x-pkcs12", "p12 pfx"],
  ["application/postscript", "ps eps ai"],
  ["application/epub+zip", "epub"],
  ["application/zip", "zip"],
  ["application/x-zip-compressed", "zip"],
  ["application/vnd.rar", "rar"],
  ["application/x-7z-compressed", "7z"],
  ["application/gzip", "gz tgz"],
  ["application/x-tar", "tar"],
  ["application/x-bzip2", "bz2"],
  ["application/x-xz", "xz"],
  ["application/vnd.android.package-archive", "apk"],
];

const EXTENSION_OF = new Map(TYPES.map(([mimetype, extensions]) => [essence(mimetype), extensions.split(" ")[0]!]));
const TYPE_OF = new Map(
  TYPES.toReversed().flatMap(([mimetype, extensions]) => extensions.split(" ").map((one) => [one, mimetype] as const)),
);

/** Returns the extension of a name in lower case and without its dot; "" if it has none. */
export function extensionIn(filename: string): string {
  return /\.([^.]+)$/.exec(filename)?.[1]?.toLowerCase() ?? "";
}

/** Returns the MIME type of files with this extension, as `extensionIn` gives it; null if it is unknown. */
export function typeOfExtension(extension: string): string | null {
  return TYPE_OF.get(extension) ?? null;
}

/** Returns the usual extension of a type, without a dot; null if none is known. */
export function extensionFor(mimetype: string): string | null {
  return EXTENSION_OF.get(essence(mimetype)) ?? null;
}

/** Returns the type without parameters, in lower case. */
export function essence(mimetype: string): string {
  return mimetype.split(";", 1)[0]!.trim().toLowerCase();
}

/** How many of a file's first bytes the functions below need. */
export const HEAD_BYTES = 1024;

/** Whether a file that begins so is a PDF. Viewers tolerate other bytes before it, such as a mail's header. */
export function isPdf(head: Uint8Array): boolean {
  return bytes(head).includes("%PDF-");
}

/** Whether a file that begins so is a WebP image. */
export function isWebp(head: Uint8Array): boolean {
  return text(head, 0, 4) === "RIFF" && text(head, 8, 12) === "WEBP";
}

/** Whether a file that begins so is an Ogg container. */
export function isOgg(head: Uint8Array): boolean {
  return text(head, 0, 4) === "OggS";
}

/** Whether a file that begins so is Opus in Ogg: its identification header is alone on the first page (RFC 7845). */
export function isOggOpus(head: Uint8Array): boolean {
  return isOgg(head) && bytes(head).includes("OpusHead");
}

function bytes(head: Uint8Array): Buffer {
  return Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, HEAD_BYTES));
}

function text(head: Uint8Array, start: number, end: number): string {
  return bytes(head).toString("latin1", start, end);
}
