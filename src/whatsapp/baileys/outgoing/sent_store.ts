/** Sent messages, encoded and sealed, so that a receiver who could not decrypt one gets it again, after a restart too. */
import { jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { pollIn } from "../incoming/content.ts";
import { type LineRows, networkKeys } from "../rows.ts";
import type { Change } from "../../../store/kv.ts";
import { expireAfter, POLL_KEPT_DAYS } from "../expiry.ts";

/** A phone that was away asks when it comes back; the network keeps messages for it no longer than this. */
const KEPT_DAYS = 14;

export type SentStore = ReturnType<typeof makeSentStore>;

export function makeSentStore(
  { kv, seal, lineId, runtime }: LineRows & { runtime: Pick<Runtime, "clock"> },
) {
  async function whole(networkId: string): Promise<proto.IMessage | null> {
    const { value } = await kv.get(networkKeys.waSent(lineId, networkId));
    return value && proto.Message.decode(seal.open(value));
  }

  return {
    /** Adds the message that goes to the chat, a JID, to the change. */
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

    async find(networkId: string): Promise<proto.IMessage | undefined> {
      const kept = await whole(networkId);
      // Older gateways kept the message alone.
      return kept?.deviceSentMessage?.message ?? kept ?? undefined;
    },

    /**
     * The message if that chat, which may have several names, is where it went. Whoever has got one knows its id, and could
     * have it sent to a group that the line is in.
     */
    async findIn(names: readonly string[], networkId: string): Promise<proto.IMessage | undefined> {
      const { destinationJid, message } = (await whole(networkId))?.deviceSentMessage ?? {};
      return destinationJid && names.includes(destinationJid) ? message ?? undefined : undefined;
    },
  };
}

/** As the network puts what one device has sent for the account's others. */
function inEnvelope(chat: string, message: proto.IMessage): proto.IMessage {
  return { deviceSentMessage: { destinationJid: jidNormalizedUser(chat), message } };
}
