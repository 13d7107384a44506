/** What a kind of message is, and the kinds without a file: texts, locations, contacts, polls, reactions, forwards. */
import type { StoredFile } from "../../media/store.ts";
import type { ContactCard, ForwardableKind, MessageKey, OutgoingBody } from "../../whatsapp/outgoing.ts";

/** A file that is fetched when its message's turn comes (`fileUrl`), and then replaced by a `StoredFile`. */
export interface RemoteFile {
  url: string;
  /** Overrides the name that the server gives. */
  filename?: string;
}

export interface Attachment<File = StoredFile | RemoteFile> {
  file: File;
  filename: string;
  mimetype: string;
}

/** The parts of a content that the history shows. */
export interface Preview {
  text: string | null;
  caption: string | null;
  filename: string | null;
}

/** The behaviour of a kind. Declared as methods, whose bivariance lets the table accept a content of any kind. */
export interface Kind<Content, Body extends OutgoingBody = OutgoingBody> {
  preview(content: Content): Preview;
  /** Returns what else the history shows, under the names that received messages of the kind have. */
  details?(content: Content): Record<string, unknown>;
  /** Returns the UTF-16 code units of all texts in the row, to estimate the size of its commit. */
  characters(content: Content): number;
  /**
   * Returns what is handed to the connection. `pathOf` returns the path of a stored file; the attachment must be
   * stored.
   */
  body(content: Content, pathOf: (fileId: string) => string): Body;
  /** Returns the attachment, for kinds with a file: it is fetched, stored and uploaded before the message leaves. */
  attachment?(content: Content): Attachment | null;
  /**
   * Returns why a file with this beginning is unsuitable, as a validation message for its field; null if it is
   * suitable.
   */
  refusal?(head: Uint8Array, content: Content): string | null;
  /** Returns the content with its fetched file. */
  withAttachment?(content: Content, fetched: Attachment<StoredFile>): Content;
}

export interface TextContent {
  kind: "text";
  text: string;
}

export const text: Kind<TextContent, TextContent> = {
  preview: ({ text }) => ({ text, caption: null, filename: null }),
  characters: ({ text }) => text.length,
  body: (content) => content,
};

interface LocationContent {
  kind: "location";
  latitude: number;
  longitude: number;
  name: string | null;
  address: string | null;
}

const location: Kind<LocationContent> = {
  preview: ({ name, address }) => ({ text: name ?? address, caption: null, filename: null }),
  details: ({ latitude, longitude, name, address }) => ({
    latitude,
    longitude,
    ...(name ? { name } : {}),
    ...(address ? { address } : {}),
  }),
  characters: ({ name, address }) => (name ?? "").length + (address ?? "").length,
  body: (content) => content,
};

interface ContactContent {
  kind: "contact";
  contacts: ContactCard[];
}

const contact: Kind<ContactContent> = {
  preview: ({ contacts }) => ({ text: contacts.map(({ name }) => name).join(", "), caption: null, filename: null }),
  details: ({ contacts }) => ({
    contacts: contacts.map(({ name, phone, organization }) => ({ name, phones: phone ? [phone] : [], organization })),
  }),
  characters: ({ contacts }) =>
    contacts.reduce(
      (sum, { name, phone, organization, lines = [] }) =>
        sum + name.length + phone.length + (organization ?? "").length + lines.join("").length,
      0,
    ),
  body: (content) => content,
};

interface PollContent {
  kind: "poll";
  question: string;
  options: string[];
  /** Whether a person may choose several options. */
  multiple: boolean;
}

const poll: Kind<PollContent> = {
  preview: ({ question }) => ({ text: question, caption: null, filename: null }),
  details: ({ options, multiple }) => ({ options, selectable: multiple ? null : 1 }),
  characters: ({ question, options }) => question.length + options.join("").length,
  body: (content) => content,
};

/** A reaction to a message of the same chat. */
export interface ReactionContent {
  kind: "reaction";
  /** "" removes an earlier reaction. */
  emoji: string;
  target: MessageKey;
}

const reaction: Kind<ReactionContent> = {
  preview: ({ emoji }) => ({ text: emoji, caption: null, filename: null }),
  characters: ({ emoji, target }) => emoji.length + target.networkId.length,
  body: (content) => content,
};

/**
 * A forwarded message: the network adapter's copy of the original is sent, so that a file need not be uploaded again.
 */
export interface ForwardContent {
  kind: "forward";
  /** The kind as which it is shown. */
  of: ForwardableKind;
  /** The line that sent or received the original, and its id on the network. */
  source: { lineId: string; networkId: string };
  preview: Preview;
}

const forward: Kind<ForwardContent> = {
  preview: ({ preview }) => preview,
  characters: ({ preview: { text, caption, filename } }) => [text, caption, filename].join("").length,
  body: ({ source, preview }) => ({ kind: "forward", source, preview }),
};

export type PlainContent =
  | TextContent
  | LocationContent
  | ContactContent
  | PollContent
  | ReactionContent
  | ForwardContent;

export const PLAIN_KINDS = { text, location, contact, poll, reaction, forward };
