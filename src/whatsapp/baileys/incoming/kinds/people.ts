/** The kinds that people's apps write: texts, files, places, contacts, polls, events, invitations, payments. */
import type { proto } from "@whiskeysockets/baileys";
import {
  amountOf,
  type Details,
  file,
  first,
  lines,
  placeOf,
  plain,
  present,
  type Said,
  targetOf,
  timeOf,
} from "./said.ts";
import { writtenJid } from "../../jids.ts";

export function text(m: proto.Message.IExtendedTextMessage): Said {
  const { text, matchedText, title, linkPreviewMetadata: more } = m;
  const linkDescription = lines([
    m.inviteLinkParentGroupSubjectV2,
    m.description,
    more?.videoContentCaption,
    ...[m.musicMetadata, more?.musicMetadata].flatMap((
      music,
    ) => [music?.title, music?.author, music?.artistAttribution]),
    ...[m.paymentLinkMetadata, more?.paymentLinkMetadata].map((payment) => payment?.button?.displayText),
    ...first(m.endCardTiles).flatMap(({ username, caption }) => [username, caption]),
  ]);
  return plain("extendedTextMessage", text, { link: matchedText, linkTitle: title, linkDescription });
}

export function audio(m: proto.Message.IAudioMessage): Said {
  return { ...file("audioMessage", "audio", m), details: present({ voice: m.ptt || null, seconds: m.seconds }) };
}

export function document(m: proto.Message.IDocumentMessage): Said {
  return {
    ...file("documentMessage", "document", m),
    details: present({ title: m.title, pageCount: m.pageCount }),
  };
}

/** A removed reaction arrives as an empty one. */
export function reaction({ key, text }: proto.Message.IReactionMessage): Said {
  return plain("reactionMessage", text, { target: targetOf(key), removed: text ? null : true });
}

export function location(m: proto.Message.ILocationMessage): Said {
  return plain("locationMessage", m.comment || m.name || m.address, placeOf(m));
}

export function liveLocation(m: proto.Message.ILiveLocationMessage): Said {
  const { degreesLatitude, degreesLongitude, caption, accuracyInMeters } = m;
  const place = { latitude: degreesLatitude, longitude: degreesLongitude, accuracyMeters: accuracyInMeters };
  return plain("liveLocationMessage", caption, place);
}

export function contact(m: proto.Message.IContactMessage): Said {
  return plain("contactMessage", m.displayName, { contacts: [cardOf(m)] });
}

export function contacts({ displayName, contacts }: proto.Message.IContactsArrayMessage): Said {
  return plain("contactsArrayMessage", displayName, { contacts: first(contacts).map(cardOf).toArray() });
}

const MOST_COLUMNS = 100;

/** Most numbers that are read of a contact card. */
const MOST_PHONES = 50;

function cardOf({ displayName, vcard }: proto.Message.IContactMessage): Details {
  return { name: displayName ?? null, vcard: vcard ?? null, phones: phonesOf(vcard ?? "") };
}

/** The numbers of a vCard in digits; the apps add the number's account as `waid`. */
function phonesOf(vcard: string): string[] {
  const phones = new Set<string>();
  for (const line of vcard.split(/\r?\n/)) {
    if (phones.size === MOST_PHONES || !/^(item\d+\.)?TEL[;:]/i.test(line)) continue;
    const [, account] = /;waid=(\d+)/i.exec(line) ?? [];
    const digits = account ?? line.slice(line.lastIndexOf(":") + 1).replaceAll(/\D/g, "");
    if (digits !== "") phones.add(digits);
  }
  return [...phones];
}

export function poll(
  { name, options, selectableOptionsCount, correctAnswer }: proto.Message.IPollCreationMessage,
): Said {
  const details = {
    options: first(options).map(({ optionName }) => optionName).toArray(),
    selectable: selectableOptionsCount || null,
    correct: correctAnswer?.optionName,
  };
  return plain("pollCreationMessage", name, details);
}

export function pollResult({ name, pollVotes }: proto.Message.IPollResultSnapshotMessage): Said {
  const votes = first(pollVotes).map(({ optionName, optionVoteCount }) =>
    present({ name: optionName, votes: Number(optionVoteCount ?? 0) })
  ).toArray();
  return plain("unknown", name, { votes });
}

export function event(m: proto.Message.IEventMessage): Said {
  const { name, description, startTime, endTime, joinLink, isCanceled, location } = m;
  const event = {
    name,
    description,
    startsAt: timeOf(startTime),
    endsAt: timeOf(endTime),
    location: location && present(placeOf(location)),
    link: joinLink,
    canceled: isCanceled || null,
  };
  return plain("unknown", name || description, { event: present(event) });
}

const RESPONSES: readonly (string | null)[] = [null, "going", "not_going", "maybe"];

export function eventResponse(
  { key, response, extraGuestCount }: proto.Message.IEventResponseMessage & { key: proto.IMessageKey },
): Said {
  const details = { target: targetOf(key), response: RESPONSES[response ?? 0], guests: extraGuestCount || null };
  return plain("unknown", null, details);
}

export function groupInvite(m: proto.Message.IGroupInviteMessage): Said {
  const { groupJid, inviteCode, groupName, inviteExpiration, caption } = m;
  const invite = {
    groupId: writtenJid(groupJid),
    code: inviteCode,
    name: groupName,
    expiresAt: timeOf(inviteExpiration),
  };
  return plain("unknown", caption || groupName, { invite: present(invite) });
}

export function channelInvite(m: proto.Message.INewsletterAdminInviteMessage): Said {
  const channel = present({
    id: writtenJid(m.newsletterJid),
    name: m.newsletterName,
    expiresAt: timeOf(m.inviteExpiration),
  });
  return plain("unknown", m.caption || m.newsletterName, { channel });
}

/** `noteOf` reads the message that goes with a payment. */
export function payment(noteOf: (note: proto.IMessage) => string | null) {
  return (m: proto.Message.ISendPaymentMessage & proto.Message.IRequestPaymentMessage): Said => {
    const { noteMessage, amount1000, amount, currencyCodeIso4217, requestFrom, expiryTimestamp, requestMessageKey } = m;
    const money = amount ? Number(amount.value ?? 0) / (amount.offset || 1) : amountOf(amount1000);
    const payment = {
      amount: money,
      currency: amount?.currencyCode || currencyCodeIso4217,
      from: writtenJid(requestFrom),
      expiresAt: timeOf(expiryTimestamp),
    };
    const target = targetOf(requestMessageKey);
    return plain("unknown", noteMessage ? noteOf(noteMessage) : null, { payment: present(payment), target });
  };
}

/** An answer to something that a key names, such as a question of a status post. */
export function answer({ key, text }: { key?: proto.IMessageKey | null; text?: string | null }): Said {
  return plain("unknown", text, { target: targetOf(key) });
}

const VIDEO: proto.Message.ScheduledCallCreationMessage.CallType = 2;

export function scheduledCall(m: proto.Message.IScheduledCallCreationMessage): Said {
  const { title, scheduledTimestampMs, callType } = m;
  const startsAt = timeOf(Number(scheduledTimestampMs ?? 0) / 1000);
  return plain("unknown", title, { call: present({ startsAt, video: callType === VIDEO || null }) });
}

export function stickerPack(
  { stickerPackId, name, publisher, packDescription, caption }: proto.Message.IStickerPackMessage,
): Said {
  const stickerPack = present({ id: stickerPackId, name, publisher, description: packDescription });
  return plain("unknown", caption || name || packDescription, { stickerPack });
}

/** What an assistant answers, part by part. */
export function richResponse({ submessages }: proto.IAIRichResponseMessage): Said {
  return plain("unknown", lines(first(submessages).flatMap(wordsOf)));
}

function wordsOf(part: proto.IAIRichResponseSubMessage): (string | null | undefined)[] {
  const { messageText, imageMetadata, codeMetadata, tableMetadata, latexMetadata, mapMetadata } = part;
  return [
    messageText,
    imageMetadata?.imageText,
    imageMetadata?.tapLinkUrl,
    first(codeMetadata?.codeBlocks).map(({ codeContent }) => codeContent ?? "").toArray().join(""),
    tableMetadata?.title,
    ...first(tableMetadata?.rows).map(({ items }) => first(items, MOST_COLUMNS).toArray().join(" | ")),
    latexMetadata?.text,
    ...first(mapMetadata?.annotations).flatMap(({ title, body }) => [title, body]),
    ...first(part.contentItemsMetadata?.itemsMetadata).map(({ reelItem }) => reelItem?.title),
  ];
}
