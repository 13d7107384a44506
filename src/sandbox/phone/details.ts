/** Reads the details of a message besides its text and file: locations, contact cards, polls, and references. */
import { proto } from "@whiskeysockets/baileys";
import type { MessageDetails } from "../world/inbox.ts";

type Message = proto.IMessage;

/** An edit or a deletion: the message that it changes, and the new content, or null for a deletion. */
export interface Amendment {
  target: proto.IMessageKey;
  edited: Message | null;
}

const { Type } = proto.Message.ProtocolMessage;

/** Returns the edit or deletion in a message; null if it is neither. */
export function amendmentOf({ protocolMessage }: Message): Amendment | null {
  const { type, key, editedMessage } = protocolMessage ?? {};
  if (!key?.id) return null;
  if (type === Type.REVOKE) return { target: key, edited: null };
  return type === Type.MESSAGE_EDIT && editedMessage ? { target: key, edited: editedMessage } : null;
}

/** Returns the details of `inner`, a message without its wrappers; `viewOnce`: one of them was "view once". */
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

/** Returns what a quotation of the message shows: its text, its caption, a location's name, or a poll's question. */
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
