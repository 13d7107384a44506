/** One-time codes of authenticator apps (RFC 6238), with what every app supports: SHA-1, six digits, 30 s. */
import { createHmac } from "node:crypto";
import type { Random } from "../../runtime.ts";

const STEP_MS = 30_000;
const DIGITS = 6;
/** Accepted steps to either side, for clocks that differ. */
const DRIFT = 1;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const SECRET_BYTES = 20;

export function makeTotpSecret(random: Random): Uint8Array<ArrayBuffer> {
  return random.bytes(SECRET_BYTES);
}

/** Returns the code of a step, which serves as the counter (RFC 4226). */
export function totpCode(secret: Uint8Array, step: number, digits = DIGITS): string {
  const counter = new DataView(new ArrayBuffer(8));
  counter.setBigUint64(0, BigInt(step));
  const mac = createHmac("sha1", secret).update(new Uint8Array(counter.buffer)).digest();
  const offset = mac[mac.length - 1]! & 15;
  const number = mac.readUInt32BE(offset) & 0x7fffffff;
  return String(number % 10 ** digits).padStart(digits, "0");
}

/** Returns the step of this code, if it is near `now` and after `lastStep`, so that no code counts twice; else null. */
export function totpStep(
  secret: Uint8Array,
  code: string,
  { now, lastStep }: { now: number; lastStep: number },
): number | null {
  const current = Math.floor(now / STEP_MS);
  for (let step = current - DRIFT; step <= current + DRIFT; step++) {
    if (step > lastStep && totpCode(secret, step) === code) return step;
  }
  return null;
}

/** Encodes as base32 (RFC 4648) without padding, as apps expect it. */
export function base32(bytes: Uint8Array): string {
  let bits = "";
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  return (bits.match(/.{1,5}/g) ?? []).map((five) => ALPHABET[parseInt(five.padEnd(5, "0"), 2)]).join("");
}

/** Returns the URI for the app's QR code. */
export function totpUri(secret: Uint8Array, login: string): string {
  return `otpauth://totp/Paloma:${encodeURIComponent(login)}?secret=${base32(secret)}&issuer=Paloma`;
}
