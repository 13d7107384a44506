/**
 * What a phone sends to a companion that it has just linked: the key of its chat settings, and the history in files.
 * The history lists only chats whose other side gave a token, without earlier messages.
 */
import { proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import type { ChatTokens } from "../world/uplink.ts";
import { sendFile } from "./attachment.ts";
import type { PhoneContext } from "./context.ts";

export interface AppStateKey {
  id: Uint8Array;
  data: Uint8Array;
}

const { HistorySyncType } = proto.HistorySync;
/** `nctSalt`, field 19 of HistorySync, which the library's schema does not have: its tag, length-delimited. */
const NCT_SALT_TAG = [0x9a, 0x01];

/** Throws AttachmentError. */
export async function composeWelcome(
  { key, chats }: { key: AppStateKey; chats: ChatTokens },
  phone: PhoneContext,
): Promise<proto.IMessage[]> {
  const conversations = chats.tokens.map(({ jid, lid, token, at }) => ({
    id: jid,
    lidJid: lid,
    tcToken: token,
    tcTokenTimestamp: Math.floor(at / 1000),
  }));
  const bootstrap = proto.HistorySync.encode({ syncType: HistorySyncType.INITIAL_BOOTSTRAP, conversations }).finish();
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
  { runtime, uplink }: PhoneContext,
): Promise<proto.IMessage> {
  const file = await sendFile(deflateSync(encoded), "history", { runtime, media: uplink.media });
  const { url: _, ...place } = file;
  return {
    protocolMessage: {
      type: proto.Message.ProtocolMessage.Type.HISTORY_SYNC_NOTIFICATION,
      historySyncNotification: { ...place, syncType: Number(syncType), chunkOrder: 1, progress: 100 },
    },
  };
}
