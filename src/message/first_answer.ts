/** The first answer to a send that is repeated under its `Idempotency-Key`, whatever became of the message since. */
import type { Idempotency, RepeatableRequest } from "../account/idempotency.ts";
import type { QuotaLeft } from "../account/quota.ts";
import { messageKeys } from "./rows.ts";
import type { Kv } from "../store/kv.ts";
import type { Accepted } from "./accept.ts";
import { EMPTY_LEDGER, messageIds } from "./history/ledger.ts";
import type { Message } from "./message.ts";

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
export type FirstAnswer = (request: RepeatableRequest) => Promise<Accepted | null>;

export interface FirstAnswerDeps {
  kv: Kv;
  idempotency: Pick<Idempotency, "find">;
}

export function makeFirstAnswer(deps: FirstAnswerDeps): FirstAnswer {
  return (request) => readFirstAnswer(deps, request);
}

export async function readFirstAnswer(
  { kv, idempotency }: FirstAnswerDeps,
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
  return { bulkId, repeated: true, messages: messages.map(answerOf), remaining: kept.remaining };
}

/** The acknowledgement of a send says `queued` whatever became of the message since (spec). */
export function answerOf({ id, jobId, to }: Message): Accepted["messages"][number] {
  return { id, jobId, to, status: "queued" };
}
