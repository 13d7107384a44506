/** Edits and deletions that come in: a stanza may name any message, whoever sent it. */
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

/** `ME`, or a JID with its digits where they are known. */
type Author = typeof ME | { jid: string; number: string | null };

/**
 * Whether the sender may change the message: its author, the line's owner, and an admin who deletes. Of a message that
 * the line does not know, nobody can say. Throws StoreError, SealError.
 */
export async function mayChange(
  deps: AuthorshipDeps,
  lineId: string,
  { incoming, change }: { incoming: Incoming; change: IncomingChange },
): Promise<boolean> {
  if (incoming.fromMe || change.kind === "vote" || (change.kind === "deleted" && change.byAdmin)) return true;
  const author = await authorOf(deps, lineId, { chat: incoming.chat, target: change.target });
  if (author === null) return true;
  if (author === ME) return false;
  const { chat, participant, number } = incoming;
  return author.jid === (participant ?? chat) || (number !== null && author.number === number);
}

/** Null for a message that is not known, or was reported as unreadable. */
async function authorOf(
  { kv, network }: AuthorshipDeps,
  lineId: string,
  { chat, target }: { chat: string; target: string },
): Promise<Author | null> {
  if ((await kv.get(messageKeys.messageOfNetworkId(lineId, target))).value !== null) return ME;
  const recalled = await network.recall(lineId, target);
  if (recalled) return recalled.fromMe ? ME : { jid: recalled.participant ?? recalled.chat, number: recalled.number };
  const { value: row } = await kv.get(lineKeys.seen(lineId, chat, target));
  if (row === null || (typeof row === "object" && "reportedAt" in row)) return null;
  const from = seenFrom(row) ?? chat;
  return from === ME ? ME : { jid: from, number: null };
}
