/** Media ids of the official API, which clients check to be digits alone: the number that a file's id encodes. */

/** Crockford's base 32, as ids are written. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const PREFIX = "med_";
const CHARACTERS = 26;

/** Returns the media id of a file. */
export function mediaIdOf(fileId: string): string {
  let value = 0n;
  for (const character of fileId.slice(PREFIX.length)) value = value * 32n + BigInt(ALPHABET.indexOf(character));
  return String(value);
}

/** Returns the id of the file that has this media id; null if none can have it. */
export function fileIdOf(mediaId: string): string | null {
  if (!/^[1-9]\d{0,38}$/.test(mediaId)) return null;
  let text = "";
  for (let value = BigInt(mediaId); value > 0n; value /= 32n) text = ALPHABET[Number(value % 32n)] + text;
  return text.length > CHARACTERS ? null : PREFIX + text.padStart(CHARACTERS, "0");
}
