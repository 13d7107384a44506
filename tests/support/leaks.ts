/**
 * Searches logs for what must never be in one (promise 6): API keys, message texts, QRs, codes, and every key that links
 * a line; as they are, and in each form that a printed object or a library would give them.
 */
import { Buffer } from "node:buffer";
import { join } from "node:path";
import type { DataConfig } from "../../src/data/data_folder.ts";
import { openData } from "../../src/engines.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { networkKeys } from "../../src/whatsapp/baileys/rows.ts";
import { silentRuntime } from "./runtime.ts";

/** Text, or bytes. */
export type Secret = string | Uint8Array;

/** Shorter values would be found by chance. */
const SHORTEST_KEY_BYTES = 16;
/** The network's id of a message, which a log may name; it only looks like base64. */
const MESSAGE_ID = /^[0-9A-F]+$/;
/** Forms are looked up by this many characters; shorter ones are searched for one by one. */
const WINDOW = 16;

/** Which of the secrets stand in the log: the first characters of each. */
export function findLeaks(log: string, secrets: Iterable<Secret>): string[] {
  const found = new Set<string>();
  const raw = new Search(log);
  const packed = new Search(pack(log));
  for (const secret of secrets) {
    const shown = (typeof secret === "string" ? secret : Buffer.from(secret).toString("hex")).slice(0, 8) + "…";
    if (typeof secret === "string") { for (const form of textForms(secret)) raw.add(form, () => found.add(shown)); }
    for (const form of byteForms(Buffer.from(secret))) packed.add(form, () => found.add(shown));
  }
  raw.run();
  packed.run();
  return [...found];
}

/** A text as it is, and inside of JSON, JSON inside of JSON, and an address. */
function textForms(text: string): Iterable<string> {
  const inJson = JSON.stringify(text).slice(1, -1);
  return new Set([text, inJson, JSON.stringify(inJson).slice(1, -1), encodeURIComponent(text)]);
}

/**
 * Bytes as hex, as numbers and as base64. Inside of a longer base64 they begin at any of three places in a group of four
 * characters, and the characters at their edges depend on their neighbours.
 */
function* byteForms(bytes: Buffer): Iterable<string> {
  yield bytes.toString("hex");
  yield bytes.toString("hex").toUpperCase();
  yield bytes.join(",");
  for (const [shift, mixed] of [[0, 0], [1, 2], [2, 3]] as const) {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]);
    const length = Math.floor(shifted.length * 8 / 6);
    yield shifted.toString("base64").slice(mixed, length);
    yield shifted.toString("base64url").slice(mixed, length);
  }
}

/**
 * The log without what printing puts between bytes: `<Buffer 01 02>`, `[1, 2]` over several lines, `{"0":1,"1":2}`. Inside
 * of a JSON string quotes and line ends are escaped.
 */
function pack(log: string): string {
  return log.replace(/\\+[nrt]|\s+/g, "").replace(/\\*"?\b\d+\\*"?:(?=\d)/g, "");
}

/** Looks for many strings in one pass. */
class Search {
  readonly #text: string;
  readonly #windows = new Map<string, { form: string; tell: () => void }[]>();
  readonly #short: { form: string; tell: () => void }[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  add(form: string, tell: () => void): void {
    if (form.length < WINDOW) return void this.#short.push({ form, tell });
    const window = form.slice(0, WINDOW);
    this.#windows.set(window, [...this.#windows.get(window) ?? [], { form, tell }]);
  }

  run(): void {
    for (const { form, tell } of this.#short) if (this.#text.includes(form)) tell();
    for (let at = 0; at + WINDOW <= this.#text.length; at++) {
      for (const { form, tell } of this.#windows.get(this.#text.slice(at, at + WINDOW)) ?? []) {
        if (this.#text.startsWith(form, at)) tell();
      }
    }
  }
}

/**
 * The secret key of the data, its accounts' keys, and every private key, session and credential, opened: of all lines, or
 * of the one that is named.
 */
export async function keyMaterial(config: DataConfig, lineId?: string): Promise<Secret[]> {
  const data = await openData(config, silentRuntime());
  const found: Secret[] = [];
  try {
    found.push(data.key);
    found.push(config.secretKey ?? (await Deno.readTextFile(join(config.dataDir, "secret.key"))).trim());
    for (const { id } of await data.accounts.list()) found.push(await data.accounts.apiKey(id));
    for await (const { value: line } of data.kv.list({ prefix: lineKeys.lines() })) {
      if (lineId !== undefined && line.id !== lineId) continue;
      for await (const { value, key } of data.kv.list({ prefix: networkKeys.waLine(line.id) })) {
        if (!(value instanceof Uint8Array) || key.includes("sent") || key.includes("device-list")) continue;
        found.push(...binaries(new TextDecoder().decode(data.seal.open(value))));
      }
    }
  } finally {
    data.close();
  }
  return found;
}

/** The binary values inside of encoded credentials, which are JSON with base64. */
function* binaries(text: string): Iterable<Buffer> {
  for (const [, base64] of text.matchAll(/"([A-Za-z0-9+/]{20,}={0,2})"/g)) {
    if (MESSAGE_ID.test(base64!)) continue;
    const bytes = Buffer.from(base64!, "base64");
    if (bytes.length >= SHORTEST_KEY_BYTES) yield bytes;
  }
}
