/**
 * A phone's part in linking a companion: reading its QR as a camera would, and signing the ADV identity that proves to
 * the companion, which alone knows the secret in the QR, that this phone accepted it.
 */
import { Curve, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { PNG_DATA_URL, readQrPng } from "../../base/qr_png.ts";
import { invalid } from "../../errors.ts";
import type { QrText } from "../world/linking.ts";
import type { PhoneKeys } from "./keys.ts";

/** Far more than any QR needs; a limit for what is decoded. */
const QR_MAX_CHARACTERS = 4 * 1024 * 1024;
/** The address that QRs begin with today, so that any camera app opens the right page. */
const QR_LINK = "https://wa.me/settings/linked_devices#";
/** The prefix of what an account signature covers, before details and companion identity (protocol constant). */
const ACCOUNT_SIGNATURE_PREFIX = Buffer.from([6, 0]);

/** Takes a QR's text, or a PNG data URL that shows it. Throws Problem validation_failed for anything else. */
export function readQr(qr: string): QrText {
  if (qr.length > QR_MAX_CHARACTERS) throw invalid("qr", "is larger than any QR");
  const text = qr.startsWith(PNG_DATA_URL) ? readPng(qr) : qr;
  const fields = text.slice(text.startsWith(QR_LINK) ? QR_LINK.length : 0).split(",");
  const [ref, noise, identity, secret, platform = ""] = fields;
  const keys = [noise, identity, secret].map((field) => Buffer.from(field ?? "", "base64"));
  const [noisePublic, identityPublic, advSecret] = keys;
  if (!ref || fields.length > 5 || !noisePublic || !identityPublic || !advSecret || keys.some((k) => k.length !== 32)) {
    throw invalid("qr", "is not the QR of a device that wants to be linked");
  }
  return { ref, noisePublic, identityPublic, advSecret, platform };
}

function readPng(dataUrl: string): string {
  let text: string | null;
  try {
    text = readQrPng(dataUrl);
  } catch {
    throw invalid("qr", "is not a readable PNG");
  }
  if (text === null) throw invalid("qr", "shows no QR code");
  return text;
}

/** The companion that asks to be linked: its identity, and the secret that only this phone learned. */
export interface Companion {
  identityPublic: Uint8Array;
  advSecret: Uint8Array;
}

/** An encoded ADVSignedDeviceIdentityHMAC, as `pair-success` carries it. `keyIndex` counts a phone's companions. */
export function signIdentity(keys: PhoneKeys, companion: Companion, { keyIndex, now }: {
  keyIndex: number;
  /** Unix ms. */
  now: number;
}): Uint8Array {
  const details = proto.ADVDeviceIdentity.encode({
    rawId: keys.registrationId,
    timestamp: Math.floor(now / 1000),
    keyIndex,
    accountType: proto.ADVEncryptionType.E2EE,
    deviceType: proto.ADVEncryptionType.E2EE,
  }).finish();
  const signed = proto.ADVSignedDeviceIdentity.encode({
    details,
    accountSignatureKey: keys.identity.public,
    accountSignature: Curve.sign(
      keys.identity.private,
      Buffer.concat([ACCOUNT_SIGNATURE_PREFIX, details, companion.identityPublic]),
    ),
  }).finish();
  const hmac = createHmac("sha256", companion.advSecret).update(signed).digest();
  return proto.ADVSignedDeviceIdentityHMAC.encode({ details: signed, hmac }).finish();
}
