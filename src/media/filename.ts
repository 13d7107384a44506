/** Names and types of received files: the sender chose them, so both are made safe before anybody uses them. */

/** The text without its percent encoding; as it is where that is broken. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Extensions for the kinds that arrive without a name. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/gif": "gif",
  "image/webp": "webp",
  "video/mp4": "mp4",
  "video/3gpp": "3gp",
  "video/quicktime": "mov",
  "audio/ogg": "ogg",
  "audio/mpeg": "mp3",
  "audio/mp4": "m4a",
  "audio/aac": "aac",
  "audio/amr": "amr",
  "audio/wav": "wav",
  "application/pdf": "pdf",
};
/** As many as a request may give, and a file system allows in ASCII. */
const MAX_NAME_LENGTH = 255;

/** `image-20260115-120000.jpg`: kind and time (Unix ms, UTC), extension by mimetype. */
export function generatedFilename(kind: string, { mimetype, at }: { mimetype: string; at: number }): string {
  const stamp = new Date(at).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return `${kind}-${stamp}.${extensionFor(mimetype) ?? "bin"}`;
}

/** The usual extension of a type, without a dot; null where none is known. */
export function extensionFor(mimetype: string): string | null {
  return EXTENSIONS[mimetype.split(";", 1)[0]!.trim().toLowerCase()] ?? null;
}

/** The name alone, without folders, control and direction characters; null when nothing is left. */
export function safeFilename(name: string): string | null {
  const base = name.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  // Direction marks would let "invoice_fdp.exe" look like "invoice_exe.pdf".
  const clean = base.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "").trim();
  if (clean === "" || /^\.+$/.test(clean)) return null;
  if (clean.length <= MAX_NAME_LENGTH) return clean;
  const extension = /\.[^.]{1,16}$/.exec(clean)?.[0] ?? "";
  return clean.slice(0, MAX_NAME_LENGTH - extension.length).toWellFormed() + extension;
}

/** The type if it may go into a header, else plain bytes. */
export function safeMimetype(mimetype: string): string {
  const valid = /^[\w!#$&^.+-]{1,80}\/[\w!#$&^.+-]{1,80}(\s*;\s*[\w-]{1,40}=("[\w .,:+-]{0,80}"|[\w.+-]{1,80}))*$/;
  return valid.test(mimetype) ? mimetype : "application/octet-stream";
}
