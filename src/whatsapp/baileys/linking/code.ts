/**
 * Linking by a code that the owner types on the phone (`link_code_companion_reg`), in place of the library. It shows a
 * code that the network refused, and does not notice when the network refuses what follows.
 *
 * ```
 * companion_hello ──► code shown ── typed ──► primary_hello ──► companion_finish ──► pair-success
 *                      ▲  │ refresh_code                             │ refused, or nothing follows
 *                      └──┘                                          └──► the next attempt, with the reason
 * ```
 *
 * After a mistyped code, `primary_hello` comes again. Source: WhatsApp Web's `WAWebAltDeviceLinking…`.
 */
import { Buffer } from "node:buffer";
import type { EventEmitter } from "node:events";
import {
  aesDecryptCTR,
  aesEncryptCTR,
  aesEncryptGCM,
  type BinaryNode,
  bytesToCrockford,
  Curve,
  DEF_TAG_PREFIX,
  derivePairingCodeKey,
  getBinaryNodeChild,
  getCompanionPlatformId,
  jidEncode,
  type WABrowserDescription,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import type { AuthState } from "../auth_state.ts";
import { bytesIn, iq, queryError } from "../stanza.ts";
import { derive } from "./companion.ts";

const CODE_BYTES = 5;
const SALT_BYTES = 32;
const CTR_IV_BYTES = 16;
const GCM_IV_BYTES = 12;
const KEY_BYTES = 32;
/** The only value that WhatsApp Web sends. */
const NONCE = Uint8Array.of(0);
/** How often the phone may begin with one code: it was mistyped the other times. */
const MOST_TRIES = 3;
/** The time that the phone has to complete the link. */
const PHONE_MS = 60_000;

/** The network does not let this number be linked by code, for now or ever. */
export class CodeRefused extends Error {
  override name = "CodeRefused";
  /** The network's code, e.g. 400 for a request or number that is invalid, 429 for too many. */
  readonly code: number;
  /** How long to wait before asking again, in seconds; null if the network does not say. */
  readonly backOffS: number | null;

  constructor(code: number, backOffS: number | null) {
    super(`the network refused a code (error ${code})`);
    this.code = code;
    this.backOffS = backOffS;
  }
}

/** The network wants a person to ask for the next code. */
export class CodeExpired extends Error {
  override name = "CodeExpired";
}

interface CodeOptions {
  socket: Pick<WASocket, "query" | "generateMessageTag"> & { ws: Pick<EventEmitter, "once"> };
  auth: Pick<AuthState, "creds" | "saveCreds">;
  browser: WABrowserDescription;
  runtime: Pick<Runtime, "clock" | "random">;
  /** The code that is shown links no more. `reason` is one sentence. */
  failed(reason: string): void;
}

export class CodeLink {
  readonly #options: CodeOptions;
  /** Names the exchange of the code that is shown. */
  #ref: Buffer = Buffer.alloc(0);
  #tries = 0;
  #cancelTimeout = () => {};

  constructor(options: CodeOptions) {
    this.#options = options;
  }

  /** Called when the link is complete, has ended, or goes on otherwise. */
  stop(): void {
    this.#cancelTimeout();
  }

  /** Resolves to a code to type on the phone of this number, once the network has accepted it. Throws CodeRefused. */
  async ask(phone: string): Promise<string> {
    const { auth, browser, runtime: { random } } = this.#options;
    const { creds } = auth;
    this.stop();
    const code = bytesToCrockford(Buffer.from(random.bytes(CODE_BYTES)));
    creds.pairingCode = code;
    creds.me = { id: jidEncode(phone, "s.whatsapp.net"), name: "~" };
    await auth.saveCreds();
    const answer = await this.#tell(
      "companion_hello",
      { should_show_push_notification: "true" },
      [
        field("link_code_pairing_wrapped_companion_ephemeral_pub", await this.#wrapped(code)),
        field("companion_server_auth_key_pub", creds.noiseKey.public),
        field("companion_platform_id", getCompanionPlatformId(browser)),
        field("companion_platform_display", `${browser[1]} (${browser[0]})`),
        field("link_code_pairing_nonce", NONCE),
      ],
    );
    this.#ref = bytesIn(getBinaryNodeChild(getBinaryNodeChild(answer, STEP), "link_code_pairing_ref"));
    this.#tries = 0;
    return code;
  }

  /** Takes a step of the network's. Resolves to whether a new code is due. Throws CodeExpired. */
  async take(step: BinaryNode): Promise<boolean> {
    const ref = bytesIn(getBinaryNodeChild(step, "link_code_pairing_ref"));
    // A step of another exchange is not about the code that is shown.
    if (this.#ref.length === 0 || !ref.equals(this.#ref)) return false;
    if (step.attrs.stage === "refresh_code") {
      if (step.attrs.force_manual_refresh === "true") throw new CodeExpired();
      return true;
    }
    const wrappedKey = bytesIn(getBinaryNodeChild(step, "link_code_pairing_wrapped_primary_ephemeral_pub"));
    const identity = bytesIn(getBinaryNodeChild(step, "primary_identity_pub"));
    // Before a passkey is asked for, a step without the phone's key may come.
    if (wrappedKey.length === SALT_BYTES + CTR_IV_BYTES + KEY_BYTES && identity.length === KEY_BYTES) {
      await this.#finish(wrappedKey, identity);
    }
    return false;
  }

  /** Answers the phone on which the code was typed. */
  async #finish(wrappedKey: Buffer, identity: Buffer): Promise<void> {
    const { auth, runtime: { clock, random }, failed } = this.#options;
    const { creds } = auth;
    this.stop();
    if (++this.#tries > MOST_TRIES) return failed("The code was mistyped too often.");
    const shared = Curve.sharedKey(
      creds.pairingEphemeralKeyPair.private,
      await unwrapped(wrappedKey, creds.pairingCode!),
    );
    const secret = random.bytes(KEY_BYTES);
    const salt = random.bytes(SALT_BYTES);
    const iv = random.bytes(GCM_IV_BYTES);
    const key = derive(shared, { salt, info: "link_code_pairing_key_bundle_encryption_key" });
    const bundle = Buffer.concat([creds.signedIdentityKey.public, identity, secret]);
    const sealed = aesEncryptGCM(bundle, key, iv, new Uint8Array(0));
    const identityShared = Curve.sharedKey(creds.signedIdentityKey.private, identity);
    const advSecret = derive(Buffer.concat([shared, identityShared, secret]), { info: "adv_secret" });
    creds.advSecretKey = Buffer.from(advSecret).toString("base64");
    creds.registered = true;
    await auth.saveCreds();
    try {
      await this.#tell("companion_finish", {}, [
        field("link_code_pairing_wrapped_key_bundle", Buffer.concat([salt, iv, sealed])),
        field("companion_identity_public", creds.signedIdentityKey.public),
        field("link_code_pairing_ref", this.#ref),
      ]);
    } catch (error) {
      if (error instanceof CodeRefused) return failed(`WhatsApp refused the link by this code (error ${error.code}).`);
      throw error;
    }
    this.#cancelTimeout = clock.after(PHONE_MS, () => failed("The phone did not complete the link by this code."));
  }

  /** Sends one step of the protocol. Throws CodeRefused. */
  async #tell(stage: string, attrs: Record<string, string>, content: BinaryNode[]): Promise<BinaryNode> {
    const { socket, auth } = this.#options;
    const step = { tag: STEP, attrs: { jid: auth.creds.me!.id, stage, ...attrs }, content };
    const id = socket.generateMessageTag();
    let backOffS: number | null = null;
    // The library's error lacks the attribute.
    socket.ws.once(`${DEF_TAG_PREFIX}${id}`, (answer: BinaryNode) => {
      backOffS = Number(getBinaryNodeChild(answer, "error")?.attrs.backoff) || null;
    });
    const question = iq({ type: "set", xmlns: "md" }, step);
    try {
      return await socket.query({ ...question, attrs: { ...question.attrs, id } });
    } catch (error) {
      const code = queryError(error);
      throw code === null ? error : new CodeRefused(code, backOffS);
    }
  }

  /** The public key of this exchange, encrypted with a key derived from the code. */
  async #wrapped(code: string): Promise<Uint8Array> {
    const { auth: { creds }, runtime: { random } } = this.#options;
    const salt = Buffer.from(random.bytes(SALT_BYTES));
    const iv = random.bytes(CTR_IV_BYTES);
    const key = await derivePairingCodeKey(code, salt);
    return Buffer.concat([salt, iv, aesEncryptCTR(creds.pairingEphemeralKeyPair.public, key, iv)]);
  }
}

const STEP = "link_code_companion_reg";

/** Decrypts the phone's key; with a mistyped code the result is another key. */
async function unwrapped(wrappedKey: Buffer, code: string): Promise<Uint8Array> {
  const key = await derivePairingCodeKey(code, wrappedKey.subarray(0, SALT_BYTES));
  const iv = wrappedKey.subarray(SALT_BYTES, SALT_BYTES + CTR_IV_BYTES);
  return aesDecryptCTR(wrappedKey.subarray(SALT_BYTES + CTR_IV_BYTES), key, iv);
}

function field(tag: string, content: Uint8Array | string): BinaryNode {
  return { tag, attrs: {}, content };
}
