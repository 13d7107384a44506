/**
 * How each kind of message is read: a row for every field of the protobuf, so that none is lost in silence when the
 * library learns a new one.
 */
import type { proto } from "@whiskeysockets/baileys";
import * as companies from "./companies.ts";
import * as people from "./people.ts";
import { file, plain, type Said, targetOf } from "./said.ts";

/** A message whose sealed parts are opened (`message_secret.ts`). */
export interface Message extends proto.IMessage {
  eventResponse?: EventResponse | null;
}

interface EventResponse extends proto.Message.IEventResponseMessage {
  key: proto.IMessageKey;
}

export type Field = keyof Message;

/** What an envelope says about the message inside. */
export interface Notes {
  disappearing?: true;
  viewOnce?: true;
}

type Row<Body> =
  /** Content for people. */
  | { read(body: Body): Said }
  /** Another message is inside. */
  | { envelope: Notes }
  /** Nothing for people by itself: keys, settings, additions to other messages. */
  | { silent: true };

const SILENT = { silent: true } as const;
const ENVELOPE = { envelope: {} } as const;
const VIEW_ONCE = { envelope: { viewOnce: true } } as const;

/** Reads the text of a message within another. */
type TextOf = (message: Message) => string | null;

/** Returns the rows. `textOf` reads messages that are part of others. */
export function rowsOf(textOf: TextOf) {
  const read = <Body>(read: (body: Body) => Said) => ({ read });
  const ofSeveral = read(people.poll);
  return {
    conversation: read((text: string) => plain("conversation", text)),
    extendedTextMessage: read(people.text),
    imageMessage: read((m: proto.Message.IImageMessage) => file("imageMessage", "image", m)),
    videoMessage: read((m: proto.Message.IVideoMessage) => file("videoMessage", "video", m)),
    ptvMessage: read((m: proto.Message.IVideoMessage) => file("videoMessage", "video", m)),
    audioMessage: read(people.audio),
    documentMessage: read(people.document),
    stickerMessage: read((m: proto.Message.IStickerMessage) => file("stickerMessage", "sticker", m)),
    reactionMessage: read(people.reaction),
    locationMessage: read(people.location),
    liveLocationMessage: read(people.liveLocation),
    contactMessage: read(people.contact),
    contactsArrayMessage: read(people.contacts),
    pollCreationMessage: ofSeveral,
    pollCreationMessageV2: ofSeveral,
    pollCreationMessageV3: ofSeveral,
    pollCreationMessageV5: ofSeveral,
    pollResultSnapshotMessage: read(people.pollResult),
    pollResultSnapshotMessageV3: read(people.pollResult),
    eventMessage: read(people.event),
    eventResponse: read(people.eventResponse),
    groupInviteMessage: read(people.groupInvite),
    newsletterAdminInviteMessage: read(people.channelInvite),
    newsletterFollowerInviteMessageV2: read(people.channelInvite),
    sendPaymentMessage: read(people.payment(textOf)),
    requestPaymentMessage: read(people.payment(textOf)),
    declinePaymentRequestMessage: read(people.answer),
    cancelPaymentRequestMessage: read(people.answer),
    paymentInviteMessage: read(() => plain("unknown", null)),
    scheduledCallCreationMessage: read(people.scheduledCall),
    scheduledCallEditMessage: read(people.answer),
    stickerPackMessage: read(people.stickerPack),
    commentMessage: read((m: proto.Message.ICommentMessage) =>
      plain("unknown", m.message && textOf(m.message), { target: targetOf(m.targetMessageKey) })
    ),
    requestPhoneNumberMessage: read(() => plain("unknown", null)),
    // In place of what is shown on the phone only.
    placeholderMessage: read(() => plain("unknown", null)),
    statusQuestionAnswerMessage: read(people.answer),
    questionResponseMessage: read(people.answer),
    statusQuotedMessage: read((m: proto.Message.IStatusQuotedMessage) =>
      people.answer({ key: m.originalStatusId, text: m.text })
    ),
    statusStickerInteractionMessage: read(people.answer),
    bcallMessage: read((m: proto.Message.IBCallMessage) => plain("unknown", m.caption)),
    richResponseMessage: read(people.richResponse),

    templateMessage: read(companies.template),
    highlyStructuredMessage: read(companies.structured),
    interactiveMessage: read(companies.interactive),
    buttonsMessage: read(companies.buttons),
    listMessage: read(companies.list),
    orderMessage: read(companies.order),
    productMessage: read(companies.product),
    invoiceMessage: read(companies.invoice),
    buttonsResponseMessage: read(companies.buttonsResponse),
    listResponseMessage: read(companies.listResponse),
    templateButtonReplyMessage: read(companies.templateButtonReply),
    interactiveResponseMessage: read(companies.interactiveResponse),

    deviceSentMessage: ENVELOPE,
    ephemeralMessage: { envelope: { disappearing: true } },
    viewOnceMessage: VIEW_ONCE,
    viewOnceMessageV2: VIEW_ONCE,
    viewOnceMessageV2Extension: VIEW_ONCE,
    documentWithCaptionMessage: ENVELOPE,
    editedMessage: ENVELOPE,
    associatedChildMessage: ENVELOPE,
    groupMentionedMessage: ENVELOPE,
    botInvokeMessage: ENVELOPE,
    botTaskMessage: ENVELOPE,
    botForwardedMessage: ENVELOPE,
    lottieStickerMessage: ENVELOPE,
    eventCoverImage: ENVELOPE,
    statusMentionMessage: ENVELOPE,
    groupStatusMentionMessage: ENVELOPE,
    groupStatusMessage: ENVELOPE,
    groupStatusMessageV2: ENVELOPE,
    statusAddYours: ENVELOPE,
    pollCreationMessageV4: ENVELOPE,
    pollCreationOptionImageMessage: ENVELOPE,
    questionMessage: ENVELOPE,
    questionReplyMessage: ENVELOPE,
    limitSharingMessage: ENVELOPE,

    // What changes or adds to another message is read where that message is known (`decode.ts`).
    protocolMessage: SILENT,
    pollUpdateMessage: SILENT,
    secretEncryptedMessage: SILENT,
    encReactionMessage: SILENT,
    encCommentMessage: SILENT,
    encEventResponseMessage: SILENT,
    pinInChatMessage: SILENT,
    keepInChatMessage: SILENT,
    // Frames and traces of what arrives by itself.
    albumMessage: SILENT,
    callLogMesssage: SILENT,
    statusNotificationMessage: SILENT,
    messageHistoryBundle: SILENT,
    messageHistoryNotice: SILENT,

    call: SILENT,
    chat: SILENT,
    stickerSyncRmrMessage: SILENT,
    senderKeyDistributionMessage: SILENT,
    fastRatchetKeySenderKeyDistributionMessage: SILENT,
    messageContextInfo: SILENT,
  } satisfies { [Name in Field]-?: Row<NonNullable<Message[Name]>> };
}
