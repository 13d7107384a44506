/**
 * Polls and the votes on them. A vote is encrypted with a secret that came with the poll: one that came in is with the
 * originals, one that the line sent with the sent messages, both for 90 days.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { decryptPollVote, isJidGroup, jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import type { SentStore } from "../outgoing/sent_store.ts";
import type { LineRows } from "../rows.ts";
import { pollIn } from "./content.ts";
import { findReceived } from "./originals.ts";

interface Poll {
  /** A JID; null where it is not known. */
  chat: string | null;
  secret: Uint8Array;
  options: readonly string[];
  /** How many of them one vote may choose; 0 stands for any number. */
  selectable: number;
  /** JIDs of who made it; none for one that the line sent. */
  authors: readonly string[];
}

/** Null for one that was never seen, or too long ago. Throws StoreError, SealError. */
export type FindPoll = (networkId: string) => Promise<Poll | null>;

export function makeFindPoll(options: LineRows & { sent: Pick<SentStore, "find"> }): FindPoll {
  return async (networkId) => {
    // First what the line sent: others choose the ids of what they send.
    const sent = await options.sent.find(networkId);
    if (sent) return pollOf(sent.message, { chat: sent.chat, authors: [] });
    const received = await findReceived(options, networkId);
    if (!received) return null;
    const { chat, participant, number, fromMe } = received;
    const authors = fromMe ? [] : [participant ?? chat, ...(number ? [`${number}@s.whatsapp.net`] : [])];
    return pollOf(received.message, { chat, authors });
  };
}

/** What votes on the message need; null when it is no poll, or came without its secret. */
function pollOf(message: proto.IMessage, made: Pick<Poll, "chat" | "authors">): Poll | null {
  const inner = message.ephemeralMessage?.message ?? message.pollCreationMessageV4?.message ?? message;
  const poll = pollIn(inner);
  const secret = (inner.messageContextInfo ?? message.messageContextInfo)?.messageSecret;
  if (!poll || !secret?.length) return null;
  const options = (poll.options ?? []).map(({ optionName }) => optionName ?? "");
  return { ...made, secret, options, selectable: poll.selectableOptionsCount ?? 0 };
}

/** Whether a vote from this chat can be one in the poll: who is in a group could give its poll's secret to others. */
export function isOfChat(poll: Pick<Poll, "chat">, chat: string): boolean {
  return poll.chat === null || poll.chat === chat || !(isJidGroup(poll.chat) || isJidGroup(chat));
}

/**
 * The options that a vote chooses; null when it cannot be read, or chooses more than the poll allows: only a forged app
 * makes one. Who made the poll and who votes is part of the key, each by number or by LID as the voter's app saw them: the
 * addresses that either may have are tried.
 */
export function readVote(
  vote: proto.Message.IPollEncValue,
  poll: Poll,
  { pollId, creators, voters }: { pollId: string; creators: readonly string[]; voters: readonly string[] },
): string[] | null {
  for (const pollCreatorJid of normalized(creators)) {
    for (const voterJid of normalized(voters)) {
      const key = { pollMsgId: pollId, pollEncKey: poll.secret, pollCreatorJid, voterJid };
      try {
        const { selectedOptions } = decryptPollVote(vote, key);
        const chosen = new Set((selectedOptions ?? []).map((digest) => Buffer.from(digest).toString("hex")));
        const options = poll.options.filter((option) => chosen.has(createHash("sha256").update(option).digest("hex")));
        return poll.selectable > 0 && new Set(options).size > poll.selectable ? null : options;
      } catch {
        // Encrypted for other addresses.
      }
    }
  }
  return null;
}

function normalized(jids: readonly string[]): Set<string> {
  return new Set(jids.map((jid) => jidNormalizedUser(jid)).filter((jid) => jid !== ""));
}
