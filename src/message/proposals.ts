/** Messages that keys propose: who may change them, and the list of those that wait for approval. */
import type { Caller } from "../account/account.ts";
import { proposes, scopeMissing } from "../account/keys.ts";
import type { Kv } from "../store/kv.ts";
import { isProposed, type Message } from "./message.ts";
import { messagesOf } from "./history/ledger.ts";
import { messageKeys } from "./rows.ts";

/** Returns whether a caller may change or cancel the message. */
export type MayChange = (message: Message) => boolean;

export const MAY_CHANGE_ALL: MayChange = () => true;

/** A key that may only propose changes its own proposals, until they are approved; every other caller changes all. */
export function mayChangeOf(caller: Pick<Caller, "key">): MayChange {
  const { key } = caller;
  return proposes(caller) ? (message) => isProposed(message) && message.proposal?.keyId === key?.id : MAY_CHANGE_ALL;
}

/** Throws Problem scope_missing if the caller may not change the message. */
export function assertMayChange(may: MayChange, message: Message): void {
  if (!may(message)) throw scopeMissing("send");
}

/** Reads a page of what waits for approval on these lines, oldest first. */
export async function proposalsOf(
  kv: Kv,
  lineIds: readonly string[],
  { page, limit }: { page: number; limit: number },
): Promise<{ messages: Message[]; total: number }> {
  const ids: string[] = [];
  for (const lineId of lineIds) {
    for await (const { value } of kv.list({ prefix: messageKeys.proposalsOfLine(lineId) })) ids.push(value.messageId);
  }
  // Ids sort by time.
  const some = ids.sort().slice((page - 1) * limit, page * limit);
  return { messages: (await messagesOf(kv, some)).filter(isProposed), total: ids.length };
}
