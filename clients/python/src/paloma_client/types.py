"""Generated from the OpenAPI document by `deno task clients`. Do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload


class MessageSentEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.sent"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageSentEventData


class MessageStatusEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.status"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageStatusEventData


class MessageFailedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.failed"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageFailedEventData


class MessageProposedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.proposed"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageProposedEventData


class MessageReceivedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.received"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageReceivedEventData


class ReceivedFile(TypedDict):
    """Present only if the message has a file."""

    url: str | None
    """Download URL, valid for 24 hours; null if the file could not be downloaded."""
    mimetype: str
    size: int
    """Size in bytes."""
    filename: str
    """Original name of a document; generated for other types."""
    reason: NotRequired[str]
    """Why `url` is null."""


class QuotedMessage(TypedDict):
    """The message that this one replies to."""

    messageId: str
    """WhatsApp's id of the message."""
    fromMe: bool
    """Whether the session sent it."""
    participant: str | None
    """JID of its author, if WhatsApp reports it."""
    text: str | None
    """The text, or what else is shown first of the message."""
    status: NotRequired[bool]
    """Present if it is a status post."""

MessageDetails: TypeAlias = "CompanyMessageDetails | OrderDetails | ProductDetails | AnswerDetails | InvoiceDetails | PaymentDetails | EventDetails | EventResponseDetails | GroupInviteDetails | ChannelInviteDetails | AboutDetails | StickerPackDetails | PollResultDetails | ScheduledCallDetails | TextDetails | FileDetails | AudioDetails | DocumentDetails | ReactionDetails | LocationDetails | LiveLocationDetails | ContactsDetails | PollDetails | ChosenDetails | OtherDetails"


class CompanyMessageDetails(TypedDict):
    kind: Literal["templateMessage", "interactiveMessage", "buttonsMessage", "listMessage", "highlyStructuredMessage"]
    """Type of the message on the network."""
    header: NotRequired[str]
    footer: NotRequired[str]
    buttons: NotRequired[list[ReceivedButton]]
    button: NotRequired[str]
    """What opens the list."""
    order: NotRequired[ReceivedOrder]
    offer: NotRequired[ReceivedOffer]
    location: NotRequired[ReceivedPlace]
    products: NotRequired[list[ListedProduct]]
    product: NotRequired[ReceivedProduct]
    catalog: NotRequired[ReceivedCatalog]
    template: NotRequired[str]
    """Name of the template."""
    shop: NotRequired[str]
    collection: NotRequired[str]
    cards: NotRequired[list[ReceivedCard]]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ReceivedButton(TypedDict):
    id: NotRequired[str]
    text: NotRequired[str]
    url: NotRequired[str]
    phone: NotRequired[str]
    copy: NotRequired[str]
    """The code that it copies."""
    description: NotRequired[str]
    section: NotRequired[str]
    """Title of the part of the list."""


class ReceivedOrder(TypedDict):
    id: NotRequired[str]
    token: NotRequired[str]
    itemCount: NotRequired[int]
    total: NotRequired[float]
    currency: NotRequired[str]
    title: NotRequired[str]
    seller: NotRequired[str]
    """A JID."""


class ReceivedOffer(TypedDict):
    text: NotRequired[str]
    url: NotRequired[str]
    copy: NotRequired[str]


class ReceivedPlace(TypedDict):
    latitude: NotRequired[float]
    longitude: NotRequired[float]
    name: NotRequired[str]
    address: NotRequired[str]
    url: NotRequired[str]
    comment: NotRequired[str]


class ListedProduct(TypedDict):
    id: NotRequired[str]
    section: NotRequired[str]


class ReceivedProduct(TypedDict):
    id: NotRequired[str]
    retailerId: NotRequired[str]
    title: NotRequired[str]
    description: NotRequired[str]
    price: NotRequired[float]
    currency: NotRequired[str]
    url: NotRequired[str]
    seller: NotRequired[str]
    """A JID."""


class ReceivedCatalog(TypedDict):
    title: NotRequired[str]
    description: NotRequired[str]


class ReceivedCard(TypedDict):
    """A card of a carousel."""

    text: NotRequired[str]
    kind: NotRequired[str]
    header: NotRequired[str]
    footer: NotRequired[str]
    buttons: NotRequired[list[ReceivedButton]]
    button: NotRequired[str]
    """What opens the list."""
    order: NotRequired[ReceivedOrder]
    offer: NotRequired[ReceivedOffer]
    location: NotRequired[ReceivedPlace]
    products: NotRequired[list[ListedProduct]]
    product: NotRequired[ReceivedProduct]
    catalog: NotRequired[ReceivedCatalog]
    template: NotRequired[str]
    """Name of the template."""
    shop: NotRequired[str]
    collection: NotRequired[str]


class ForwardedFrom(TypedDict):
    """The channel or assistant that it comes from."""

    id: NotRequired[str]
    """A JID."""
    name: NotRequired[str]


class MessagePreview(TypedDict):
    """A card above it."""

    title: NotRequired[str]
    text: NotRequired[str]


class MessageAction(TypedDict):
    """A button below it."""

    text: NotRequired[str]
    url: NotRequired[str]


class MentionedGroup(TypedDict):
    id: NotRequired[str]
    """A JID."""
    name: NotRequired[str]


class OrderDetails(TypedDict):
    kind: Literal["orderMessage"]
    """Type of the message on the network."""
    order: NotRequired[ReceivedOrder]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ProductDetails(TypedDict):
    kind: Literal["productMessage"]
    """Type of the message on the network."""
    product: NotRequired[ReceivedProduct]
    catalog: NotRequired[ReceivedCatalog]
    footer: NotRequired[str]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class AnswerDetails(TypedDict):
    kind: Literal["interactiveResponseMessage", "templateButtonReplyMessage"]
    """Type of the message on the network."""
    selectedId: NotRequired[str]
    flow: NotRequired[str]
    """Name of the flow."""
    form: NotRequired[dict[str, Any]]
    """What was filled in."""
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class InvoiceDetails(TypedDict):
    kind: Literal["invoiceMessage"]
    """Type of the message on the network."""
    invoice: NotRequired[ReceivedInvoice]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ReceivedInvoice(TypedDict):
    token: NotRequired[str]


class PaymentDetails(TypedDict):
    kind: Literal["sendPaymentMessage", "requestPaymentMessage"]
    """Type of the message on the network."""
    payment: NotRequired[ReceivedPayment]
    target: NotRequired[MessageTarget]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""

ReceivedPayment = TypedDict("ReceivedPayment", {
    "amount": "NotRequired[float]",
    "currency": "NotRequired[str]",
    "from": "NotRequired[str]",
    "expiresAt": "NotRequired[str]",
})


class MessageTarget(TypedDict):
    """The message that it is about, from the session's point of view."""

    messageId: str
    """WhatsApp's id."""
    fromMe: bool
    participant: NotRequired[str]
    """A JID."""


class EventDetails(TypedDict):
    kind: Literal["eventMessage"]
    """Type of the message on the network."""
    event: NotRequired[ReceivedEvent]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ReceivedEvent(TypedDict):
    name: NotRequired[str]
    description: NotRequired[str]
    startsAt: NotRequired[str]
    """ISO 8601, UTC."""
    endsAt: NotRequired[str]
    """ISO 8601, UTC."""
    location: NotRequired[ReceivedPlace]
    link: NotRequired[str]
    canceled: NotRequired[bool]


class EventResponseDetails(TypedDict):
    kind: Literal["eventResponse"]
    """Type of the message on the network."""
    target: NotRequired[MessageTarget]
    response: NotRequired[Literal["going", "not_going", "maybe"]]
    guests: NotRequired[int]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class GroupInviteDetails(TypedDict):
    kind: Literal["groupInviteMessage"]
    """Type of the message on the network."""
    invite: NotRequired[GroupInvitation]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class GroupInvitation(TypedDict):
    groupId: NotRequired[str]
    """A JID."""
    code: NotRequired[str]
    name: NotRequired[str]
    expiresAt: NotRequired[str]
    """ISO 8601, UTC."""


class ChannelInviteDetails(TypedDict):
    kind: Literal["newsletterAdminInviteMessage", "newsletterFollowerInviteMessageV2"]
    """Type of the message on the network."""
    channel: NotRequired[ChannelInvitation]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ChannelInvitation(TypedDict):
    id: NotRequired[str]
    """A JID."""
    name: NotRequired[str]
    expiresAt: NotRequired[str]
    """ISO 8601, UTC."""


class AboutDetails(TypedDict):
    kind: Literal["commentMessage", "declinePaymentRequestMessage", "cancelPaymentRequestMessage", "scheduledCallEditMessage", "questionResponseMessage", "statusQuestionAnswerMessage", "statusQuotedMessage", "statusStickerInteractionMessage"]
    """Type of the message on the network."""
    target: NotRequired[MessageTarget]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class StickerPackDetails(TypedDict):
    kind: Literal["stickerPackMessage"]
    """Type of the message on the network."""
    stickerPack: NotRequired[StickerPack]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class StickerPack(TypedDict):
    id: NotRequired[str]
    name: NotRequired[str]
    publisher: NotRequired[str]
    description: NotRequired[str]


class PollResultDetails(TypedDict):
    kind: Literal["pollResultSnapshotMessage", "pollResultSnapshotMessageV3"]
    """Type of the message on the network."""
    votes: NotRequired[list[PollVotes]]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class PollVotes(TypedDict):
    name: NotRequired[str]
    votes: int


class ScheduledCallDetails(TypedDict):
    kind: Literal["scheduledCallCreationMessage"]
    """Type of the message on the network."""
    call: NotRequired[ScheduledCall]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ScheduledCall(TypedDict):
    startsAt: NotRequired[str]
    """ISO 8601, UTC."""
    video: NotRequired[bool]


class TextDetails(TypedDict):
    link: NotRequired[str]
    linkTitle: NotRequired[str]
    linkDescription: NotRequired[str]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class FileDetails(TypedDict):
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class AudioDetails(TypedDict):
    voice: NotRequired[bool]
    seconds: NotRequired[int]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class DocumentDetails(TypedDict):
    title: NotRequired[str]
    pageCount: NotRequired[int]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ReactionDetails(TypedDict):
    target: NotRequired[MessageTarget]
    removed: NotRequired[bool]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class LocationDetails(TypedDict):
    latitude: NotRequired[float]
    longitude: NotRequired[float]
    name: NotRequired[str]
    address: NotRequired[str]
    url: NotRequired[str]
    comment: NotRequired[str]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class LiveLocationDetails(TypedDict):
    latitude: NotRequired[float]
    longitude: NotRequired[float]
    accuracyMeters: NotRequired[int]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ContactsDetails(TypedDict):
    contacts: NotRequired[list[ReceivedContact]]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ReceivedContact(TypedDict):
    name: str | None
    vcard: NotRequired[str | None]
    phones: list[str]
    """Digits."""
    organization: NotRequired[str | None]
    """Of a contact that was sent."""


class PollDetails(TypedDict):
    options: NotRequired[list[str]]
    selectable: NotRequired[int | None]
    """How many may be chosen, if there is a limit."""
    correct: NotRequired[str]
    """The right answer of a quiz."""
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class ChosenDetails(TypedDict):
    selectedId: NotRequired[str]
    description: NotRequired[str]
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class OtherDetails(TypedDict):
    kind: NotRequired[str]
    """Type of the message on the network."""
    withheld: NotRequired[Literal["view_once", "hosted", "bot"]]
    """Why it is shown on phones only."""
    undecryptable: NotRequired[bool]
    """True if it could not be decrypted."""
    disappearing: NotRequired[Any]
    """Seconds after which it vanishes; true if the app does not say."""
    album: NotRequired[str]
    """The same for all pictures of an album."""
    forwardedFrom: NotRequired[ForwardedFrom]
    preview: NotRequired[MessagePreview]
    action: NotRequired[MessageAction]
    groups: NotRequired[list[MentionedGroup]]
    """The groups that its text names."""
    memberLabel: NotRequired[str]
    """The sender's label in the group."""


class SessionConnectedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["session.connected"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: SessionConnectedEventData


class SessionDisconnectedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["session.disconnected"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: SessionDisconnectedEventData


class SessionQrEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["session.qr"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: SessionQrEventData


class SessionPasskeyEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["session.passkey"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: SessionPasskeyEventData


class SessionRestrictedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["session.restricted"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: SessionRestrictedEventData


class SessionDegradedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["session.degraded"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: SessionDegradedEventData


class MessageEchoEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.echo"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageEchoEventData


class MessageEditedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.edited"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageEditedEventData


class MessageDeletedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["message.deleted"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: MessageDeletedEventData


class PollVoteEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["poll.vote"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: PollVoteEventData


class ChoiceMadeEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["choice.made"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: ChoiceMadeEventData


class VerificationPassedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["verification.passed"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: VerificationPassedEventData


class VerificationFailedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["verification.failed"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: VerificationFailedEventData


class BulkFinishedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["bulk.finished"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: BulkFinishedEventData


class RecipientOptedOutEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["recipient.opted_out"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: RecipientOptedOutEventData


class CallReceivedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["call.received"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: CallReceivedEventData


class PresenceUpdatedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["presence.updated"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: PresenceUpdatedEventData


class GroupUpdatedEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["group.updated"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: GroupUpdatedEventData


class ChangedGroup(TypedDict):
    """The group after the change; only its id if the session can no longer see the group."""

    id: str
    """JID of the group."""
    name: NotRequired[str]
    description: NotRequired[str]
    size: NotRequired[int]
    """Number of participants."""
    isAdmin: NotRequired[bool]
    """Whether the session's number is an admin."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC."""
    announce: NotRequired[bool]
    locked: NotRequired[bool]
    ephemeral: NotRequired[int]
    community: NotRequired[ChangedGroupCommunity]


class ChangedGroupCommunity(TypedDict):
    id: str
    isAnnouncement: bool


class GroupParticipantsEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["group.participants"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: GroupParticipantsEventData


class ChangedParticipant(TypedDict):
    id: str
    number: str | None
    username: NotRequired[str]
    """The person's username, without an @; left out if WhatsApp told none."""


class WebhookDisabledEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["webhook.disabled"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: WebhookDisabledEventData


class WebhookFailingEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["webhook.failing"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: WebhookFailingEventData


class WebhookTestEvent(TypedDict):
    id: NotRequired[str]
    """Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header."""
    createdAt: NotRequired[str]
    """ISO 8601, UTC. In the feed and the stream."""
    event: Literal["webhook.test"]
    sessionId: str
    sessionName: str
    """Name of the session."""
    data: WebhookTestEventData


class Problem(TypedDict):
    type: str
    """Link to the error's entry in the API reference."""
    title: str
    status: int
    detail: str
    """What went wrong in this request, in one sentence."""
    code: Literal["malformed_json", "validation_failed", "api_key_missing", "api_key_invalid", "account_deactivated", "ip_not_allowed", "domain_not_allowed", "subscription_expired", "scope_missing", "recipient_opted_out", "network_forbidden", "limit_reached", "session_limit_reached", "not_found", "method_not_allowed", "session_not_connected", "no_connected_session", "username_key_required", "network_conflict", "passkey_not_requested", "not_editable", "not_revocable", "template_exists", "not_waiting_for_approval", "not_cancellable", "payload_too_large", "unsupported_media_type", "range_not_satisfiable", "idempotency_key_reused", "passkey_refused", "rate_limited", "too_much_at_once", "quota_exceeded", "internal_error", "network_error", "storage_unavailable", "busy", "network_timeout"]
    requestId: str
    """Id of the request, also in the `x-request-id` header and in the gateway's log."""
    errors: NotRequired[list[FieldError]]
    """Only with `validation_failed`: each invalid field and what is wrong with it. Paths look like `messages.2.to`."""
    remaining: NotRequired[ProblemRemaining]


class FieldError(TypedDict):
    path: str
    message: str

Priority: TypeAlias = "Literal['high', 'normal', 'low']"


class Session(TypedDict):
    name: str
    status: SessionStatus
    phone: str | None
    """The linked phone number, digits only; null until linked."""
    lastUsed: str
    """ISO 8601, UTC."""
    createdAt: str
    """ISO 8601, UTC."""
    id: str
    """The same as `_id`."""
    passkey: SessionPasskey | None
    """Set while linking requires the account's passkey; see `GET /v1/sessions/{id}/passkey`."""
    restriction: Restriction | None
    proxy: str | None
    """The session's proxy, without its credentials."""
    reason: str | None
    """Why the session is not connected, or why the last attempt to link it failed; null if there is no problem."""

SessionStatus: TypeAlias = "Literal['initializing', 'qr', 'pairing', 'connected', 'disconnected', 'logged_out']"


class Restriction(TypedDict):
    """Set while WhatsApp does not allow the number to start new chats. Existing chats continue."""

    kind: str
    """WhatsApp's name for the restriction."""
    until: str | None
    """ISO 8601, UTC."""


class SessionCreation(TypedDict):
    name: str
    pairingPhone: NotRequired[str | None]
    """Phone number. If given, the session is linked by pairing code instead of QR."""
    proxy: NotRequired[str | None]
    """Proxy for all traffic of the session: `socks5://user:password@host:port`, `http://…` or `https://…`; null for none."""


class SessionChange(TypedDict):
    name: NotRequired[str | None]
    proxy: NotRequired[str | None]
    """Proxy for all traffic of the session: `socks5://user:password@host:port`, `http://…` or `https://…`; null for none."""


class LinkingResult(TypedDict):
    status: SessionStatus
    qr: str | None
    """The QR as the data URL of a PNG image; null when there is none to scan."""
    pairingCode: str | None
    """Code to enter on the phone; null when linking by QR."""


class PasskeyRequest(TypedDict):
    stage: Literal["required", "confirm"]
    """`required`: sign the challenge. `confirm`: compare the code with the one on the phone."""
    options: dict[str, Any] | None
    """WhatsApp's WebAuthn request options (`challenge`, `rpId`, `allowCredentials`, …), to pass to `navigator.credentials.get({ publicKey })` on https://web.whatsapp.com; null in stage `confirm`."""
    code: str | None
    """The code, `XXXX-XXXX`, in stage `confirm`; otherwise null."""
    expiresAt: str
    """When this challenge is replaced by a new one or by a new QR."""


class PasskeySignature(TypedDict):
    assertion: PasskeyAssertion


class PasskeyAssertion(TypedDict):
    """A WebAuthn credential as returned by `PublicKeyCredential.toJSON()`."""

    id: str
    rawId: str
    type: Literal["public-key"]
    authenticatorAttachment: NotRequired[str | None]
    response: PasskeyAssertionResponse
    clientExtensionResults: NotRequired[Any]
    """Output of WebAuthn extensions, passed on unchanged."""


class SessionHealth(TypedDict):
    connectedSince: str | None
    """When the session connected; null while it is not connected."""
    lastFrameAt: str | None
    """When WhatsApp last sent anything on this connection."""
    lastReceivedAt: str | None
    """When the last message was received on this connection."""
    lastSentAt: str | None
    """When WhatsApp last acknowledged a message on this connection."""
    pingMs: int | None
    """Round-trip time to WhatsApp, measured by this request."""
    restriction: Restriction | None
    newChats: SessionHealthNewChats | None
    """New chats that WhatsApp allows; null if it sets no limit or does not report one."""
    planNewChats: SessionHealthPlanNewChats | None
    """New chats that the plan allows today; null for no limit."""
    queue: SessionHealthQueue
    undecryptable: int
    """Messages on this connection that could not be decrypted when they arrived."""
    webVersion: str | None
    """The WhatsApp Web version that the session announces."""
    webVersionSource: str | None
    """Source of the version: `setting`, `built in`, or the host that it was fetched from."""
    webVersionSince: str | None
    """When the version was fetched; if it is built in, when it was released; if set, when the gateway started."""
    webVersionExpiresAt: str | None
    """When WhatsApp will refuse the version; null if it has not said so on this connection."""


class WaitsFor(TypedDict):
    """What holds the message or queue back, apart from its turn. Absent or null if nothing does."""

    kind: Literal["approval", "schedule", "paused", "line", "hours", "new_chats"]
    """`approval`: a person has to approve it. `schedule`: waits for its `sendAt`. `paused`: the queue is paused. `line`: the session is not connected. `hours`: outside the plan's sending hours. `new_chats`: the plan or WhatsApp does not allow the session to start more chats for now."""
    until: str | None
    """When sending resumes; null if no time is known."""


class NumberCheck(TypedDict):
    exists: bool
    """Whether the number is on WhatsApp."""
    jid: str | None
    """Null for a username that nobody has."""


class NumberToCheck(TypedDict):
    number: NotRequired[str | None]
    """Phone number with country code. Signs that people write in numbers are dropped."""
    username: NotRequired[str | None]
    pin: NotRequired[str | None]
    """The key that the owner of the username demands."""


class Contact(TypedDict):
    exists: bool
    """Whether the number is on WhatsApp."""
    jid: str | None
    """Null for a username that nobody has."""
    lid: str | None
    """The contact's JID that hides the number."""
    name: str | None
    """The contact's public name, from their latest message since the session connected."""
    about: str | None
    pictureUrl: str | None
    """Address of the picture on WhatsApp's servers, valid for a few days; null if there is none or it is hidden."""
    business: ContactBusiness | None


class BlockState(TypedDict):
    number: str
    blocked: bool


class BlockedContact(TypedDict):
    jid: str
    number: str | None


class Profile(TypedDict):
    name: str | None
    username: str | None
    """Without an @; null if the account has none."""
    about: str | None
    picture: str | None
    """Same as `pictureUrl`, under the name used to change it."""
    pictureUrl: str | None
    """Address of the picture on WhatsApp's servers, valid for a few days; null if there is none or it is hidden."""


class ProfileChange(TypedDict):
    name: NotRequired[str | None]
    about: NotRequired[str | None]
    picture: NotRequired[str | None]
    """A square JPEG of at most 1 MiB, in base64, optionally with the prefix `data:image/jpeg;base64,`. An empty string removes the picture."""


class Group(TypedDict):
    id: str
    """JID of the group."""
    name: str
    description: str
    size: int
    """Number of participants."""
    isAdmin: bool
    """Whether the session's number is an admin."""
    createdAt: str
    """ISO 8601, UTC."""
    community: NotRequired[GroupCommunity]


class GroupCommunity(TypedDict):
    """Absent outside of communities."""

    id: str
    """JID of the community."""
    isAnnouncement: bool
    """Whether its admins write to all of it here."""


class CreatedGroup(TypedDict):
    id: str
    """JID of the group."""
    name: str
    description: str
    size: int
    """Number of participants."""
    isAdmin: bool
    """Whether the session's number is an admin."""
    createdAt: str
    """ISO 8601, UTC."""
    community: NotRequired[GroupCommunity]
    announce: bool
    """Whether only admins can send messages."""
    locked: bool
    """Whether only admins can change the group's name, description, picture and settings."""
    ephemeral: int
    """Seconds after which messages disappear; 0 for never."""
    participants: list[GroupParticipant]
    results: list[ParticipantResult]


class GroupParticipant(TypedDict):
    id: str
    """JID of the participant in this group."""
    number: str | None
    """Phone number, digits only; null if WhatsApp does not reveal it."""
    username: NotRequired[str]
    """Without an @; left out if WhatsApp told none."""
    isAdmin: bool


class ParticipantResult(TypedDict):
    number: str
    """The number as given in the request."""
    status: Literal["ok", "failed"]
    error: ParticipantResultError | None


class GroupCreation(TypedDict):
    name: str
    participants: list[str]


class WholeGroup(TypedDict):
    id: str
    """JID of the group."""
    name: str
    description: str
    size: int
    """Number of participants."""
    isAdmin: bool
    """Whether the session's number is an admin."""
    createdAt: str
    """ISO 8601, UTC."""
    community: NotRequired[GroupCommunity]
    announce: bool
    """Whether only admins can send messages."""
    locked: bool
    """Whether only admins can change the group's name, description, picture and settings."""
    ephemeral: int
    """Seconds after which messages disappear; 0 for never."""
    participants: list[GroupParticipant]


class GroupChange(TypedDict):
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    announce: NotRequired[bool | None]
    locked: NotRequired[bool | None]
    ephemeral: NotRequired[Literal[0, 86400, 604800, 7776000] | None]
    picture: NotRequired[str | None]
    """A square JPEG of at most 1 MiB, in base64, optionally with the prefix `data:image/jpeg;base64,`. An empty string removes the picture."""


class LeftGroup(TypedDict):
    id: str
    """JID of the group."""


class DeletedGroupMessage(TypedDict):
    group: str
    """JID of the group."""
    messageId: str


class ParticipantsChange(TypedDict):
    action: Literal["add", "remove", "promote", "demote"]
    participants: list[str]


class InviteLink(TypedDict):
    invite: str


class JoinedGroup(TypedDict):
    id: str
    """JID of the group."""
    status: Literal["joined", "asked"]


class Invitation(TypedDict):
    invite: str


class JoinRequest(TypedDict):
    id: str
    number: str | None


class RequestsAnswer(TypedDict):
    action: Literal["approve", "reject"]
    participants: list[str]


class Chat(TypedDict):
    chat: str
    """Names the chat in paths and in `to`: a number, a group's JID, or a JID ending in `@lid`."""
    number: str | None
    """Phone number, digits only; null if WhatsApp never revealed it, and for a group."""
    lid: str | None
    """The person's JID that hides the number."""
    username: str | None
    """The person's user name; null if WhatsApp did not report one."""
    name: str | None
    """The public name of the person, or the name of the group, if known."""
    isGroup: bool
    unread: int
    """Messages received since the chat was last read, on the phone or through the API, or answered."""
    lastAt: str
    """When the newest message was received or sent."""
    lastMessage: ChatMessage | None
    """Null if it was erased, or is no longer kept."""


class ChatMessage(TypedDict):
    messageId: str
    """The gateway's id (`msg_…`) of a message sent through the API, WhatsApp's id of any other."""
    networkId: str
    """WhatsApp's id."""
    direction: Literal["in", "out"]
    """`out`: sent through the API, or written on the owner's phone."""
    author: ChatAuthor | None
    """Who wrote it; null for `out`."""
    type: str
    """Of a message sent through the API, its type in the history (`text`, `image`, …); of any other, its type in the event (`conversation`, `imageMessage`, …)."""
    text: str | None
    """The text or caption, as last edited; null for a deleted message."""
    media: ChatFile | None
    details: MessageDetails | None
    quoted: ChatQuote | None
    """The message that this one replies to, by WhatsApp's id."""
    status: Literal["queued", "processing", "sent", "failed", "delivered", "read"] | None
    """Of a message sent through the API; null for any other."""
    error: MessageError | None
    timestamp: str
    """ISO 8601, UTC."""
    editedAt: str | None
    """ISO 8601, UTC."""
    deletedAt: str | None
    """ISO 8601, UTC."""
    reactions: list[ChatReaction]
    tags: list[str]


class ChatAuthor(TypedDict):
    number: str | None
    """Phone number, digits only; null if WhatsApp never revealed it, and for a group."""
    name: str | None


class ChatFile(TypedDict):
    url: str | None
    """Download URL of a received file; null when it is no longer valid."""
    mimetype: str
    size: int
    filename: str
    reason: NotRequired[str]
    """Why `url` is null."""


class ChatQuote(TypedDict):
    messageId: str
    fromMe: bool
    participant: str | None
    text: str | None


class MessageError(TypedDict):
    code: str
    message: str


class ChatReaction(TypedDict):
    number: str | None
    """Phone number, digits only; null if WhatsApp never revealed it, and for a group."""
    emoji: str


class ChatContact(TypedDict):
    number: str | None
    """Phone number, digits only; null if WhatsApp never revealed it, and for a group."""
    lid: str | None
    """The person's JID that hides the number."""
    username: str | None
    """The person's user name; null if WhatsApp did not report one."""
    name: str | None
    """The public name of the person, or the name of the group, if known."""
    chat: str


class ChatState(TypedDict):
    chat: str
    state: str


class ChatStateChange(TypedDict):
    state: Literal["typing", "recording", "paused"]


class ReadMessages(TypedDict):
    chat: str
    messageIds: list[str]


class ReadRequest(TypedDict):
    messageId: NotRequired[str | None]
    """`messageId` of a `message.received` event."""


class QueuedMessage(TypedDict):
    messageId: str
    """Id of the message."""
    to: str
    status: Literal["queued", "processing"]
    position: int
    """Position in the queue. 1 is the message being sent, or the next to be sent."""
    priority: Priority
    estimatedDeparture: str | None
    """Null while the session is not connected, its queue is paused, or the plan allows no new chat."""
    waitsFor: WaitsFor | None


class Acknowledgement(TypedDict):
    messageId: str
    """Id of the message."""
    status: Literal["queued"]
    jobId: str
    """Id of the queue job."""


class TextMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    text: str
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class LocationMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    latitude: float
    """Degrees (WGS 84)."""
    longitude: float
    """Degrees (WGS 84)."""
    name: NotRequired[str | None]
    """Name of the place."""
    address: NotRequired[str | None]
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class ContactMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    contacts: list[ContactCard]
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class ContactCard(TypedDict):
    name: str
    phone: str
    """Phone number with country code. Signs that people write in numbers are dropped."""
    organization: NotRequired[str | None]


class PollMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    question: str
    options: list[str]
    multiple: NotRequired[bool | None]
    """Whether a voter may choose several options. Defaults to false."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class ChoicesMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    text: str
    footer: NotRequired[str | None]
    """Small print below."""
    options: list[ChoiceOption]
    style: NotRequired[Literal["auto", "numbers", "poll", "buttons", "list"] | None]
    """Defaults to `auto`."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class ChoiceOption(TypedDict):
    id: NotRequired[str | None]
    """Comes back in `choice.made`. Defaults to the option's number."""
    label: str
    description: NotRequired[str | None]


class ReactionMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    messageId: str
    """Id of a message: `msg_…`, or the `messageId` of an event."""
    emoji: str
    """One emoji. An empty string removes the reaction."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class ForwardMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    messageId: str
    """Id of a message: `msg_…`, or the `messageId` of an event."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class TemplateMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    template: str
    """Name of the template."""
    language: NotRequired[str | None]
    """Language of the recipient. Without a template in it, the one in its main language is sent (`es` for `es_MX`), or else the one that was made first."""
    variables: NotRequired[dict[str, str] | None]
    """The value of each variable by its name. For `{{1}}`, `{{2}}`, … a list is taken too."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class FileMessage(TypedDict):
    sessionId: NotRequired[str]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    caption: NotRequired[str]
    replyTo: NotRequired[str]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[str]
    """Numbers or JIDs to mention, separated by commas, or `all` in a group."""
    viewOnce: NotRequired[Literal["true", "false"]]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[Literal["true", "false"]]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[str]
    """Tags, separated by commas."""
    cancelOnReply: NotRequired[Literal["true", "false"]]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority]


class DocumentMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    file: NotRequired[str | None]
    """The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded."""
    fileUrl: NotRequired[str | None]
    """URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    filename: NotRequired[str | None]
    """File name with extension. Required with `file`; with `fileUrl`, replaces the name given by the server."""
    caption: NotRequired[str | None]


class StickerMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    file: NotRequired[str | None]
    """The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded."""
    fileUrl: NotRequired[str | None]
    """URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""


class VoiceMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    file: NotRequired[str | None]
    """The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded."""
    fileUrl: NotRequired[str | None]
    """URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""


class PdfMessage(TypedDict):
    file: str
    """The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded."""
    number: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    message: NotRequired[str | None]
    """Text that accompanies the document."""
    filename: NotRequired[str | None]
    """File name, to which `.pdf` is added if it does not end so. Defaults to `document.pdf`."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class StatusMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    text: NotRequired[str | None]
    file: NotRequired[str | None]
    """The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded."""
    fileUrl: NotRequired[str | None]
    """URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent."""
    filename: NotRequired[str | None]
    """Required with `file`. The extension decides the type."""
    caption: NotRequired[str | None]
    """Caption of an image or video."""
    audience: list[str]
    """Numbers that can see the status. Numbers that are not on WhatsApp are skipped."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class BulkAcknowledgement(TypedDict):
    bulkId: str
    """Id of the bulk."""
    total: int
    status: Literal["queued"]
    messages: list[BulkItemAcknowledgement]


class BulkItemAcknowledgement(TypedDict):
    index: int
    to: str
    messageId: str
    """Id of the message."""
    status: Literal["queued"]
    jobId: str
    """Id of the queue job."""


class BulkMessage(TypedDict):
    sessionId: NotRequired[str | None]
    """Session that sends the message. Defaults to the account's first connected session, which is the oldest."""
    messages: list[BulkItem]
    ttl: NotRequired[int | None]
    """Seconds the message may wait before it fails as `expired`. Defaults to 24 hours."""
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class BulkItem(TypedDict):
    to: str
    """Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`."""
    text: NotRequired[str | None]
    fileUrl: NotRequired[str | None]
    """URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent."""
    caption: NotRequired[str | None]
    """Caption of the file."""
    template: NotRequired[str | None]
    """Name of a template."""
    language: NotRequired[str | None]
    """Language of the recipient. Without a template in it, the one in its main language is sent (`es` for `es_MX`), or else the one that was made first."""
    variables: NotRequired[dict[str, str] | None]
    """The value of each variable by its name. For `{{1}}`, `{{2}}`, … a list is taken too."""
    replyTo: NotRequired[str | None]
    """Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session."""
    mentions: NotRequired[list[str] | None]
    """Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`."""
    viewOnce: NotRequired[bool | None]
    """Whether an image, video or audio message can be opened only once."""
    linkPreview: NotRequired[bool | None]
    """Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview."""
    typing: NotRequired[int | None]
    """Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages."""
    tags: NotRequired[list[str] | None]
    """Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call."""
    cancelOnReply: NotRequired[bool | None]
    """Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not."""


class MessageStatus(TypedDict):
    messageId: str
    """Id of the message."""
    status: MessageState
    sentAt: str | None
    """When WhatsApp acknowledged the message; null until then."""
    error: MessageError | None
    """Why the message failed; null otherwise."""

MessageState: TypeAlias = "Literal['queued', 'processing', 'sent', 'failed']"


class HistoryItem(TypedDict):
    messageId: str
    """Id of the message."""
    jobId: str
    """Id of the queue job."""
    sessionId: str
    """Id of the session."""
    to: str
    type: MessageType
    text: str | None
    caption: str | None
    filename: str | None
    details: dict[str, Any] | None
    """Content of a location, contact or poll that has no other field; null for other messages."""
    status: MessageState
    error: MessageError | None
    priority: Priority
    tags: list[str]
    """The tags of the send."""
    sendAt: str | None
    """Earliest time the message is sent; null if it is not scheduled."""
    createdAt: str
    """ISO 8601, UTC."""
    sentAt: str | None
    """ISO 8601, UTC."""
    deliveredAt: str | None
    """ISO 8601, UTC."""
    readAt: str | None
    """ISO 8601, UTC."""
    erasedAt: NotRequired[str]
    """Present only if the recipient's data was erased: then `to` is empty and the content is gone."""
    waitsFor: NotRequired[WaitsFor]
    proposedBy: NotRequired[str]
    """Name of the key that proposed the message; absent if it needed no approval."""

MessageType: TypeAlias = "Literal['text', 'location', 'contact', 'poll', 'reaction', 'image', 'video', 'audio', 'document', 'sticker', 'voice', 'status', 'choices']"


class HistoryPagination(TypedDict):
    page: int
    limit: int
    total: int
    """Number of items on all pages."""
    next: NotRequired[str]
    """Present only if the page was cut at 8 MiB because of long messages. To continue, pass it as `before` and start again at page 1."""


class MessageRecord(TypedDict):
    messageId: str
    """Id of the message."""
    jobId: str
    """Id of the queue job."""
    sessionId: str
    """Id of the session."""
    to: str
    type: MessageType
    text: str | None
    caption: str | None
    filename: str | None
    details: dict[str, Any] | None
    """Content of a location, contact or poll that has no other field; null for other messages."""
    status: MessageState
    error: MessageError | None
    priority: Priority
    tags: list[str]
    """The tags of the send."""
    sendAt: str | None
    """Earliest time the message is sent; null if it is not scheduled."""
    createdAt: str
    """ISO 8601, UTC."""
    sentAt: str | None
    """ISO 8601, UTC."""
    deliveredAt: str | None
    """ISO 8601, UTC."""
    readAt: str | None
    """ISO 8601, UTC."""
    erasedAt: NotRequired[str]
    """Present only if the recipient's data was erased: then `to` is empty and the content is gone."""
    waitsFor: NotRequired[WaitsFor]
    proposedBy: NotRequired[str]
    """Name of the key that proposed the message; absent if it needed no approval."""
    life: list[LifeEntry]
    """Status changes, oldest first. `edited` has the time of the latest edit after sending."""
    poll: MessageRecordPoll | None
    """Results of a poll, counting each voter's latest choice; null for other messages."""


class LifeEntry(TypedDict):
    status: Literal["queued", "approved", "processing", "sent", "failed", "delivered", "read", "edited", "revoked"]
    at: str
    """ISO 8601, UTC."""


class PollOption(TypedDict):
    name: str
    votes: int


class MessageEdit(TypedDict):
    text: NotRequired[str | None]
    sendAt: NotRequired[str | None]
    """Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others."""
    priority: NotRequired[Priority | None]


class CancelledMessages(TypedDict):
    cancelled: int
    """Number of messages cancelled."""


class CancelledBulk(TypedDict):
    bulkId: str
    """Id of the bulk."""
    cancelled: int
    """Number of messages cancelled."""
    messageIds: list[str]


class Bulk(TypedDict):
    bulkId: str
    """Id of the bulk."""
    sessionId: str
    """Id of the session."""
    total: int
    queued: int
    """Messages that are neither sent nor failed yet."""
    sent: int
    failed: int
    """Includes cancelled messages."""
    eta: str | None
    """Estimated time of the last message; null if none is waiting or there is no estimate."""
    createdAt: str
    """ISO 8601, UTC."""


class Pagination(TypedDict):
    page: int
    limit: int
    total: int
    """Number of items on all pages."""


class Template(TypedDict):
    name: str
    language: str
    text: str
    header: str | None
    footer: str | None
    options: list[Choice]
    variables: list[str]
    """Names of the variables, in the order of their first use."""
    createdAt: str
    """ISO 8601, UTC."""
    updatedAt: str
    """ISO 8601, UTC."""


class Choice(TypedDict):
    id: str
    label: str
    description: str | None


class TemplateCreation(TypedDict):
    name: str
    """Name of the template."""
    language: NotRequired[str | None]
    """Defaults to `en`."""
    text: str
    """The text. `{{name}}`, or `{{1}}`, is a variable."""
    header: NotRequired[str | None]
    """Heading, shown in bold."""
    footer: NotRequired[str | None]
    """Small print below."""
    options: NotRequired[list[ChoiceOption] | None]
    """Options to choose from: the template is then sent as choices."""


class TemplateTexts(TypedDict):
    text: str
    """The text. `{{name}}`, or `{{1}}`, is a variable."""
    header: NotRequired[str | None]
    """Heading, shown in bold."""
    footer: NotRequired[str | None]
    """Small print below."""
    options: NotRequired[list[ChoiceOption] | None]
    """Options to choose from: the template is then sent as choices."""


class Verification(TypedDict):
    id: str
    """Id of the verification."""
    sessionId: str
    """Id of the session."""
    status: Literal["pending", "passed", "failed", "expired"]
    code: str
    text: str
    """The text that the person sends."""
    link: str
    """Opens WhatsApp with the text, ready to be sent to the session's number."""
    qr: str
    """The link as a QR code: the data URL of a PNG image."""
    number: str | None
    """The number that sent the code; until then the one that was asked for. Null if it is not known."""
    chat: str | None
    """JID of the chat that sent the code; null until then."""
    reason: str | None
    """Why it failed: `expired`, `other_number`, `number_hidden`."""
    createdAt: str
    """ISO 8601, UTC."""
    expiresAt: str
    """ISO 8601, UTC."""


class VerificationCreation(TypedDict):
    purpose: NotRequired[str | None]
    """What it is for, shown before the code in the text that the person sends."""
    number: NotRequired[str | None]
    """The only number that passes. Any number does if it is left out."""
    ttl: NotRequired[int | None]
    """Seconds until it expires. Defaults to 600."""
    sessionId: NotRequired[str | None]
    """The session that receives the code. Defaults to the oldest connected one."""


class Webhook(TypedDict):
    id: str
    """Id of the webhook."""
    url: str
    format: WebhookFormat
    events: list[EventName]
    sessionId: str | None
    """Only events of this session; null for all sessions."""
    chats: WebhookChats
    headerNames: list[str]
    """Names of the additional headers, in lower case. Their values are never shown."""
    active: bool
    switchedOff: str | None
    """Why the gateway disabled the webhook; null if it did not."""
    failingSince: str | None
    """Since when every finished delivery has failed; null if the latest one succeeded."""
    previousSecretUntil: str | None
    """Until when requests are also signed with the previous secret."""
    createdAt: str
    """ISO 8601, UTC."""
    updatedAt: str
    """ISO 8601, UTC."""

WebhookFormat: TypeAlias = "Literal['paloma', 'cloud']"

EventName: TypeAlias = "Literal['message.sent', 'message.status', 'message.failed', 'message.proposed', 'message.received', 'session.connected', 'session.disconnected', 'session.qr', 'session.passkey', 'session.restricted', 'session.degraded', 'message.echo', 'message.edited', 'message.deleted', 'poll.vote', 'choice.made', 'verification.passed', 'verification.failed', 'bulk.finished', 'recipient.opted_out', 'call.received', 'presence.updated', 'group.updated', 'group.participants', 'webhook.failing', 'webhook.disabled', 'webhook.test']"

WebhookChats: TypeAlias = "Literal['all', 'direct', 'groups']"


class WebhookWithSecret(TypedDict):
    id: str
    """Id of the webhook."""
    url: str
    format: WebhookFormat
    events: list[EventName]
    sessionId: str | None
    """Only events of this session; null for all sessions."""
    chats: WebhookChats
    headerNames: list[str]
    """Names of the additional headers, in lower case. Their values are never shown."""
    active: bool
    switchedOff: str | None
    """Why the gateway disabled the webhook; null if it did not."""
    failingSince: str | None
    """Since when every finished delivery has failed; null if the latest one succeeded."""
    previousSecretUntil: str | None
    """Until when requests are also signed with the previous secret."""
    createdAt: str
    """ISO 8601, UTC."""
    updatedAt: str
    """ISO 8601, UTC."""
    secret: str
    """Secret for verifying signatures. Shown only in this response."""


class WebhookCreation(TypedDict):
    url: str
    """HTTPS URL to which events are posted. Plain HTTP is accepted for hosts that the operator allows."""
    format: NotRequired[WebhookFormat | None]
    """Defaults to `paloma`."""
    verifyToken: NotRequired[str | None]
    """Of the format `cloud`, which needs it: at creation and when the URL is changed, the target is asked `GET ?hub.mode=subscribe&hub.verify_token=…&hub.challenge=…`, and must answer with the challenge."""
    events: NotRequired[list[EventName] | None]
    """Events to subscribe to. Defaults to all except `presence.updated`; in the format `cloud`, to those that it can tell."""
    sessionId: NotRequired[str | None]
    """Restrict the webhook to one session. Defaults to all sessions."""
    chats: NotRequired[WebhookChats | None]
    """Defaults to `all`, in the format `cloud` to `direct`."""
    headers: NotRequired[dict[str, str] | None]
    """Headers sent with every request, such as `Authorization`. Stored encrypted and never shown."""


class WebhookChange(TypedDict):
    url: NotRequired[str | None]
    """HTTPS URL to which events are posted. Plain HTTP is accepted for hosts that the operator allows."""
    events: NotRequired[list[EventName] | None]
    chats: NotRequired[WebhookChats | None]
    headers: NotRequired[dict[str, str] | None]
    """Replaces all additional headers; `{}` removes them."""
    active: NotRequired[bool | None]


class Delivery(TypedDict):
    id: str
    """Id of the delivery."""
    eventId: str
    event: EventName
    status: Literal["pending", "delivered", "failed"]
    attempts: list[DeliveryAttempt]
    createdAt: str
    """ISO 8601, UTC."""
    nextAttemptAt: str | None
    """When the next attempt is due; null if none is, or while the webhook is not active."""


class DeliveryAttempt(TypedDict):
    at: str
    """ISO 8601, UTC."""
    status: int | None
    """HTTP status of the response; null if there was none."""
    durationMs: float
    error: str | None


class RedeliverSince(TypedDict):
    since: str


class EventPage(TypedDict):
    data: list[AnyEvent]
    next: str | None
    gap: bool
    """True if some events after the cursor are no longer kept."""

AnyEvent: TypeAlias = "MessageSentEvent | MessageStatusEvent | MessageFailedEvent | MessageProposedEvent | MessageReceivedEvent | SessionConnectedEvent | SessionDisconnectedEvent | SessionQrEvent | SessionPasskeyEvent | SessionRestrictedEvent | SessionDegradedEvent | MessageEchoEvent | MessageEditedEvent | MessageDeletedEvent | PollVoteEvent | ChoiceMadeEvent | VerificationPassedEvent | VerificationFailedEvent | BulkFinishedEvent | RecipientOptedOutEvent | CallReceivedEvent | PresenceUpdatedEvent | GroupUpdatedEvent | GroupParticipantsEvent | WebhookDisabledEvent | WebhookFailingEvent | WebhookTestEvent"


class Account(TypedDict):
    id: str
    """Id of the account."""
    name: str
    plan: AccountPlan
    used: AccountUsed
    remaining: AccountRemaining
    allowedIps: list[str]
    """IP addresses and CIDR ranges that may use the key. Empty for any."""
    allowedDomains: list[str]
    """Domains, including their subdomains, whose pages may use the key. Empty for any."""
    expiresAt: str | None
    """When the subscription ends; null for never."""
    createdAt: str
    """ISO 8601, UTC."""
    optOutWords: list[str]
    """A person who sends one of these words, and nothing else, is opted out."""
    country: str | None
    """Country of numbers that are written in national form, with a 0 in front (ISO 3166). Null: they are refused."""

Weekday: TypeAlias = "Literal['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']"


class AccountEdit(TypedDict):
    optOutWords: NotRequired[list[str] | None]
    country: NotRequired[str | None]
    """ISO 3166; null for none."""


class Key(TypedDict):
    id: str
    """Id of the key."""
    name: str
    scopes: list[Scope]
    """`send`: send messages. `read`: all GET requests but the list of keys. `manage`: everything else. `propose`: send messages that wait until a person, or a key with `send`, approves them."""
    allowedIps: list[str]
    """IP addresses and CIDR ranges that may use the key. Empty for any."""
    allowedDomains: list[str]
    """Domains, including their subdomains, whose pages may use the key. Empty for any."""
    createdAt: str
    """ISO 8601, UTC."""
    lastUsedAt: str | None
    """When the key was last used, to the minute; null for never."""

Scope: TypeAlias = "Literal['send', 'read', 'manage', 'propose']"


class KeyWithSecret(TypedDict):
    id: str
    """Id of the key."""
    name: str
    scopes: list[Scope]
    """`send`: send messages. `read`: all GET requests but the list of keys. `manage`: everything else. `propose`: send messages that wait until a person, or a key with `send`, approves them."""
    allowedIps: list[str]
    """IP addresses and CIDR ranges that may use the key. Empty for any."""
    allowedDomains: list[str]
    """Domains, including their subdomains, whose pages may use the key. Empty for any."""
    createdAt: str
    """ISO 8601, UTC."""
    lastUsedAt: str | None
    """When the key was last used, to the minute; null for never."""
    key: str


class KeyCreation(TypedDict):
    name: str
    scopes: list[Scope]
    """`send`: send messages. `read`: all GET requests but the list of keys. `manage`: everything else. `propose`: send messages that wait until a person, or a key with `send`, approves them."""
    allowedIps: NotRequired[list[str] | None]
    allowedDomains: NotRequired[list[str] | None]


class OptOut(TypedDict):
    number: str
    """Phone number, digits only, or a JID ending in `@lid` if WhatsApp never revealed the number."""
    word: str | None
    """The word the person sent; null if the number was added through the API."""
    createdAt: str
    """ISO 8601, UTC."""


class Erasure(TypedDict):
    id: str
    """Id of the erasure."""
    status: Literal["running", "done"]
    messages: int
    """Messages that were emptied or no longer mention the number."""
    events: int
    """Events removed."""
    files: int
    """Received files removed."""
    keyId: str | None
    """Id of the key that requested the erasure; null for the account's own key or the panel."""
    askedAt: str
    """ISO 8601, UTC."""
    doneAt: str | None
    """ISO 8601, UTC."""


class Health(TypedDict):
    status: Literal["ok", "stopping", "storage_unavailable"]


class SessionList(TypedDict):
    data: list[Session]


class SessionResponse(TypedDict):
    data: Session


class PasskeyRequestResponse(TypedDict):
    data: PasskeyRequest


class SessionHealthResponse(TypedDict):
    data: SessionHealth


class NumberCheckResponse(TypedDict):
    data: NumberCheck


class ContactResponse(TypedDict):
    data: Contact


class BlockStateResponse(TypedDict):
    data: BlockState


class BlockedContactList(TypedDict):
    data: list[BlockedContact]


class ProfileResponse(TypedDict):
    data: Profile


class GroupList(TypedDict):
    data: list[Group]


class CreatedGroupResponse(TypedDict):
    data: CreatedGroup


class WholeGroupResponse(TypedDict):
    data: WholeGroup


class LeftGroupResponse(TypedDict):
    data: LeftGroup


class DeletedGroupMessageResponse(TypedDict):
    data: DeletedGroupMessage


class ParticipantResultList(TypedDict):
    data: list[ParticipantResult]


class InviteLinkResponse(TypedDict):
    data: InviteLink


class JoinedGroupResponse(TypedDict):
    data: JoinedGroup


class JoinRequestList(TypedDict):
    data: list[JoinRequest]


class ChatPage(TypedDict):
    data: list[Chat]
    next: str | None
    """Leads to the next page; null on the last one."""


class ChatResponse(TypedDict):
    data: Chat


class ChatMessagePage(TypedDict):
    data: list[ChatMessage]
    next: str | None
    """Leads to the next page; null on the last one."""


class ChatContactPage(TypedDict):
    data: list[ChatContact]
    next: str | None
    """Leads to the next page; null on the last one."""


class ChatStateResponse(TypedDict):
    data: ChatState


class ReadMessagesResponse(TypedDict):
    data: ReadMessages


class QueuedMessageList(TypedDict):
    data: list[QueuedMessage]


class HistoryItemPage(TypedDict):
    data: list[HistoryItem]
    pagination: HistoryPagination


class MessageRecordResponse(TypedDict):
    data: MessageRecord


class CancelMessageResult(TypedDict):
    data: HistoryItem | CancelledBulk


class CancelledMessagesResponse(TypedDict):
    data: CancelledMessages


class BulkPage(TypedDict):
    data: list[Bulk]
    pagination: Pagination


class BulkResponse(TypedDict):
    data: Bulk


class TemplatePage(TypedDict):
    data: list[Template]
    pagination: Pagination


class TemplateResponse(TypedDict):
    data: Template


class TemplateList(TypedDict):
    data: list[Template]


class VerificationResponse(TypedDict):
    data: Verification


class WebhookList(TypedDict):
    data: list[Webhook]


class WebhookWithSecretResponse(TypedDict):
    data: WebhookWithSecret


class WebhookResponse(TypedDict):
    data: Webhook


class TestWebhookResult(TypedDict):
    data: TestWebhookResultData


class DeliveryPage(TypedDict):
    data: list[Delivery]
    next: str | None
    """Pass as `before` for the next page; null on the last page."""


class DeliveryResponse(TypedDict):
    data: Delivery


class RedeliverSinceResult(TypedDict):
    data: RedeliverSinceResultData


class AccountResponse(TypedDict):
    data: Account


class KeyList(TypedDict):
    data: list[Key]


class KeyWithSecretResponse(TypedDict):
    data: KeyWithSecret


class KeyResponse(TypedDict):
    data: Key


class OptOutPage(TypedDict):
    data: list[OptOut]
    pagination: Pagination


class OptOutResponse(TypedDict):
    data: OptOut


class ErasureResponse(TypedDict):
    data: Erasure


class ErasurePage(TypedDict):
    data: list[Erasure]
    pagination: Pagination


class MessageSentEventData(TypedDict):
    messageId: str
    """The gateway's id of the message, as returned by the send."""
    networkId: str
    """WhatsApp's id of the message."""
    jobId: str
    """Id of the queue job, as returned by the send."""
    to: str
    """The recipient as given in the send."""
    sentAt: str
    """ISO 8601, UTC."""
    tags: NotRequired[list[str]]
    """The tags of the send; absent if it had none."""


class MessageStatusEventData(TypedDict):
    messageId: str
    """The gateway's id of the message, as returned by the send."""
    networkId: str
    """WhatsApp's id of the message."""
    status: Literal["delivered", "read"]
    participant: str | None
    """JID of the person who received or read it in a group; null in a 1:1 chat."""
    at: str
    """ISO 8601, UTC."""
    tags: NotRequired[list[str]]
    """The tags of the send; absent if it had none."""


class MessageFailedEventDataError(TypedDict):
    code: str
    """Stable code: cancelled, cancelled_by_reply, expired, number_not_registered, refused, unacknowledged, …"""
    message: str
    """The reason, in one sentence."""


class MessageFailedEventData(TypedDict):
    messageId: str
    """The gateway's id of the message, as returned by the send."""
    networkId: str
    """WhatsApp's id of the message."""
    jobId: str
    """Id of the queue job, as returned by the send."""
    to: str
    """The recipient as given in the send."""
    error: MessageFailedEventDataError
    tags: NotRequired[list[str]]
    """The tags of the send; absent if it had none."""


class MessageProposedEventData(TypedDict):
    messageId: str
    """The gateway's id of the message, as returned by the send."""
    to: str
    """The recipient as given in the send."""
    type: str
    """The kind of message, as in its record."""
    text: str | None
    """The text, or the caption of a file."""
    by: str
    """Name of the key."""


class MessageReceivedEventDataChoice(TypedDict):
    """The option of your choices that the message picks; `choice.made` tells it too."""

    messageId: str
    """The gateway's id of the message, as returned by the send."""
    id: str
    label: str

MessageReceivedEventData = TypedDict("MessageReceivedEventData", {
    "from": "str",
    "number": "str | None",
    "pushName": "str | None",
    "username": "NotRequired[str]",
    "messageId": "str",
    "timestamp": "int",
    "type": "Literal['conversation', 'extendedTextMessage', 'imageMessage', 'videoMessage', 'audioMessage', 'documentMessage', 'stickerMessage', 'reactionMessage', 'locationMessage', 'liveLocationMessage', 'contactMessage', 'contactsArrayMessage', 'pollCreationMessage', 'buttonsResponseMessage', 'listResponseMessage', 'unknown']",
    "text": "str | None",
    "media": "NotRequired[ReceivedFile]",
    "chat": "str",
    "participant": "NotRequired[str]",
    "quoted": "NotRequired[QuotedMessage]",
    "mentions": "NotRequired[list[str]]",
    "isForwarded": "bool",
    "viewOnce": "NotRequired[bool]",
    "ad": "NotRequired[dict[str, str]]",
    "choice": "NotRequired[MessageReceivedEventDataChoice]",
    "details": "NotRequired[MessageDetails]",
})


class SessionConnectedEventData(TypedDict):
    phone: str
    """The linked phone number, digits only."""


class SessionDisconnectedEventData(TypedDict):
    status: Literal["disconnected", "logged_out"]
    reason: str
    """The reason, in one sentence."""


class SessionQrEventData(TypedDict):
    qr: str
    """The QR as the data URL of a PNG image."""


class SessionPasskeyEventData(TypedDict):
    stage: Literal["required", "confirm"]
    """What a person has to do: sign the challenge, or compare the code."""
    expiresAt: str
    """ISO 8601, UTC."""


class SessionRestrictedEventData(TypedDict):
    active: bool
    """False when the account may start new chats again."""
    kind: str
    """WhatsApp's name for the restriction."""
    until: str | None
    """ISO 8601, UTC."""


class SessionDegradedEventData(TypedDict):
    reason: str | None
    """What is wrong, in one sentence; null once the session has recovered."""


class MessageEchoEventDataChoice(TypedDict):
    """The option of your choices that the message picks; `choice.made` tells it too."""

    messageId: str
    """The gateway's id of the message, as returned by the send."""
    id: str
    label: str

MessageEchoEventData = TypedDict("MessageEchoEventData", {
    "from": "str",
    "number": "str | None",
    "pushName": "str | None",
    "username": "NotRequired[str]",
    "messageId": "str",
    "timestamp": "int",
    "type": "Literal['conversation', 'extendedTextMessage', 'imageMessage', 'videoMessage', 'audioMessage', 'documentMessage', 'stickerMessage', 'reactionMessage', 'locationMessage', 'liveLocationMessage', 'contactMessage', 'contactsArrayMessage', 'pollCreationMessage', 'buttonsResponseMessage', 'listResponseMessage', 'unknown']",
    "text": "str | None",
    "media": "NotRequired[ReceivedFile]",
    "chat": "str",
    "participant": "NotRequired[str]",
    "quoted": "NotRequired[QuotedMessage]",
    "mentions": "NotRequired[list[str]]",
    "isForwarded": "bool",
    "viewOnce": "NotRequired[bool]",
    "ad": "NotRequired[dict[str, str]]",
    "choice": "NotRequired[MessageEchoEventDataChoice]",
    "details": "NotRequired[MessageDetails]",
    "fromMe": "bool",
})


class MessageEditedEventData(TypedDict):
    messageId: str
    """WhatsApp's id of the message."""
    chat: str
    """JID of the chat: the other person's or the group's."""
    number: str | None
    """Phone number of the person who did it, digits only; null if WhatsApp never revealed it."""
    text: str | None
    """The new text or caption."""


class MessageDeletedEventData(TypedDict):
    messageId: str
    """WhatsApp's id of the message."""
    chat: str
    """JID of the chat: the other person's or the group's."""
    number: str | None
    """Phone number of the person who did it, digits only; null if WhatsApp never revealed it."""


class PollVoteEventData(TypedDict):
    messageId: str | None
    """The gateway's id of the message, as returned by the send."""
    networkId: str
    """WhatsApp's id of the message."""
    chat: str
    """JID of the chat: the other person's or the group's."""
    number: str | None
    """Phone number of the person who did it, digits only; null if WhatsApp never revealed it."""
    options: list[str]
    """All options now chosen; empty if the vote was withdrawn."""


class ChoiceMadeEventData(TypedDict):
    messageId: str
    """The gateway's id of the message, as returned by the send."""
    networkId: str
    """WhatsApp's id of the message."""
    chat: str
    """JID of the chat: the other person's or the group's."""
    number: str | None
    """Phone number of the person who did it, digits only; null if WhatsApp never revealed it."""
    id: str
    """Id of the option, as given in the send; its number if none was given."""
    label: str
    how: Literal["text", "vote", "tap"]
    """Whether the person wrote it, voted in the poll or tapped it."""


class VerificationPassedEventData(TypedDict):
    id: str
    """Id of the verification."""
    number: str | None
    """Phone number of the person who did it, digits only; null if WhatsApp never revealed it."""
    chat: str
    """JID of the chat: the other person's or the group's."""


class VerificationFailedEventData(TypedDict):
    id: str
    """Id of the verification."""
    reason: str
    """Stable code: expired, other_number, number_hidden."""


class BulkFinishedEventData(TypedDict):
    bulkId: str
    """Id of the bulk, as returned by the send."""
    total: int
    sent: int
    failed: int
    """Includes cancelled messages."""


class RecipientOptedOutEventData(TypedDict):
    number: str
    """Phone number, digits only, or a JID ending in `@lid` if WhatsApp never revealed the number."""
    word: str
    """The word, as in the account's `optOutWords`."""


class CallReceivedEventData(TypedDict):
    callId: str
    """WhatsApp's id of the call."""
    chat: str
    """JID of the chat: the other person's or the group's."""
    number: str | None
    """Phone number of the person who did it, digits only; null if WhatsApp never revealed it."""
    video: bool


class PresenceUpdatedEventData(TypedDict):
    chat: str
    """JID of the chat: the other person's or the group's."""
    number: str | None
    """Phone number of the person who did it, digits only; null if WhatsApp never revealed it."""
    state: Literal["online", "offline", "typing", "recording", "paused"]


class GroupUpdatedEventData(TypedDict):
    group: ChangedGroup


class GroupParticipantsEventData(TypedDict):
    group: ChangedGroup
    action: Literal["add", "remove", "promote", "demote", "leave"]
    participants: list[ChangedParticipant]


class WebhookDisabledEventData(TypedDict):
    webhookId: str
    since: str
    """Since when nothing was delivered."""
    reason: str
    """Why it was disabled, and how to enable it again."""


class WebhookFailingEventData(TypedDict):
    webhookId: str
    url: str
    active: bool
    """False if the gateway disabled it."""
    failedInARow: int
    """Failed deliveries since the last success."""
    lastError: str
    since: str
    """ISO 8601, UTC."""


class WebhookTestEventData(TypedDict):
    webhookId: str
    at: str
    """ISO 8601, UTC."""


class ProblemRemaining(TypedDict):
    """Only with `quota_exceeded`: messages left in each quota."""

    daily: int | None
    monthly: int | None


class SessionPasskey(TypedDict):
    stage: Literal["required", "confirm"]
    expiresAt: str
    """ISO 8601, UTC."""


class PasskeyAssertionResponse(TypedDict):
    clientDataJSON: str
    authenticatorData: str
    signature: str
    userHandle: NotRequired[str | None]


class SessionHealthNewChats(TypedDict):
    used: int
    limit: int
    resetsAt: str | None
    """ISO 8601, UTC."""


class SessionHealthPlanNewChats(TypedDict):
    used: int
    limit: int
    resetsAt: str
    """ISO 8601, UTC."""


class SessionHealthQueue(TypedDict):
    waiting: int
    oldestSeconds: int
    waitsFor: WaitsFor | None


class ContactBusiness(TypedDict):
    description: str | None
    category: str | None
    address: str | None
    email: str | None
    websites: list[str]


class ParticipantResultError(TypedDict):
    code: str
    message: str


class MessageRecordPoll(TypedDict):
    voters: int
    """Number of people who have voted."""
    options: list[PollOption]

AccountPlanHours = TypedDict("AccountPlanHours", {
    "days": "list[Weekday]",
    "from": "str",
    "to": "str",
    "timeZone": "str",
})


class AccountPlan(TypedDict):
    name: str
    sessions: int
    """Maximum number of sessions."""
    daily: int | None
    """Messages per UTC day. Null for no limit."""
    monthly: int | None
    """Messages per UTC month. Null for no limit."""
    delayMinMs: int
    """Shortest pause between two messages of a session, in milliseconds."""
    delayMaxMs: int
    """Longest pause between two messages of a session, in milliseconds."""
    requestsPerMinute: int | None
    """Requests per minute and key. Null for no limit."""
    webhooks: int
    """Maximum number of webhooks."""
    eventStreams: int
    """Maximum number of concurrent event streams."""
    templates: int
    """Maximum number of templates."""
    verifications: int
    """Maximum number of open verifications."""
    hours: AccountPlanHours | None
    """Hours within which messages are sent; null for any time."""
    newChatsDaily: int | None
    """New chats that a session may start per day. Null for no limit."""
    warmUp: bool
    """Whether a session may start fewer new chats in its first four weeks."""
    typingMs: int
    """Milliseconds to show "typing…" before messages that set no `typing`."""


class AccountUsed(TypedDict):
    daily: int
    """Messages accepted this UTC day."""
    monthly: int
    """Messages accepted this UTC month."""


class AccountRemaining(TypedDict):
    daily: int | None
    """Messages left this UTC day. Null for no limit."""
    monthly: int | None
    """Messages left this UTC month. Null for no limit."""


class TestWebhookResultData(TypedDict):
    eventId: str


class RedeliverSinceResultData(TypedDict):
    scheduled: int


class Send(Protocol):
    @overload
    def __call__(
        self, kind: Literal["text"], message: TextMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["location"], message: LocationMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["contact"], message: ContactMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["poll"], message: PollMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["choices"], message: ChoicesMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["reaction"], message: ReactionMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["forward"], message: ForwardMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["template"], message: TemplateMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["document"], message: DocumentMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["sticker"], message: StickerMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["voice"], message: VoiceMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["status"], message: StatusMessage, *, idempotency_key: str | None = None
    ) -> Acknowledgement: ...

    @overload
    def __call__(
        self, kind: Literal["bulk"], message: BulkMessage, *, idempotency_key: str | None = None
    ) -> BulkAcknowledgement: ...
