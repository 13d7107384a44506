/** What a phone does to existing messages: voting, reacting, editing, deleting for everyone. */
import { jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import { invalid } from "../../errors.ts";
import { isGroup, isLid } from "../world/address.ts";
import type { PhoneContext } from "./context.ts";
import type { Received } from "./inbox.ts";
import { encryptVote } from "./poll.ts";

/** A message that changes an earlier one, with the `edit` attribute of its stanza. */
export interface ChangeMessage {
  message: proto.IMessage;
  edit: string;
}

/** Values of a stanza's `edit` attribute. */
const EDIT = "1";
const SENDER_REVOKE = "7";

/** A vote on a poll, in the form of address (number or LID) in which the poll came. Throws Problem validation_failed. */
export function composeVote(
  { item, stanza, content }: Received,
  options: readonly string[],
  { runtime, self }: PhoneContext,
): { to: string; message: proto.IMessage } {
  const { poll, secret } = content;
  if (!poll || !secret) throw invalid("id", "is no poll");
  const unknown = options.find((name) => !poll.options.includes(name));
  if (unknown !== undefined) throw invalid("options", `"${unknown}" is none of the poll's`);
  if (!poll.multiple && options.length > 1) throw invalid("options", "only one may be chosen");
  const creator = jidNormalizedUser(stanza.attrs.participant ?? stanza.attrs.from);
  const voter = isLid(creator) ? self.lid : self.jid;
  const vote = encryptVote({ pollId: item.id, secret, creator, voter, options }, runtime.random);
  const senderTimestampMs = runtime.clock.now();
  const key = keyOf({ item, stanza });
  return {
    to: key.remoteJid!,
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

/** The key by which the phone refers to a received message in its chat. */
function keyOf({ item, stanza }: Pick<Received, "item" | "stanza">): proto.IMessageKey {
  const { from, participant } = stanza.attrs;
  const remoteJid = isGroup(from) ? from : item.fromMe ? item.chat : jidNormalizedUser(from);
  const author = isGroup(from) ? jidNormalizedUser(participant) : undefined;
  return { remoteJid, fromMe: item.fromMe, id: item.id, participant: author };
}
