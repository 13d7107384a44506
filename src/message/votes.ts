/** Votes on polls that the API sent: what each person chose last, and what that adds up to. */
import type { Change, Kv } from "../store/kv.ts";
import type { Message } from "./message.ts";
import { messageKeys } from "./rows.ts";

interface Vote {
  messageId: string;
  /** Digits where the network revealed them, and the JID that voted. */
  number: string | null;
  jid: string;
  /** Names of the options; none takes an earlier choice back. */
  options: readonly string[];
}

/** Adds a vote to the change, in place of that person's last one: those of a chat come in their order. */
export function keepVote(change: Change, { messageId, number, jid, options }: Vote): void {
  change.set(messageKeys.vote(messageId, number ?? jid), [...options]);
  // Under it stands what was chosen before the number was known.
  if (number !== null && number !== jid) change.delete(messageKeys.vote(messageId, jid));
}

interface PollTally {
  /** How many people have chosen anything. */
  voters: number;
  /** In the order of the poll. */
  options: { name: string; votes: number }[];
}

/** Null for a message that is no poll. Throws StoreError. */
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
