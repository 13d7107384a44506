/** Reads what a message holds besides its text and file: places, contact cards, polls, and what it refers to. */
import { proto } from "@whiskeysockets/baileys";
import type { MessageDetails } from "../world/inbox.ts";

type Message = proto.IMessage;

/** What an edit or a deletion changes: the message that it names, and its new content; null when it is deleted. */
export interface Amendment {
  target: proto.IMessageKey;
  edited: Message | null;
}

const { Type } = proto.Message.ProtocolMessage;

/** Null for a message that changes no other. */
export function amendmentOf({ protocolMessage }: Message): Amendment | null {
  const { type, key, editedMessage } = protocolMessage ?? {};
  if (!key?.id) return null;
  if (type === Type.REVOKE) return { target: key, edited: null };
  return type === Type.MESSAGE_EDIT && editedMessage ? { target: key, edited: editedMessage } : null;
}

/** `inner` is the message without its envelopes; `viewOnce` says whether one of them was "view once". */
export function detailsOf(inner: Message, { viewOnce }: { viewOnce: boolean }): MessageDetails {
  const { locationMessage: place, reactionMessage: reaction, extendedTextMessage: text } = inner;
  const poll = inner.pollCreationMessage ?? inner.pollCreationMessageV2 ?? inner.pollCreationMessageV3;
  const cards = inner.contactMessage ? [inner.contactMessage] : inner.contactsArrayMessage?.contacts;
  const context = contextOf(inner);
  return {
    quoted: context?.stanzaId
      ? { id: context.stanzaId, text: context.quotedMessage ? textIn(context.quotedMessage) : null }
      : null,
    mentions: context?.mentionedJid ?? [],
    forwarded: context?.isForwarded ?? false,
    viewOnce,
    location: place
      ? {
        latitude: place.degreesLatitude ?? 0,
        longitude: place.degreesLongitude ?? 0,
        name: place.name || null,
        address: place.address || null,
      }
      : null,
    contacts: cards?.map(({ displayName, vcard }) => ({ name: displayName ?? "", vcard: vcard ?? "" })) ?? null,
    poll: poll
      ? {
        question: poll.name ?? "",
        options: (poll.options ?? []).map(({ optionName }) => optionName ?? ""),
        multiple: poll.selectableOptionsCount !== 1,
      }
      : null,
    reaction: reaction?.key?.id ? { id: reaction.key.id, emoji: reaction.text ?? "" } : null,
    linkPreview: text?.matchedText
      ? {
        url: text.matchedText,
        title: text.title || null,
        description: text.description || null,
        hasPicture: (text.jpegThumbnail?.length ?? 0) > 0,
      }
      : null,
    voice: inner.audioMessage?.ptt
      ? { seconds: inner.audioMessage.seconds ?? 0, waveform: [...inner.audioMessage.waveform ?? []] }
      : null,
  };
}

/** What a reader sees of a message first: its text, its caption, a place's name, a poll's question. */
function textIn(message: Message): string | null {
  const caption = message.imageMessage?.caption ?? message.videoMessage?.caption ?? message.documentMessage?.caption;
  const poll = message.pollCreationMessage ?? message.pollCreationMessageV3;
  return message.conversation || message.extendedTextMessage?.text || caption || message.locationMessage?.name ||
    message.contactMessage?.displayName || poll?.name || null;
}

function contextOf(message: Message): proto.IContextInfo | null {
  const parts: ({ contextInfo?: proto.IContextInfo | null } | null)[] = Object.values(message);
  return parts.find((part) => part?.contextInfo)?.contextInfo ?? null;
}
