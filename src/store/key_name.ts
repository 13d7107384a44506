/** Keys as texts, for maps and sets that look keys up. */
import type { Key, KeyPart } from "./kv.ts";

/** A text that is the same for the same key only. */
export function nameOfKey(key: Key): string {
  let name = "";
  for (const part of key) name += nameOfPart(part);
  return name;
}

function nameOfPart(part: KeyPart): string {
  if (typeof part === "string") return `s${part.length}:${part}`;
  return part instanceof Uint8Array ? `b${part.join(",")};` : `${typeof part}${part};`;
}
