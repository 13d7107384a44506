/** Whether a webhook's request comes from the gateway. */
import type { AnyEvent } from "./api.ts";
import { WebhookVerificationError } from "./errors.ts";

/** Of `fetch`, or of Node's `IncomingMessage`. */
export type WebhookHeaders =
  | Headers
  | Record<string, string | readonly string[] | undefined>;

export interface VerifyOptions {
  /** Seconds that the timestamp of Standard Webhooks may be away. Defaults to 300. */
  toleranceSeconds?: number;
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Of the current secret, and of the previous one for a day after a rotation. */
const PLAIN = ["x-webhook-signature", "x-webhook-signature-previous"];

/**
 * Resolves to the event of a request that was signed with one of the secrets. Throws WebhookVerificationError.
 *
 * The body is text or bytes as they arrived. Give two secrets during a rotation. A request without the headers of
 * Standard Webhooks is judged by `x-webhook-signature` alone, which covers no timestamp.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  { toleranceSeconds = 300 }: VerifyOptions = {},
): Promise<AnyEvent> {
  const bytes = typeof body === "string" ? utf8(body) : new Uint8Array(body);
  const given = lookup(headers);
  const keys = [secrets].flat();
  const isGenuine = given("webhook-signature") === undefined
    ? await isPlainSigned(bytes, given, keys)
    : await isStandardSigned(bytes, given, { keys, toleranceSeconds });
  if (!isGenuine) {
    throw new WebhookVerificationError("no signature of this request is valid");
  }
  return JSON.parse(new TextDecoder().decode(bytes));
}

type Lookup = (name: string) => string | undefined;

function lookup(headers: WebhookHeaders): Lookup {
  if (headers instanceof Headers) {
    return (name) => headers.get(name) ?? undefined;
  }
  const values = Object.entries(headers).map(([name, value]) =>
    [name.toLowerCase(), [value].flat().join(",")] as const
  );
  const given = new Map(values.filter(([, value]) => value !== ""));
  return (name) => given.get(name);
}

async function isStandardSigned(
  body: Bytes,
  given: Lookup,
  { keys, toleranceSeconds }: {
    keys: readonly string[];
    toleranceSeconds: number;
  },
): Promise<boolean> {
  const timestamp = given("webhook-timestamp") ?? "";
  if (!/^\d+$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > toleranceSeconds) {
    return false;
  }
  const prefix = utf8(`${given("webhook-id") ?? ""}.${timestamp}.`);
  const signed = new Uint8Array([...prefix, ...body]);
  const signatures = given("webhook-signature")!.split(" ").filter((one) => one.startsWith("v1,"))
    .map((one) => fromBase64(one.slice("v1,".length)));
  return await isAnySigned(
    keys.map((secret) => fromBase64(secret.replace(/^whsec_/, ""))),
    signatures,
    signed,
  );
}

async function isPlainSigned(
  body: Bytes,
  given: Lookup,
  keys: readonly string[],
): Promise<boolean> {
  const signatures = PLAIN.map((name) => fromHex(given(name) ?? ""));
  return await isAnySigned(keys.map(utf8), signatures, body);
}

/** `crypto.subtle.verify` compares in constant time. */
async function isAnySigned(
  keys: (Bytes | null)[],
  signatures: (Bytes | null)[],
  signed: Bytes,
): Promise<boolean> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  for (const bytes of keys) {
    if (!bytes || bytes.length === 0) continue;
    const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, [
      "verify",
    ]);
    for (const signature of signatures) {
      if (
        signature &&
        await crypto.subtle.verify(algorithm, key, signature, signed)
      ) return true;
    }
  }
  return false;
}

function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Null if it is none. */
function fromBase64(text: string): Bytes | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

/** Null if it is none. */
function fromHex(text: string): Bytes | null {
  if (!/^(?:[0-9a-f]{2})+$/i.test(text)) return null;
  return Uint8Array.from(
    text.match(/../g)!,
    (pair) => Number.parseInt(pair, 16),
  );
}
