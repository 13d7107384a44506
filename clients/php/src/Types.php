<?php

declare(strict_types=1);

namespace Paloma;

/**
 * Types of bodies, answers and events, to be imported with `@phpstan-import-type`. Generated from the OpenAPI document by
 * `deno task clients`; do not edit.
 *
 * @phpstan-type MessageSentEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.sent',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageSentEventData,
 * }
 * @phpstan-type MessageStatusEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.status',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageStatusEventData,
 * }
 * @phpstan-type MessageFailedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.failed',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageFailedEventData,
 * }
 * @phpstan-type MessageProposedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.proposed',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageProposedEventData,
 * }
 * @phpstan-type MessageReceivedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.received',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageReceivedEventData,
 * }
 * @phpstan-type ReceivedFile array{
 *   url: string|null,
 *   mimetype: string,
 *   size: int,
 *   filename: string,
 *   reason?: string,
 * }
 * @phpstan-type QuotedMessage array{
 *   messageId: string,
 *   fromMe: bool,
 *   participant: string|null,
 *   text: string|null,
 *   status?: bool,
 * }
 * @phpstan-type MessageDetails CompanyMessageDetails|OrderDetails|ProductDetails|AnswerDetails|InvoiceDetails|PaymentDetails|EventDetails|EventResponseDetails|GroupInviteDetails|ChannelInviteDetails|AboutDetails|StickerPackDetails|PollResultDetails|ScheduledCallDetails|TextDetails|FileDetails|AudioDetails|DocumentDetails|ReactionDetails|LocationDetails|LiveLocationDetails|ContactsDetails|PollDetails|ChosenDetails|OtherDetails
 * @phpstan-type CompanyMessageDetails array{
 *   kind: 'templateMessage'|'interactiveMessage'|'buttonsMessage'|'listMessage'|'highlyStructuredMessage',
 *   header?: string,
 *   footer?: string,
 *   buttons?: list<ReceivedButton>,
 *   button?: string,
 *   order?: ReceivedOrder,
 *   offer?: ReceivedOffer,
 *   location?: ReceivedPlace,
 *   products?: list<ListedProduct>,
 *   product?: ReceivedProduct,
 *   catalog?: ReceivedCatalog,
 *   template?: string,
 *   shop?: string,
 *   collection?: string,
 *   cards?: list<ReceivedCard>,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ReceivedButton array{
 *   id?: string,
 *   text?: string,
 *   url?: string,
 *   phone?: string,
 *   copy?: string,
 *   description?: string,
 *   section?: string,
 * }
 * @phpstan-type ReceivedOrder array{
 *   id?: string,
 *   token?: string,
 *   itemCount?: int,
 *   total?: float,
 *   currency?: string,
 *   title?: string,
 *   seller?: string,
 * }
 * @phpstan-type ReceivedOffer array{
 *   text?: string,
 *   url?: string,
 *   copy?: string,
 * }
 * @phpstan-type ReceivedPlace array{
 *   latitude?: float,
 *   longitude?: float,
 *   name?: string,
 *   address?: string,
 *   url?: string,
 *   comment?: string,
 * }
 * @phpstan-type ListedProduct array{
 *   id?: string,
 *   section?: string,
 * }
 * @phpstan-type ReceivedProduct array{
 *   id?: string,
 *   retailerId?: string,
 *   title?: string,
 *   description?: string,
 *   price?: float,
 *   currency?: string,
 *   url?: string,
 *   seller?: string,
 * }
 * @phpstan-type ReceivedCatalog array{
 *   title?: string,
 *   description?: string,
 * }
 * @phpstan-type ReceivedCard array{
 *   text?: string,
 *   kind?: string,
 *   header?: string,
 *   footer?: string,
 *   buttons?: list<ReceivedButton>,
 *   button?: string,
 *   order?: ReceivedOrder,
 *   offer?: ReceivedOffer,
 *   location?: ReceivedPlace,
 *   products?: list<ListedProduct>,
 *   product?: ReceivedProduct,
 *   catalog?: ReceivedCatalog,
 *   template?: string,
 *   shop?: string,
 *   collection?: string,
 * }
 * @phpstan-type ForwardedFrom array{
 *   id?: string,
 *   name?: string,
 * }
 * @phpstan-type MessagePreview array{
 *   title?: string,
 *   text?: string,
 * }
 * @phpstan-type MessageAction array{
 *   text?: string,
 *   url?: string,
 * }
 * @phpstan-type MentionedGroup array{
 *   id?: string,
 *   name?: string,
 * }
 * @phpstan-type OrderDetails array{
 *   kind: 'orderMessage',
 *   order?: ReceivedOrder,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ProductDetails array{
 *   kind: 'productMessage',
 *   product?: ReceivedProduct,
 *   catalog?: ReceivedCatalog,
 *   footer?: string,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type AnswerDetails array{
 *   kind: 'interactiveResponseMessage'|'templateButtonReplyMessage',
 *   selectedId?: string,
 *   flow?: string,
 *   form?: array<string, mixed>,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type InvoiceDetails array{
 *   kind: 'invoiceMessage',
 *   invoice?: ReceivedInvoice,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ReceivedInvoice array{
 *   token?: string,
 * }
 * @phpstan-type PaymentDetails array{
 *   kind: 'sendPaymentMessage'|'requestPaymentMessage',
 *   payment?: ReceivedPayment,
 *   target?: MessageTarget,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ReceivedPayment array{
 *   amount?: float,
 *   currency?: string,
 *   from?: string,
 *   expiresAt?: string,
 * }
 * @phpstan-type MessageTarget array{
 *   messageId: string,
 *   fromMe: bool,
 *   participant?: string,
 * }
 * @phpstan-type EventDetails array{
 *   kind: 'eventMessage',
 *   event?: ReceivedEvent,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ReceivedEvent array{
 *   name?: string,
 *   description?: string,
 *   startsAt?: string,
 *   endsAt?: string,
 *   location?: ReceivedPlace,
 *   link?: string,
 *   canceled?: bool,
 * }
 * @phpstan-type EventResponseDetails array{
 *   kind: 'eventResponse',
 *   target?: MessageTarget,
 *   response?: 'going'|'not_going'|'maybe',
 *   guests?: int,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type GroupInviteDetails array{
 *   kind: 'groupInviteMessage',
 *   invite?: GroupInvitation,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type GroupInvitation array{
 *   groupId?: string,
 *   code?: string,
 *   name?: string,
 *   expiresAt?: string,
 * }
 * @phpstan-type ChannelInviteDetails array{
 *   kind: 'newsletterAdminInviteMessage'|'newsletterFollowerInviteMessageV2',
 *   channel?: ChannelInvitation,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ChannelInvitation array{
 *   id?: string,
 *   name?: string,
 *   expiresAt?: string,
 * }
 * @phpstan-type AboutDetails array{
 *   kind: 'commentMessage'|'declinePaymentRequestMessage'|'cancelPaymentRequestMessage'|'scheduledCallEditMessage'|'questionResponseMessage'|'statusQuestionAnswerMessage'|'statusQuotedMessage'|'statusStickerInteractionMessage',
 *   target?: MessageTarget,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type StickerPackDetails array{
 *   kind: 'stickerPackMessage',
 *   stickerPack?: StickerPack,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type StickerPack array{
 *   id?: string,
 *   name?: string,
 *   publisher?: string,
 *   description?: string,
 * }
 * @phpstan-type PollResultDetails array{
 *   kind: 'pollResultSnapshotMessage'|'pollResultSnapshotMessageV3',
 *   votes?: list<PollVotes>,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type PollVotes array{
 *   name?: string,
 *   votes: int,
 * }
 * @phpstan-type ScheduledCallDetails array{
 *   kind: 'scheduledCallCreationMessage',
 *   call?: ScheduledCall,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ScheduledCall array{
 *   startsAt?: string,
 *   video?: bool,
 * }
 * @phpstan-type TextDetails array{
 *   link?: string,
 *   linkTitle?: string,
 *   linkDescription?: string,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type FileDetails array{
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type AudioDetails array{
 *   voice?: bool,
 *   seconds?: int,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type DocumentDetails array{
 *   title?: string,
 *   pageCount?: int,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ReactionDetails array{
 *   target?: MessageTarget,
 *   removed?: bool,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type LocationDetails array{
 *   latitude?: float,
 *   longitude?: float,
 *   name?: string,
 *   address?: string,
 *   url?: string,
 *   comment?: string,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type LiveLocationDetails array{
 *   latitude?: float,
 *   longitude?: float,
 *   accuracyMeters?: int,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ContactsDetails array{
 *   contacts?: list<ReceivedContact>,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ReceivedContact array{
 *   name: string|null,
 *   vcard?: string|null,
 *   phones: list<string>,
 *   organization?: string|null,
 * }
 * @phpstan-type PollDetails array{
 *   options?: list<string>,
 *   selectable?: int|null,
 *   correct?: string,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type ChosenDetails array{
 *   selectedId?: string,
 *   description?: string,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type OtherDetails array{
 *   kind?: string,
 *   withheld?: 'view_once'|'hosted'|'bot',
 *   undecryptable?: bool,
 *   disappearing?: mixed,
 *   album?: string,
 *   forwardedFrom?: ForwardedFrom,
 *   preview?: MessagePreview,
 *   action?: MessageAction,
 *   groups?: list<MentionedGroup>,
 *   memberLabel?: string,
 * }
 * @phpstan-type SessionConnectedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'session.connected',
 *   sessionId: string,
 *   sessionName: string,
 *   data: SessionConnectedEventData,
 * }
 * @phpstan-type SessionDisconnectedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'session.disconnected',
 *   sessionId: string,
 *   sessionName: string,
 *   data: SessionDisconnectedEventData,
 * }
 * @phpstan-type SessionQrEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'session.qr',
 *   sessionId: string,
 *   sessionName: string,
 *   data: SessionQrEventData,
 * }
 * @phpstan-type SessionPasskeyEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'session.passkey',
 *   sessionId: string,
 *   sessionName: string,
 *   data: SessionPasskeyEventData,
 * }
 * @phpstan-type SessionRestrictedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'session.restricted',
 *   sessionId: string,
 *   sessionName: string,
 *   data: SessionRestrictedEventData,
 * }
 * @phpstan-type SessionDegradedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'session.degraded',
 *   sessionId: string,
 *   sessionName: string,
 *   data: SessionDegradedEventData,
 * }
 * @phpstan-type MessageEchoEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.echo',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageEchoEventData,
 * }
 * @phpstan-type MessageEditedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.edited',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageEditedEventData,
 * }
 * @phpstan-type MessageDeletedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'message.deleted',
 *   sessionId: string,
 *   sessionName: string,
 *   data: MessageDeletedEventData,
 * }
 * @phpstan-type PollVoteEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'poll.vote',
 *   sessionId: string,
 *   sessionName: string,
 *   data: PollVoteEventData,
 * }
 * @phpstan-type ChoiceMadeEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'choice.made',
 *   sessionId: string,
 *   sessionName: string,
 *   data: ChoiceMadeEventData,
 * }
 * @phpstan-type VerificationPassedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'verification.passed',
 *   sessionId: string,
 *   sessionName: string,
 *   data: VerificationPassedEventData,
 * }
 * @phpstan-type VerificationFailedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'verification.failed',
 *   sessionId: string,
 *   sessionName: string,
 *   data: VerificationFailedEventData,
 * }
 * @phpstan-type BulkFinishedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'bulk.finished',
 *   sessionId: string,
 *   sessionName: string,
 *   data: BulkFinishedEventData,
 * }
 * @phpstan-type RecipientOptedOutEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'recipient.opted_out',
 *   sessionId: string,
 *   sessionName: string,
 *   data: RecipientOptedOutEventData,
 * }
 * @phpstan-type CallReceivedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'call.received',
 *   sessionId: string,
 *   sessionName: string,
 *   data: CallReceivedEventData,
 * }
 * @phpstan-type PresenceUpdatedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'presence.updated',
 *   sessionId: string,
 *   sessionName: string,
 *   data: PresenceUpdatedEventData,
 * }
 * @phpstan-type GroupUpdatedEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'group.updated',
 *   sessionId: string,
 *   sessionName: string,
 *   data: GroupUpdatedEventData,
 * }
 * @phpstan-type ChangedGroup array{
 *   id: string,
 *   name?: string,
 *   description?: string,
 *   size?: int,
 *   isAdmin?: bool,
 *   createdAt?: string,
 *   announce?: bool,
 *   locked?: bool,
 *   ephemeral?: int,
 *   community?: ChangedGroupCommunity,
 * }
 * @phpstan-type ChangedGroupCommunity array{
 *   id: string,
 *   isAnnouncement: bool,
 * }
 * @phpstan-type GroupParticipantsEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'group.participants',
 *   sessionId: string,
 *   sessionName: string,
 *   data: GroupParticipantsEventData,
 * }
 * @phpstan-type ChangedParticipant array{
 *   id: string,
 *   number: string|null,
 *   username?: string,
 * }
 * @phpstan-type WebhookDisabledEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'webhook.disabled',
 *   sessionId: string,
 *   sessionName: string,
 *   data: WebhookDisabledEventData,
 * }
 * @phpstan-type WebhookFailingEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'webhook.failing',
 *   sessionId: string,
 *   sessionName: string,
 *   data: WebhookFailingEventData,
 * }
 * @phpstan-type WebhookTestEvent array{
 *   id?: string,
 *   createdAt?: string,
 *   event: 'webhook.test',
 *   sessionId: string,
 *   sessionName: string,
 *   data: WebhookTestEventData,
 * }
 * @phpstan-type Problem array{
 *   type: string,
 *   title: string,
 *   status: int,
 *   detail: string,
 *   code: 'malformed_json'|'validation_failed'|'api_key_missing'|'api_key_invalid'|'account_deactivated'|'ip_not_allowed'|'domain_not_allowed'|'subscription_expired'|'scope_missing'|'recipient_opted_out'|'network_forbidden'|'limit_reached'|'session_limit_reached'|'not_found'|'method_not_allowed'|'session_not_connected'|'no_connected_session'|'username_key_required'|'network_conflict'|'passkey_not_requested'|'not_editable'|'not_revocable'|'template_exists'|'not_waiting_for_approval'|'not_cancellable'|'payload_too_large'|'unsupported_media_type'|'range_not_satisfiable'|'idempotency_key_reused'|'passkey_refused'|'rate_limited'|'too_much_at_once'|'quota_exceeded'|'internal_error'|'network_error'|'storage_unavailable'|'busy'|'network_timeout',
 *   requestId: string,
 *   errors?: list<FieldError>,
 *   remaining?: ProblemRemaining,
 * }
 * @phpstan-type FieldError array{
 *   path: string,
 *   message: string,
 * }
 * @phpstan-type Priority 'high'|'normal'|'low'
 * @phpstan-type Session array{
 *   name: string,
 *   status: SessionStatus,
 *   phone: string|null,
 *   lastUsed: string,
 *   createdAt: string,
 *   id: string,
 *   passkey: SessionPasskey|null,
 *   restriction: Restriction|null,
 *   proxy: string|null,
 *   reason: string|null,
 * }
 * @phpstan-type SessionStatus 'initializing'|'qr'|'pairing'|'connected'|'disconnected'|'logged_out'
 * @phpstan-type Restriction array{
 *   kind: string,
 *   until: string|null,
 * }
 * @phpstan-type SessionCreation array{
 *   name: string,
 *   pairingPhone?: string|null,
 *   proxy?: string|null,
 * }
 * @phpstan-type SessionChange array{
 *   name?: string|null,
 *   proxy?: string|null,
 * }
 * @phpstan-type LinkingResult array{
 *   status: SessionStatus,
 *   qr: string|null,
 *   pairingCode: string|null,
 * }
 * @phpstan-type PasskeyRequest array{
 *   stage: 'required'|'confirm',
 *   options: array<string, mixed>|null,
 *   code: string|null,
 *   expiresAt: string,
 * }
 * @phpstan-type PasskeySignature array{
 *   assertion: PasskeyAssertion,
 * }
 * @phpstan-type PasskeyAssertion array{
 *   id: string,
 *   rawId: string,
 *   type: 'public-key',
 *   authenticatorAttachment?: string|null,
 *   response: PasskeyAssertionResponse,
 *   clientExtensionResults?: mixed,
 * }
 * @phpstan-type SessionHealth array{
 *   connectedSince: string|null,
 *   lastFrameAt: string|null,
 *   lastReceivedAt: string|null,
 *   lastSentAt: string|null,
 *   pingMs: int|null,
 *   restriction: Restriction|null,
 *   newChats: SessionHealthNewChats|null,
 *   planNewChats: SessionHealthPlanNewChats|null,
 *   queue: SessionHealthQueue,
 *   undecryptable: int,
 *   webVersion: string|null,
 *   webVersionSource: string|null,
 *   webVersionSince: string|null,
 *   webVersionExpiresAt: string|null,
 * }
 * @phpstan-type WaitsFor array{
 *   kind: 'approval'|'schedule'|'paused'|'line'|'hours'|'new_chats',
 *   until: string|null,
 * }
 * @phpstan-type NumberCheck array{
 *   exists: bool,
 *   jid: string|null,
 * }
 * @phpstan-type NumberToCheck array{
 *   number?: string|null,
 *   username?: string|null,
 *   pin?: string|null,
 * }
 * @phpstan-type Contact array{
 *   exists: bool,
 *   jid: string|null,
 *   lid: string|null,
 *   name: string|null,
 *   about: string|null,
 *   pictureUrl: string|null,
 *   business: ContactBusiness|null,
 * }
 * @phpstan-type BlockState array{
 *   number: string,
 *   blocked: bool,
 * }
 * @phpstan-type BlockedContact array{
 *   jid: string,
 *   number: string|null,
 * }
 * @phpstan-type Profile array{
 *   name: string|null,
 *   username: string|null,
 *   about: string|null,
 *   picture: string|null,
 *   pictureUrl: string|null,
 * }
 * @phpstan-type ProfileChange array{
 *   name?: string|null,
 *   about?: string|null,
 *   picture?: string|null,
 * }
 * @phpstan-type Group array{
 *   id: string,
 *   name: string,
 *   description: string,
 *   size: int,
 *   isAdmin: bool,
 *   createdAt: string,
 *   community?: GroupCommunity,
 * }
 * @phpstan-type GroupCommunity array{
 *   id: string,
 *   isAnnouncement: bool,
 * }
 * @phpstan-type CreatedGroup array{
 *   id: string,
 *   name: string,
 *   description: string,
 *   size: int,
 *   isAdmin: bool,
 *   createdAt: string,
 *   community?: GroupCommunity,
 *   announce: bool,
 *   locked: bool,
 *   ephemeral: int,
 *   participants: list<GroupParticipant>,
 *   results: list<ParticipantResult>,
 * }
 * @phpstan-type GroupParticipant array{
 *   id: string,
 *   number: string|null,
 *   username?: string,
 *   isAdmin: bool,
 * }
 * @phpstan-type ParticipantResult array{
 *   number: string,
 *   status: 'ok'|'failed',
 *   error: ParticipantResultError|null,
 * }
 * @phpstan-type GroupCreation array{
 *   name: string,
 *   participants: list<string>,
 * }
 * @phpstan-type WholeGroup array{
 *   id: string,
 *   name: string,
 *   description: string,
 *   size: int,
 *   isAdmin: bool,
 *   createdAt: string,
 *   community?: GroupCommunity,
 *   announce: bool,
 *   locked: bool,
 *   ephemeral: int,
 *   participants: list<GroupParticipant>,
 * }
 * @phpstan-type GroupChange array{
 *   name?: string|null,
 *   description?: string|null,
 *   announce?: bool|null,
 *   locked?: bool|null,
 *   ephemeral?: '0'|'86400'|'604800'|'7776000'|null,
 *   picture?: string|null,
 * }
 * @phpstan-type LeftGroup array{
 *   id: string,
 * }
 * @phpstan-type DeletedGroupMessage array{
 *   group: string,
 *   messageId: string,
 * }
 * @phpstan-type ParticipantsChange array{
 *   action: 'add'|'remove'|'promote'|'demote',
 *   participants: list<string>,
 * }
 * @phpstan-type InviteLink array{
 *   invite: string,
 * }
 * @phpstan-type JoinedGroup array{
 *   id: string,
 *   status: 'joined'|'asked',
 * }
 * @phpstan-type Invitation array{
 *   invite: string,
 * }
 * @phpstan-type JoinRequest array{
 *   id: string,
 *   number: string|null,
 * }
 * @phpstan-type RequestsAnswer array{
 *   action: 'approve'|'reject',
 *   participants: list<string>,
 * }
 * @phpstan-type Chat array{
 *   chat: string,
 *   number: string|null,
 *   lid: string|null,
 *   username: string|null,
 *   name: string|null,
 *   isGroup: bool,
 *   unread: int,
 *   lastAt: string,
 *   lastMessage: ChatMessage|null,
 * }
 * @phpstan-type ChatMessage array{
 *   messageId: string,
 *   networkId: string,
 *   direction: 'in'|'out',
 *   author: ChatAuthor|null,
 *   type: string,
 *   text: string|null,
 *   media: ChatFile|null,
 *   details: MessageDetails|null,
 *   quoted: ChatQuote|null,
 *   status: 'queued'|'processing'|'sent'|'failed'|'delivered'|'read'|null,
 *   error: MessageError|null,
 *   timestamp: string,
 *   editedAt: string|null,
 *   deletedAt: string|null,
 *   reactions: list<ChatReaction>,
 *   tags: list<string>,
 * }
 * @phpstan-type ChatAuthor array{
 *   number: string|null,
 *   name: string|null,
 * }
 * @phpstan-type ChatFile array{
 *   url: string|null,
 *   mimetype: string,
 *   size: int,
 *   filename: string,
 *   reason?: string,
 * }
 * @phpstan-type ChatQuote array{
 *   messageId: string,
 *   fromMe: bool,
 *   participant: string|null,
 *   text: string|null,
 * }
 * @phpstan-type MessageError array{
 *   code: string,
 *   message: string,
 * }
 * @phpstan-type ChatReaction array{
 *   number: string|null,
 *   emoji: string,
 * }
 * @phpstan-type ChatContact array{
 *   number: string|null,
 *   lid: string|null,
 *   username: string|null,
 *   name: string|null,
 *   chat: string,
 * }
 * @phpstan-type ChatState array{
 *   chat: string,
 *   state: string,
 * }
 * @phpstan-type ChatStateChange array{
 *   state: 'typing'|'recording'|'paused',
 * }
 * @phpstan-type ReadMessages array{
 *   chat: string,
 *   messageIds: list<string>,
 * }
 * @phpstan-type ReadRequest array{
 *   messageId?: string|null,
 * }
 * @phpstan-type QueuedMessage array{
 *   messageId: string,
 *   to: string,
 *   status: 'queued'|'processing',
 *   position: int,
 *   priority: Priority,
 *   estimatedDeparture: string|null,
 *   waitsFor: WaitsFor|null,
 * }
 * @phpstan-type Acknowledgement array{
 *   messageId: string,
 *   status: 'queued',
 *   jobId: string,
 * }
 * @phpstan-type TextMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   text: string,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type LocationMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   latitude: float,
 *   longitude: float,
 *   name?: string|null,
 *   address?: string|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type ContactMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   contacts: list<ContactCard>,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type ContactCard array{
 *   name: string,
 *   phone: string,
 *   organization?: string|null,
 * }
 * @phpstan-type PollMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   question: string,
 *   options: list<string>,
 *   multiple?: bool|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type ChoicesMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   text: string,
 *   footer?: string|null,
 *   options: list<ChoiceOption>,
 *   style?: 'auto'|'numbers'|'poll'|'buttons'|'list'|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type ChoiceOption array{
 *   id?: string|null,
 *   label: string,
 *   description?: string|null,
 * }
 * @phpstan-type ReactionMessage array{
 *   sessionId?: string|null,
 *   messageId: string,
 *   emoji: string,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type ForwardMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   messageId: string,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type TemplateMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   template: string,
 *   language?: string|null,
 *   variables?: array<string, string>|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type FileMessage array{
 *   sessionId?: string,
 *   to: string,
 *   caption?: string,
 *   replyTo?: string,
 *   mentions?: string,
 *   viewOnce?: 'true'|'false',
 *   linkPreview?: 'true'|'false',
 *   typing?: int,
 *   tags?: string,
 *   cancelOnReply?: 'true'|'false',
 *   ttl?: int,
 *   sendAt?: string,
 *   priority?: Priority,
 * }
 * @phpstan-type DocumentMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   file?: string|null,
 *   fileUrl?: string|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   filename?: string|null,
 *   caption?: string|null,
 * }
 * @phpstan-type StickerMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   file?: string|null,
 *   fileUrl?: string|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 * }
 * @phpstan-type VoiceMessage array{
 *   sessionId?: string|null,
 *   to: string,
 *   file?: string|null,
 *   fileUrl?: string|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 * }
 * @phpstan-type PdfMessage array{
 *   file: string,
 *   number: string,
 *   message?: string|null,
 *   filename?: string|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type StatusMessage array{
 *   sessionId?: string|null,
 *   text?: string|null,
 *   file?: string|null,
 *   fileUrl?: string|null,
 *   filename?: string|null,
 *   caption?: string|null,
 *   audience: list<string>,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type BulkAcknowledgement array{
 *   bulkId: string,
 *   total: int,
 *   status: 'queued',
 *   messages: list<BulkItemAcknowledgement>,
 * }
 * @phpstan-type BulkItemAcknowledgement array{
 *   index: int,
 *   to: string,
 *   messageId: string,
 *   status: 'queued',
 *   jobId: string,
 * }
 * @phpstan-type BulkMessage array{
 *   sessionId?: string|null,
 *   messages: list<BulkItem>,
 *   ttl?: int|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type BulkItem array{
 *   to: string,
 *   text?: string|null,
 *   fileUrl?: string|null,
 *   caption?: string|null,
 *   template?: string|null,
 *   language?: string|null,
 *   variables?: array<string, string>|null,
 *   replyTo?: string|null,
 *   mentions?: list<string>|null,
 *   viewOnce?: bool|null,
 *   linkPreview?: bool|null,
 *   typing?: int|null,
 *   tags?: list<string>|null,
 *   cancelOnReply?: bool|null,
 * }
 * @phpstan-type MessageStatus array{
 *   messageId: string,
 *   status: MessageState,
 *   sentAt: string|null,
 *   error: MessageError|null,
 * }
 * @phpstan-type MessageState 'queued'|'processing'|'sent'|'failed'
 * @phpstan-type HistoryItem array{
 *   messageId: string,
 *   jobId: string,
 *   sessionId: string,
 *   to: string,
 *   type: MessageType,
 *   text: string|null,
 *   caption: string|null,
 *   filename: string|null,
 *   details: array<string, mixed>|null,
 *   status: MessageState,
 *   error: MessageError|null,
 *   priority: Priority,
 *   tags: list<string>,
 *   sendAt: string|null,
 *   createdAt: string,
 *   sentAt: string|null,
 *   deliveredAt: string|null,
 *   readAt: string|null,
 *   erasedAt?: string,
 *   waitsFor?: WaitsFor,
 *   proposedBy?: string,
 * }
 * @phpstan-type MessageType 'text'|'location'|'contact'|'poll'|'reaction'|'image'|'video'|'audio'|'document'|'sticker'|'voice'|'status'|'choices'
 * @phpstan-type HistoryPagination array{
 *   page: int,
 *   limit: int,
 *   total: int,
 *   next?: string,
 * }
 * @phpstan-type MessageRecord array{
 *   messageId: string,
 *   jobId: string,
 *   sessionId: string,
 *   to: string,
 *   type: MessageType,
 *   text: string|null,
 *   caption: string|null,
 *   filename: string|null,
 *   details: array<string, mixed>|null,
 *   status: MessageState,
 *   error: MessageError|null,
 *   priority: Priority,
 *   tags: list<string>,
 *   sendAt: string|null,
 *   createdAt: string,
 *   sentAt: string|null,
 *   deliveredAt: string|null,
 *   readAt: string|null,
 *   erasedAt?: string,
 *   waitsFor?: WaitsFor,
 *   proposedBy?: string,
 *   life: list<LifeEntry>,
 *   poll: MessageRecordPoll|null,
 * }
 * @phpstan-type LifeEntry array{
 *   status: 'queued'|'approved'|'processing'|'sent'|'failed'|'delivered'|'read'|'edited'|'revoked',
 *   at: string,
 * }
 * @phpstan-type PollOption array{
 *   name: string,
 *   votes: int,
 * }
 * @phpstan-type MessageEdit array{
 *   text?: string|null,
 *   sendAt?: string|null,
 *   priority?: Priority|null,
 * }
 * @phpstan-type CancelledMessages array{
 *   cancelled: int,
 * }
 * @phpstan-type CancelledBulk array{
 *   bulkId: string,
 *   cancelled: int,
 *   messageIds: list<string>,
 * }
 * @phpstan-type Bulk array{
 *   bulkId: string,
 *   sessionId: string,
 *   total: int,
 *   queued: int,
 *   sent: int,
 *   failed: int,
 *   eta: string|null,
 *   createdAt: string,
 * }
 * @phpstan-type Pagination array{
 *   page: int,
 *   limit: int,
 *   total: int,
 * }
 * @phpstan-type Template array{
 *   name: string,
 *   language: string,
 *   text: string,
 *   header: string|null,
 *   footer: string|null,
 *   options: list<Choice>,
 *   variables: list<string>,
 *   createdAt: string,
 *   updatedAt: string,
 * }
 * @phpstan-type Choice array{
 *   id: string,
 *   label: string,
 *   description: string|null,
 * }
 * @phpstan-type TemplateCreation array{
 *   name: string,
 *   language?: string|null,
 *   text: string,
 *   header?: string|null,
 *   footer?: string|null,
 *   options?: list<ChoiceOption>|null,
 * }
 * @phpstan-type TemplateTexts array{
 *   text: string,
 *   header?: string|null,
 *   footer?: string|null,
 *   options?: list<ChoiceOption>|null,
 * }
 * @phpstan-type Verification array{
 *   id: string,
 *   sessionId: string,
 *   status: 'pending'|'passed'|'failed'|'expired',
 *   code: string,
 *   text: string,
 *   link: string,
 *   qr: string,
 *   number: string|null,
 *   chat: string|null,
 *   reason: string|null,
 *   createdAt: string,
 *   expiresAt: string,
 * }
 * @phpstan-type VerificationCreation array{
 *   purpose?: string|null,
 *   number?: string|null,
 *   ttl?: int|null,
 *   sessionId?: string|null,
 * }
 * @phpstan-type Webhook array{
 *   id: string,
 *   url: string,
 *   format: WebhookFormat,
 *   events: list<EventName>,
 *   sessionId: string|null,
 *   chats: WebhookChats,
 *   headerNames: list<string>,
 *   active: bool,
 *   switchedOff: string|null,
 *   failingSince: string|null,
 *   previousSecretUntil: string|null,
 *   createdAt: string,
 *   updatedAt: string,
 * }
 * @phpstan-type WebhookFormat 'paloma'|'cloud'
 * @phpstan-type EventName 'message.sent'|'message.status'|'message.failed'|'message.proposed'|'message.received'|'session.connected'|'session.disconnected'|'session.qr'|'session.passkey'|'session.restricted'|'session.degraded'|'message.echo'|'message.edited'|'message.deleted'|'poll.vote'|'choice.made'|'verification.passed'|'verification.failed'|'bulk.finished'|'recipient.opted_out'|'call.received'|'presence.updated'|'group.updated'|'group.participants'|'webhook.failing'|'webhook.disabled'|'webhook.test'
 * @phpstan-type WebhookChats 'all'|'direct'|'groups'
 * @phpstan-type WebhookWithSecret array{
 *   id: string,
 *   url: string,
 *   format: WebhookFormat,
 *   events: list<EventName>,
 *   sessionId: string|null,
 *   chats: WebhookChats,
 *   headerNames: list<string>,
 *   active: bool,
 *   switchedOff: string|null,
 *   failingSince: string|null,
 *   previousSecretUntil: string|null,
 *   createdAt: string,
 *   updatedAt: string,
 *   secret: string,
 * }
 * @phpstan-type WebhookCreation array{
 *   url: string,
 *   format?: WebhookFormat|null,
 *   verifyToken?: string|null,
 *   events?: list<EventName>|null,
 *   sessionId?: string|null,
 *   chats?: WebhookChats|null,
 *   headers?: array<string, string>|null,
 * }
 * @phpstan-type WebhookChange array{
 *   url?: string|null,
 *   events?: list<EventName>|null,
 *   chats?: WebhookChats|null,
 *   headers?: array<string, string>|null,
 *   active?: bool|null,
 * }
 * @phpstan-type Delivery array{
 *   id: string,
 *   eventId: string,
 *   event: EventName,
 *   status: 'pending'|'delivered'|'failed',
 *   attempts: list<DeliveryAttempt>,
 *   createdAt: string,
 *   nextAttemptAt: string|null,
 * }
 * @phpstan-type DeliveryAttempt array{
 *   at: string,
 *   status: int|null,
 *   durationMs: float,
 *   error: string|null,
 * }
 * @phpstan-type RedeliverSince array{
 *   since: string,
 * }
 * @phpstan-type EventPage array{
 *   data: list<AnyEvent>,
 *   next: string|null,
 *   gap: bool,
 * }
 * @phpstan-type AnyEvent MessageSentEvent|MessageStatusEvent|MessageFailedEvent|MessageProposedEvent|MessageReceivedEvent|SessionConnectedEvent|SessionDisconnectedEvent|SessionQrEvent|SessionPasskeyEvent|SessionRestrictedEvent|SessionDegradedEvent|MessageEchoEvent|MessageEditedEvent|MessageDeletedEvent|PollVoteEvent|ChoiceMadeEvent|VerificationPassedEvent|VerificationFailedEvent|BulkFinishedEvent|RecipientOptedOutEvent|CallReceivedEvent|PresenceUpdatedEvent|GroupUpdatedEvent|GroupParticipantsEvent|WebhookDisabledEvent|WebhookFailingEvent|WebhookTestEvent
 * @phpstan-type Account array{
 *   id: string,
 *   name: string,
 *   plan: AccountPlan,
 *   used: AccountUsed,
 *   remaining: AccountRemaining,
 *   allowedIps: list<string>,
 *   allowedDomains: list<string>,
 *   expiresAt: string|null,
 *   createdAt: string,
 *   optOutWords: list<string>,
 *   country: string|null,
 * }
 * @phpstan-type Weekday 'mon'|'tue'|'wed'|'thu'|'fri'|'sat'|'sun'
 * @phpstan-type AccountEdit array{
 *   optOutWords?: list<string>|null,
 *   country?: string|null,
 * }
 * @phpstan-type Key array{
 *   id: string,
 *   name: string,
 *   scopes: list<Scope>,
 *   allowedIps: list<string>,
 *   allowedDomains: list<string>,
 *   createdAt: string,
 *   lastUsedAt: string|null,
 * }
 * @phpstan-type Scope 'send'|'read'|'manage'|'propose'
 * @phpstan-type KeyWithSecret array{
 *   id: string,
 *   name: string,
 *   scopes: list<Scope>,
 *   allowedIps: list<string>,
 *   allowedDomains: list<string>,
 *   createdAt: string,
 *   lastUsedAt: string|null,
 *   key: string,
 * }
 * @phpstan-type KeyCreation array{
 *   name: string,
 *   scopes: list<Scope>,
 *   allowedIps?: list<string>|null,
 *   allowedDomains?: list<string>|null,
 * }
 * @phpstan-type OptOut array{
 *   number: string,
 *   word: string|null,
 *   createdAt: string,
 * }
 * @phpstan-type Erasure array{
 *   id: string,
 *   status: 'running'|'done',
 *   messages: int,
 *   events: int,
 *   files: int,
 *   keyId: string|null,
 *   askedAt: string,
 *   doneAt: string|null,
 * }
 * @phpstan-type Health array{
 *   status: 'ok'|'stopping'|'storage_unavailable',
 * }
 * @phpstan-type SessionList array{
 *   data: list<Session>,
 * }
 * @phpstan-type SessionResponse array{
 *   data: Session,
 * }
 * @phpstan-type PasskeyRequestResponse array{
 *   data: PasskeyRequest,
 * }
 * @phpstan-type SessionHealthResponse array{
 *   data: SessionHealth,
 * }
 * @phpstan-type NumberCheckResponse array{
 *   data: NumberCheck,
 * }
 * @phpstan-type ContactResponse array{
 *   data: Contact,
 * }
 * @phpstan-type BlockStateResponse array{
 *   data: BlockState,
 * }
 * @phpstan-type BlockedContactList array{
 *   data: list<BlockedContact>,
 * }
 * @phpstan-type ProfileResponse array{
 *   data: Profile,
 * }
 * @phpstan-type GroupList array{
 *   data: list<Group>,
 * }
 * @phpstan-type CreatedGroupResponse array{
 *   data: CreatedGroup,
 * }
 * @phpstan-type WholeGroupResponse array{
 *   data: WholeGroup,
 * }
 * @phpstan-type LeftGroupResponse array{
 *   data: LeftGroup,
 * }
 * @phpstan-type DeletedGroupMessageResponse array{
 *   data: DeletedGroupMessage,
 * }
 * @phpstan-type ParticipantResultList array{
 *   data: list<ParticipantResult>,
 * }
 * @phpstan-type InviteLinkResponse array{
 *   data: InviteLink,
 * }
 * @phpstan-type JoinedGroupResponse array{
 *   data: JoinedGroup,
 * }
 * @phpstan-type JoinRequestList array{
 *   data: list<JoinRequest>,
 * }
 * @phpstan-type ChatPage array{
 *   data: list<Chat>,
 *   next: string|null,
 * }
 * @phpstan-type ChatResponse array{
 *   data: Chat,
 * }
 * @phpstan-type ChatMessagePage array{
 *   data: list<ChatMessage>,
 *   next: string|null,
 * }
 * @phpstan-type ChatContactPage array{
 *   data: list<ChatContact>,
 *   next: string|null,
 * }
 * @phpstan-type ChatStateResponse array{
 *   data: ChatState,
 * }
 * @phpstan-type ReadMessagesResponse array{
 *   data: ReadMessages,
 * }
 * @phpstan-type QueuedMessageList array{
 *   data: list<QueuedMessage>,
 * }
 * @phpstan-type HistoryItemPage array{
 *   data: list<HistoryItem>,
 *   pagination: HistoryPagination,
 * }
 * @phpstan-type MessageRecordResponse array{
 *   data: MessageRecord,
 * }
 * @phpstan-type CancelMessageResult array{
 *   data: HistoryItem|CancelledBulk,
 * }
 * @phpstan-type CancelledMessagesResponse array{
 *   data: CancelledMessages,
 * }
 * @phpstan-type BulkPage array{
 *   data: list<Bulk>,
 *   pagination: Pagination,
 * }
 * @phpstan-type BulkResponse array{
 *   data: Bulk,
 * }
 * @phpstan-type TemplatePage array{
 *   data: list<Template>,
 *   pagination: Pagination,
 * }
 * @phpstan-type TemplateResponse array{
 *   data: Template,
 * }
 * @phpstan-type TemplateList array{
 *   data: list<Template>,
 * }
 * @phpstan-type VerificationResponse array{
 *   data: Verification,
 * }
 * @phpstan-type WebhookList array{
 *   data: list<Webhook>,
 * }
 * @phpstan-type WebhookWithSecretResponse array{
 *   data: WebhookWithSecret,
 * }
 * @phpstan-type WebhookResponse array{
 *   data: Webhook,
 * }
 * @phpstan-type TestWebhookResult array{
 *   data: TestWebhookResultData,
 * }
 * @phpstan-type DeliveryPage array{
 *   data: list<Delivery>,
 *   next: string|null,
 * }
 * @phpstan-type DeliveryResponse array{
 *   data: Delivery,
 * }
 * @phpstan-type RedeliverSinceResult array{
 *   data: RedeliverSinceResultData,
 * }
 * @phpstan-type AccountResponse array{
 *   data: Account,
 * }
 * @phpstan-type KeyList array{
 *   data: list<Key>,
 * }
 * @phpstan-type KeyWithSecretResponse array{
 *   data: KeyWithSecret,
 * }
 * @phpstan-type KeyResponse array{
 *   data: Key,
 * }
 * @phpstan-type OptOutPage array{
 *   data: list<OptOut>,
 *   pagination: Pagination,
 * }
 * @phpstan-type OptOutResponse array{
 *   data: OptOut,
 * }
 * @phpstan-type ErasureResponse array{
 *   data: Erasure,
 * }
 * @phpstan-type ErasurePage array{
 *   data: list<Erasure>,
 *   pagination: Pagination,
 * }
 * @phpstan-type MessageSentEventData array{
 *   messageId: string,
 *   networkId: string,
 *   jobId: string,
 *   to: string,
 *   sentAt: string,
 *   tags?: list<string>,
 * }
 * @phpstan-type MessageStatusEventData array{
 *   messageId: string,
 *   networkId: string,
 *   status: 'delivered'|'read',
 *   participant: string|null,
 *   at: string,
 *   tags?: list<string>,
 * }
 * @phpstan-type MessageFailedEventDataError array{
 *   code: string,
 *   message: string,
 * }
 * @phpstan-type MessageFailedEventData array{
 *   messageId: string,
 *   networkId: string,
 *   jobId: string,
 *   to: string,
 *   error: MessageFailedEventDataError,
 *   tags?: list<string>,
 * }
 * @phpstan-type MessageProposedEventData array{
 *   messageId: string,
 *   to: string,
 *   type: string,
 *   text: string|null,
 *   by: string,
 * }
 * @phpstan-type MessageReceivedEventDataChoice array{
 *   messageId: string,
 *   id: string,
 *   label: string,
 * }
 * @phpstan-type MessageReceivedEventData array{
 *   from: string,
 *   number: string|null,
 *   pushName: string|null,
 *   username?: string,
 *   messageId: string,
 *   timestamp: int,
 *   type: 'conversation'|'extendedTextMessage'|'imageMessage'|'videoMessage'|'audioMessage'|'documentMessage'|'stickerMessage'|'reactionMessage'|'locationMessage'|'liveLocationMessage'|'contactMessage'|'contactsArrayMessage'|'pollCreationMessage'|'buttonsResponseMessage'|'listResponseMessage'|'unknown',
 *   text: string|null,
 *   media?: ReceivedFile,
 *   chat: string,
 *   participant?: string,
 *   quoted?: QuotedMessage,
 *   mentions?: list<string>,
 *   isForwarded: bool,
 *   viewOnce?: bool,
 *   ad?: array<string, string>,
 *   choice?: MessageReceivedEventDataChoice,
 *   details?: MessageDetails,
 * }
 * @phpstan-type SessionConnectedEventData array{
 *   phone: string,
 * }
 * @phpstan-type SessionDisconnectedEventData array{
 *   status: 'disconnected'|'logged_out',
 *   reason: string,
 * }
 * @phpstan-type SessionQrEventData array{
 *   qr: string,
 * }
 * @phpstan-type SessionPasskeyEventData array{
 *   stage: 'required'|'confirm',
 *   expiresAt: string,
 * }
 * @phpstan-type SessionRestrictedEventData array{
 *   active: bool,
 *   kind: string,
 *   until: string|null,
 * }
 * @phpstan-type SessionDegradedEventData array{
 *   reason: string|null,
 * }
 * @phpstan-type MessageEchoEventDataChoice array{
 *   messageId: string,
 *   id: string,
 *   label: string,
 * }
 * @phpstan-type MessageEchoEventData array{
 *   from: string,
 *   number: string|null,
 *   pushName: string|null,
 *   username?: string,
 *   messageId: string,
 *   timestamp: int,
 *   type: 'conversation'|'extendedTextMessage'|'imageMessage'|'videoMessage'|'audioMessage'|'documentMessage'|'stickerMessage'|'reactionMessage'|'locationMessage'|'liveLocationMessage'|'contactMessage'|'contactsArrayMessage'|'pollCreationMessage'|'buttonsResponseMessage'|'listResponseMessage'|'unknown',
 *   text: string|null,
 *   media?: ReceivedFile,
 *   chat: string,
 *   participant?: string,
 *   quoted?: QuotedMessage,
 *   mentions?: list<string>,
 *   isForwarded: bool,
 *   viewOnce?: bool,
 *   ad?: array<string, string>,
 *   choice?: MessageEchoEventDataChoice,
 *   details?: MessageDetails,
 *   fromMe: bool,
 * }
 * @phpstan-type MessageEditedEventData array{
 *   messageId: string,
 *   chat: string,
 *   number: string|null,
 *   text: string|null,
 * }
 * @phpstan-type MessageDeletedEventData array{
 *   messageId: string,
 *   chat: string,
 *   number: string|null,
 * }
 * @phpstan-type PollVoteEventData array{
 *   messageId: string|null,
 *   networkId: string,
 *   chat: string,
 *   number: string|null,
 *   options: list<string>,
 * }
 * @phpstan-type ChoiceMadeEventData array{
 *   messageId: string,
 *   networkId: string,
 *   chat: string,
 *   number: string|null,
 *   id: string,
 *   label: string,
 *   how: 'text'|'vote'|'tap',
 * }
 * @phpstan-type VerificationPassedEventData array{
 *   id: string,
 *   number: string|null,
 *   chat: string,
 * }
 * @phpstan-type VerificationFailedEventData array{
 *   id: string,
 *   reason: string,
 * }
 * @phpstan-type BulkFinishedEventData array{
 *   bulkId: string,
 *   total: int,
 *   sent: int,
 *   failed: int,
 * }
 * @phpstan-type RecipientOptedOutEventData array{
 *   number: string,
 *   word: string,
 * }
 * @phpstan-type CallReceivedEventData array{
 *   callId: string,
 *   chat: string,
 *   number: string|null,
 *   video: bool,
 * }
 * @phpstan-type PresenceUpdatedEventData array{
 *   chat: string,
 *   number: string|null,
 *   state: 'online'|'offline'|'typing'|'recording'|'paused',
 * }
 * @phpstan-type GroupUpdatedEventData array{
 *   group: ChangedGroup,
 * }
 * @phpstan-type GroupParticipantsEventData array{
 *   group: ChangedGroup,
 *   action: 'add'|'remove'|'promote'|'demote'|'leave',
 *   participants: list<ChangedParticipant>,
 * }
 * @phpstan-type WebhookDisabledEventData array{
 *   webhookId: string,
 *   since: string,
 *   reason: string,
 * }
 * @phpstan-type WebhookFailingEventData array{
 *   webhookId: string,
 *   url: string,
 *   active: bool,
 *   failedInARow: int,
 *   lastError: string,
 *   since: string,
 * }
 * @phpstan-type WebhookTestEventData array{
 *   webhookId: string,
 *   at: string,
 * }
 * @phpstan-type ProblemRemaining array{
 *   daily: int|null,
 *   monthly: int|null,
 * }
 * @phpstan-type SessionPasskey array{
 *   stage: 'required'|'confirm',
 *   expiresAt: string,
 * }
 * @phpstan-type PasskeyAssertionResponse array{
 *   clientDataJSON: string,
 *   authenticatorData: string,
 *   signature: string,
 *   userHandle?: string|null,
 * }
 * @phpstan-type SessionHealthNewChats array{
 *   used: int,
 *   limit: int,
 *   resetsAt: string|null,
 * }
 * @phpstan-type SessionHealthPlanNewChats array{
 *   used: int,
 *   limit: int,
 *   resetsAt: string,
 * }
 * @phpstan-type SessionHealthQueue array{
 *   waiting: int,
 *   oldestSeconds: int,
 *   waitsFor: WaitsFor|null,
 * }
 * @phpstan-type ContactBusiness array{
 *   description: string|null,
 *   category: string|null,
 *   address: string|null,
 *   email: string|null,
 *   websites: list<string>,
 * }
 * @phpstan-type ParticipantResultError array{
 *   code: string,
 *   message: string,
 * }
 * @phpstan-type MessageRecordPoll array{
 *   voters: int,
 *   options: list<PollOption>,
 * }
 * @phpstan-type AccountPlanHours array{
 *   days: list<Weekday>,
 *   from: string,
 *   to: string,
 *   timeZone: string,
 * }
 * @phpstan-type AccountPlan array{
 *   name: string,
 *   sessions: int,
 *   daily: int|null,
 *   monthly: int|null,
 *   delayMinMs: int,
 *   delayMaxMs: int,
 *   requestsPerMinute: int|null,
 *   webhooks: int,
 *   eventStreams: int,
 *   templates: int,
 *   verifications: int,
 *   hours: AccountPlanHours|null,
 *   newChatsDaily: int|null,
 *   warmUp: bool,
 *   typingMs: int,
 * }
 * @phpstan-type AccountUsed array{
 *   daily: int,
 *   monthly: int,
 * }
 * @phpstan-type AccountRemaining array{
 *   daily: int|null,
 *   monthly: int|null,
 * }
 * @phpstan-type TestWebhookResultData array{
 *   eventId: string,
 * }
 * @phpstan-type RedeliverSinceResultData array{
 *   scheduled: int,
 * }
 * @phpstan-type Sends array{
 *   text: TextMessage,
 *   location: LocationMessage,
 *   contact: ContactMessage,
 *   poll: PollMessage,
 *   choices: ChoicesMessage,
 *   reaction: ReactionMessage,
 *   forward: ForwardMessage,
 *   template: TemplateMessage,
 *   document: DocumentMessage,
 *   sticker: StickerMessage,
 *   voice: VoiceMessage,
 *   status: StatusMessage,
 *   bulk: BulkMessage,
 * }
 * @phpstan-type SendAnswers array{
 *   text: Acknowledgement,
 *   location: Acknowledgement,
 *   contact: Acknowledgement,
 *   poll: Acknowledgement,
 *   choices: Acknowledgement,
 *   reaction: Acknowledgement,
 *   forward: Acknowledgement,
 *   template: Acknowledgement,
 *   document: Acknowledgement,
 *   sticker: Acknowledgement,
 *   voice: Acknowledgement,
 *   status: Acknowledgement,
 *   bulk: BulkAcknowledgement,
 * }
 */
final class Types
{
}
