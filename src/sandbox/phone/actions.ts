/** Composes a phone's actions on existing messages: voting, reacting, editing, deleting for everyone. */
import { Buffer } from "node:buffer";
import { createCipheriv, createHash } from "node:crypto";
import { jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import { invalid } from "../../errors.ts";
import type { Random } from "../../runtime.ts";
import { isGroup, isLid } from "../world/address.ts";
import type { PhoneContext } from "./context.ts";
import type { Received } from "./inbox.ts";
import { hkdf } from "./keys.ts";

/** A message that changes an earlier one, with the `edit` attribute of its stanza. */
export interface ChangeMessage {
  message: proto.IMessage;
  edit: string;
}

/** Values of the stanza's `edit` attribute. */
const EDIT = "1";
const SENDER_REVOKE = "7";

/**
 * Composes a vote on a poll. The voter's address has the form (number or LID) in which the poll arrived, or is the LID
 * if the voter hides the number. Throws Problem validation_failed.
 */
export function composeVote(
  { item, stanza, content }: Received,
  { options, hidesNumberIn }: { options: readonly string[]; hidesNumberIn: (chat: string) => boolean },
  { runtime, self }: PhoneContext,
): { to: string; message: proto.IMessage; hideNumber: boolean } {
  const { poll, secret } = content;
  if (!poll || !secret) throw invalid("id", "is no poll");
  const unknown = options.find((name) => !poll.options.includes(name));
  if (unknown !== undefined) throw invalid("options", `"${unknown}" is none of the poll's`);
  if (!poll.multiple && options.length > 1) throw invalid("options", "only one may be chosen");
  const creator = jidNormalizedUser(stanza.attrs.participant ?? stanza.attrs.from);
  const key = keyOf({ item, stanza });
  const hideNumber = hidesNumberIn(key.remoteJid!);
  const voter = hideNumber || isLid(creator) ? self.lid : self.jid;
  const vote = encryptVote({ pollId: item.id, secret, creator, voter, options }, runtime.random);
  const senderTimestampMs = runtime.clock.now();
  return {
    to: key.remoteJid!,
    hideNumber,
    message: { pollUpdateMessage: { pollCreationMessageKey: key, vote, senderTimestampMs } },
  };
}

export function composeReaction(
  received: Received,
  text: string,
  { runtime }: PhoneContext,
): { to: string; message: proto.IMessage } {
  const key = keyOf(received);
  const senderTimestampMs = runtime.clock.now();
  return { to: key.remoteJid!, message: { reactionMessage: { key, text, senderTimestampMs } } };
}

export function composeEdit(key: proto.IMessageKey, text: string, { runtime }: PhoneContext): ChangeMessage {
  const protocolMessage = {
    key,
    type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
    editedMessage: { conversation: text },
    timestampMs: runtime.clock.now(),
  };
  return { message: { editedMessage: { message: { protocolMessage } } }, edit: EDIT };
}

export function composeRevocation(key: proto.IMessageKey): ChangeMessage {
  const protocolMessage = { key, type: proto.Message.ProtocolMessage.Type.REVOKE };
  return { message: { protocolMessage }, edit: SENDER_REVOKE };
}

/** Returns the key by which the phone refers to a received message in its chat. */
function keyOf({ item, stanza }: Pick<Received, "item" | "stanza">): proto.IMessageKey {
  const { from, participant } = stanza.attrs;
  const remoteJid = isGroup(from) ? from : item.fromMe ? item.chat : jidNormalizedUser(from);
  const author = isGroup(from) ? jidNormalizedUser(participant) : undefined;
  return { remoteJid, fromMe: item.fromMe, id: item.id, participant: author };
}

interface Ballot {
  pollId: string;
  /** 32 bytes. */
  secret: Uint8Array;
  /** Jids without device, in the form that the poll's chat uses. */
  creator: string;
  voter: string;
  /** Names of the chosen options. */
  options: readonly string[];
}

/**
 * Encrypts a vote, in the form of `pollUpdateMessage.vote`, with the poll's secret, so that only those who received the
 * poll can read it.
 */
export function encryptVote(
  { pollId, secret, creator, voter, options }: Ballot,
  random: Random,
): proto.Message.IPollEncValue {
  const selectedOptions = options.map((name) => createHash("sha256").update(name).digest());
  const vote = proto.Message.PollVoteMessage.encode({ selectedOptions }).finish();
  const key = hkdf(secret, "", `${pollId}${creator}${voter}Poll Vote`);
  const encIv = random.bytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, encIv).setAAD(Buffer.from(`${pollId}\0${voter}`));
  return { encPayload: Buffer.concat([cipher.update(vote), cipher.final(), cipher.getAuthTag()]), encIv };
}
