/**
 * Links companions on behalf of the phone's owner, who scans a QR, enters a code, or confirms a link with a passkey.
 * The phone then signs an ADV identity. Its HMAC with the secret in the QR proves to the companion that this phone
 * accepted it.
 */
import { Curve, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { PNG_DATA_URL, readQrPng } from "../../base/qr_png.ts";
import { invalid, notFound } from "../../errors.ts";
import type { LinkAnswer, LinkRequest } from "../world/uplink.ts";
import type { Passkey } from "./authenticator.ts";
import type { PhoneContext } from "./context.ts";
import type { PhoneKeys } from "./keys.ts";
import { beginCodeExchange, readCode } from "./pairing_code.ts";
import { PasskeyExchange, type PasskeyState } from "./passkey_exchange.ts";

/** Limit for decoding; far more than any QR needs. */
const QR_MAX_CHARACTERS = 4 * 1024 * 1024;
/** The URL prefix of current QRs, with which any camera app opens the right page. */
const QR_LINK = "https://wa.me/settings/linked_devices#";
/** Prefix of the data that the account signature covers, before details and companion identity (protocol constant). */
const ACCOUNT_SIGNATURE_PREFIX = Buffer.from([6, 0]);

/** The fields of the QR's text, with which the phone links the companion. */
interface QrText extends LinkRequest {
  ref: string;
  noisePublic: Uint8Array;
}

/**
 * `no_request`: no companion waits for a code on this number. `wrong_code`: the exchange failed, as with a mistyped
 * code.
 */
type CodeAnswer = LinkAnswer | { kind: "no_request" } | { kind: "wrong_code" };

export class Linker {
  /** Null if links of this account require no passkey. */
  readonly passkey: Passkey | null;
  readonly #phone: PhoneContext;
  /** Secrets of QRs that the network asked to refresh; such a secret is not offered again. */
  readonly #spentSecrets = new Set<string>();
  #companions = 0;
  /**
   * The device jid by the companion's identity key; null after a link with a passkey, whose device is not known yet.
   */
  readonly #devices = new Map<string, string | null>();
  /** Links with a passkey in progress, in the order in which the network asked for it. */
  readonly #exchanges = new Set<PasskeyExchange>();

  constructor(phone: PhoneContext, passkey: Passkey | null) {
    this.#phone = phone;
    this.passkey = passkey;
  }

  /** Scans a QR. Throws Problem validation_failed if it is not one. */
  scan(qr: string): LinkAnswer {
    const companion = readQr(qr);
    return this.#link(companion.ref, companion);
  }

  async enterCode(typed: string): Promise<CodeAnswer> {
    const code = readCode(typed);
    const { runtime, uplink, self, keys } = this.#phone;
    const request = uplink.codeRequest(self);
    if (!request) return { kind: "no_request" };
    const exchange = await beginCodeExchange(keys, request, { code, random: runtime.random });
    const answer = await uplink.answerCode(request.ref, exchange.hello);
    const companion = answer && exchange.finish(answer);
    return companion ? this.#link(request.ref, companion) : { kind: "wrong_code" };
  }

  #link(ref: string, companion: LinkRequest): LinkAnswer {
    const { runtime, uplink, self } = this.#phone;
    const secret = companion.advSecret.toString();
    if (this.#spentSecrets.has(secret)) return { kind: "refresh" };
    const exchange = new PasskeyExchange({
      companion,
      random: runtime.random,
      sign: (revealed) => {
        const signed = this.#sign(revealed);
        this.#count(revealed, null);
        return signed;
      },
      onAsk: () => this.#exchanges.add(exchange),
      onEnd: () => this.#exchanges.delete(exchange),
    });
    const answer = uplink.acceptQr(self, ref, this.#sign(companion), exchange);
    if (answer.kind === "linked" && !this.#isKnown(companion, answer.deviceJid)) {
      this.#count(companion, answer.deviceJid);
    }
    if (answer.kind === "refresh") this.#spentSecrets.add(secret);
    return answer;
  }

  /** Whether the device was counted when this phone accepted it, so that this is a second scan of its QR. */
  #isKnown(companion: LinkRequest, deviceJid: string): boolean {
    const known = this.#devices.get(hexOf(companion.identityPublic));
    return known === null || known === deviceJid;
  }

  #count(companion: LinkRequest, deviceJid: string | null): void {
    this.#companions++;
    this.#devices.set(hexOf(companion.identityPublic), deviceJid);
  }

  #sign(companion: LinkRequest): Uint8Array {
    const { runtime, keys } = this.#phone;
    return signIdentity(keys, companion, { keyIndex: this.#companions + 1, now: runtime.clock.now() });
  }

  /** The link with a passkey in progress, or null. */
  passkeyState(): PasskeyState | null {
    return this.#shown()?.state ?? null;
  }

  /** Returns the exchange that has a code (the network lets only one get so far), else the newest. */
  #shown(): PasskeyExchange | undefined {
    const exchanges = [...this.#exchanges];
    return exchanges.find(({ state }) => state?.code) ?? exchanges.at(-1);
  }

  /** Confirms the code. Throws Problem not_found if no code is shown. */
  confirmPasskey(): void {
    if (!this.#shown()?.confirm()) throw notFound("code to confirm on this phone");
  }

  /** Returns the owner's passkey. Throws Problem not_found if there is none. */
  ownPasskey(): Passkey {
    if (!this.passkey) throw notFound("passkey on this phone");
    return this.passkey;
  }
}

/** Reads a QR's text, or a PNG data URL of the QR. Throws Problem validation_failed for anything else. */
export function readQr(qr: string): QrText {
  if (qr.length > QR_MAX_CHARACTERS) throw invalid("qr", "is larger than any QR");
  const text = qr.startsWith(PNG_DATA_URL) ? readPng(qr) : qr;
  const fields = text.slice(text.startsWith(QR_LINK) ? QR_LINK.length : 0).split(",");
  const [ref, noise, identity, secret] = fields;
  const keys = [noise, identity, secret].map((field) => Buffer.from(field ?? "", "base64"));
  const [noisePublic, identityPublic, advSecret] = keys;
  if (!ref || fields.length > 5 || !noisePublic || !identityPublic || !advSecret || keys.some((k) => k.length !== 32)) {
    throw invalid("qr", "is not the QR of a device that wants to be linked");
  }
  return { ref, noisePublic, identityPublic, advSecret };
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

/**
 * Returns an encoded ADVSignedDeviceIdentityHMAC, as `pair-success` carries it. `keyIndex` counts a phone's companions.
 */
function signIdentity(keys: PhoneKeys, companion: LinkRequest, { keyIndex, now }: {
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

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
