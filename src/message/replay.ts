/** Idempotent replay: a send that is repeated under its `Idempotency-Key` gets the answer that it got first. */
import type { Idempotency, RepeatableRequest } from "../account/idempotency.ts";
import type { QuotaLeft } from "../account/quota.ts";
import type { Kv } from "../store/kv.ts";
import { EMPTY_LEDGER, messageIds } from "./history/ledger.ts";
import { messageKeys } from "./rows.ts";
import { type Accepted, acknowledge } from "./send.ts";

/** What is kept under the key: which messages were the answer, by history number. */
export interface KeptSend {
  first: number;
  count: number;
  remaining: QuotaLeft;
}

/**
 * Null when the send is not a repetition. Asked before anything else of a send is looked at: its session may be gone by
 * now. Throws Problem idempotency_key_reused.
 */
export async function findReplay(
  { kv, idempotency }: { kv: Kv; idempotency: Pick<Idempotency, "find"> },
  request: RepeatableRequest,
): Promise<Accepted | null> {
  const kept = await idempotency.find<KeptSend>(request);
  if (kept === null) return null;
  // Read after the answer was found, so that it knows the answer's messages.
  const { value: ledger } = await kv.get(messageKeys.ledger(request.accountId));
  const numbers = Array.from({ length: kept.count }, (_, i) => kept.first + i);
  const ids = await messageIds(kv, { accountId: request.accountId, ledger: ledger ?? EMPTY_LEDGER }, numbers);
  const slots = await kv.getMany(ids.map((id) => messageKeys.message(id)));
  const messages = slots.map((slot) => slot.value).filter((message) => message !== null);
  const bulkId = messages[0]?.bulkId ?? null;
  return { bulkId, replayed: true, messages: messages.map(acknowledge), remaining: kept.remaining };
}
