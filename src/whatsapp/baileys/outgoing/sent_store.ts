/** Sent messages, encoded and sealed, so that retry receipts can be answered, also after a restart. */
import { jidNormalizedUser, proto, type SignalKeyStore, type WAMessageKey } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { pollIn } from "../incoming/content.ts";
import { keptNamesOf } from "../incoming/numbers.ts";
import { type LineRows, networkKeys } from "../rows.ts";
import type { Change } from "../../../store/kv.ts";
import { expireAfter, POLL_KEPT_DAYS } from "../expiry.ts";

/** A phone that was offline asks when it returns. The network keeps messages for it no longer than this. */
const KEPT_DAYS = 14;

interface Sent {
  /** JID of the chat; null if unknown. */
  chat: string | null;
  message: proto.IMessage;
}

export type SentStore = ReturnType<typeof makeSentStore>;

export function makeSentStore(
  { kv, seal, lineId, runtime }: LineRows & { runtime: Pick<Runtime, "clock"> },
) {
  return {
    /** Adds a message to the change. `chat` is the JID that it is sent to. */
    keep(change: Change, networkId: string, { chat, message }: { chat: string; message: proto.IMessage }): void {
      const row = networkKeys.waSent(lineId, networkId);
      expireAfter(change, {
        row,
        lineId,
        kind: "sent",
        id: networkId,
        days: pollIn(message) ? POLL_KEPT_DAYS : KEPT_DAYS,
        now: runtime.clock.now(),
      }).set(row, seal.seal(proto.Message.encode(inEnvelope(chat, message)).finish()));
    },

    async find(networkId: string): Promise<Sent | undefined> {
      const { value } = await kv.get(networkKeys.waSent(lineId, networkId));
      if (!value) return undefined;
      const kept = proto.Message.decode(seal.open(value));
      const { destinationJid: chat, message } = kept.deviceSentMessage ?? {};
      // Older gateways stored the message without an envelope.
      return { chat: chat ?? null, message: message ?? kept };
    },
  };
}

/** Wraps a message the way the network does for the account's other devices. */
function inEnvelope(chat: string, message: proto.IMessage): proto.IMessage {
  return { deviceSentMessage: { destinationJid: jidNormalizedUser(chat), message } };
}

/**
 * Finds the message that the line sent under this id, but only if it went to this chat. Everyone who received a message
 * knows its id, and could otherwise have it sent to any group that the line is in.
 */
export async function sentIn(
  { id, remoteJid }: Pick<WAMessageKey, "id" | "remoteJid">,
  { sent, keys }: { sent: Pick<SentStore, "find">; keys: SignalKeyStore },
): Promise<proto.IMessage | undefined> {
  if (!id || !remoteJid) return undefined;
  const found = await sent.find(id);
  return found?.chat && (await keptNamesOf(keys, remoteJid)).includes(found.chat) ? found.message : undefined;
}
