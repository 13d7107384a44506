/**
 * Every key of the store: the schema. One function a kind of row; nobody else builds keys.
 * Sections are ordered as the floors of the house. Orders and sequence numbers are in keys so that lists need no sort.
 */
import type { Key, KeyOf, PrefixOf } from "./kv.ts";

function key<T>(...parts: Key): KeyOf<T> {
  return parts as KeyOf<T>;
}

function prefix<T>(...parts: Key): PrefixOf<T> {
  return parts as PrefixOf<T>;
}

export const keys = {
  schemaVersion: () => key<number>("meta", "schema_version"),
  // account/
  // line/
  // message/
  // event/, webhook/
  // media/
  // whatsapp/
};

export { key, prefix };
