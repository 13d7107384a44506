/**
 * Polls and the votes on them. A vote is encrypted with a secret that is part of the poll. Received polls are stored
 * with the originals and sent ones with the sent messages, both for 90 days.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { decryptPollVote, isJidGroup, jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import { findReceived, findSent } from "../stored_messages.ts";
import type { LineRows } from "../rows.ts";
import { pollIn } from "./content.ts";

export interface Poll {
  /** JID of the chat; null if unknown. */
  chat: string | null;
  secret: Uint8Array;
  options: readonly string[];
  /** How many options one vote may choose; 0 for any number. */
  selectable: number;
  /** JIDs of the creator; empty for a poll that the line sent. */
  authors: readonly string[];
}

/** Finds a poll; null if it was never seen, or too long ago. Throws StoreError, SealError. */
export async function findPoll(line: LineRows, networkId: string): Promise<Poll | null> {
  // Sent messages take precedence, because senders choose the ids of received ones and could reuse such an id.
  const sent = await findSent(line, networkId);
  if (sent) return pollOf(sent.message, { chat: sent.chat, authors: [] });
  const received = await findReceived(line, networkId);
  if (!received) return null;
  const { chat, participant, number, fromMe } = received;
  const authors = fromMe ? [] : [participant ?? chat, ...(number ? [`${number}@s.whatsapp.net`] : [])];
  return pollOf(received.message, { chat, authors });
}

/** Returns what is needed to read votes on the message; null if it is not a poll, or came without its secret. */
function pollOf(message: proto.IMessage, made: Pick<Poll, "chat" | "authors">): Poll | null {
  const inner = message.ephemeralMessage?.message ?? message.pollCreationMessageV4?.message ?? message;
  const poll = pollIn(inner);
  const secret = (inner.messageContextInfo ?? message.messageContextInfo)?.messageSecret;
  if (!poll || !secret?.length) return null;
  const options = (poll.options ?? []).map(({ optionName }) => optionName ?? "");
  return { ...made, secret, options, selectable: poll.selectableOptionsCount ?? 0 };
}

/** Whether a vote from this chat may count. A member of a group could pass the secret of its poll to outsiders. */
export function isOfChat(poll: Pick<Poll, "chat">, chat: string): boolean {
  return poll.chat === null || poll.chat === chat || !(isJidGroup(poll.chat) || isJidGroup(chat));
}

/**
 * Returns the options that a vote chooses. Null if the vote can't be decrypted or chooses more options than allowed,
 * which only a forged app does. The key depends on the poll's creator and on the voter, each named by number or by LID
 * as the voter's app saw them, so all their possible addresses are tried.
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
        // Encrypted for other addresses: try the next.
      }
    }
  }
  return null;
}

function normalized(jids: readonly string[]): Set<string> {
  return new Set(jids.map((jid) => jidNormalizedUser(jid)).filter((jid) => jid !== ""));
}
