/**
 * Parameters of header values, above all the names of parts and files in `Content-Disposition`: in RFC 8187's form
 * (`filename*=UTF-8''…`, formerly RFC 5987), in sections (RFC 2231) and in a mail's encoded words (RFC 2047).
 */
import { Buffer } from "node:buffer";

/** A value that is coded in a way, or in a charset, that cannot be read. */
export class Undecodable extends Error {
  override name = "Undecodable";
}

/** Returns the parameters of a header's value as they are written; if a name occurs twice, the first. */
export function parametersOf(value: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, name, quoted, bare] of value.matchAll(/;\s*([^\s=;"]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s;]*))/g)) {
    const key = name!.toLowerCase();
    // Older browsers write a path with unescaped backslashes, which must stay.
    if (!found.has(key)) found.set(key, quoted?.replaceAll(/\\(["\\])/g, "$1") ?? bare!);
  }
  return found;
}

/**
 * Returns the value of a parameter, decoded; the form that names its charset takes precedence (RFC 6266). Undefined if
 * there is none. Throws Undecodable.
 */
export function decodedParameter(parameters: ReadonlyMap<string, string>, name: string): string | undefined {
  const coded = parameters.get(`${name}*`);
  if (coded !== undefined) return decodedSections([{ value: coded, isCoded: true }]);
  const sections = sectionsOf(parameters, name);
  if (sections.length > 0) return decodedSections(sections);
  const plain = parameters.get(name);
  return plain === undefined ? undefined : withoutEncodedWords(plain);
}

interface Section {
  value: string;
  /** Whether its bytes are percent-encoded. */
  isCoded: boolean;
}

function sectionsOf(parameters: ReadonlyMap<string, string>, name: string): Section[] {
  const sections: Section[] = [];
  for (;;) {
    const key = `${name}*${sections.length}`;
    const coded = parameters.get(`${key}*`);
    const value = coded ?? parameters.get(key);
    if (value === undefined) return sections;
    sections.push({ value, isCoded: coded !== undefined });
  }
}

/** Decodes sections, the first of which begins with the charset and a language if it is coded: `utf-8'en'…`. */
function decodedSections(sections: Section[]): string {
  const { value, isCoded } = sections[0]!;
  const [, charset, start] = isCoded ? /^([^']+)'[^']*'(.*)$/s.exec(value) ?? [] : [, "utf-8"];
  if (!charset) throw new Undecodable("does not state its charset");
  const bytes = sections.map(({ value, isCoded }, i) => {
    return isCoded ? bytesOf(i === 0 ? start! : value, /%([0-9a-f]{2}|)/gi) : Buffer.from(value);
  });
  return inCharset(Buffer.concat(bytes), charset);
}

/** A word of RFC 2047: charset, perhaps with a language (RFC 2231), coding and text. */
const WORD = /=\?([^?*\s]+)(?:\*[^?\s]*)?\?([bq])\?([^?]*)\?=/gi;

/**
 * Decodes encoded words. White space between two of them does not count, and their bytes are joined before they are
 * decoded, because some clients cut a character in two.
 */
function withoutEncodedWords(text: string): string {
  const runs: { charset: string; bytes: Uint8Array[] }[] = [];
  const add = (charset: string, bytes: Uint8Array) => {
    const last = runs.at(-1);
    if (last?.charset === charset) last.bytes.push(bytes);
    else runs.push({ charset, bytes: [bytes] });
  };
  let end = 0;
  for (const { 0: word, 1: charset, 2: coding, 3: content, index } of text.matchAll(WORD)) {
    const between = text.slice(end, index);
    if (end === 0 || between.trim() !== "") add("utf-8", Buffer.from(between));
    add(charset!.toLowerCase(), /b/i.test(coding!) ? base64Decoded(content!) : qDecoded(content!));
    end = index + word.length;
  }
  add("utf-8", Buffer.from(text.slice(end)));
  return runs.map(({ charset, bytes }) => inCharset(Buffer.concat(bytes), charset)).join("");
}

function base64Decoded(content: string): Uint8Array {
  try {
    return Uint8Array.fromBase64(content);
  } catch {
    throw new Undecodable("has a word that is not base64");
  }
}

function qDecoded(content: string): Uint8Array {
  return bytesOf(content.replaceAll("_", " "), /=([0-9a-f]{2}|)/gi);
}

/** Returns the bytes of a text, some of which are written as a sign and two digits, which `coded` captures. */
function bytesOf(text: string, coded: RegExp): Uint8Array {
  const binary = Buffer.from(text).toString("latin1").replaceAll(coded, (_, digits: string) => {
    if (digits === "") throw new Undecodable("has a code that is cut off");
    return String.fromCharCode(parseInt(digits, 16));
  });
  return Buffer.from(binary, "latin1");
}

/** Decodes text. Throws Undecodable if the charset is unknown, or the bytes are none of it. */
export function inCharset(bytes: Uint8Array, charset: string): string {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    throw new Undecodable(`is not text in ${charset}`);
  }
}
