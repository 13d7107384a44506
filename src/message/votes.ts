/** Votes in polls that the API sent: each person's last choice, and the tally. */
import type { Change, Kv } from "../store/kv.ts";
import type { Message } from "./message.ts";
import { messageKeys } from "./rows.ts";

interface Vote {
  messageId: string;
  /** The voter's digits, if the network revealed them. */
  number: string | null;
  jid: string;
  /** Names of the chosen options; an empty list withdraws an earlier choice. */
  options: readonly string[];
}

/** Adds a vote to the change, replacing the person's last one. Votes of a chat arrive in order. */
export function keepVote(change: Change, { messageId, number, jid, options }: Vote): void {
  change.set(messageKeys.vote(messageId, number ?? jid), [...options]);
  // A choice made before the number was known is stored under the JID.
  if (number !== null && number !== jid) change.delete(messageKeys.vote(messageId, jid));
}

interface PollTally {
  /** Number of people with a current choice. */
  voters: number;
  /** In the order of the poll. */
  options: { name: string; votes: number }[];
}

/** Resolves to the tally of a poll; null for any other message. Throws StoreError. */
export type TallyOf = (message: Message) => Promise<PollTally | null>;

export function makeTallyOf(kv: Kv): TallyOf {
  return async ({ id, content }) => {
    if (content.kind !== "poll") return null;
    const votes = new Map(content.options.map((name) => [name, 0]));
    let voters = 0;
    for await (const { value } of kv.list({ prefix: messageKeys.votesOf(id) })) {
      if (value.length > 0) voters++;
      for (const name of value) votes.set(name, (votes.get(name) ?? 0) + 1);
    }
    return { voters, options: content.options.map((name) => ({ name, votes: votes.get(name)! })) };
  };
}
