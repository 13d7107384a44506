/**
 * The messages that a phone has received and decrypted, oldest first. Each is listed once, however often it arrived.
 */
import { jidNormalizedUser, type proto } from "@whiskeysockets/baileys";
import { invalid, notFound } from "../../errors.ts";
import { ADMIN_REVOKE, type BinaryNode } from "../world/stanza.ts";
import type { OpenedFile } from "./attachment.ts";
import { type Amendment, type Content, readContent } from "./content.ts";
import { isOwn, lidForm, type PhoneContext } from "./context.ts";
import { openEdit } from "./sealed_edit.ts";
import { shownAuthor } from "./stanzas.ts";

/** Limit on the total size of encrypted files kept for uploading them again. */
const KEPT_FILES_BYTES = 64 * 1024 * 1024;

export interface InboxItem extends Omit<Content, "file" | "previewFile" | "secret"> {
  id: string;
  /** Sender without device: `<number>@s.whatsapp.net` if the number is known, else the LID. */
  from: string;
  /** The group, or the peer of a 1:1 chat. */
  chat: string;
  fromMe: boolean;
  /** SHA-256 of the decrypted file, hex; null without a file, or if it could not be downloaded (see `mediaError`). */
  sha256: string | null;
  /** Size of the decrypted file in bytes. */
  size: number | null;
  mediaError: string | null;
  /** The network's time, Unix ms. */
  timestamp: number;
  /** How many times a message with this chat, sender and id arrived; those that led to a retry receipt do not count. */
  copies: number;
  /** Whether the sender has edited the text since; `text` is the new one. */
  edited: boolean;
  /** Whether the sender has deleted it for everyone. */
  revoked: boolean;
}

/** A message, with the data needed for later requests about it. */
export interface Received {
  item: InboxItem;
  stanza: BinaryNode;
  content: Content;
  file: OpenedFile | null;
}

export class Inbox {
  #phone: PhoneContext;
  #received = new Map<string, Received>();
  #keptBytes = 0;

  constructor(phone: PhoneContext) {
    this.#phone = phone;
  }

  /** Returns the message if it arrived before; null if it is new. */
  find(stanza: BinaryNode, destination: string | null): Received | null {
    return this.#received.get(this.#keyOf(stanza, destination)) ?? null;
  }

  add(stanza: BinaryNode, destination: string | null, { content, file, mediaError }: {
    content: Content;
    file: OpenedFile | null;
    mediaError: string | null;
  }): void {
    const fromMe = isOwn(this.#phone, authorOf(stanza));
    const from = fromMe ? this.#phone.self.jid : shownAuthor(stanza);
    const { file: _file, previewFile: _previewFile, secret: _secret, ...shown } = content;
    const item: InboxItem = {
      ...shown,
      id: stanza.attrs.id ?? "",
      from,
      chat: stanza.attrs.participant
        ? stanza.attrs.from ?? ""
        : fromMe && destination
        ? this.#known(destination)
        : from,
      fromMe,
      sha256: file?.sha256 ?? null,
      size: file?.size ?? null,
      mediaError,
      timestamp: Number(stanza.attrs.t ?? 0) * 1000,
      copies: 1,
      edited: false,
      revoked: false,
    };
    this.#received.set(this.#keyOf(stanza, destination), { item, stanza, content, file });
    this.#keepWithinBounds(file);
  }

  /** Opens an edit with the secret of the original; null if there is none, or it is not its author's. */
  openEdit(
    stanza: BinaryNode,
    destination: string | null,
    sealed: proto.Message.ISecretEncryptedMessage,
  ): proto.IMessage | null {
    const id = sealed.targetMessageKey?.id ?? "";
    const original = this.find({ ...stanza, attrs: { ...stanza.attrs, id } }, destination);
    if (!original?.content.secret) return null;
    const author = authorOf(original.stanza);
    for (const address of [author, lidForm(this.#phone.uplink, author), this.#known(author)]) {
      const opened = openEdit(sealed, { id, secret: original.content.secret, author: address });
      if (opened) return opened;
    }
    return null;
  }

  /**
   * Edits or deletes the message that the amendment names, if it comes from the message's sender or is a deletion by an
   * admin of the group.
   */
  amend(stanza: BinaryNode, destination: string | null, { target, edited }: Amendment): void {
    // The network has checked that the sender is an admin. A 1:1 chat has none.
    const byAdmin = stanza.attrs.participant !== undefined && edited === null && stanza.attrs.edit === ADMIN_REVOKE;
    const original = byAdmin
      ? this.withId(target.id!).find(({ stanza: other }) =>
        other.attrs.from === stanza.attrs.from &&
        this.#userKey(target.participant || authorOf(other)) === this.#userKey(authorOf(other))
      )
      : this.find({ ...stanza, attrs: { ...stanza.attrs, id: target.id! } }, destination);
    if (!original || original.item.revoked) return;
    if (!edited) {
      original.item.revoked = true;
    } else {
      const { text = null, caption = null } = readContent(edited) ?? {};
      Object.assign(original.item, { text, caption, edited: true });
    }
  }

  items(): InboxItem[] {
    return [...this.#received.values()].map(({ item }) => ({ ...item }));
  }

  /** Returns the received message with this id. Throws Problem not_found; validation_failed for an own message. */
  incoming(messageId: string): Received {
    const found = this.withId(messageId);
    if (found.length === 0) throw notFound("message on this phone");
    const incoming = found.find(({ item }) => !item.fromMe);
    if (!incoming) throw invalid("id", "is a message of the phone's owner");
    return incoming;
  }

  /** Returns a message of the inbox, including the owner's own. Throws Problem not_found. */
  message(messageId: string): Received {
    const [found] = this.withId(messageId);
    if (!found) throw notFound("message on this phone");
    return found;
  }

  /** Returns all messages with this id: two senders may choose the same one. */
  withId(messageId: string): Received[] {
    return [...this.#received.values()].filter(({ item }) => item.id === messageId);
  }

  #keyOf(stanza: BinaryNode, destination: string | null): string {
    const chat = stanza.attrs.participant ? stanza.attrs.from : destination ?? stanza.attrs.from;
    return `${this.#userKey(chat ?? "")} ${this.#userKey(authorOf(stanza))} ${stanza.attrs.id}`;
  }

  /** Returns a key for a user or group that is the same for every form of address and every device. */
  #userKey(jid: string): string {
    return jidNormalizedUser(lidForm(this.#phone.uplink, jid));
  }

  /** Returns the phone-number form, if known. Contacts to whom the owner writes are listed by number. */
  #known(jid: string): string {
    return this.#phone.uplink.pnOf(jid) ?? jid;
  }

  #keepWithinBounds(added: OpenedFile | null): void {
    this.#keptBytes += added?.sealed?.body.length ?? 0;
    for (const { file } of this.#received.values()) {
      if (this.#keptBytes <= KEPT_FILES_BYTES) return;
      if (!file?.sealed) continue;
      this.#keptBytes -= file.sealed.body.length;
      file.sealed = null;
    }
  }
}

function authorOf({ attrs }: BinaryNode): string {
  return attrs.participant ?? attrs.from ?? "";
}
