/** What comes to a phone: messages are decrypted and kept, everything is acknowledged, what failed is asked for again. */
import type { ChatState } from "../world/inbox.ts";
import type { BinaryNode } from "../world/stanza.ts";
import { AttachmentError, receiveFile } from "./attachment.ts";
import { readChatState } from "./chat_state.ts";
import { type Content, readContent, unwrap } from "./content.ts";
import { isOwn, type PhoneContext } from "./context.ts";
import { decryptStanza } from "./decrypt.ts";
import { amendmentOf } from "./details.ts";
import type { Inbox } from "./inbox.ts";
import { addPreKeys, bundleOf } from "./keys.ts";
import type { Outbox } from "./outbox.ts";
import { reupload } from "./reupload.ts";
import { ack, deliveryReceipt, retryReceipt } from "./stanzas.ts";

/** How many copies of a message may fail to decrypt before it is given up. */
const RETRY_RECEIPTS = 5;

/** What it saw others do in chats, kept for the control API. */
const STATES_KEPT = 1_000;

interface ReceiverParts {
  inbox: Inbox;
  outbox: Outbox;
  /** Replaces the keys that were used up. */
  publishKeys(): void;
}

export class Receiver {
  readonly #phone: PhoneContext;
  readonly #parts: ReceiverParts;
  readonly #retryReceipts = new Map<string, number>();
  readonly #states: ChatState[] = [];

  constructor(phone: PhoneContext, parts: ReceiverParts) {
    this.#phone = phone;
    this.#parts = parts;
  }

  /** What it saw others do in chats, oldest first. */
  chatStates(): ChatState[] {
    return this.#states.map((state) => ({ ...state }));
  }

  /** Reads the stanza, and answers it as an app does. */
  async take(stanza: BinaryNode): Promise<void> {
    const { uplink, self } = this.#phone;
    if (stanza.tag === "message") return await this.#receiveMessage(stanza);
    if (stanza.tag === "ack") return;
    if (stanza.tag === "chatstate" || stanza.tag === "presence") return this.#see(stanza);
    uplink.send(self, ack(stanza));
    if (stanza.tag !== "receipt") return;
    if (stanza.attrs.type === "retry") await this.#parts.outbox.resend(stanza);
    if (stanza.attrs.type === "server-error" && isOwn(this.#phone, stanza.attrs.from ?? "")) {
      uplink.send(self, await reupload(this.#phone, stanza, this.#parts.inbox.withId(stanza.attrs.id ?? "")));
    }
  }

  async #receiveMessage(stanza: BinaryNode): Promise<void> {
    const { uplink, self } = this.#phone;
    const decrypted = await decryptStanza(this.#phone, stanza);
    this.#parts.publishKeys();
    const destination = decrypted.kind === "message" ? decrypted.destination : stanza.attrs.recipient ?? null;
    const known = this.#parts.inbox.find(stanza, destination);
    if (known) {
      known.item.copies++;
    } else if (decrypted.kind === "failed") {
      return this.#askAgain(stanza, decrypted.error);
    } else if (decrypted.kind === "message") {
      const amendment = amendmentOf(unwrap(decrypted.message).inner);
      const content = amendment ? null : readContent(decrypted.message);
      if (amendment) this.#parts.inbox.amend(stanza, amendment);
      // Peer messages pass between a companion and its own phone.
      if (content && stanza.attrs.category !== "peer") await this.#keep(stanza, destination, content);
    }
    const own = isOwn(this.#phone, stanza.attrs.participant ?? stanza.attrs.from ?? "");
    uplink.send(self, deliveryReceipt(stanza, { self, own }));
  }

  async #keep(stanza: BinaryNode, destination: string | null, content: Content): Promise<void> {
    try {
      const { attachment, kind } = content.file ?? {};
      const file = attachment && kind ? await receiveFile(attachment, kind, this.#phone) : null;
      this.#parts.inbox.add(stanza, destination, { content, file, mediaError: null });
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      this.#parts.inbox.add(stanza, destination, { content, file: null, mediaError: error.message });
    }
  }

  #see(stanza: BinaryNode): void {
    const seen = readChatState(stanza, this.#phone);
    if (seen) this.#states.push(seen);
    while (this.#states.length > STATES_KEPT) this.#states.shift();
  }

  #askAgain(stanza: BinaryNode, error: unknown): void {
    const { runtime, uplink, self, keys } = this.#phone;
    const { id, from, participant } = stanza.attrs;
    const key = `${id} ${participant ?? from}`;
    const count = (this.#retryReceipts.get(key) ?? 0) + 1;
    this.#retryReceipts.set(key, count);
    runtime.log.debug({ phone: self.jid, id, count, err: error }, "a phone could not decrypt a message");
    if (count <= RETRY_RECEIPTS) {
      const bundle = bundleOf(keys, addPreKeys(keys, 1));
      uplink.send(self, retryReceipt(stanza, { self, bundle, count }));
    }
    uplink.send(self, ack(stanza));
  }
}
