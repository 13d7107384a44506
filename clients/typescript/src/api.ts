// deno-lint-ignore-file
// Made from the gateway's OpenAPI document by `deno task clients`; do not edit.
export interface components {
  schemas: {
    MessageSentEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.sent";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageSentEventData"];
    };
    MessageStatusEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.status";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageStatusEventData"];
    };
    MessageFailedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.failed";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageFailedEventData"];
    };
    MessageProposedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.proposed";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageProposedEventData"];
    };
    MessageReceivedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.received";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageReceivedEventData"];
    };
    /** @description Present only if the message has a file. */
    ReceivedFile: {
      /** @description Download URL, valid for 24 hours; null if the file could not be downloaded. */
      url: string | null;
      mimetype: string;
      /** @description Size in bytes. */
      size: number;
      /** @description Original name of a document; generated for other types. */
      filename: string;
      /** @description Why `url` is null. */
      reason?: string;
    };
    /** @description The message that this one replies to. */
    QuotedMessage: {
      /** @description WhatsApp's id of the message. */
      messageId: string;
      /** @description Whether the session sent it. */
      fromMe: boolean;
      /** @description JID of its author, if WhatsApp reports it. */
      participant: string | null;
      /** @description The text, or what else is shown first of the message. */
      text: string | null;
      /** @description Present if it is a status post. */
      status?: boolean;
    };
    /** @description Content that has no field of its own, by the type of the message. */
    MessageDetails:
      | components["schemas"]["CompanyMessageDetails"]
      | components["schemas"]["OrderDetails"]
      | components["schemas"]["ProductDetails"]
      | components["schemas"]["AnswerDetails"]
      | components["schemas"]["InvoiceDetails"]
      | components["schemas"]["PaymentDetails"]
      | components["schemas"]["EventDetails"]
      | components["schemas"]["EventResponseDetails"]
      | components["schemas"]["GroupInviteDetails"]
      | components["schemas"]["ChannelInviteDetails"]
      | components["schemas"]["AboutDetails"]
      | components["schemas"]["StickerPackDetails"]
      | components["schemas"]["PollResultDetails"]
      | components["schemas"]["ScheduledCallDetails"]
      | components["schemas"]["TextDetails"]
      | components["schemas"]["FileDetails"]
      | components["schemas"]["AudioDetails"]
      | components["schemas"]["DocumentDetails"]
      | components["schemas"]["ReactionDetails"]
      | components["schemas"]["LocationDetails"]
      | components["schemas"]["LiveLocationDetails"]
      | components["schemas"]["ContactsDetails"]
      | components["schemas"]["PollDetails"]
      | components["schemas"]["ChosenDetails"]
      | components["schemas"]["OtherDetails"];
    CompanyMessageDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "templateMessage" | "interactiveMessage" | "buttonsMessage" | "listMessage" | "highlyStructuredMessage";
      header?: string;
      footer?: string;
      buttons?: components["schemas"]["ReceivedButton"][];
      /** @description What opens the list. */
      button?: string;
      order?: components["schemas"]["ReceivedOrder"];
      offer?: components["schemas"]["ReceivedOffer"];
      location?: components["schemas"]["ReceivedPlace"];
      products?: components["schemas"]["ListedProduct"][];
      product?: components["schemas"]["ReceivedProduct"];
      catalog?: components["schemas"]["ReceivedCatalog"];
      /** @description Name of the template. */
      template?: string;
      shop?: string;
      collection?: string;
      cards?: components["schemas"]["ReceivedCard"][];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ReceivedButton: {
      id?: string;
      text?: string;
      url?: string;
      phone?: string;
      /** @description The code that it copies. */
      copy?: string;
      description?: string;
      /** @description Title of the part of the list. */
      section?: string;
    };
    ReceivedOrder: {
      id?: string;
      token?: string;
      itemCount?: number;
      total?: number;
      currency?: string;
      title?: string;
      /** @description A JID. */
      seller?: string;
    };
    ReceivedOffer: {
      text?: string;
      url?: string;
      copy?: string;
    };
    ReceivedPlace: {
      latitude?: number;
      longitude?: number;
      name?: string;
      address?: string;
      url?: string;
      comment?: string;
    };
    ListedProduct: {
      id?: string;
      section?: string;
    };
    ReceivedProduct: {
      id?: string;
      retailerId?: string;
      title?: string;
      description?: string;
      price?: number;
      currency?: string;
      url?: string;
      /** @description A JID. */
      seller?: string;
    };
    ReceivedCatalog: {
      title?: string;
      description?: string;
    };
    /** @description A card of a carousel. */
    ReceivedCard: {
      text?: string;
      kind?: string;
      header?: string;
      footer?: string;
      buttons?: components["schemas"]["ReceivedButton"][];
      /** @description What opens the list. */
      button?: string;
      order?: components["schemas"]["ReceivedOrder"];
      offer?: components["schemas"]["ReceivedOffer"];
      location?: components["schemas"]["ReceivedPlace"];
      products?: components["schemas"]["ListedProduct"][];
      product?: components["schemas"]["ReceivedProduct"];
      catalog?: components["schemas"]["ReceivedCatalog"];
      /** @description Name of the template. */
      template?: string;
      shop?: string;
      collection?: string;
    };
    /** @description The channel or assistant that it comes from. */
    ForwardedFrom: {
      /** @description A JID. */
      id?: string;
      name?: string;
    };
    /** @description A card above it. */
    MessagePreview: {
      title?: string;
      text?: string;
    };
    /** @description A button below it. */
    MessageAction: {
      text?: string;
      url?: string;
    };
    MentionedGroup: {
      /** @description A JID. */
      id?: string;
      name?: string;
    };
    OrderDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "orderMessage";
      order?: components["schemas"]["ReceivedOrder"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ProductDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "productMessage";
      product?: components["schemas"]["ReceivedProduct"];
      catalog?: components["schemas"]["ReceivedCatalog"];
      footer?: string;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    AnswerDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "interactiveResponseMessage" | "templateButtonReplyMessage";
      selectedId?: string;
      /** @description Name of the flow. */
      flow?: string;
      /** @description What was filled in. */
      form?: {
        [key: string]: unknown;
      };
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    InvoiceDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "invoiceMessage";
      invoice?: components["schemas"]["ReceivedInvoice"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ReceivedInvoice: {
      token?: string;
    };
    PaymentDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "sendPaymentMessage" | "requestPaymentMessage";
      payment?: components["schemas"]["ReceivedPayment"];
      target?: components["schemas"]["MessageTarget"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ReceivedPayment: {
      amount?: number;
      currency?: string;
      /** @description A JID. */
      from?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      expiresAt?: string;
    };
    /** @description The message that it is about, from the session's point of view. */
    MessageTarget: {
      /** @description WhatsApp's id. */
      messageId: string;
      fromMe: boolean;
      /** @description A JID. */
      participant?: string;
    };
    EventDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "eventMessage";
      event?: components["schemas"]["ReceivedEvent"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ReceivedEvent: {
      name?: string;
      description?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      startsAt?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      endsAt?: string;
      location?: components["schemas"]["ReceivedPlace"];
      link?: string;
      canceled?: boolean;
    };
    EventResponseDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "eventResponse";
      target?: components["schemas"]["MessageTarget"];
      /** @enum {string} */
      response?: "going" | "not_going" | "maybe";
      guests?: number;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    GroupInviteDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "groupInviteMessage";
      invite?: components["schemas"]["GroupInvitation"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    GroupInvitation: {
      /** @description A JID. */
      groupId?: string;
      code?: string;
      name?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      expiresAt?: string;
    };
    ChannelInviteDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "newsletterAdminInviteMessage" | "newsletterFollowerInviteMessageV2";
      channel?: components["schemas"]["ChannelInvitation"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ChannelInvitation: {
      /** @description A JID. */
      id?: string;
      name?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      expiresAt?: string;
    };
    AboutDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind:
        | "commentMessage"
        | "declinePaymentRequestMessage"
        | "cancelPaymentRequestMessage"
        | "scheduledCallEditMessage"
        | "questionResponseMessage"
        | "statusQuestionAnswerMessage"
        | "statusQuotedMessage"
        | "statusStickerInteractionMessage";
      target?: components["schemas"]["MessageTarget"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    StickerPackDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "stickerPackMessage";
      stickerPack?: components["schemas"]["StickerPack"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    StickerPack: {
      id?: string;
      name?: string;
      publisher?: string;
      description?: string;
    };
    PollResultDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "pollResultSnapshotMessage" | "pollResultSnapshotMessageV3";
      votes?: components["schemas"]["PollVotes"][];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    PollVotes: {
      name?: string;
      votes: number;
    };
    ScheduledCallDetails: {
      /**
       * @description Type of the message on the network.
       * @enum {string}
       */
      kind: "scheduledCallCreationMessage";
      call?: components["schemas"]["ScheduledCall"];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ScheduledCall: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      startsAt?: string;
      video?: boolean;
    };
    TextDetails: {
      link?: string;
      linkTitle?: string;
      linkDescription?: string;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    FileDetails: {
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    AudioDetails: {
      voice?: boolean;
      seconds?: number;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    DocumentDetails: {
      title?: string;
      pageCount?: number;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ReactionDetails: {
      target?: components["schemas"]["MessageTarget"];
      removed?: boolean;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    LocationDetails: {
      latitude?: number;
      longitude?: number;
      name?: string;
      address?: string;
      url?: string;
      comment?: string;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    LiveLocationDetails: {
      latitude?: number;
      longitude?: number;
      accuracyMeters?: number;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ContactsDetails: {
      contacts?: components["schemas"]["ReceivedContact"][];
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ReceivedContact: {
      name: string | null;
      vcard?: string | null;
      /** @description Digits. */
      phones: string[];
      /** @description Of a contact that was sent. */
      organization?: string | null;
    };
    PollDetails: {
      options?: string[];
      /** @description How many may be chosen, if there is a limit. */
      selectable?: number | null;
      /** @description The right answer of a quiz. */
      correct?: string;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    ChosenDetails: {
      selectedId?: string;
      description?: string;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    OtherDetails: {
      /** @description Type of the message on the network. */
      kind?: string;
      /**
       * @description Why it is shown on phones only.
       * @enum {string}
       */
      withheld?: "view_once" | "hosted" | "bot";
      /** @description True if it could not be decrypted. */
      undecryptable?: boolean;
      /** @description Seconds after which it vanishes; true if the app does not say. */
      disappearing?: unknown;
      /** @description The same for all pictures of an album. */
      album?: string;
      forwardedFrom?: components["schemas"]["ForwardedFrom"];
      preview?: components["schemas"]["MessagePreview"];
      action?: components["schemas"]["MessageAction"];
      /** @description The groups that its text names. */
      groups?: components["schemas"]["MentionedGroup"][];
      /** @description The sender's label in the group. */
      memberLabel?: string;
    };
    SessionConnectedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "session.connected";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["SessionConnectedEventData"];
    };
    SessionDisconnectedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "session.disconnected";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["SessionDisconnectedEventData"];
    };
    SessionQrEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "session.qr";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["SessionQrEventData"];
    };
    SessionPasskeyEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "session.passkey";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["SessionPasskeyEventData"];
    };
    SessionRestrictedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "session.restricted";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["SessionRestrictedEventData"];
    };
    SessionDegradedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "session.degraded";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["SessionDegradedEventData"];
    };
    MessageEchoEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.echo";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageEchoEventData"];
    };
    MessageEditedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.edited";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageEditedEventData"];
    };
    MessageDeletedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "message.deleted";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["MessageDeletedEventData"];
    };
    PollVoteEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "poll.vote";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["PollVoteEventData"];
    };
    ChoiceMadeEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "choice.made";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["ChoiceMadeEventData"];
    };
    VerificationPassedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "verification.passed";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["VerificationPassedEventData"];
    };
    VerificationFailedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "verification.failed";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["VerificationFailedEventData"];
    };
    BulkFinishedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "bulk.finished";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["BulkFinishedEventData"];
    };
    RecipientOptedOutEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "recipient.opted_out";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["RecipientOptedOutEventData"];
    };
    CallReceivedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "call.received";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["CallReceivedEventData"];
    };
    PresenceUpdatedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "presence.updated";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["PresenceUpdatedEventData"];
    };
    GroupUpdatedEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "group.updated";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["GroupUpdatedEventData"];
    };
    /** @description The group after the change; only its id if the session can no longer see the group. */
    ChangedGroup: {
      /** @description JID of the group. */
      id: string;
      name?: string;
      description?: string;
      /** @description Number of participants. */
      size?: number;
      /** @description Whether the session's number is an admin. */
      isAdmin?: boolean;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      createdAt?: string;
      announce?: boolean;
      locked?: boolean;
      ephemeral?: number;
      community?: components["schemas"]["ChangedGroupCommunity"];
    };
    ChangedGroupCommunity: {
      id: string;
      isAnnouncement: boolean;
    };
    GroupParticipantsEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "group.participants";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["GroupParticipantsEventData"];
    };
    ChangedParticipant: {
      id: string;
      number: string | null;
      /** @description The person's username, without an @; left out if WhatsApp told none. */
      username?: string;
    };
    WebhookDisabledEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "webhook.disabled";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["WebhookDisabledEventData"];
    };
    WebhookFailingEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "webhook.failing";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["WebhookFailingEventData"];
    };
    WebhookTestEvent: {
      /** @description Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header. */
      id?: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC. In the feed and the stream.
       */
      createdAt?: string;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      event: "webhook.test";
      sessionId: string;
      /** @description Name of the session. */
      sessionName: string;
      data: components["schemas"]["WebhookTestEventData"];
    };
    Problem: {
      /**
       * Format: uri-reference
       * @description Link to the error's entry in the API reference.
       */
      type: string;
      title: string;
      status: number;
      /** @description What went wrong in this request, in one sentence. */
      detail: string;
      /** @enum {string} */
      code:
        | "malformed_json"
        | "validation_failed"
        | "api_key_missing"
        | "api_key_invalid"
        | "account_deactivated"
        | "ip_not_allowed"
        | "domain_not_allowed"
        | "subscription_expired"
        | "scope_missing"
        | "recipient_opted_out"
        | "network_forbidden"
        | "limit_reached"
        | "session_limit_reached"
        | "not_found"
        | "method_not_allowed"
        | "session_not_connected"
        | "no_connected_session"
        | "username_key_required"
        | "network_conflict"
        | "passkey_not_requested"
        | "not_editable"
        | "not_revocable"
        | "template_exists"
        | "not_waiting_for_approval"
        | "not_cancellable"
        | "payload_too_large"
        | "unsupported_media_type"
        | "range_not_satisfiable"
        | "idempotency_key_reused"
        | "passkey_refused"
        | "rate_limited"
        | "too_much_at_once"
        | "quota_exceeded"
        | "internal_error"
        | "network_error"
        | "storage_unavailable"
        | "busy"
        | "network_timeout";
      /** @description Id of the request, also in the `x-request-id` header and in the gateway's log. */
      requestId: string;
      /** @description Only with `validation_failed`: each invalid field and what is wrong with it. Paths look like `messages.2.to`. */
      errors?: components["schemas"]["FieldError"][];
      remaining?: components["schemas"]["ProblemRemaining"];
    };
    FieldError: {
      path: string;
      message: string;
    };
    /**
     * @description Messages with a higher priority are sent first. Defaults to `normal`. Within a chat, messages keep the order in which they were accepted.
     * @enum {string}
     */
    Priority: "high" | "normal" | "low";
    Session: {
      /** @example Support line */
      name: string;
      status: components["schemas"]["SessionStatus"];
      /**
       * @description The linked phone number, digits only; null until linked.
       * @example 447700900123
       */
      phone: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      lastUsed: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * @description The same as `_id`.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      /**
       * @description Set while linking requires the account's passkey; see `GET /v1/sessions/{id}/passkey`.
       * @example null
       */
      passkey: components["schemas"]["SessionPasskey"] | null;
      /** @example null */
      restriction: components["schemas"]["Restriction"] | null;
      /**
       * @description The session's proxy, without its credentials.
       * @example null
       */
      proxy: string | null;
      /**
       * @description Why the session is not connected, or why the last attempt to link it failed; null if there is no problem.
       * @example null
       */
      reason: string | null;
    };
    /** @enum {string} */
    SessionStatus: "initializing" | "qr" | "pairing" | "connected" | "disconnected" | "logged_out";
    /** @description Set while WhatsApp does not allow the number to start new chats. Existing chats continue. */
    Restriction: {
      /**
       * @description WhatsApp's name for the restriction.
       * @example DEFAULT
       */
      kind: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      until: string | null;
    };
    SessionCreation: {
      /** @example Support line */
      name: string;
      /** @description Phone number. If given, the session is linked by pairing code instead of QR. */
      pairingPhone?: string | null;
      /** @description Proxy for all traffic of the session: `socks5://user:password@host:port`, `http://…` or `https://…`; null for none. */
      proxy?: string | null;
    };
    SessionChange: {
      /** @example Support line */
      name?: string | null;
      /** @description Proxy for all traffic of the session: `socks5://user:password@host:port`, `http://…` or `https://…`; null for none. */
      proxy?: string | null;
    };
    LinkingResult: {
      status: components["schemas"]["SessionStatus"];
      /**
       * @description The QR as the data URL of a PNG image; null when there is none to scan.
       * @example data:image/png;base64,iVBORw0KGgo…
       */
      qr: string | null;
      /**
       * @description Code to enter on the phone; null when linking by QR.
       * @example null
       */
      pairingCode: string | null;
    };
    PasskeyRequest: {
      /**
       * @description `required`: sign the challenge. `confirm`: compare the code with the one on the phone.
       * @enum {string}
       */
      stage: "required" | "confirm";
      /**
       * @description WhatsApp's WebAuthn request options (`challenge`, `rpId`, `allowCredentials`, …), to pass to `navigator.credentials.get({ publicKey })` on https://web.whatsapp.com; null in stage `confirm`.
       * @example {
       *       "challenge": "3q2-7w…",
       *       "rpId": "whatsapp.com",
       *       "userVerification": "required"
       *     }
       */
      options: {
        [key: string]: unknown;
      } | null;
      /**
       * @description The code, `XXXX-XXXX`, in stage `confirm`; otherwise null.
       * @example null
       */
      code: string | null;
      /**
       * Format: date-time
       * @description When this challenge is replaced by a new one or by a new QR.
       * @example 2026-01-15T12:00:00.000Z
       */
      expiresAt: string;
    };
    PasskeySignature: {
      assertion: components["schemas"]["PasskeyAssertion"];
    };
    /** @description A WebAuthn credential as returned by `PublicKeyCredential.toJSON()`. */
    PasskeyAssertion: {
      id: string;
      rawId: string;
      /** @enum {string} */
      type: "public-key";
      authenticatorAttachment?: string | null;
      response: components["schemas"]["PasskeyAssertionResponse"];
      /** @description Output of WebAuthn extensions, passed on unchanged. */
      clientExtensionResults?: unknown;
    };
    SessionHealth: {
      /**
       * Format: date-time
       * @description When the session connected; null while it is not connected.
       * @example 2026-01-15T12:00:00.000Z
       */
      connectedSince: string | null;
      /**
       * Format: date-time
       * @description When WhatsApp last sent anything on this connection.
       * @example 2026-01-15T12:00:00.000Z
       */
      lastFrameAt: string | null;
      /**
       * Format: date-time
       * @description When the last message was received on this connection.
       * @example 2026-01-15T12:00:00.000Z
       */
      lastReceivedAt: string | null;
      /**
       * Format: date-time
       * @description When WhatsApp last acknowledged a message on this connection.
       * @example 2026-01-15T12:00:00.000Z
       */
      lastSentAt: string | null;
      /**
       * @description Round-trip time to WhatsApp, measured by this request.
       * @example 48
       */
      pingMs: number | null;
      restriction: components["schemas"]["Restriction"] | null;
      /**
       * @description New chats that WhatsApp allows; null if it sets no limit or does not report one.
       * @example null
       */
      newChats: components["schemas"]["SessionHealthNewChats"] | null;
      /**
       * @description New chats that the plan allows today; null for no limit.
       * @example null
       */
      planNewChats: components["schemas"]["SessionHealthPlanNewChats"] | null;
      queue: components["schemas"]["SessionHealthQueue"];
      /** @description Messages on this connection that could not be decrypted when they arrived. */
      undecryptable: number;
      /**
       * @description The WhatsApp Web version that the session announces.
       * @example 2.3000.1027934701
       */
      webVersion: string | null;
      /**
       * @description Source of the version: `setting`, `built in`, or the host that it was fetched from.
       * @example web.whatsapp.com
       */
      webVersionSource: string | null;
      /**
       * Format: date-time
       * @description When the version was fetched; if it is built in, when it was released; if set, when the gateway started.
       * @example 2026-01-15T12:00:00.000Z
       */
      webVersionSince: string | null;
      /**
       * Format: date-time
       * @description When WhatsApp will refuse the version; null if it has not said so on this connection.
       * @example null
       */
      webVersionExpiresAt: string | null;
    };
    /** @description What holds the message or queue back, apart from its turn. Absent or null if nothing does. */
    WaitsFor: {
      /**
       * @description `approval`: a person has to approve it. `schedule`: waits for its `sendAt`. `paused`: the queue is paused. `line`: the session is not connected. `hours`: outside the plan's sending hours. `new_chats`: the plan or WhatsApp does not allow the session to start more chats for now.
       * @enum {string}
       */
      kind: "approval" | "schedule" | "paused" | "line" | "hours" | "new_chats";
      /**
       * Format: date-time
       * @description When sending resumes; null if no time is known.
       * @example 2026-01-15T12:00:00.000Z
       */
      until: string | null;
    };
    NumberCheck: {
      /** @description Whether the number is on WhatsApp. */
      exists: boolean;
      /**
       * @description Null for a username that nobody has.
       * @example 447700900123@s.whatsapp.net
       */
      jid: string | null;
    };
    NumberToCheck: {
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped.
       * @example 447700900123
       */
      number?: string | null;
      /** @example joao */
      username?: string | null;
      /** @description The key that the owner of the username demands. */
      pin?: string | null;
    };
    Contact: {
      /** @description Whether the number is on WhatsApp. */
      exists: boolean;
      /**
       * @description Null for a username that nobody has.
       * @example 447700900123@s.whatsapp.net
       */
      jid: string | null;
      /**
       * @description The contact's JID that hides the number.
       * @example 123456789012345@lid
       */
      lid: string | null;
      /** @description The contact's public name, from their latest message since the session connected. */
      name: string | null;
      about: string | null;
      /** @description Address of the picture on WhatsApp's servers, valid for a few days; null if there is none or it is hidden. */
      pictureUrl: string | null;
      business: components["schemas"]["ContactBusiness"] | null;
    };
    BlockState: {
      /** @example 447700900123 */
      number: string;
      blocked: boolean;
    };
    BlockedContact: {
      jid: string;
      number: string | null;
    };
    Profile: {
      name: string | null;
      /** @description Without an @; null if the account has none. */
      username: string | null;
      about: string | null;
      /** @description Same as `pictureUrl`, under the name used to change it. */
      picture: string | null;
      /** @description Address of the picture on WhatsApp's servers, valid for a few days; null if there is none or it is hidden. */
      pictureUrl: string | null;
    };
    ProfileChange: {
      /** @example Bakery Madrid */
      name?: string | null;
      /** @example Open from seven to three */
      about?: string | null;
      /** @description A square JPEG of at most 1 MiB, in base64, optionally with the prefix `data:image/jpeg;base64,`. An empty string removes the picture. */
      picture?: string | null;
    };
    Group: {
      /**
       * @description JID of the group.
       * @example 120363025246125486@g.us
       */
      id: string;
      /** @example Family */
      name: string;
      description: string;
      /**
       * @description Number of participants.
       * @example 12
       */
      size: number;
      /** @description Whether the session's number is an admin. */
      isAdmin: boolean;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      community?: components["schemas"]["GroupCommunity"];
    };
    /** @description Absent outside of communities. */
    GroupCommunity: {
      /** @description JID of the community. */
      id: string;
      /** @description Whether its admins write to all of it here. */
      isAnnouncement: boolean;
    };
    CreatedGroup: {
      /**
       * @description JID of the group.
       * @example 120363025246125486@g.us
       */
      id: string;
      /** @example Family */
      name: string;
      description: string;
      /**
       * @description Number of participants.
       * @example 12
       */
      size: number;
      /** @description Whether the session's number is an admin. */
      isAdmin: boolean;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      community?: components["schemas"]["GroupCommunity"];
      /** @description Whether only admins can send messages. */
      announce: boolean;
      /** @description Whether only admins can change the group's name, description, picture and settings. */
      locked: boolean;
      /** @description Seconds after which messages disappear; 0 for never. */
      ephemeral: number;
      participants: components["schemas"]["GroupParticipant"][];
      results: components["schemas"]["ParticipantResult"][];
    };
    GroupParticipant: {
      /**
       * @description JID of the participant in this group.
       * @example 123456789012345@lid
       */
      id: string;
      /** @description Phone number, digits only; null if WhatsApp does not reveal it. */
      number: string | null;
      /** @description Without an @; left out if WhatsApp told none. */
      username?: string;
      isAdmin: boolean;
    };
    ParticipantResult: {
      /** @description The number as given in the request. */
      number: string;
      /** @enum {string} */
      status: "ok" | "failed";
      error: components["schemas"]["ParticipantResultError"] | null;
    };
    GroupCreation: {
      /** @example Family */
      name: string;
      participants: string[];
    };
    WholeGroup: {
      /**
       * @description JID of the group.
       * @example 120363025246125486@g.us
       */
      id: string;
      /** @example Family */
      name: string;
      description: string;
      /**
       * @description Number of participants.
       * @example 12
       */
      size: number;
      /** @description Whether the session's number is an admin. */
      isAdmin: boolean;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      community?: components["schemas"]["GroupCommunity"];
      /** @description Whether only admins can send messages. */
      announce: boolean;
      /** @description Whether only admins can change the group's name, description, picture and settings. */
      locked: boolean;
      /** @description Seconds after which messages disappear; 0 for never. */
      ephemeral: number;
      participants: components["schemas"]["GroupParticipant"][];
    };
    GroupChange: {
      /** @example Family */
      name?: string | null;
      description?: string | null;
      announce?: boolean | null;
      locked?: boolean | null;
      ephemeral?: (0 | 86400 | 604800 | 7776000) | null;
      /** @description A square JPEG of at most 1 MiB, in base64, optionally with the prefix `data:image/jpeg;base64,`. An empty string removes the picture. */
      picture?: string | null;
    };
    LeftGroup: {
      /**
       * @description JID of the group.
       * @example 120363025246125486@g.us
       */
      id: string;
    };
    DeletedGroupMessage: {
      /**
       * @description JID of the group.
       * @example 120363025246125486@g.us
       */
      group: string;
      messageId: string;
    };
    ParticipantsChange: {
      /** @enum {string} */
      action: "add" | "remove" | "promote" | "demote";
      participants: string[];
    };
    InviteLink: {
      /** @example https://chat.whatsapp.com/AbCdEfGhIjKlMnOpQrStUv */
      invite: string;
    };
    JoinedGroup: {
      /**
       * @description JID of the group.
       * @example 120363025246125486@g.us
       */
      id: string;
      /** @enum {string} */
      status: "joined" | "asked";
    };
    Invitation: {
      /** @example https://chat.whatsapp.com/AbCdEfGhIjKlMnOpQrStUv */
      invite: string;
    };
    JoinRequest: {
      id: string;
      number: string | null;
    };
    RequestsAnswer: {
      /** @enum {string} */
      action: "approve" | "reject";
      participants: string[];
    };
    Chat: {
      /**
       * @description Names the chat in paths and in `to`: a number, a group's JID, or a JID ending in `@lid`.
       * @example 447700900123
       */
      chat: string;
      /**
       * @description Phone number, digits only; null if WhatsApp never revealed it, and for a group.
       * @example 447700900123
       */
      number: string | null;
      /**
       * @description The person's JID that hides the number.
       * @example 123456789012345@lid
       */
      lid: string | null;
      /** @description The person's user name; null if WhatsApp did not report one. */
      username: string | null;
      /** @description The public name of the person, or the name of the group, if known. */
      name: string | null;
      isGroup: boolean;
      /** @description Messages received since the chat was last read, on the phone or through the API, or answered. */
      unread: number;
      /**
       * Format: date-time
       * @description When the newest message was received or sent.
       * @example 2026-01-15T12:00:00.000Z
       */
      lastAt: string;
      /** @description Null if it was erased, or is no longer kept. */
      lastMessage: components["schemas"]["ChatMessage"] | null;
    };
    ChatMessage: {
      /** @description The gateway's id (`msg_…`) of a message sent through the API, WhatsApp's id of any other. */
      messageId: string;
      /** @description WhatsApp's id. */
      networkId: string;
      /**
       * @description `out`: sent through the API, or written on the owner's phone.
       * @enum {string}
       */
      direction: "in" | "out";
      /** @description Who wrote it; null for `out`. */
      author: components["schemas"]["ChatAuthor"] | null;
      /** @description Of a message sent through the API, its type in the history (`text`, `image`, …); of any other, its type in the event (`conversation`, `imageMessage`, …). */
      type: string;
      /** @description The text or caption, as last edited; null for a deleted message. */
      text: string | null;
      media: components["schemas"]["ChatFile"] | null;
      details: components["schemas"]["MessageDetails"] | null;
      /** @description The message that this one replies to, by WhatsApp's id. */
      quoted: components["schemas"]["ChatQuote"] | null;
      /** @description Of a message sent through the API; null for any other. */
      status: ("queued" | "processing" | "sent" | "failed" | "delivered" | "read") | null;
      error: components["schemas"]["MessageError"] | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      timestamp: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      editedAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      deletedAt: string | null;
      reactions: components["schemas"]["ChatReaction"][];
      tags: string[];
    };
    ChatAuthor: {
      /**
       * @description Phone number, digits only; null if WhatsApp never revealed it, and for a group.
       * @example 447700900123
       */
      number: string | null;
      name: string | null;
    };
    ChatFile: {
      /** @description Download URL of a received file; null when it is no longer valid. */
      url: string | null;
      mimetype: string;
      size: number;
      filename: string;
      /** @description Why `url` is null. */
      reason?: string;
    };
    ChatQuote: {
      messageId: string;
      fromMe: boolean;
      participant: string | null;
      text: string | null;
    };
    MessageError: {
      /** @example number_not_registered */
      code: string;
      message: string;
    };
    ChatReaction: {
      /**
       * @description Phone number, digits only; null if WhatsApp never revealed it, and for a group.
       * @example 447700900123
       */
      number: string | null;
      emoji: string;
    };
    ChatContact: {
      /**
       * @description Phone number, digits only; null if WhatsApp never revealed it, and for a group.
       * @example 447700900123
       */
      number: string | null;
      /**
       * @description The person's JID that hides the number.
       * @example 123456789012345@lid
       */
      lid: string | null;
      /** @description The person's user name; null if WhatsApp did not report one. */
      username: string | null;
      /** @description The public name of the person, or the name of the group, if known. */
      name: string | null;
      chat: string;
    };
    ChatState: {
      chat: string;
      state: string;
    };
    ChatStateChange: {
      /** @enum {string} */
      state: "typing" | "recording" | "paused";
    };
    ReadMessages: {
      chat: string;
      messageIds: string[];
    };
    ReadRequest: {
      /** @description `messageId` of a `message.received` event. */
      messageId?: string | null;
    };
    QueuedMessage: {
      /**
       * @description Id of the message.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      to: string;
      /** @enum {string} */
      status: "queued" | "processing";
      /** @description Position in the queue. 1 is the message being sent, or the next to be sent. */
      position: number;
      priority: components["schemas"]["Priority"];
      /**
       * Format: date-time
       * @description Null while the session is not connected, its queue is paused, or the plan allows no new chat.
       * @example 2026-01-15T12:00:00.000Z
       */
      estimatedDeparture: string | null;
      waitsFor: components["schemas"]["WaitsFor"] | null;
    };
    Acknowledgement: {
      /**
       * @description Id of the message.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      /** @enum {string} */
      status: "queued";
      /**
       * @description Id of the queue job.
       * @example job_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      jobId: string;
    };
    TextMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /** @example Hello 👋 */
      text: string;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    LocationMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /**
       * @description Degrees (WGS 84).
       * @example 41.3851
       */
      latitude: number;
      /**
       * @description Degrees (WGS 84).
       * @example 2.1734
       */
      longitude: number;
      /**
       * @description Name of the place.
       * @example Our shop
       */
      name?: string | null;
      /** @example Plaça de Catalunya 1, Barcelona */
      address?: string | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    ContactMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      contacts: components["schemas"]["ContactCard"][];
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    ContactCard: {
      /** @example Anna Serra */
      name: string;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped.
       * @example 447700900123
       */
      phone: string;
      /** @example Acme */
      organization?: string | null;
    };
    PollMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /** @example When may we deliver? */
      question: string;
      /**
       * @example [
       *       "Morning",
       *       "Afternoon"
       *     ]
       */
      options: string[];
      /** @description Whether a voter may choose several options. Defaults to false. */
      multiple?: boolean | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    ChoicesMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /** @example How would you like your order? */
      text: string;
      /** @description Small print below. */
      footer?: string | null;
      options: components["schemas"]["ChoiceOption"][];
      /** @description Defaults to `auto`. */
      style?: ("auto" | "numbers" | "poll" | "buttons" | "list") | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    ChoiceOption: {
      /**
       * @description Comes back in `choice.made`. Defaults to the option's number.
       * @example delivery
       */
      id?: string | null;
      /** @example Delivery */
      label: string;
      /** @example tomorrow, free of charge */
      description?: string | null;
    };
    ReactionMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Id of a message: `msg_…`, or the `messageId` of an event.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      /**
       * @description One emoji. An empty string removes the reaction.
       * @example 👍
       */
      emoji: string;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    ForwardMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /**
       * @description Id of a message: `msg_…`, or the `messageId` of an event.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    TemplateMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /**
       * @description Name of the template.
       * @example reminder
       */
      template: string;
      /** @description Language of the recipient. Without a template in it, the one in its main language is sent (`es` for `es_MX`), or else the one that was made first. */
      language?: string | null;
      /**
       * @description The value of each variable by its name. For `{{1}}`, `{{2}}`, … a list is taken too.
       * @example {
       *       "name": "Anna"
       *     }
       */
      variables?: {
        [key: string]: string;
      } | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    FileMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /** @example Your invoice */
      caption?: string;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string;
      /** @description Numbers or JIDs to mention, separated by commas, or `all` in a group. */
      mentions?: string;
      /**
       * @description Whether an image, video or audio message can be opened only once.
       * @enum {string}
       */
      viewOnce?: "true" | "false";
      /**
       * @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview.
       * @enum {string}
       */
      linkPreview?: "true" | "false";
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number;
      /** @description Tags, separated by commas. */
      tags?: string;
      /**
       * @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not.
       * @enum {string}
       */
      cancelOnReply?: "true" | "false";
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string;
      priority?: components["schemas"]["Priority"];
      /**
       * Format: binary
       * @description A file of any type, at most 100 MiB.
       */
      file: string;
    };
    DocumentMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /**
       * Format: byte
       * @description The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded.
       * @example JVBERi0xLjQKJSVFT0YK
       */
      file?: string | null;
      /**
       * Format: uri
       * @description URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent.
       */
      fileUrl?: string | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /**
       * @description File name with extension. Required with `file`; with `fileUrl`, replaces the name given by the server.
       * @example invoice-1042.pdf
       */
      filename?: string | null;
      /** @example Your invoice */
      caption?: string | null;
    };
    StickerMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /**
       * Format: byte
       * @description The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded.
       * @example JVBERi0xLjQKJSVFT0YK
       */
      file?: string | null;
      /**
       * Format: uri
       * @description URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent.
       */
      fileUrl?: string | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
    };
    VoiceMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /**
       * Format: byte
       * @description The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded.
       * @example JVBERi0xLjQKJSVFT0YK
       */
      file?: string | null;
      /**
       * Format: uri
       * @description URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent.
       */
      fileUrl?: string | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
    };
    PdfMessage: {
      /**
       * Format: byte
       * @description The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded.
       * @example JVBERi0xLjQKJSVFT0YK
       */
      file: string;
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      number: string;
      /**
       * @description Text that accompanies the document.
       * @example Your invoice
       */
      message?: string | null;
      /**
       * @description File name, to which `.pdf` is added if it does not end so. Defaults to `document.pdf`.
       * @example invoice-1042.pdf
       */
      filename?: string | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    StatusMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      /** @example We are open today */
      text?: string | null;
      /**
       * Format: byte
       * @description The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded.
       */
      file?: string | null;
      /**
       * Format: uri
       * @description URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent.
       */
      fileUrl?: string | null;
      /** @description Required with `file`. The extension decides the type. */
      filename?: string | null;
      /** @description Caption of an image or video. */
      caption?: string | null;
      /** @description Numbers that can see the status. Numbers that are not on WhatsApp are skipped. */
      audience: string[];
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    BulkAcknowledgement: {
      /**
       * @description Id of the bulk.
       * @example blk_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      bulkId: string;
      total: number;
      /** @enum {string} */
      status: "queued";
      messages: components["schemas"]["BulkItemAcknowledgement"][];
    };
    BulkItemAcknowledgement: {
      index: number;
      to: string;
      /**
       * @description Id of the message.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      /** @enum {string} */
      status: "queued";
      /**
       * @description Id of the queue job.
       * @example job_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      jobId: string;
    };
    BulkMessage: {
      /**
       * @description Session that sends the message. Defaults to the account's first connected session, which is the oldest.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId?: string | null;
      messages: components["schemas"]["BulkItem"][];
      /** @description Seconds the message may wait before it fails as `expired`. Defaults to 24 hours. */
      ttl?: number | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    BulkItem: {
      /**
       * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, a JID from an event, or a username like `@joao`.
       * @example 447700900123
       */
      to: string;
      /** @example Hello 👋 */
      text?: string | null;
      /**
       * Format: uri
       * @description URL of a file, such as https://files.example.com/1042.pdf. It is downloaded when the message is about to be sent.
       */
      fileUrl?: string | null;
      /** @description Caption of the file. */
      caption?: string | null;
      /** @description Name of a template. */
      template?: string | null;
      /** @description Language of the recipient. Without a template in it, the one in its main language is sent (`es` for `es_MX`), or else the one that was made first. */
      language?: string | null;
      /** @description The value of each variable by its name. For `{{1}}`, `{{2}}`, … a list is taken too. */
      variables?: {
        [key: string]: string;
      } | null;
      /** @description Message in the same chat to reply to: `msg_…`, or the `messageId` of an event. Without `sessionId`, the reply is sent by that message's session. */
      replyTo?: string | null;
      /** @description Numbers or JIDs to mention, each written as `@number` in the text; in a group also `["all"]`. */
      mentions?: string[] | null;
      /** @description Whether an image, video or audio message can be opened only once. */
      viewOnce?: boolean | null;
      /** @description Whether to show a preview of the first link in a text. Defaults to true. The gateway fetches the page; if it does not answer within 5 seconds, the message is sent without a preview. */
      linkPreview?: boolean | null;
      /** @description Milliseconds to show "typing…" before the message is sent. Counts towards the plan's pause between messages. */
      typing?: number | null;
      /** @description Words of your own, such as an invoice's number: at most 10, of 1 to 64 characters. All messages with a tag can be listed, and cancelled by one call. */
      tags?: string[] | null;
      /** @description Whether to cancel the message if the chat writes before it is sent. A vote or a tap counts as a reply, a reaction does not. */
      cancelOnReply?: boolean | null;
    };
    MessageStatus: {
      /**
       * @description Id of the message.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      status: components["schemas"]["MessageState"];
      /**
       * Format: date-time
       * @description When WhatsApp acknowledged the message; null until then.
       * @example 2026-01-15T12:00:00.000Z
       */
      sentAt: string | null;
      /** @description Why the message failed; null otherwise. */
      error: components["schemas"]["MessageError"] | null;
    };
    /** @enum {string} */
    MessageState: "queued" | "processing" | "sent" | "failed";
    HistoryItem: {
      /**
       * @description Id of the message.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      /**
       * @description Id of the queue job.
       * @example job_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      jobId: string;
      /**
       * @description Id of the session.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId: string;
      to: string;
      type: components["schemas"]["MessageType"];
      text: string | null;
      caption: string | null;
      filename: string | null;
      /** @description Content of a location, contact or poll that has no other field; null for other messages. */
      details: {
        [key: string]: unknown;
      } | null;
      status: components["schemas"]["MessageState"];
      error: components["schemas"]["MessageError"] | null;
      priority: components["schemas"]["Priority"];
      /** @description The tags of the send. */
      tags: string[];
      /**
       * Format: date-time
       * @description Earliest time the message is sent; null if it is not scheduled.
       * @example 2026-01-15T12:00:00.000Z
       */
      sendAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      sentAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      deliveredAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      readAt: string | null;
      /**
       * Format: date-time
       * @description Present only if the recipient's data was erased: then `to` is empty and the content is gone.
       * @example 2026-01-15T12:00:00.000Z
       */
      erasedAt?: string;
      waitsFor?: components["schemas"]["WaitsFor"];
      /** @description Name of the key that proposed the message; absent if it needed no approval. */
      proposedBy?: string;
    };
    /** @enum {string} */
    MessageType:
      | "text"
      | "location"
      | "contact"
      | "poll"
      | "reaction"
      | "image"
      | "video"
      | "audio"
      | "document"
      | "sticker"
      | "voice"
      | "status"
      | "choices";
    HistoryPagination: {
      page: number;
      limit: number;
      /** @description Number of items on all pages. */
      total: number;
      /** @description Present only if the page was cut at 8 MiB because of long messages. To continue, pass it as `before` and start again at page 1. */
      next?: string;
    };
    MessageRecord: {
      /**
       * @description Id of the message.
       * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      messageId: string;
      /**
       * @description Id of the queue job.
       * @example job_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      jobId: string;
      /**
       * @description Id of the session.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId: string;
      to: string;
      type: components["schemas"]["MessageType"];
      text: string | null;
      caption: string | null;
      filename: string | null;
      /** @description Content of a location, contact or poll that has no other field; null for other messages. */
      details: {
        [key: string]: unknown;
      } | null;
      status: components["schemas"]["MessageState"];
      error: components["schemas"]["MessageError"] | null;
      priority: components["schemas"]["Priority"];
      /** @description The tags of the send. */
      tags: string[];
      /**
       * Format: date-time
       * @description Earliest time the message is sent; null if it is not scheduled.
       * @example 2026-01-15T12:00:00.000Z
       */
      sendAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      sentAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      deliveredAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      readAt: string | null;
      /**
       * Format: date-time
       * @description Present only if the recipient's data was erased: then `to` is empty and the content is gone.
       * @example 2026-01-15T12:00:00.000Z
       */
      erasedAt?: string;
      waitsFor?: components["schemas"]["WaitsFor"];
      /** @description Name of the key that proposed the message; absent if it needed no approval. */
      proposedBy?: string;
      /** @description Status changes, oldest first. `edited` has the time of the latest edit after sending. */
      life: components["schemas"]["LifeEntry"][];
      /** @description Results of a poll, counting each voter's latest choice; null for other messages. */
      poll: components["schemas"]["MessageRecordPoll"] | null;
    };
    LifeEntry: {
      /** @enum {string} */
      status: "queued" | "approved" | "processing" | "sent" | "failed" | "delivered" | "read" | "edited" | "revoked";
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      at: string;
    };
    PollOption: {
      name: string;
      votes: number;
    };
    MessageEdit: {
      /** @example Hello again 👋 */
      text?: string | null;
      /**
       * Format: date-time
       * @description Earliest time to send the message, at most 30 days ahead. `ttl` counts from this time. A scheduled message does not delay others.
       */
      sendAt?: string | null;
      priority?: components["schemas"]["Priority"] | null;
    };
    CancelledMessages: {
      /** @description Number of messages cancelled. */
      cancelled: number;
    };
    CancelledBulk: {
      /**
       * @description Id of the bulk.
       * @example blk_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      bulkId: string;
      /** @description Number of messages cancelled. */
      cancelled: number;
      messageIds: string[];
    };
    Bulk: {
      /**
       * @description Id of the bulk.
       * @example blk_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      bulkId: string;
      /**
       * @description Id of the session.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId: string;
      total: number;
      /** @description Messages that are neither sent nor failed yet. */
      queued: number;
      sent: number;
      /** @description Includes cancelled messages. */
      failed: number;
      /**
       * Format: date-time
       * @description Estimated time of the last message; null if none is waiting or there is no estimate.
       * @example 2026-01-15T12:00:00.000Z
       */
      eta: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
    };
    Pagination: {
      page: number;
      limit: number;
      /** @description Number of items on all pages. */
      total: number;
    };
    Template: {
      name: string;
      language: string;
      text: string;
      header: string | null;
      footer: string | null;
      options: components["schemas"]["Choice"][];
      /**
       * @description Names of the variables, in the order of their first use.
       * @example [
       *       "name",
       *       "number",
       *       "date"
       *     ]
       */
      variables: string[];
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      updatedAt: string;
    };
    Choice: {
      id: string;
      label: string;
      description: string | null;
    };
    TemplateCreation: {
      /**
       * @description Name of the template.
       * @example reminder
       */
      name: string;
      /**
       * @description Defaults to `en`.
       * @example en
       */
      language?: string | null;
      /**
       * @description The text. `{{name}}`, or `{{1}}`, is a variable.
       * @example Hello {{name}}, invoice {{number}} is due on {{date}}.
       */
      text: string;
      /** @description Heading, shown in bold. */
      header?: string | null;
      /** @description Small print below. */
      footer?: string | null;
      /** @description Options to choose from: the template is then sent as choices. */
      options?: components["schemas"]["ChoiceOption"][] | null;
    };
    TemplateTexts: {
      /**
       * @description The text. `{{name}}`, or `{{1}}`, is a variable.
       * @example Hello {{name}}, invoice {{number}} is due on {{date}}.
       */
      text: string;
      /** @description Heading, shown in bold. */
      header?: string | null;
      /** @description Small print below. */
      footer?: string | null;
      /** @description Options to choose from: the template is then sent as choices. */
      options?: components["schemas"]["ChoiceOption"][] | null;
    };
    Verification: {
      /**
       * @description Id of the verification.
       * @example ver_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      /**
       * @description Id of the session.
       * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      sessionId: string;
      /** @enum {string} */
      status: "pending" | "passed" | "failed" | "expired";
      /** @example 7KQM2XPR */
      code: string;
      /**
       * @description The text that the person sends.
       * @example Log in to Acme: 7KQM2XPR
       */
      text: string;
      /**
       * @description Opens WhatsApp with the text, ready to be sent to the session's number.
       * @example https://wa.me/447700900123?text=Log%20in%20to%20Acme%3A%207KQM2XPR
       */
      link: string;
      /** @description The link as a QR code: the data URL of a PNG image. */
      qr: string;
      /** @description The number that sent the code; until then the one that was asked for. Null if it is not known. */
      number: string | null;
      /** @description JID of the chat that sent the code; null until then. */
      chat: string | null;
      /** @description Why it failed: `expired`, `other_number`, `number_hidden`. */
      reason: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      expiresAt: string;
    };
    VerificationCreation: {
      /**
       * @description What it is for, shown before the code in the text that the person sends.
       * @example Log in to Acme
       */
      purpose?: string | null;
      /**
       * @description The only number that passes. Any number does if it is left out.
       * @example 447700900123
       */
      number?: string | null;
      /**
       * @description Seconds until it expires. Defaults to 600.
       * @example 600
       */
      ttl?: number | null;
      /** @description The session that receives the code. Defaults to the oldest connected one. */
      sessionId?: string | null;
    };
    Webhook: {
      /**
       * @description Id of the webhook.
       * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      /** @example https://example.com/paloma */
      url: string;
      format: components["schemas"]["WebhookFormat"];
      events: components["schemas"]["EventName"][];
      /** @description Only events of this session; null for all sessions. */
      sessionId: string | null;
      chats: components["schemas"]["WebhookChats"];
      /**
       * @description Names of the additional headers, in lower case. Their values are never shown.
       * @example [
       *       "authorization"
       *     ]
       */
      headerNames: string[];
      active: boolean;
      /** @description Why the gateway disabled the webhook; null if it did not. */
      switchedOff: string | null;
      /**
       * Format: date-time
       * @description Since when every finished delivery has failed; null if the latest one succeeded.
       * @example 2026-01-15T12:00:00.000Z
       */
      failingSince: string | null;
      /**
       * Format: date-time
       * @description Until when requests are also signed with the previous secret.
       * @example 2026-01-15T12:00:00.000Z
       */
      previousSecretUntil: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      updatedAt: string;
    };
    /**
     * @description The shape of the requests: `paloma`, as described here, or `cloud`, that of WhatsApp's Cloud API.
     * @enum {string}
     */
    WebhookFormat: "paloma" | "cloud";
    /** @enum {string} */
    EventName:
      | "message.sent"
      | "message.status"
      | "message.failed"
      | "message.proposed"
      | "message.received"
      | "session.connected"
      | "session.disconnected"
      | "session.qr"
      | "session.passkey"
      | "session.restricted"
      | "session.degraded"
      | "message.echo"
      | "message.edited"
      | "message.deleted"
      | "poll.vote"
      | "choice.made"
      | "verification.passed"
      | "verification.failed"
      | "bulk.finished"
      | "recipient.opted_out"
      | "call.received"
      | "presence.updated"
      | "group.updated"
      | "group.participants"
      | "webhook.failing"
      | "webhook.disabled"
      | "webhook.test";
    /**
     * @description Whether events of all chats are delivered, of 1:1 chats, or of groups. Events about no chat always are.
     * @enum {string}
     */
    WebhookChats: "all" | "direct" | "groups";
    WebhookWithSecret: {
      /**
       * @description Id of the webhook.
       * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      /** @example https://example.com/paloma */
      url: string;
      format: components["schemas"]["WebhookFormat"];
      events: components["schemas"]["EventName"][];
      /** @description Only events of this session; null for all sessions. */
      sessionId: string | null;
      chats: components["schemas"]["WebhookChats"];
      /**
       * @description Names of the additional headers, in lower case. Their values are never shown.
       * @example [
       *       "authorization"
       *     ]
       */
      headerNames: string[];
      active: boolean;
      /** @description Why the gateway disabled the webhook; null if it did not. */
      switchedOff: string | null;
      /**
       * Format: date-time
       * @description Since when every finished delivery has failed; null if the latest one succeeded.
       * @example 2026-01-15T12:00:00.000Z
       */
      failingSince: string | null;
      /**
       * Format: date-time
       * @description Until when requests are also signed with the previous secret.
       * @example 2026-01-15T12:00:00.000Z
       */
      previousSecretUntil: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      updatedAt: string;
      /**
       * @description Secret for verifying signatures. Shown only in this response.
       * @example whsec_…
       */
      secret: string;
    };
    WebhookCreation: {
      /**
       * Format: uri
       * @description HTTPS URL to which events are posted. Plain HTTP is accepted for hosts that the operator allows.
       * @example https://example.com/paloma
       */
      url: string;
      /** @description Defaults to `paloma`. */
      format?: components["schemas"]["WebhookFormat"] | null;
      /** @description Of the format `cloud`, which needs it: at creation and when the URL is changed, the target is asked `GET ?hub.mode=subscribe&hub.verify_token=…&hub.challenge=…`, and must answer with the challenge. */
      verifyToken?: string | null;
      /** @description Events to subscribe to. Defaults to all except `presence.updated`; in the format `cloud`, to those that it can tell. */
      events?: components["schemas"]["EventName"][] | null;
      /** @description Restrict the webhook to one session. Defaults to all sessions. */
      sessionId?: string | null;
      /** @description Defaults to `all`, in the format `cloud` to `direct`. */
      chats?: components["schemas"]["WebhookChats"] | null;
      /**
       * @description Headers sent with every request, such as `Authorization`. Stored encrypted and never shown.
       * @example {
       *       "Authorization": "Basic cGFsb21hOnNlY3JldA=="
       *     }
       */
      headers?: {
        [key: string]: string;
      } | null;
    };
    WebhookChange: {
      /**
       * Format: uri
       * @description HTTPS URL to which events are posted. Plain HTTP is accepted for hosts that the operator allows.
       * @example https://example.com/paloma
       */
      url?: string | null;
      events?: components["schemas"]["EventName"][] | null;
      chats?: components["schemas"]["WebhookChats"] | null;
      /**
       * @description Replaces all additional headers; `{}` removes them.
       * @example {
       *       "Authorization": "Basic cGFsb21hOnNlY3JldA=="
       *     }
       */
      headers?: {
        [key: string]: string;
      } | null;
      active?: boolean | null;
    };
    Delivery: {
      /**
       * @description Id of the delivery.
       * @example dlv_0000000000421y5z7abcde
       */
      id: string;
      /** @example evt_0000000000000042 */
      eventId: string;
      event: components["schemas"]["EventName"];
      /** @enum {string} */
      status: "pending" | "delivered" | "failed";
      attempts: components["schemas"]["DeliveryAttempt"][];
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description When the next attempt is due; null if none is, or while the webhook is not active.
       * @example 2026-01-15T12:00:00.000Z
       */
      nextAttemptAt: string | null;
    };
    DeliveryAttempt: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      at: string;
      /** @description HTTP status of the response; null if there was none. */
      status: number | null;
      durationMs: number;
      error: string | null;
    };
    RedeliverSince: {
      /**
       * Format: date-time
       * @example 2026-01-15T12:00:00Z
       */
      since: string;
    };
    EventPage: {
      data: components["schemas"]["AnyEvent"][];
      next: string | null;
      /** @description True if some events after the cursor are no longer kept. */
      gap: boolean;
    };
    AnyEvent:
      | components["schemas"]["MessageSentEvent"]
      | components["schemas"]["MessageStatusEvent"]
      | components["schemas"]["MessageFailedEvent"]
      | components["schemas"]["MessageProposedEvent"]
      | components["schemas"]["MessageReceivedEvent"]
      | components["schemas"]["SessionConnectedEvent"]
      | components["schemas"]["SessionDisconnectedEvent"]
      | components["schemas"]["SessionQrEvent"]
      | components["schemas"]["SessionPasskeyEvent"]
      | components["schemas"]["SessionRestrictedEvent"]
      | components["schemas"]["SessionDegradedEvent"]
      | components["schemas"]["MessageEchoEvent"]
      | components["schemas"]["MessageEditedEvent"]
      | components["schemas"]["MessageDeletedEvent"]
      | components["schemas"]["PollVoteEvent"]
      | components["schemas"]["ChoiceMadeEvent"]
      | components["schemas"]["VerificationPassedEvent"]
      | components["schemas"]["VerificationFailedEvent"]
      | components["schemas"]["BulkFinishedEvent"]
      | components["schemas"]["RecipientOptedOutEvent"]
      | components["schemas"]["CallReceivedEvent"]
      | components["schemas"]["PresenceUpdatedEvent"]
      | components["schemas"]["GroupUpdatedEvent"]
      | components["schemas"]["GroupParticipantsEvent"]
      | components["schemas"]["WebhookDisabledEvent"]
      | components["schemas"]["WebhookFailingEvent"]
      | components["schemas"]["WebhookTestEvent"];
    Account: {
      /**
       * @description Id of the account.
       * @example acc_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      name: string;
      plan: components["schemas"]["AccountPlan"];
      used: components["schemas"]["AccountUsed"];
      remaining: components["schemas"]["AccountRemaining"];
      /** @description IP addresses and CIDR ranges that may use the key. Empty for any. */
      allowedIps: string[];
      /** @description Domains, including their subdomains, whose pages may use the key. Empty for any. */
      allowedDomains: string[];
      /**
       * Format: date-time
       * @description When the subscription ends; null for never.
       * @example 2026-01-15T12:00:00.000Z
       */
      expiresAt: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * @description A person who sends one of these words, and nothing else, is opted out.
       * @example [
       *       "STOP"
       *     ]
       */
      optOutWords: string[];
      /**
       * @description Country of numbers that are written in national form, with a 0 in front (ISO 3166). Null: they are refused.
       * @example DE
       */
      country: string | null;
    };
    /** @enum {string} */
    Weekday: "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";
    AccountEdit: {
      /**
       * @example [
       *       "STOP"
       *     ]
       */
      optOutWords?: string[] | null;
      /**
       * @description ISO 3166; null for none.
       * @example DE
       */
      country?: string | null;
    };
    Key: {
      /**
       * @description Id of the key.
       * @example key_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      name: string;
      /**
       * @description `send`: send messages. `read`: all GET requests but the list of keys. `manage`: everything else. `propose`: send messages that wait until a person, or a key with `send`, approves them.
       * @example [
       *       "send",
       *       "read"
       *     ]
       */
      scopes: components["schemas"]["Scope"][];
      /** @description IP addresses and CIDR ranges that may use the key. Empty for any. */
      allowedIps: string[];
      /** @description Domains, including their subdomains, whose pages may use the key. Empty for any. */
      allowedDomains: string[];
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description When the key was last used, to the minute; null for never.
       * @example 2026-01-15T12:00:00.000Z
       */
      lastUsedAt: string | null;
    };
    /** @enum {string} */
    Scope: "send" | "read" | "manage" | "propose";
    KeyWithSecret: {
      /**
       * @description Id of the key.
       * @example key_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      name: string;
      /**
       * @description `send`: send messages. `read`: all GET requests but the list of keys. `manage`: everything else. `propose`: send messages that wait until a person, or a key with `send`, approves them.
       * @example [
       *       "send",
       *       "read"
       *     ]
       */
      scopes: components["schemas"]["Scope"][];
      /** @description IP addresses and CIDR ranges that may use the key. Empty for any. */
      allowedIps: string[];
      /** @description Domains, including their subdomains, whose pages may use the key. Empty for any. */
      allowedDomains: string[];
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
      /**
       * Format: date-time
       * @description When the key was last used, to the minute; null for never.
       * @example 2026-01-15T12:00:00.000Z
       */
      lastUsedAt: string | null;
      key: string;
    };
    KeyCreation: {
      /** @example shop */
      name: string;
      /**
       * @description `send`: send messages. `read`: all GET requests but the list of keys. `manage`: everything else. `propose`: send messages that wait until a person, or a key with `send`, approves them.
       * @example [
       *       "send",
       *       "read"
       *     ]
       */
      scopes: components["schemas"]["Scope"][];
      allowedIps?: string[] | null;
      allowedDomains?: string[] | null;
    };
    OptOut: {
      /**
       * @description Phone number, digits only, or a JID ending in `@lid` if WhatsApp never revealed the number.
       * @example 447700900123
       */
      number: string;
      /**
       * @description The word the person sent; null if the number was added through the API.
       * @example STOP
       */
      word: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      createdAt: string;
    };
    Erasure: {
      /**
       * @description Id of the erasure.
       * @example era_01kf0m3e4v8s2q6w9x1y5z7abc
       */
      id: string;
      /** @enum {string} */
      status: "running" | "done";
      /** @description Messages that were emptied or no longer mention the number. */
      messages: number;
      /** @description Events removed. */
      events: number;
      /** @description Received files removed. */
      files: number;
      /** @description Id of the key that requested the erasure; null for the account's own key or the panel. */
      keyId: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      askedAt: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      doneAt: string | null;
    };
    Health: {
      /** @enum {string} */
      status: "ok" | "stopping" | "storage_unavailable";
    };
    SessionList: {
      data: components["schemas"]["Session"][];
    };
    SessionResponse: {
      data: components["schemas"]["Session"];
    };
    PasskeyRequestResponse: {
      data: components["schemas"]["PasskeyRequest"];
    };
    SessionHealthResponse: {
      data: components["schemas"]["SessionHealth"];
    };
    NumberCheckResponse: {
      data: components["schemas"]["NumberCheck"];
    };
    ContactResponse: {
      data: components["schemas"]["Contact"];
    };
    BlockStateResponse: {
      data: components["schemas"]["BlockState"];
    };
    BlockedContactList: {
      data: components["schemas"]["BlockedContact"][];
    };
    ProfileResponse: {
      data: components["schemas"]["Profile"];
    };
    GroupList: {
      data: components["schemas"]["Group"][];
    };
    CreatedGroupResponse: {
      data: components["schemas"]["CreatedGroup"];
    };
    WholeGroupResponse: {
      data: components["schemas"]["WholeGroup"];
    };
    LeftGroupResponse: {
      data: components["schemas"]["LeftGroup"];
    };
    DeletedGroupMessageResponse: {
      data: components["schemas"]["DeletedGroupMessage"];
    };
    ParticipantResultList: {
      data: components["schemas"]["ParticipantResult"][];
    };
    InviteLinkResponse: {
      data: components["schemas"]["InviteLink"];
    };
    JoinedGroupResponse: {
      data: components["schemas"]["JoinedGroup"];
    };
    JoinRequestList: {
      data: components["schemas"]["JoinRequest"][];
    };
    ChatPage: {
      data: components["schemas"]["Chat"][];
      /** @description Leads to the next page; null on the last one. */
      next: string | null;
    };
    ChatResponse: {
      data: components["schemas"]["Chat"];
    };
    ChatMessagePage: {
      data: components["schemas"]["ChatMessage"][];
      /** @description Leads to the next page; null on the last one. */
      next: string | null;
    };
    ChatContactPage: {
      data: components["schemas"]["ChatContact"][];
      /** @description Leads to the next page; null on the last one. */
      next: string | null;
    };
    ChatStateResponse: {
      data: components["schemas"]["ChatState"];
    };
    ReadMessagesResponse: {
      data: components["schemas"]["ReadMessages"];
    };
    QueuedMessageList: {
      data: components["schemas"]["QueuedMessage"][];
    };
    HistoryItemPage: {
      data: components["schemas"]["HistoryItem"][];
      pagination: components["schemas"]["HistoryPagination"];
    };
    MessageRecordResponse: {
      data: components["schemas"]["MessageRecord"];
    };
    CancelMessageResult: {
      data: components["schemas"]["HistoryItem"] | components["schemas"]["CancelledBulk"];
    };
    CancelledMessagesResponse: {
      data: components["schemas"]["CancelledMessages"];
    };
    BulkPage: {
      data: components["schemas"]["Bulk"][];
      pagination: components["schemas"]["Pagination"];
    };
    BulkResponse: {
      data: components["schemas"]["Bulk"];
    };
    TemplatePage: {
      data: components["schemas"]["Template"][];
      pagination: components["schemas"]["Pagination"];
    };
    TemplateResponse: {
      data: components["schemas"]["Template"];
    };
    TemplateList: {
      data: components["schemas"]["Template"][];
    };
    VerificationResponse: {
      data: components["schemas"]["Verification"];
    };
    WebhookList: {
      data: components["schemas"]["Webhook"][];
    };
    WebhookWithSecretResponse: {
      data: components["schemas"]["WebhookWithSecret"];
    };
    WebhookResponse: {
      data: components["schemas"]["Webhook"];
    };
    TestWebhookResult: {
      data: components["schemas"]["TestWebhookResultData"];
    };
    DeliveryPage: {
      data: components["schemas"]["Delivery"][];
      /** @description Pass as `before` for the next page; null on the last page. */
      next: string | null;
    };
    DeliveryResponse: {
      data: components["schemas"]["Delivery"];
    };
    RedeliverSinceResult: {
      data: components["schemas"]["RedeliverSinceResultData"];
    };
    AccountResponse: {
      data: components["schemas"]["Account"];
    };
    KeyList: {
      data: components["schemas"]["Key"][];
    };
    KeyWithSecretResponse: {
      data: components["schemas"]["KeyWithSecret"];
    };
    KeyResponse: {
      data: components["schemas"]["Key"];
    };
    OptOutPage: {
      data: components["schemas"]["OptOut"][];
      pagination: components["schemas"]["Pagination"];
    };
    OptOutResponse: {
      data: components["schemas"]["OptOut"];
    };
    ErasureResponse: {
      data: components["schemas"]["Erasure"];
    };
    ErasurePage: {
      data: components["schemas"]["Erasure"][];
      pagination: components["schemas"]["Pagination"];
    };
    MessageSentEventData: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string;
      /** @description WhatsApp's id of the message. */
      networkId: string;
      /** @description Id of the queue job, as returned by the send. */
      jobId: string;
      /** @description The recipient as given in the send. */
      to: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      sentAt: string;
      /** @description The tags of the send; absent if it had none. */
      tags?: string[];
    };
    MessageStatusEventData: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string;
      /** @description WhatsApp's id of the message. */
      networkId: string;
      /** @enum {string} */
      status: "delivered" | "read";
      /** @description JID of the person who received or read it in a group; null in a 1:1 chat. */
      participant: string | null;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      at: string;
      /** @description The tags of the send; absent if it had none. */
      tags?: string[];
    };
    MessageFailedEventDataError: {
      /** @description Stable code: cancelled, cancelled_by_reply, expired, number_not_registered, refused, unacknowledged, … */
      code: string;
      /** @description The reason, in one sentence. */
      message: string;
    };
    MessageFailedEventData: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string;
      /** @description WhatsApp's id of the message. */
      networkId: string;
      /** @description Id of the queue job, as returned by the send. */
      jobId: string;
      /** @description The recipient as given in the send. */
      to: string;
      error: components["schemas"]["MessageFailedEventDataError"];
      /** @description The tags of the send; absent if it had none. */
      tags?: string[];
    };
    MessageProposedEventData: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string;
      /** @description The recipient as given in the send. */
      to: string;
      /** @description The kind of message, as in its record. */
      type: string;
      /** @description The text, or the caption of a file. */
      text: string | null;
      /** @description Name of the key. */
      by: string;
    };
    /** @description The option of your choices that the message picks; `choice.made` tells it too. */
    MessageReceivedEventDataChoice: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string;
      id: string;
      label: string;
    };
    MessageReceivedEventData: {
      /** @description JID of the chat. It may end in `@lid` if the sender's number is hidden. */
      from: string;
      /** @description Phone number of the sender, digits only; null if WhatsApp never revealed it. */
      number: string | null;
      /** @description Public name of the sender. */
      pushName: string | null;
      /** @description The person's username, without an @; left out if WhatsApp told none. */
      username?: string;
      /** @description WhatsApp's id of the message. */
      messageId: string;
      /** @description Unix time in seconds. */
      timestamp: number;
      /** @enum {string} */
      type:
        | "conversation"
        | "extendedTextMessage"
        | "imageMessage"
        | "videoMessage"
        | "audioMessage"
        | "documentMessage"
        | "stickerMessage"
        | "reactionMessage"
        | "locationMessage"
        | "liveLocationMessage"
        | "contactMessage"
        | "contactsArrayMessage"
        | "pollCreationMessage"
        | "buttonsResponseMessage"
        | "listResponseMessage"
        | "unknown";
      /** @description Body of a text, caption of a file, or emoji of a reaction; null for a file without a caption. */
      text: string | null;
      media?: components["schemas"]["ReceivedFile"];
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description JID of the sender in a group. */
      participant?: string;
      quoted?: components["schemas"]["QuotedMessage"];
      /** @description JIDs of the people mentioned. */
      mentions?: string[];
      isForwarded: boolean;
      /** @description Present only on view-once messages. */
      viewOnce?: boolean;
      /** @description The ad that started the chat, as far as WhatsApp reports it: title, body, sourceType, sourceId, sourceUrl, clickId, … */
      ad?: {
        [key: string]: string;
      };
      choice?: components["schemas"]["MessageReceivedEventDataChoice"];
      details?: components["schemas"]["MessageDetails"];
    };
    SessionConnectedEventData: {
      /** @description The linked phone number, digits only. */
      phone: string;
    };
    SessionDisconnectedEventData: {
      /** @enum {string} */
      status: "disconnected" | "logged_out";
      /** @description The reason, in one sentence. */
      reason: string;
    };
    SessionQrEventData: {
      /** @description The QR as the data URL of a PNG image. */
      qr: string;
    };
    SessionPasskeyEventData: {
      /**
       * @description What a person has to do: sign the challenge, or compare the code.
       * @enum {string}
       */
      stage: "required" | "confirm";
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      expiresAt: string;
    };
    SessionRestrictedEventData: {
      /** @description False when the account may start new chats again. */
      active: boolean;
      /** @description WhatsApp's name for the restriction. */
      kind: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      until: string | null;
    };
    SessionDegradedEventData: {
      /** @description What is wrong, in one sentence; null once the session has recovered. */
      reason: string | null;
    };
    /** @description The option of your choices that the message picks; `choice.made` tells it too. */
    MessageEchoEventDataChoice: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string;
      id: string;
      label: string;
    };
    MessageEchoEventData: {
      /** @description JID of the chat in which the message was sent. */
      from: string;
      /** @description The session's own number. */
      number: string | null;
      /** @description Public name of the sender. */
      pushName: string | null;
      /** @description The person's username, without an @; left out if WhatsApp told none. */
      username?: string;
      /** @description WhatsApp's id of the message. */
      messageId: string;
      /** @description Unix time in seconds. */
      timestamp: number;
      /** @enum {string} */
      type:
        | "conversation"
        | "extendedTextMessage"
        | "imageMessage"
        | "videoMessage"
        | "audioMessage"
        | "documentMessage"
        | "stickerMessage"
        | "reactionMessage"
        | "locationMessage"
        | "liveLocationMessage"
        | "contactMessage"
        | "contactsArrayMessage"
        | "pollCreationMessage"
        | "buttonsResponseMessage"
        | "listResponseMessage"
        | "unknown";
      /** @description Body of a text, caption of a file, or emoji of a reaction; null for a file without a caption. */
      text: string | null;
      media?: components["schemas"]["ReceivedFile"];
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description JID of the sender in a group. */
      participant?: string;
      quoted?: components["schemas"]["QuotedMessage"];
      /** @description JIDs of the people mentioned. */
      mentions?: string[];
      isForwarded: boolean;
      /** @description Present only on view-once messages. */
      viewOnce?: boolean;
      /** @description The ad that started the chat, as far as WhatsApp reports it: title, body, sourceType, sourceId, sourceUrl, clickId, … */
      ad?: {
        [key: string]: string;
      };
      choice?: components["schemas"]["MessageEchoEventDataChoice"];
      details?: components["schemas"]["MessageDetails"];
      fromMe: boolean;
    };
    MessageEditedEventData: {
      /** @description WhatsApp's id of the message. */
      messageId: string;
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description Phone number of the person who did it, digits only; null if WhatsApp never revealed it. */
      number: string | null;
      /** @description The new text or caption. */
      text: string | null;
    };
    MessageDeletedEventData: {
      /** @description WhatsApp's id of the message. */
      messageId: string;
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description Phone number of the person who did it, digits only; null if WhatsApp never revealed it. */
      number: string | null;
    };
    PollVoteEventData: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string | null;
      /** @description WhatsApp's id of the message. */
      networkId: string;
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description Phone number of the person who did it, digits only; null if WhatsApp never revealed it. */
      number: string | null;
      /** @description All options now chosen; empty if the vote was withdrawn. */
      options: string[];
    };
    ChoiceMadeEventData: {
      /** @description The gateway's id of the message, as returned by the send. */
      messageId: string;
      /** @description WhatsApp's id of the message. */
      networkId: string;
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description Phone number of the person who did it, digits only; null if WhatsApp never revealed it. */
      number: string | null;
      /** @description Id of the option, as given in the send; its number if none was given. */
      id: string;
      label: string;
      /**
       * @description Whether the person wrote it, voted in the poll or tapped it.
       * @enum {string}
       */
      how: "text" | "vote" | "tap";
    };
    VerificationPassedEventData: {
      /** @description Id of the verification. */
      id: string;
      /** @description Phone number of the person who did it, digits only; null if WhatsApp never revealed it. */
      number: string | null;
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
    };
    VerificationFailedEventData: {
      /** @description Id of the verification. */
      id: string;
      /** @description Stable code: expired, other_number, number_hidden. */
      reason: string;
    };
    BulkFinishedEventData: {
      /** @description Id of the bulk, as returned by the send. */
      bulkId: string;
      total: number;
      sent: number;
      /** @description Includes cancelled messages. */
      failed: number;
    };
    RecipientOptedOutEventData: {
      /** @description Phone number, digits only, or a JID ending in `@lid` if WhatsApp never revealed the number. */
      number: string;
      /** @description The word, as in the account's `optOutWords`. */
      word: string;
    };
    CallReceivedEventData: {
      /** @description WhatsApp's id of the call. */
      callId: string;
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description Phone number of the person who did it, digits only; null if WhatsApp never revealed it. */
      number: string | null;
      video: boolean;
    };
    PresenceUpdatedEventData: {
      /** @description JID of the chat: the other person's or the group's. */
      chat: string;
      /** @description Phone number of the person who did it, digits only; null if WhatsApp never revealed it. */
      number: string | null;
      /** @enum {string} */
      state: "online" | "offline" | "typing" | "recording" | "paused";
    };
    GroupUpdatedEventData: {
      group: components["schemas"]["ChangedGroup"];
    };
    GroupParticipantsEventData: {
      group: components["schemas"]["ChangedGroup"];
      /** @enum {string} */
      action: "add" | "remove" | "promote" | "demote" | "leave";
      participants: components["schemas"]["ChangedParticipant"][];
    };
    WebhookDisabledEventData: {
      webhookId: string;
      /**
       * Format: date-time
       * @description Since when nothing was delivered.
       */
      since: string;
      /** @description Why it was disabled, and how to enable it again. */
      reason: string;
    };
    WebhookFailingEventData: {
      webhookId: string;
      url: string;
      /** @description False if the gateway disabled it. */
      active: boolean;
      /** @description Failed deliveries since the last success. */
      failedInARow: number;
      lastError: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      since: string;
    };
    WebhookTestEventData: {
      webhookId: string;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       */
      at: string;
    };
    /** @description Only with `quota_exceeded`: messages left in each quota. */
    ProblemRemaining: {
      daily: number | null;
      monthly: number | null;
    };
    SessionPasskey: {
      /** @enum {string} */
      stage: "required" | "confirm";
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      expiresAt: string;
    };
    PasskeyAssertionResponse: {
      clientDataJSON: string;
      authenticatorData: string;
      signature: string;
      userHandle?: string | null;
    };
    SessionHealthNewChats: {
      used: number;
      limit: number;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      resetsAt: string | null;
    };
    SessionHealthPlanNewChats: {
      used: number;
      limit: number;
      /**
       * Format: date-time
       * @description ISO 8601, UTC.
       * @example 2026-01-15T12:00:00.000Z
       */
      resetsAt: string;
    };
    SessionHealthQueue: {
      waiting: number;
      oldestSeconds: number;
      waitsFor: components["schemas"]["WaitsFor"] | null;
    };
    ContactBusiness: {
      description: string | null;
      category: string | null;
      address: string | null;
      email: string | null;
      websites: string[];
    };
    ParticipantResultError: {
      code: string;
      message: string;
    };
    MessageRecordPoll: {
      /** @description Number of people who have voted. */
      voters: number;
      options: components["schemas"]["PollOption"][];
    };
    AccountPlanHours: {
      days: components["schemas"]["Weekday"][];
      /** @example 09:00 */
      from: string;
      /**
       * @description End of the hours, exclusive.
       * @example 18:00
       */
      to: string;
      /** @example Europe/Madrid */
      timeZone: string;
    };
    AccountPlan: {
      /** @example free */
      name: string;
      /** @description Maximum number of sessions. */
      sessions: number;
      /** @description Messages per UTC day. Null for no limit. */
      daily: number | null;
      /** @description Messages per UTC month. Null for no limit. */
      monthly: number | null;
      /** @description Shortest pause between two messages of a session, in milliseconds. */
      delayMinMs: number;
      /** @description Longest pause between two messages of a session, in milliseconds. */
      delayMaxMs: number;
      /** @description Requests per minute and key. Null for no limit. */
      requestsPerMinute: number | null;
      /** @description Maximum number of webhooks. */
      webhooks: number;
      /** @description Maximum number of concurrent event streams. */
      eventStreams: number;
      /** @description Maximum number of templates. */
      templates: number;
      /** @description Maximum number of open verifications. */
      verifications: number;
      /**
       * @description Hours within which messages are sent; null for any time.
       * @example null
       */
      hours: components["schemas"]["AccountPlanHours"] | null;
      /** @description New chats that a session may start per day. Null for no limit. */
      newChatsDaily: number | null;
      /** @description Whether a session may start fewer new chats in its first four weeks. */
      warmUp: boolean;
      /** @description Milliseconds to show "typing…" before messages that set no `typing`. */
      typingMs: number;
    };
    AccountUsed: {
      /** @description Messages accepted this UTC day. */
      daily: number;
      /** @description Messages accepted this UTC month. */
      monthly: number;
    };
    AccountRemaining: {
      /** @description Messages left this UTC day. Null for no limit. */
      daily: number | null;
      /** @description Messages left this UTC month. Null for no limit. */
      monthly: number | null;
    };
    TestWebhookResultData: {
      eventId: string;
    };
    RedeliverSinceResultData: {
      scheduled: number;
    };
    /** @description What each operation takes and answers, by method and path. */
    Operations: {
      /** @description List sessions */
      "GET /sessions": {
        answer: components["schemas"]["SessionList"];
      };
      /** @description Create a session */
      "POST /sessions": {
        body: components["schemas"]["SessionCreation"];
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Get a session */
      "GET /sessions/{id}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Update a session */
      "PATCH /sessions/{id}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["SessionChange"];
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Delete a session */
      "DELETE /sessions/{id}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Get the QR or pairing code */
      "GET /sessions/{id}/qr": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["LinkingResult"];
      };
      /** @description Get the status of a session */
      "GET /sessions/{id}/status": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Reconnect a session */
      "POST /sessions/{id}/reconnect": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Disconnect a session */
      "POST /sessions/{id}/disconnect": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Log out a session */
      "POST /sessions/{id}/logout": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Get the passkey request */
      "GET /sessions/{id}/passkey": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["PasskeyRequestResponse"];
      };
      /** @description Submit the signed challenge */
      "POST /sessions/{id}/passkey": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["PasskeySignature"];
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Confirm the code */
      "POST /sessions/{id}/passkey/confirm": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Get session health */
      "GET /sessions/{id}/health": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionHealthResponse"];
      };
      /** @description Check a number */
      "POST /sessions/{id}/check-number": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["NumberToCheck"];
        answer: components["schemas"]["NumberCheckResponse"];
      };
      /** @description Get a contact */
      "GET /sessions/{id}/contacts/{number}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped.
           * @example 447700900123
           */
          number: string;
        };
        answer: components["schemas"]["ContactResponse"];
      };
      /** @description Block a number */
      "PUT /sessions/{id}/contacts/{number}/block": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped.
           * @example 447700900123
           */
          number: string;
        };
        answer: components["schemas"]["BlockStateResponse"];
      };
      /** @description Unblock a number */
      "DELETE /sessions/{id}/contacts/{number}/block": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped.
           * @example 447700900123
           */
          number: string;
        };
        answer: components["schemas"]["BlockStateResponse"];
      };
      /** @description List blocked numbers */
      "GET /sessions/{id}/blocklist": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["BlockedContactList"];
      };
      /** @description Get the profile */
      "GET /sessions/{id}/profile": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["ProfileResponse"];
      };
      /** @description Update the profile */
      "PATCH /sessions/{id}/profile": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["ProfileChange"];
        answer: components["schemas"]["ProfileResponse"];
      };
      /** @description List groups */
      "GET /sessions/{id}/groups": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["GroupList"];
      };
      /** @description Create a group */
      "POST /sessions/{id}/groups": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["GroupCreation"];
        answer: components["schemas"]["CreatedGroupResponse"];
      };
      /** @description Get a group */
      "GET /sessions/{id}/groups/{gid}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        answer: components["schemas"]["WholeGroupResponse"];
      };
      /** @description Update a group */
      "PATCH /sessions/{id}/groups/{gid}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        body: components["schemas"]["GroupChange"];
        answer: components["schemas"]["WholeGroupResponse"];
      };
      /** @description Leave a group */
      "DELETE /sessions/{id}/groups/{gid}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        answer: components["schemas"]["LeftGroupResponse"];
      };
      /** @description Delete a group message for everyone */
      "DELETE /sessions/{id}/groups/{gid}/messages/{messageId}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
          /**
           * @description Id of a message: `msg_…`, or the `messageId` of an event.
           * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          messageId: string;
        };
        answer: components["schemas"]["DeletedGroupMessageResponse"];
      };
      /** @description Add, remove, promote or demote participants */
      "POST /sessions/{id}/groups/{gid}/participants": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        body: components["schemas"]["ParticipantsChange"];
        answer: components["schemas"]["ParticipantResultList"];
      };
      /** @description Get the invite link */
      "GET /sessions/{id}/groups/{gid}/invite": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        answer: components["schemas"]["InviteLinkResponse"];
      };
      /** @description Replace the invite link */
      "DELETE /sessions/{id}/groups/{gid}/invite": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        answer: components["schemas"]["InviteLinkResponse"];
      };
      /** @description Join a group */
      "POST /sessions/{id}/groups/join": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["Invitation"];
        answer: components["schemas"]["JoinedGroupResponse"];
      };
      /** @description List join requests */
      "GET /sessions/{id}/groups/{gid}/requests": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        answer: components["schemas"]["JoinRequestList"];
      };
      /** @description Approve or reject join requests */
      "POST /sessions/{id}/groups/{gid}/requests": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description JID of the group.
           * @example 120363025246125486@g.us
           */
          gid: string;
        };
        body: components["schemas"]["RequestsAnswer"];
        answer: components["schemas"]["ParticipantResultList"];
      };
      /** @description List chats */
      "GET /sessions/{id}/chats": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        query: {
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
          /** @description `next` of the page before. */
          after?: string;
          /** @description Part of a name or number. */
          q?: string;
          /**
           * @description `true`: only chats with unread messages.
           * @enum {string}
           */
          unread?: "true" | "false";
          /**
           * @description `true`: only chats in which the other side has written.
           * @enum {string}
           */
          wrote?: "true" | "false";
        };
        answer: components["schemas"]["ChatPage"];
      };
      /** @description Get a chat */
      "GET /sessions/{id}/chats/{chat}": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, or a JID from an event.
           * @example 447700900123
           */
          chat: string;
        };
        answer: components["schemas"]["ChatResponse"];
      };
      /** @description List the messages of a chat */
      "GET /sessions/{id}/chats/{chat}/messages": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, or a JID from an event.
           * @example 447700900123
           */
          chat: string;
        };
        query: {
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
          /** @description Only older messages than this: `next` of a page, or a `messageId`. */
          before?: string;
          /** @description Only newer messages than this: `next` of a page, or a `messageId`. */
          after?: string;
        };
        answer: components["schemas"]["ChatMessagePage"];
      };
      /** @description List contacts */
      "GET /sessions/{id}/contacts": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        query: {
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
          /** @description `next` of the page before. */
          after?: string;
          /** @description Part of a name or number. */
          q?: string;
        };
        answer: components["schemas"]["ChatContactPage"];
      };
      /** @description Show or clear a typing indicator */
      "POST /sessions/{id}/chats/{chat}/presence": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, or a JID from an event.
           * @example 447700900123
           */
          chat: string;
        };
        body: components["schemas"]["ChatStateChange"];
        answer: components["schemas"]["ChatStateResponse"];
      };
      /** @description Mark messages as read */
      "POST /sessions/{id}/chats/{chat}/read": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a group JID ending in `@g.us`, or a JID from an event.
           * @example 447700900123
           */
          chat: string;
        };
        body: components["schemas"]["ReadRequest"] | null;
        answer: components["schemas"]["ReadMessagesResponse"];
      };
      /** @description List queued messages */
      "GET /sessions/{id}/queue": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        query: {
          /**
           * @default 100
           * @example 100
           */
          limit?: number;
        };
        answer: components["schemas"]["QueuedMessageList"];
      };
      /** @description Pause the queue */
      "POST /sessions/{id}/queue/pause": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Resume the queue */
      "POST /sessions/{id}/queue/resume": {
        path: {
          /**
           * @description Id of the session.
           * @example ses_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["SessionResponse"];
      };
      /** @description Send a text */
      "POST /messages/send/text": {
        body: components["schemas"]["TextMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a location */
      "POST /messages/send/location": {
        body: components["schemas"]["LocationMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send contact cards */
      "POST /messages/send/contact": {
        body: components["schemas"]["ContactMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a poll */
      "POST /messages/send/poll": {
        body: components["schemas"]["PollMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Ask with a choice of answers */
      "POST /messages/send/choices": {
        body: components["schemas"]["ChoicesMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description React to a message */
      "POST /messages/send/reaction": {
        body: components["schemas"]["ReactionMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Forward a message */
      "POST /messages/send/forward": {
        body: components["schemas"]["ForwardMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a template */
      "POST /messages/send/template": {
        body: components["schemas"]["TemplateMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a file as multipart upload */
      "POST /messages/send/file": {
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a file in base64 or by URL */
      "POST /messages/send/document": {
        body: components["schemas"]["DocumentMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a sticker */
      "POST /messages/send/sticker": {
        body: components["schemas"]["StickerMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a voice note */
      "POST /messages/send/voice": {
        body: components["schemas"]["VoiceMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send a PDF */
      "POST /message/send/pdf": {
        body: components["schemas"]["PdfMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Post a status */
      "POST /messages/send/status": {
        body: components["schemas"]["StatusMessage"];
        answer: components["schemas"]["Acknowledgement"];
      };
      /** @description Send messages in bulk */
      "POST /messages/send/bulk": {
        body: components["schemas"]["BulkMessage"];
        answer: components["schemas"]["BulkAcknowledgement"];
      };
      /** @description Get the status of a message */
      "GET /messages/{id}/status": {
        path: {
          /**
           * @description Id of the message.
           * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["MessageStatus"];
      };
      /** @description List messages */
      "GET /messages/history": {
        query: {
          /**
           * @default 1
           * @example 1
           */
          page?: number;
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
          status?: components["schemas"]["MessageState"];
          /**
           * Format: date
           * @description First UTC day, inclusive.
           * @example 2026-01-01
           */
          from?: string;
          /**
           * Format: date
           * @description Last UTC day, inclusive.
           * @example 2026-01-31
           */
          to?: string;
          /** @description Only messages sent by this session. */
          sessionId?: string;
          /** @description Only messages to this recipient, as given in `to`. A number and its `@s.whatsapp.net` JID are the same recipient. */
          recipient?: string;
          type?: components["schemas"]["MessageType"];
          /** @description Only messages with this tag. */
          tag?: string;
          /** @description Only messages of this bulk. */
          bulkId?: string;
          /** @description Only messages accepted before this one: `next` of the previous page. */
          before?: string;
        };
        answer: components["schemas"]["HistoryItemPage"];
      };
      /** @description List messages that wait for approval */
      "GET /messages/proposals": {
        query: {
          /**
           * @default 1
           * @example 1
           */
          page?: number;
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
        };
        answer: components["schemas"]["HistoryItemPage"];
      };
      /** @description Get a message */
      "GET /messages/{id}": {
        path: {
          /**
           * @description Id of the message.
           * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["MessageRecordResponse"];
      };
      /** @description Edit or reschedule a message */
      "PATCH /messages/{id}": {
        path: {
          /**
           * @description Id of the message.
           * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["MessageEdit"];
        answer: components["schemas"]["MessageRecordResponse"];
      };
      /** @description Cancel a queued message or bulk */
      "DELETE /messages/{id}": {
        path: {
          /**
           * @description Id of the message or bulk.
           * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["CancelMessageResult"];
      };
      /** @description Approve a proposed message */
      "POST /messages/{id}/approve": {
        path: {
          /**
           * @description Id of the message.
           * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["MessageRecordResponse"];
      };
      /** @description Delete a message for everyone */
      "POST /messages/{id}/revoke": {
        path: {
          /**
           * @description Id of the message.
           * @example msg_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["MessageRecordResponse"];
      };
      /** @description Cancel all queued messages with a tag */
      "DELETE /messages": {
        query: {
          /**
           * @description The tag.
           * @example invoice-1042
           */
          tag: string;
        };
        answer: components["schemas"]["CancelledMessagesResponse"];
      };
      /** @description List bulks */
      "GET /bulks": {
        query: {
          /**
           * @default 1
           * @example 1
           */
          page?: number;
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
        };
        answer: components["schemas"]["BulkPage"];
      };
      /** @description See how far a bulk is */
      "GET /bulks/{id}": {
        path: {
          /**
           * @description Id of the bulk.
           * @example blk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["BulkResponse"];
      };
      /** @description Cancel the rest of a bulk */
      "DELETE /bulks/{id}": {
        path: {
          /**
           * @description Id of the bulk.
           * @example blk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["BulkResponse"];
      };
      /** @description List templates */
      "GET /templates": {
        query: {
          /**
           * @default 1
           * @example 1
           */
          page?: number;
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
        };
        answer: components["schemas"]["TemplatePage"];
      };
      /** @description Create a template */
      "POST /templates": {
        body: components["schemas"]["TemplateCreation"];
        answer: components["schemas"]["TemplateResponse"];
      };
      /** @description Get a template */
      "GET /templates/{name}": {
        path: {
          /**
           * @description Name of the template.
           * @example reminder
           */
          name: string;
        };
        query: {
          /** @description Language of the template. Defaults to the one that was made first. */
          language?: string;
        };
        answer: components["schemas"]["TemplateResponse"];
      };
      /** @description Replace the texts of a template */
      "PUT /templates/{name}": {
        path: {
          /**
           * @description Name of the template.
           * @example reminder
           */
          name: string;
        };
        query: {
          /** @description Language of the template. Defaults to the one that was made first. */
          language?: string;
        };
        body: components["schemas"]["TemplateTexts"];
        answer: components["schemas"]["TemplateResponse"];
      };
      /** @description Delete a template */
      "DELETE /templates/{name}": {
        path: {
          /**
           * @description Name of the template.
           * @example reminder
           */
          name: string;
        };
        query: {
          /** @description Language of the template. Defaults to all. */
          language?: string;
        };
        answer: components["schemas"]["TemplateList"];
      };
      /** @description Start a verification */
      "POST /verifications": {
        body: components["schemas"]["VerificationCreation"];
        answer: components["schemas"]["VerificationResponse"];
      };
      /** @description Get a verification */
      "GET /verifications/{id}": {
        path: {
          /**
           * @description Id of the verification.
           * @example ver_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["VerificationResponse"];
      };
      /** @description List webhooks */
      "GET /webhooks": {
        answer: components["schemas"]["WebhookList"];
      };
      /** @description Create a webhook */
      "POST /webhooks": {
        body: components["schemas"]["WebhookCreation"];
        answer: components["schemas"]["WebhookWithSecretResponse"];
      };
      /** @description Get a webhook */
      "GET /webhooks/{id}": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["WebhookResponse"];
      };
      /** @description Update a webhook */
      "PUT /webhooks/{id}": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["WebhookChange"];
        answer: components["schemas"]["WebhookResponse"];
      };
      /** @description Delete a webhook */
      "DELETE /webhooks/{id}": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["WebhookResponse"];
      };
      /** @description Send a test event */
      "POST /webhooks/{id}/test": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["TestWebhookResult"];
      };
      /** @description Rotate the secret */
      "POST /webhooks/{id}/rotate-secret": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["WebhookWithSecretResponse"];
      };
      /** @description List deliveries */
      "GET /webhooks/{id}/deliveries": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        query: {
          /** @enum {string} */
          status?: "pending" | "delivered" | "failed";
          /**
           * @description `next` of the previous page.
           * @example dlv_0000000000421y5z7abcde
           */
          before?: string;
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
        };
        answer: components["schemas"]["DeliveryPage"];
      };
      /** @description Redeliver an event */
      "POST /webhooks/{id}/deliveries/{deliveryId}/redeliver": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
          /**
           * @description Id of the delivery.
           * @example dlv_0000000000421y5z7abcde
           */
          deliveryId: string;
        };
        answer: components["schemas"]["DeliveryResponse"];
      };
      /** @description Redeliver all events since a time */
      "POST /webhooks/{id}/redeliver": {
        path: {
          /**
           * @description Id of the webhook.
           * @example whk_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        body: components["schemas"]["RedeliverSince"];
        answer: components["schemas"]["RedeliverSinceResult"];
      };
      /** @description List events */
      "GET /events": {
        query: {
          /** @description Id of the last event seen, or `now`. Defaults to the oldest event kept. */
          after?: string;
          /**
           * @description Event names, separated by commas. Defaults to all except `presence.updated`. Names: message.sent, message.status, message.failed, message.proposed, message.received, session.connected, session.disconnected, session.qr, session.passkey, session.restricted, session.degraded, message.echo, message.edited, message.deleted, poll.vote, choice.made, verification.passed, verification.failed, bulk.finished, recipient.opted_out, call.received, presence.updated, group.updated, group.participants, webhook.failing, webhook.disabled, webhook.test.
           * @example message.sent,message.received
           */
          types?: string;
          sessionId?: string;
          /**
           * @default 100
           * @example 100
           */
          limit?: number;
        };
        answer: components["schemas"]["EventPage"];
      };
      /** @description Get the account */
      "GET /account": {
        answer: components["schemas"]["AccountResponse"];
      };
      /** @description Update the account */
      "PATCH /account": {
        body: components["schemas"]["AccountEdit"];
        answer: components["schemas"]["AccountResponse"];
      };
      /** @description List API keys */
      "GET /account/keys": {
        answer: components["schemas"]["KeyList"];
      };
      /** @description Create an API key */
      "POST /account/keys": {
        body: components["schemas"]["KeyCreation"];
        answer: components["schemas"]["KeyWithSecretResponse"];
      };
      /** @description Delete an API key */
      "DELETE /account/keys/{id}": {
        path: {
          /**
           * @description Id of the key.
           * @example key_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["KeyResponse"];
      };
      /** @description List opt-outs */
      "GET /optouts": {
        query: {
          /**
           * @default 1
           * @example 1
           */
          page?: number;
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
        };
        answer: components["schemas"]["OptOutPage"];
      };
      /** @description Get an opt-out */
      "GET /optouts/{number}": {
        path: {
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a JID ending in `@lid`.
           * @example 447700900123
           */
          number: string;
        };
        answer: components["schemas"]["OptOutResponse"];
      };
      /** @description Opt a number out */
      "PUT /optouts/{number}": {
        path: {
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a JID ending in `@lid`.
           * @example 447700900123
           */
          number: string;
        };
        answer: components["schemas"]["OptOutResponse"];
      };
      /** @description Remove an opt-out */
      "DELETE /optouts/{number}": {
        path: {
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a JID ending in `@lid`.
           * @example 447700900123
           */
          number: string;
        };
        answer: components["schemas"]["OptOutResponse"];
      };
      /** @description Erase a number's data */
      "DELETE /data/{number}": {
        path: {
          /**
           * @description Phone number with country code. Signs that people write in numbers are dropped. Or a JID ending in `@lid`.
           * @example 447700900123
           */
          number: string;
        };
        answer: components["schemas"]["ErasureResponse"];
      };
      /** @description List erasures */
      "GET /erasures": {
        query: {
          /**
           * @default 1
           * @example 1
           */
          page?: number;
          /**
           * @default 20
           * @example 20
           */
          limit?: number;
        };
        answer: components["schemas"]["ErasurePage"];
      };
      /** @description Get an erasure */
      "GET /erasures/{id}": {
        path: {
          /**
           * @description Id of the erasure.
           * @example era_01kf0m3e4v8s2q6w9x1y5z7abc
           */
          id: string;
        };
        answer: components["schemas"]["ErasureResponse"];
      };
    };
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type MessageSentEvent = components["schemas"]["MessageSentEvent"];
export type MessageStatusEvent = components["schemas"]["MessageStatusEvent"];
export type MessageFailedEvent = components["schemas"]["MessageFailedEvent"];
export type MessageProposedEvent = components["schemas"]["MessageProposedEvent"];
export type MessageReceivedEvent = components["schemas"]["MessageReceivedEvent"];
export type ReceivedFile = components["schemas"]["ReceivedFile"];
export type QuotedMessage = components["schemas"]["QuotedMessage"];
export type MessageDetails = components["schemas"]["MessageDetails"];
export type CompanyMessageDetails = components["schemas"]["CompanyMessageDetails"];
export type ReceivedButton = components["schemas"]["ReceivedButton"];
export type ReceivedOrder = components["schemas"]["ReceivedOrder"];
export type ReceivedOffer = components["schemas"]["ReceivedOffer"];
export type ReceivedPlace = components["schemas"]["ReceivedPlace"];
export type ListedProduct = components["schemas"]["ListedProduct"];
export type ReceivedProduct = components["schemas"]["ReceivedProduct"];
export type ReceivedCatalog = components["schemas"]["ReceivedCatalog"];
export type ReceivedCard = components["schemas"]["ReceivedCard"];
export type ForwardedFrom = components["schemas"]["ForwardedFrom"];
export type MessagePreview = components["schemas"]["MessagePreview"];
export type MessageAction = components["schemas"]["MessageAction"];
export type MentionedGroup = components["schemas"]["MentionedGroup"];
export type OrderDetails = components["schemas"]["OrderDetails"];
export type ProductDetails = components["schemas"]["ProductDetails"];
export type AnswerDetails = components["schemas"]["AnswerDetails"];
export type InvoiceDetails = components["schemas"]["InvoiceDetails"];
export type ReceivedInvoice = components["schemas"]["ReceivedInvoice"];
export type PaymentDetails = components["schemas"]["PaymentDetails"];
export type ReceivedPayment = components["schemas"]["ReceivedPayment"];
export type MessageTarget = components["schemas"]["MessageTarget"];
export type EventDetails = components["schemas"]["EventDetails"];
export type ReceivedEvent = components["schemas"]["ReceivedEvent"];
export type EventResponseDetails = components["schemas"]["EventResponseDetails"];
export type GroupInviteDetails = components["schemas"]["GroupInviteDetails"];
export type GroupInvitation = components["schemas"]["GroupInvitation"];
export type ChannelInviteDetails = components["schemas"]["ChannelInviteDetails"];
export type ChannelInvitation = components["schemas"]["ChannelInvitation"];
export type AboutDetails = components["schemas"]["AboutDetails"];
export type StickerPackDetails = components["schemas"]["StickerPackDetails"];
export type StickerPack = components["schemas"]["StickerPack"];
export type PollResultDetails = components["schemas"]["PollResultDetails"];
export type PollVotes = components["schemas"]["PollVotes"];
export type ScheduledCallDetails = components["schemas"]["ScheduledCallDetails"];
export type ScheduledCall = components["schemas"]["ScheduledCall"];
export type TextDetails = components["schemas"]["TextDetails"];
export type FileDetails = components["schemas"]["FileDetails"];
export type AudioDetails = components["schemas"]["AudioDetails"];
export type DocumentDetails = components["schemas"]["DocumentDetails"];
export type ReactionDetails = components["schemas"]["ReactionDetails"];
export type LocationDetails = components["schemas"]["LocationDetails"];
export type LiveLocationDetails = components["schemas"]["LiveLocationDetails"];
export type ContactsDetails = components["schemas"]["ContactsDetails"];
export type ReceivedContact = components["schemas"]["ReceivedContact"];
export type PollDetails = components["schemas"]["PollDetails"];
export type ChosenDetails = components["schemas"]["ChosenDetails"];
export type OtherDetails = components["schemas"]["OtherDetails"];
export type SessionConnectedEvent = components["schemas"]["SessionConnectedEvent"];
export type SessionDisconnectedEvent = components["schemas"]["SessionDisconnectedEvent"];
export type SessionQrEvent = components["schemas"]["SessionQrEvent"];
export type SessionPasskeyEvent = components["schemas"]["SessionPasskeyEvent"];
export type SessionRestrictedEvent = components["schemas"]["SessionRestrictedEvent"];
export type SessionDegradedEvent = components["schemas"]["SessionDegradedEvent"];
export type MessageEchoEvent = components["schemas"]["MessageEchoEvent"];
export type MessageEditedEvent = components["schemas"]["MessageEditedEvent"];
export type MessageDeletedEvent = components["schemas"]["MessageDeletedEvent"];
export type PollVoteEvent = components["schemas"]["PollVoteEvent"];
export type ChoiceMadeEvent = components["schemas"]["ChoiceMadeEvent"];
export type VerificationPassedEvent = components["schemas"]["VerificationPassedEvent"];
export type VerificationFailedEvent = components["schemas"]["VerificationFailedEvent"];
export type BulkFinishedEvent = components["schemas"]["BulkFinishedEvent"];
export type RecipientOptedOutEvent = components["schemas"]["RecipientOptedOutEvent"];
export type CallReceivedEvent = components["schemas"]["CallReceivedEvent"];
export type PresenceUpdatedEvent = components["schemas"]["PresenceUpdatedEvent"];
export type GroupUpdatedEvent = components["schemas"]["GroupUpdatedEvent"];
export type ChangedGroup = components["schemas"]["ChangedGroup"];
export type ChangedGroupCommunity = components["schemas"]["ChangedGroupCommunity"];
export type GroupParticipantsEvent = components["schemas"]["GroupParticipantsEvent"];
export type ChangedParticipant = components["schemas"]["ChangedParticipant"];
export type WebhookDisabledEvent = components["schemas"]["WebhookDisabledEvent"];
export type WebhookFailingEvent = components["schemas"]["WebhookFailingEvent"];
export type WebhookTestEvent = components["schemas"]["WebhookTestEvent"];
export type Problem = components["schemas"]["Problem"];
export type FieldError = components["schemas"]["FieldError"];
export type Priority = components["schemas"]["Priority"];
export type Session = components["schemas"]["Session"];
export type SessionStatus = components["schemas"]["SessionStatus"];
export type Restriction = components["schemas"]["Restriction"];
export type SessionCreation = components["schemas"]["SessionCreation"];
export type SessionChange = components["schemas"]["SessionChange"];
export type LinkingResult = components["schemas"]["LinkingResult"];
export type PasskeyRequest = components["schemas"]["PasskeyRequest"];
export type PasskeySignature = components["schemas"]["PasskeySignature"];
export type PasskeyAssertion = components["schemas"]["PasskeyAssertion"];
export type SessionHealth = components["schemas"]["SessionHealth"];
export type WaitsFor = components["schemas"]["WaitsFor"];
export type NumberCheck = components["schemas"]["NumberCheck"];
export type NumberToCheck = components["schemas"]["NumberToCheck"];
export type Contact = components["schemas"]["Contact"];
export type BlockState = components["schemas"]["BlockState"];
export type BlockedContact = components["schemas"]["BlockedContact"];
export type Profile = components["schemas"]["Profile"];
export type ProfileChange = components["schemas"]["ProfileChange"];
export type Group = components["schemas"]["Group"];
export type GroupCommunity = components["schemas"]["GroupCommunity"];
export type CreatedGroup = components["schemas"]["CreatedGroup"];
export type GroupParticipant = components["schemas"]["GroupParticipant"];
export type ParticipantResult = components["schemas"]["ParticipantResult"];
export type GroupCreation = components["schemas"]["GroupCreation"];
export type WholeGroup = components["schemas"]["WholeGroup"];
export type GroupChange = components["schemas"]["GroupChange"];
export type LeftGroup = components["schemas"]["LeftGroup"];
export type DeletedGroupMessage = components["schemas"]["DeletedGroupMessage"];
export type ParticipantsChange = components["schemas"]["ParticipantsChange"];
export type InviteLink = components["schemas"]["InviteLink"];
export type JoinedGroup = components["schemas"]["JoinedGroup"];
export type Invitation = components["schemas"]["Invitation"];
export type JoinRequest = components["schemas"]["JoinRequest"];
export type RequestsAnswer = components["schemas"]["RequestsAnswer"];
export type Chat = components["schemas"]["Chat"];
export type ChatMessage = components["schemas"]["ChatMessage"];
export type ChatAuthor = components["schemas"]["ChatAuthor"];
export type ChatFile = components["schemas"]["ChatFile"];
export type ChatQuote = components["schemas"]["ChatQuote"];
export type MessageError = components["schemas"]["MessageError"];
export type ChatReaction = components["schemas"]["ChatReaction"];
export type ChatContact = components["schemas"]["ChatContact"];
export type ChatState = components["schemas"]["ChatState"];
export type ChatStateChange = components["schemas"]["ChatStateChange"];
export type ReadMessages = components["schemas"]["ReadMessages"];
export type ReadRequest = components["schemas"]["ReadRequest"];
export type QueuedMessage = components["schemas"]["QueuedMessage"];
export type Acknowledgement = components["schemas"]["Acknowledgement"];
export type TextMessage = components["schemas"]["TextMessage"];
export type LocationMessage = components["schemas"]["LocationMessage"];
export type ContactMessage = components["schemas"]["ContactMessage"];
export type ContactCard = components["schemas"]["ContactCard"];
export type PollMessage = components["schemas"]["PollMessage"];
export type ChoicesMessage = components["schemas"]["ChoicesMessage"];
export type ChoiceOption = components["schemas"]["ChoiceOption"];
export type ReactionMessage = components["schemas"]["ReactionMessage"];
export type ForwardMessage = components["schemas"]["ForwardMessage"];
export type TemplateMessage = components["schemas"]["TemplateMessage"];
export type FileMessage = components["schemas"]["FileMessage"];
export type DocumentMessage = components["schemas"]["DocumentMessage"];
export type StickerMessage = components["schemas"]["StickerMessage"];
export type VoiceMessage = components["schemas"]["VoiceMessage"];
export type PdfMessage = components["schemas"]["PdfMessage"];
export type StatusMessage = components["schemas"]["StatusMessage"];
export type BulkAcknowledgement = components["schemas"]["BulkAcknowledgement"];
export type BulkItemAcknowledgement = components["schemas"]["BulkItemAcknowledgement"];
export type BulkMessage = components["schemas"]["BulkMessage"];
export type BulkItem = components["schemas"]["BulkItem"];
export type MessageStatus = components["schemas"]["MessageStatus"];
export type MessageState = components["schemas"]["MessageState"];
export type HistoryItem = components["schemas"]["HistoryItem"];
export type MessageType = components["schemas"]["MessageType"];
export type HistoryPagination = components["schemas"]["HistoryPagination"];
export type MessageRecord = components["schemas"]["MessageRecord"];
export type LifeEntry = components["schemas"]["LifeEntry"];
export type PollOption = components["schemas"]["PollOption"];
export type MessageEdit = components["schemas"]["MessageEdit"];
export type CancelledMessages = components["schemas"]["CancelledMessages"];
export type CancelledBulk = components["schemas"]["CancelledBulk"];
export type Bulk = components["schemas"]["Bulk"];
export type Pagination = components["schemas"]["Pagination"];
export type Template = components["schemas"]["Template"];
export type Choice = components["schemas"]["Choice"];
export type TemplateCreation = components["schemas"]["TemplateCreation"];
export type TemplateTexts = components["schemas"]["TemplateTexts"];
export type Verification = components["schemas"]["Verification"];
export type VerificationCreation = components["schemas"]["VerificationCreation"];
export type Webhook = components["schemas"]["Webhook"];
export type WebhookFormat = components["schemas"]["WebhookFormat"];
export type EventName = components["schemas"]["EventName"];
export type WebhookChats = components["schemas"]["WebhookChats"];
export type WebhookWithSecret = components["schemas"]["WebhookWithSecret"];
export type WebhookCreation = components["schemas"]["WebhookCreation"];
export type WebhookChange = components["schemas"]["WebhookChange"];
export type Delivery = components["schemas"]["Delivery"];
export type DeliveryAttempt = components["schemas"]["DeliveryAttempt"];
export type RedeliverSince = components["schemas"]["RedeliverSince"];
export type EventPage = components["schemas"]["EventPage"];
export type AnyEvent = components["schemas"]["AnyEvent"];
export type Account = components["schemas"]["Account"];
export type Weekday = components["schemas"]["Weekday"];
export type AccountEdit = components["schemas"]["AccountEdit"];
export type Key = components["schemas"]["Key"];
export type Scope = components["schemas"]["Scope"];
export type KeyWithSecret = components["schemas"]["KeyWithSecret"];
export type KeyCreation = components["schemas"]["KeyCreation"];
export type OptOut = components["schemas"]["OptOut"];
export type Erasure = components["schemas"]["Erasure"];
export type Health = components["schemas"]["Health"];
export type SessionList = components["schemas"]["SessionList"];
export type SessionResponse = components["schemas"]["SessionResponse"];
export type PasskeyRequestResponse = components["schemas"]["PasskeyRequestResponse"];
export type SessionHealthResponse = components["schemas"]["SessionHealthResponse"];
export type NumberCheckResponse = components["schemas"]["NumberCheckResponse"];
export type ContactResponse = components["schemas"]["ContactResponse"];
export type BlockStateResponse = components["schemas"]["BlockStateResponse"];
export type BlockedContactList = components["schemas"]["BlockedContactList"];
export type ProfileResponse = components["schemas"]["ProfileResponse"];
export type GroupList = components["schemas"]["GroupList"];
export type CreatedGroupResponse = components["schemas"]["CreatedGroupResponse"];
export type WholeGroupResponse = components["schemas"]["WholeGroupResponse"];
export type LeftGroupResponse = components["schemas"]["LeftGroupResponse"];
export type DeletedGroupMessageResponse = components["schemas"]["DeletedGroupMessageResponse"];
export type ParticipantResultList = components["schemas"]["ParticipantResultList"];
export type InviteLinkResponse = components["schemas"]["InviteLinkResponse"];
export type JoinedGroupResponse = components["schemas"]["JoinedGroupResponse"];
export type JoinRequestList = components["schemas"]["JoinRequestList"];
export type ChatPage = components["schemas"]["ChatPage"];
export type ChatResponse = components["schemas"]["ChatResponse"];
export type ChatMessagePage = components["schemas"]["ChatMessagePage"];
export type ChatContactPage = components["schemas"]["ChatContactPage"];
export type ChatStateResponse = components["schemas"]["ChatStateResponse"];
export type ReadMessagesResponse = components["schemas"]["ReadMessagesResponse"];
export type QueuedMessageList = components["schemas"]["QueuedMessageList"];
export type HistoryItemPage = components["schemas"]["HistoryItemPage"];
export type MessageRecordResponse = components["schemas"]["MessageRecordResponse"];
export type CancelMessageResult = components["schemas"]["CancelMessageResult"];
export type CancelledMessagesResponse = components["schemas"]["CancelledMessagesResponse"];
export type BulkPage = components["schemas"]["BulkPage"];
export type BulkResponse = components["schemas"]["BulkResponse"];
export type TemplatePage = components["schemas"]["TemplatePage"];
export type TemplateResponse = components["schemas"]["TemplateResponse"];
export type TemplateList = components["schemas"]["TemplateList"];
export type VerificationResponse = components["schemas"]["VerificationResponse"];
export type WebhookList = components["schemas"]["WebhookList"];
export type WebhookWithSecretResponse = components["schemas"]["WebhookWithSecretResponse"];
export type WebhookResponse = components["schemas"]["WebhookResponse"];
export type TestWebhookResult = components["schemas"]["TestWebhookResult"];
export type DeliveryPage = components["schemas"]["DeliveryPage"];
export type DeliveryResponse = components["schemas"]["DeliveryResponse"];
export type RedeliverSinceResult = components["schemas"]["RedeliverSinceResult"];
export type AccountResponse = components["schemas"]["AccountResponse"];
export type KeyList = components["schemas"]["KeyList"];
export type KeyWithSecretResponse = components["schemas"]["KeyWithSecretResponse"];
export type KeyResponse = components["schemas"]["KeyResponse"];
export type OptOutPage = components["schemas"]["OptOutPage"];
export type OptOutResponse = components["schemas"]["OptOutResponse"];
export type ErasureResponse = components["schemas"]["ErasureResponse"];
export type ErasurePage = components["schemas"]["ErasurePage"];
export type MessageSentEventData = components["schemas"]["MessageSentEventData"];
export type MessageStatusEventData = components["schemas"]["MessageStatusEventData"];
export type MessageFailedEventDataError = components["schemas"]["MessageFailedEventDataError"];
export type MessageFailedEventData = components["schemas"]["MessageFailedEventData"];
export type MessageProposedEventData = components["schemas"]["MessageProposedEventData"];
export type MessageReceivedEventDataChoice = components["schemas"]["MessageReceivedEventDataChoice"];
export type MessageReceivedEventData = components["schemas"]["MessageReceivedEventData"];
export type SessionConnectedEventData = components["schemas"]["SessionConnectedEventData"];
export type SessionDisconnectedEventData = components["schemas"]["SessionDisconnectedEventData"];
export type SessionQrEventData = components["schemas"]["SessionQrEventData"];
export type SessionPasskeyEventData = components["schemas"]["SessionPasskeyEventData"];
export type SessionRestrictedEventData = components["schemas"]["SessionRestrictedEventData"];
export type SessionDegradedEventData = components["schemas"]["SessionDegradedEventData"];
export type MessageEchoEventDataChoice = components["schemas"]["MessageEchoEventDataChoice"];
export type MessageEchoEventData = components["schemas"]["MessageEchoEventData"];
export type MessageEditedEventData = components["schemas"]["MessageEditedEventData"];
export type MessageDeletedEventData = components["schemas"]["MessageDeletedEventData"];
export type PollVoteEventData = components["schemas"]["PollVoteEventData"];
export type ChoiceMadeEventData = components["schemas"]["ChoiceMadeEventData"];
export type VerificationPassedEventData = components["schemas"]["VerificationPassedEventData"];
export type VerificationFailedEventData = components["schemas"]["VerificationFailedEventData"];
export type BulkFinishedEventData = components["schemas"]["BulkFinishedEventData"];
export type RecipientOptedOutEventData = components["schemas"]["RecipientOptedOutEventData"];
export type CallReceivedEventData = components["schemas"]["CallReceivedEventData"];
export type PresenceUpdatedEventData = components["schemas"]["PresenceUpdatedEventData"];
export type GroupUpdatedEventData = components["schemas"]["GroupUpdatedEventData"];
export type GroupParticipantsEventData = components["schemas"]["GroupParticipantsEventData"];
export type WebhookDisabledEventData = components["schemas"]["WebhookDisabledEventData"];
export type WebhookFailingEventData = components["schemas"]["WebhookFailingEventData"];
export type WebhookTestEventData = components["schemas"]["WebhookTestEventData"];
export type ProblemRemaining = components["schemas"]["ProblemRemaining"];
export type SessionPasskey = components["schemas"]["SessionPasskey"];
export type PasskeyAssertionResponse = components["schemas"]["PasskeyAssertionResponse"];
export type SessionHealthNewChats = components["schemas"]["SessionHealthNewChats"];
export type SessionHealthPlanNewChats = components["schemas"]["SessionHealthPlanNewChats"];
export type SessionHealthQueue = components["schemas"]["SessionHealthQueue"];
export type ContactBusiness = components["schemas"]["ContactBusiness"];
export type ParticipantResultError = components["schemas"]["ParticipantResultError"];
export type MessageRecordPoll = components["schemas"]["MessageRecordPoll"];
export type AccountPlanHours = components["schemas"]["AccountPlanHours"];
export type AccountPlan = components["schemas"]["AccountPlan"];
export type AccountUsed = components["schemas"]["AccountUsed"];
export type AccountRemaining = components["schemas"]["AccountRemaining"];
export type TestWebhookResultData = components["schemas"]["TestWebhookResultData"];
export type RedeliverSinceResultData = components["schemas"]["RedeliverSinceResultData"];
export type Operations = components["schemas"]["Operations"];
