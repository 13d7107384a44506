/** Sent messages, encoded and sealed, so that a receiver who could not decrypt one gets it again, after a restart too. */
import { proto } from "@whiskeysockets/baileys";
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
  return {
    /** Adds the message to the change. */
    keep(change: Change, networkId: string, message: proto.IMessage): void {
      const row = networkKeys.waSent(lineId, networkId);
      expireAfter(change, {
        row,
        lineId,
        kind: "sent",
        id: networkId,
        days: pollIn(message) ? POLL_KEPT_DAYS : KEPT_DAYS,
        now: runtime.clock.now(),
      }).set(row, seal.seal(proto.Message.encode(message).finish()));
    },
    async find(networkId: string): Promise<proto.IMessage | undefined> {
      const { value } = await kv.get(networkKeys.waSent(lineId, networkId));
      return value ? proto.Message.decode(seal.open(value)) : undefined;
    },
  };
}
