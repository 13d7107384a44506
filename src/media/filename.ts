/** Names and types of received files, which the sender chose: both are made safe before use. */
import { extensionFor, UNKNOWN_TYPE } from "../base/file_types.ts";

/** The same limit as in requests, which file systems also have for ASCII names. */
const MAX_NAME_LENGTH = 255;

/**
 * Returns a name such as `image-20260115-120000.jpg`: kind, time (`at` in Unix ms, shown in UTC), extension by
 * mimetype.
 */
export function generatedFilename(kind: string, { mimetype, at }: { mimetype: string; at: number }): string {
  const stamp = new Date(at).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return `${kind}-${stamp}.${extensionFor(mimetype) ?? "bin"}`;
}

/** Returns the name without folders, control and direction characters; null if nothing is left. */
export function safeFilename(name: string): string | null {
  const base = name.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  // Direction marks would let "invoice_fdp.exe" look like "invoice_exe.pdf".
  const clean = base.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "").trim();
  if (clean === "" || /^\.+$/.test(clean)) return null;
  if (clean.length <= MAX_NAME_LENGTH) return clean;
  const extension = /\.[^.]{1,16}$/.exec(clean)?.[0] ?? "";
  return clean.slice(0, MAX_NAME_LENGTH - extension.length).toWellFormed() + extension;
}

/** Returns the type if it is valid in a header, otherwise that of a file of which nothing is known. */
export function safeMimetype(mimetype: string): string {
  const valid = /^[\w!#$&^.+-]{1,80}\/[\w!#$&^.+-]{1,80}(\s*;\s*[\w-]{1,40}=("[\w .,:+-]{0,80}"|[\w.+-]{1,80}))*$/;
  return valid.test(mimetype) ? mimetype : UNKNOWN_TYPE;
}
