/**
 * A setting that an account's devices share ("app state"), as its phone writes it: named by a keyed hash of its index, and
 * encrypted with a key that the phone gives each companion when it is linked.
 */
import { proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createCipheriv, createHmac, hkdfSync } from "node:crypto";
import type { Random } from "../../runtime.ts";
import type { AppStateKey } from "./welcome.ts";

const KEY_BYTES = 32;
const MAC_BYTES = 32;
const IV_BYTES = 16;
/** Version of the setting's format. */
const FORM = 1;

/** The salt of the tokens for chats whose other side gave none, as a change of the collection `regular_high`. */
export function saltPatch(key: AppStateKey, salt: Uint8Array, random: Random): Uint8Array {
  const derived = hkdfSync("sha256", key.data, new Uint8Array(0), "WhatsApp Mutation Keys", 5 * KEY_BYTES);
  const [indexKey, valueKey, macKey] = [0, 1, 2].map((at) => new Uint8Array(derived, at * KEY_BYTES, KEY_BYTES));
  const index = Buffer.from(JSON.stringify(["nct_salt_sync"]));
  // SyncActionValue holds it in its field 80, which the library's schema does not have.
  const action = Buffer.concat([Buffer.of(1 << 3 | 2, salt.length), salt]);
  const value = Buffer.concat([Buffer.of(0x82, 0x05, action.length), action]);
  const plain = Buffer.concat([
    Buffer.of(1 << 3 | 2, index.length),
    index,
    Buffer.of(2 << 3 | 2, value.length),
    value,
    Buffer.of(4 << 3, FORM),
  ]);
  const iv = random.bytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-cbc", valueKey!, iv);
  const encrypted = Buffer.concat([iv, cipher.update(plain), cipher.final()]);
  const about = Buffer.concat([Buffer.of(1), key.id]);
  const mac = createHmac("sha512", macKey!).update(about).update(encrypted)
    .update(new Uint8Array(8).with(7, about.length)).digest().subarray(0, MAC_BYTES);
  const keyId = { id: key.id };
  const record = {
    index: { blob: createHmac("sha256", indexKey!).update(index).digest() },
    value: { blob: Buffer.concat([encrypted, mac]) },
    keyId,
  };
  const mutations = [{ operation: proto.SyncdMutation.SyncdOperation.SET, record }];
  return proto.SyncdPatch.encode({ mutations, keyId }).finish();
}
