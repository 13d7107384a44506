/**
 * Requests a link by code from the network. The library shows its code whatever the network answers, so a refused one
 * looks valid. Here the network has to accept the code first.
 */
import { Buffer } from "node:buffer";
import {
  aesEncryptCTR,
  type AuthenticationCreds,
  type BinaryNode,
  bytesToCrockford,
  derivePairingCodeKey,
  getCompanionPlatformId,
  jidEncode,
  type WABrowserDescription,
} from "@whiskeysockets/baileys";
import type { Random } from "../../../runtime.ts";
import type { AuthState } from "../auth_state.ts";
import { iq, queryError } from "../stanza.ts";

const CODE_BYTES = 5;
const SALT_BYTES = 32;
const IV_BYTES = 16;

/** The network does not allow this number to be linked by code, now or ever. */
export class CodeRefused extends Error {
  override name = "CodeRefused";
  /** The network's code: 400 for an invalid request or number, 429 for too many. */
  readonly code: number;

  constructor(code: number) {
    super(`the network refused a code (error ${code})`);
    this.code = code;
  }
}

interface CodeOptions {
  query(node: BinaryNode): Promise<BinaryNode>;
  auth: Pick<AuthState, "creds" | "saveCreds">;
  browser: WABrowserDescription;
  random: Random;
}

/** Resolves to a code to type on the phone of this number, once the network has accepted it. Throws CodeRefused. */
export async function askForCode(phone: string, options: CodeOptions): Promise<string> {
  const { query, auth, browser, random } = options;
  const { creds } = auth;
  const code = bytesToCrockford(Buffer.from(random.bytes(CODE_BYTES)));
  creds.pairingCode = code;
  creds.me = { id: jidEncode(phone, "s.whatsapp.net"), name: "~" };
  await auth.saveCreds();
  const hello = {
    tag: "link_code_companion_reg",
    attrs: { jid: creds.me.id, stage: "companion_hello", should_show_push_notification: "true" },
    content: [
      field("link_code_pairing_wrapped_companion_ephemeral_pub", await wrapped(creds, code, random)),
      field("companion_server_auth_key_pub", creds.noiseKey.public),
      field("companion_platform_id", getCompanionPlatformId(browser)),
      field("companion_platform_display", `${browser[1]} (${browser[0]})`),
      field("link_code_pairing_nonce", "0"),
    ],
  };
  try {
    await query(iq({ type: "set", xmlns: "md" }, hello));
  } catch (error) {
    const code = queryError(error);
    throw code === null ? error : new CodeRefused(code);
  }
  return code;
}

/** The public key of this exchange, encrypted with a key derived from the code. */
async function wrapped(creds: AuthenticationCreds, code: string, random: Random): Promise<Uint8Array> {
  const salt = Buffer.from(random.bytes(SALT_BYTES));
  const iv = random.bytes(IV_BYTES);
  const key = await derivePairingCodeKey(code, salt);
  return Buffer.concat([salt, iv, aesEncryptCTR(creds.pairingEphemeralKeyPair.public, key, iv)]);
}

function field(tag: string, content: Uint8Array | string): BinaryNode {
  return { tag, attrs: {}, content };
}
