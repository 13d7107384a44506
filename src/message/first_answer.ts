/** The first answer to a send that is repeated under its `Idempotency-Key`, whatever became of the message since. */
import type { Idempotency, RepeatableRequest } from "../account/idempotency.ts";
import type { QuotaLeft } from "../account/quota.ts";
import { keys } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { Accepted } from "./accept.ts";
import { EMPTY_LEDGER, type Ledger, messageIds } from "./ledger.ts";
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
  return async (request) => {
    if (await deps.idempotency.find(request) === null) return null;
    // Read after the answer, so that the ledger knows its messages.
    const { value } = await deps.kv.get(keys.ledger(request.accountId));
    return await readFirstAnswer(deps, request, value ?? EMPTY_LEDGER);
  };
}

/** The same for one who has read the account's ledger. */
export async function readFirstAnswer(
  { kv, idempotency }: FirstAnswerDeps,
  request: RepeatableRequest,
  ledger: Ledger,
): Promise<Accepted | null> {
  const kept = await idempotency.find<KeptSend>(request);
  if (kept === null) return null;
  const numbers = Array.from({ length: kept.count }, (_, i) => kept.first + i);
  const ids = await messageIds(kv, { accountId: request.accountId, ledger }, numbers);
  const slots = await kv.getMany(ids.map((id) => keys.message(id)));
  const messages = slots.map((slot) => slot.value).filter((message) => message !== null);
  const bulkId = messages[0]?.bulkId ?? null;
  return { bulkId, repeated: true, messages: messages.map(answerOf), remaining: kept.remaining };
}

/** The acknowledgement of a send says `queued` whatever became of the message since (spec). */
export function answerOf({ id, jobId, to }: Message): Accepted["messages"][number] {
  return { id, jobId, to, status: "queued" };
}
