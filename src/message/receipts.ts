/**
 * Receipts: what the recipients' phones say about a message that left. Delivered once, read once, in a group per
 * participant; each reported as `message.status` in the commit that keeps it (promise 4).
 */
import type { EventLog } from "../event/log.ts";
import type { EventBody } from "../event/event.ts";
import { messageKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { Receipt } from "../whatsapp/connection.ts";
import type { Message } from "./message.ts";

/** The present name of a session, for its events; "" when it is gone. */
export type SessionName = (sessionId: string) => Promise<string>;

/** What a receipt says, apart from the message that it is about. */
type Said = Pick<Receipt, "status" | "participant" | "at">;

/** Whether a receipt has proved that the server has the message, although perhaps no ack came. */
export function isProved(message: Message): boolean {
  return message.deliveredAt !== null;
}

/**
 * Keeps what the receipt says. One that overtakes our own commit of `sent` is reported by that commit. "Delivered" after
 * "read", and what was said before, is dropped. In a group the message's own times are those of the first participant.
 * Resolves to true when the message still waits in the queue: the receipt proves that it need not go again.
 */
export async function keepReceipt(
  { kv, events, sessionName }: { kv: Kv; events: EventLog; sessionName: SessionName },
  lineId: string,
  receipt: Receipt,
): Promise<boolean> {
  const messageId = (await kv.get(messageKeys.messageOfNetworkId(lineId, receipt.networkId))).value;
  if (messageId === null) return false; // sent from the owner's phone
  const keyOf = (status: Receipt["status"]) => messageKeys.receipt(messageId, status, receipt.participant ?? "");
  const message = await retryOnConflict<Message | null>(kv, async () => {
    const change = new Change();
    const slot = await kv.get(messageKeys.message(messageId));
    const before = await kv.getMany([keyOf(receipt.status), keyOf("read")]);
    if (!slot.value || before.some((said) => said.value !== null)) return { change, result: null };
    // The network tells whole seconds, by its own clock: nothing is delivered before it is sent.
    const at = Math.max(receipt.at, slot.value.sentAt ?? slot.value.createdAt);
    const next: Message = {
      ...slot.value,
      deliveredAt: slot.value.deliveredAt ?? at,
      readAt: receipt.status === "read" ? slot.value.readAt ?? at : slot.value.readAt,
    };
    change.check(slot).checkAbsent(keyOf(receipt.status));
    change.set(messageKeys.message(messageId), next).set(keyOf(receipt.status), at);
    if (next.status === "sent" || next.status === "failed") {
      events.append(change, {
        accountId: next.accountId,
        sessionId: lineId,
        sessionName: await sessionName(lineId),
        ...statusBody(next, { ...receipt, at }),
      });
    }
    return { change, result: next };
  });
  if (message) events.committed(message.accountId);
  return message?.status === "queued";
}

/** The receipts that came while the message was not yet `sent`, oldest first. */
export async function earlyReceipts(kv: Kv, message: Message): Promise<Said[]> {
  const said: Said[] = [];
  if (!isProved(message)) return said;
  for await (const row of kv.list({ prefix: messageKeys.receiptsOf(message.id) })) {
    const [, , status, participant] = row.key as [string, string, Said["status"], string];
    said.push({ status, participant: participant || null, at: row.value });
  }
  return said.sort((a, b) => a.at - b.at || (a.status < b.status ? -1 : 1));
}

/** The event that reports it. */
export function statusBody(message: Message, { status, participant, at }: Said): EventBody {
  const { id: messageId, networkId } = message;
  return {
    event: "message.status",
    data: { messageId, networkId, status, participant, at: new Date(at).toISOString() },
  };
}
