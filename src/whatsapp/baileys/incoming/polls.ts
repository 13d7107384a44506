/**
 * Polls and the votes on them. A vote is encrypted with a secret that came with the poll, so each poll that comes in is
 * kept, sealed; one that the line sent is with the sent messages.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { decryptPollVote, jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { Change, type Kv } from "../../../store/kv.ts";
import type { Seal } from "../../../store/seal.ts";
import { expireAfter } from "../expiry.ts";
import type { SentStore } from "../outgoing/sent_store.ts";
import { networkKeys } from "../rows.ts";

/** Votes on an older poll arrive as what cannot be read. */
const KEPT_DAYS = 90;

interface Poll {
  secret: Uint8Array;
  options: readonly string[];
  /** JIDs of who made it; none for one that the line sent. */
  authors: readonly string[];
}

export interface Polls {
  /** Keeps a poll for the votes to come; of any other message nothing. Throws StoreError. */
  keep(networkId: string, message: proto.IMessage, authors: readonly string[]): Promise<void>;
  /** Null for one that was never seen, or too long ago. Throws StoreError. */
  find(networkId: string): Promise<Poll | null>;
}

interface PollsOptions {
  kv: Kv;
  seal: Seal;
  lineId: string;
  sent: Pick<SentStore, "find">;
  runtime: Pick<Runtime, "clock">;
}

export function makePolls({ kv, seal, lineId, sent, runtime }: PollsOptions): Polls {
  return {
    async keep(networkId, message, authors) {
      const poll = pollOf(message);
      if (!poll) return;
      const row = networkKeys.waPoll(lineId, networkId);
      const now = runtime.clock.now();
      const kept = JSON.stringify({ ...poll, authors, secret: Buffer.from(poll.secret).toString("base64") });
      await kv.commit(
        expireAfter(new Change(), { row, lineId, kind: "poll", id: networkId, days: KEPT_DAYS, now })
          .set(row, seal.seal(Buffer.from(kept))),
      );
    },

    async find(networkId) {
      const { value } = await kv.get(networkKeys.waPoll(lineId, networkId));
      if (!value) return pollOf(await sent.find(networkId) ?? {});
      const kept = JSON.parse(Buffer.from(seal.open(value)).toString());
      return { ...kept, secret: Buffer.from(kept.secret, "base64") };
    },
  };
}

/** What votes on the message need; null when it is no poll, or came without its secret. */
function pollOf(message: proto.IMessage): Poll | null {
  const inner = message.ephemeralMessage?.message ?? message.pollCreationMessageV4?.message ?? message;
  const poll = creationOf(inner);
  const secret = (inner.messageContextInfo ?? message.messageContextInfo)?.messageSecret;
  if (!poll || !secret?.length) return null;
  return { secret, options: (poll.options ?? []).map(({ optionName }) => optionName ?? ""), authors: [] };
}

function creationOf(m: proto.IMessage): proto.Message.IPollCreationMessage | null | undefined {
  return m.pollCreationMessage ?? m.pollCreationMessageV2 ?? m.pollCreationMessageV3 ?? m.pollCreationMessageV5;
}

/**
 * The options that a vote chooses; null when it cannot be read. Who made the poll and who votes is part of the key, each
 * by number or by LID as the voter's app saw them: the addresses that either may have are tried.
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
        return poll.options.filter((option) => chosen.has(createHash("sha256").update(option).digest("hex")));
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
