/** Authorization of incoming edits and deletions: a stanza may name any message, no matter who wrote that message. */
import { messageKeys } from "../message/rows.ts";
import type { Kv } from "../store/kv.ts";
import type { Incoming, IncomingChange } from "../whatsapp/incoming.ts";
import type { Network } from "../whatsapp/network.ts";
import { lineKeys } from "./rows.ts";
import { ME, seenFrom } from "./seen.ts";

interface AuthorshipDeps {
  kv: Kv;
  network: Pick<Network, "recall">;
}

interface Said {
  chat: string;
  /** `ME` for the line's owner, else the author's JID, with its digits if they are known. */
  author: typeof ME | { jid: string; number: string | null };
}

/**
 * Returns whether the sender may change the message. Its author and the line's owner may, and an admin may delete in
 * the group. Changes to a message that the line does not know are let through, because its author is unknown. Throws
 * StoreError, SealError.
 */
export async function mayChange(
  deps: AuthorshipDeps,
  lineId: string,
  { incoming, change }: { incoming: Incoming; change: IncomingChange },
): Promise<boolean> {
  if (incoming.fromMe || change.kind === "vote") return true;
  const { chat, participant, number } = incoming;
  const said = await find(deps, lineId, { chat, target: change.target });
  if (said === null) return true;
  if (change.kind === "deleted" && change.byAdmin && said.chat === chat) return true;
  if (said.author === ME) return false;
  return said.author.jid === (participant ?? chat) || (number !== null && said.author.number === number);
}

/** Finds the chat and author of a message. Null if the message is unknown or was only reported as undecryptable. */
async function find(
  { kv, network }: AuthorshipDeps,
  lineId: string,
  { chat, target }: { chat: string; target: string },
): Promise<Said | null> {
  const { value: messageId } = await kv.get(messageKeys.messageOfNetworkId(lineId, target));
  if (messageId !== null) {
    const { value: ours } = await kv.get(messageKeys.message(messageId));
    return { chat: ours?.to ?? chat, author: ME };
  }
  const recalled = await network.recall(lineId, target);
  const original = recalled && {
    chat: recalled.chat,
    author: recalled.fromMe ? ME : { jid: recalled.participant ?? recalled.chat, number: recalled.number },
  } as const;
  if (original?.chat === chat) return original;
  // Senders choose their message ids, so a recalled message of another chat may share this id. The seen row of this
  // chat tells who wrote the message here.
  const { value: row } = await kv.get(lineKeys.seen(lineId, chat, target));
  if (row === null || (typeof row === "object" && "reportedAt" in row)) return original;
  const from = seenFrom(row) ?? chat;
  return { chat, author: from === ME ? ME : { jid: from, number: null } };
}
