/**
 * The messages that a phone sends to a newly linked companion: the key of the shared settings, and the history as
 * files. The history lists only chats whose peer gave a token, without earlier messages. Also a change to the shared
 * settings ("app state"), which all companions get.
 */
import { encodeSyncdPatch, newLTHashState, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createCipheriv, createHmac } from "node:crypto";
import { deflateSync } from "node:zlib";
import type { Random } from "../../runtime.ts";
import { hkdf } from "../world/crypto.ts";
import type { ChatTokens } from "../world/uplink.ts";
import { sendFile } from "./attachment.ts";
import type { PhoneContext } from "./context.ts";

export interface AppStateKey {
  id: Uint8Array;
  data: Uint8Array;
}

const { HistorySyncType } = proto.HistorySync;
/** `nctSalt`, field 19 of HistorySync, missing in the library's schema: its tag, length-delimited. */
const NCT_SALT_TAG = [0x9a, 0x01];

const KEY_BYTES = 32;
const MAC_BYTES = 32;
const IV_BYTES = 16;
/** Version of the setting's format. */
const FORM = 1;

/** Composes the messages for a new companion. Throws AttachmentError. */
export async function composeWelcome(
  { key, chats }: { key: AppStateKey; chats: ChatTokens },
  phone: PhoneContext,
): Promise<proto.IMessage[]> {
  const conversations = chats.tokens.map(({ jid, lid, token, at }) => ({
    id: jid ?? lid,
    lidJid: lid,
    tcToken: token,
    tcTokenTimestamp: Math.floor(at / 1000),
  }));
  // The account's chats are addressed by LID, as almost all are today.
  const globalSettings = { chatDbLidMigrationTimestamp: Math.floor(phone.runtime.clock.now() / 1000) };
  const bootstrap = proto.HistorySync.encode({
    syncType: HistorySyncType.INITIAL_BOOTSTRAP,
    conversations,
    globalSettings,
  }).finish();
  const salt = [...NCT_SALT_TAG, chats.nctSalt.length, ...chats.nctSalt];
  const pushnames = [{ id: phone.self.jid, pushname: phone.name }];
  const names = proto.HistorySync.encode({ syncType: HistorySyncType.PUSH_NAME, pushnames }).finish();
  return [
    keyShare(key, phone),
    await history(HistorySyncType.INITIAL_BOOTSTRAP, Buffer.concat([bootstrap, Buffer.from(salt)]), phone),
    await history(HistorySyncType.PUSH_NAME, names, phone),
  ];
}

function keyShare({ id, data }: AppStateKey, { runtime }: PhoneContext): proto.IMessage {
  const fingerprint = { rawId: 1, currentIndex: 0, deviceIndexes: [0] };
  const keyData = { keyData: data, fingerprint, timestamp: runtime.clock.now() };
  return {
    protocolMessage: {
      type: proto.Message.ProtocolMessage.Type.APP_STATE_SYNC_KEY_SHARE,
      appStateSyncKeyShare: { keys: [{ keyId: { keyId: id }, keyData }] },
    },
  };
}

async function history(
  syncType: proto.HistorySync.HistorySyncType,
  encoded: Uint8Array,
  phone: PhoneContext,
): Promise<proto.IMessage> {
  const file = await sendFile(deflateSync(encoded), "history", phone);
  const { url: _, ...place } = file;
  return {
    protocolMessage: {
      type: proto.Message.ProtocolMessage.Type.HISTORY_SYNC_NOTIFICATION,
      historySyncNotification: { ...place, syncType: Number(syncType), chunkOrder: 1, progress: 100 },
    },
  };
}

/** Returns the first patch of the collection `critical_block`, with the owner's name. */
export async function namePatch({ id, data }: AppStateKey, { name, runtime }: PhoneContext): Promise<Uint8Array> {
  const { patch } = await encodeSyncdPatch(
    {
      type: "critical_block",
      index: ["setting_pushName"],
      syncAction: { timestamp: runtime.clock.now(), pushNameSetting: { name } },
      apiVersion: FORM,
      operation: proto.SyncdMutation.SyncdOperation.SET,
    },
    Buffer.from(id).toString("base64"),
    newLTHashState(),
    () => Promise.resolve({ keyData: data }),
  );
  return proto.SyncdPatch.encode(patch).finish();
}

/**
 * Returns a patch of the collection `regular_high` with the salt of the tokens for chats whose peer gave none. A
 * setting is identified by a keyed hash of its index.
 */
export function saltPatch(key: AppStateKey, salt: Uint8Array, random: Random): Uint8Array {
  const derived = hkdf(key.data, "", "WhatsApp Mutation Keys", 5 * KEY_BYTES);
  const [indexKey, valueKey, macKey] = [0, 1, 2].map((at) => derived.subarray(at * KEY_BYTES, (at + 1) * KEY_BYTES));
  const index = Buffer.from(JSON.stringify(["nct_salt_sync"]));
  // Field 80 of SyncActionValue, missing in the library's schema.
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
