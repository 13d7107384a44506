/** Which conversation of which contact a chat is, found or made. */
import { type Chat, type Paloma, PalomaError } from "../../clients/typescript/src/index.ts";
import { type Chatwoot, ChatwootError, type Contact, type Conversation } from "./chatwoot.ts";
import type { Link, Place, Store, Thread } from "./store.ts";

interface Deps {
  store: Store;
  chatwoot: Chatwoot;
  paloma: Paloma;
}

export class Places {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** What `to` takes: a number where it is known, for one person may be written to under two JIDs. */
  async chatOf({ sessionId }: Link, jid: string): Promise<string> {
    const { store } = this.#deps;
    const known = await store.chatNames.get(sessionId, jid);
    if (known !== null) return known;
    const found = await this.#chat(sessionId, jid);
    if (!found) return jid.replace(/@s\.whatsapp\.net$/, "");
    await store.chatNames.set(found.chat, sessionId, jid);
    return found.chat;
  }

  /** Null if nothing was said in it yet, or it was erased. */
  async #chat(sessionId: string, chat: string): Promise<Chat | null> {
    const path = { id: sessionId, chat };
    try {
      return (await this.#deps.paloma.request("GET /sessions/{id}/chats/{chat}", { path })).data;
    } catch (error) {
      if (error instanceof PalomaError && error.status === 404) return null;
      throw error;
    }
  }

  async of(link: Link, chat: string): Promise<Place> {
    const { store } = this.#deps;
    const known = await store.places.get(link.sessionId, chat);
    if (known !== null) return known;
    const contact = await this.#contact(link, chat);
    const place = { contact: contact.id, conversation: await this.#conversation(link, chat, contact) };
    await store.places.set(place, link.sessionId, chat);
    return place;
  }

  /** Its conversation was deleted. */
  async forget({ sessionId }: Link, chat: string): Promise<void> {
    await this.#deps.store.places.delete(sessionId, chat);
  }

  /** The chat of a conversation; null if it is of another inbox, or its contact has no number. */
  async threadOf(conversation: number): Promise<Thread | null> {
    const { store, chatwoot } = this.#deps;
    const known = await store.threads.get(conversation);
    if (known !== null) return known;
    const found = await chatwoot.conversation(conversation);
    const link = (await store.links()).find(({ inbox }) => inbox === found.inbox_id);
    const { id, identifier, phone_number } = found.meta.sender;
    const chat = phone_number?.replace(/\D/g, "") || (identifier?.includes("@") ? identifier : null);
    if (!link || !chat) return null;
    await store.places.set({ contact: id, conversation }, link.sessionId, chat);
    return await this.#begin(link, chat, conversation, true);
  }

  async #contact(link: Link, chat: string): Promise<Contact> {
    const { chatwoot } = this.#deps;
    const { name, number, pictureUrl } = await this.#describe(link, chat);
    const identifier = number === null ? chat : `${number}@s.whatsapp.net`;
    const found = await this.#find(identifier, number);
    if (found) return found;
    return await chatwoot.createContact({
      inbox_id: link.inbox,
      name,
      identifier,
      ...number !== null && { phone_number: `+${number}` },
      ...pictureUrl !== null && { avatar_url: pictureUrl },
    });
  }

  async #find(identifier: string, number: string | null): Promise<Contact | undefined> {
    const found = await this.#deps.chatwoot.searchContacts(number ?? identifier);
    return found.find((contact) => contact.identifier === identifier) ??
      found.find((contact) => number !== null && contact.phone_number === `+${number}`);
  }

  async #describe({ sessionId }: Link, chat: string) {
    const found = await this.#chat(sessionId, chat);
    const number = found ? found.number : chat.includes("@") ? null : chat;
    const pictureUrl = number === null ? null : await this.#picture(sessionId, number);
    return { name: found?.name ?? (number === null ? chat : `+${number}`), number, pictureUrl };
  }

  /** The picture's address. Without it all else works, so that a line that is offline keeps nobody waiting. */
  async #picture(sessionId: string, number: string): Promise<string | null> {
    try {
      const path = { id: sessionId, number };
      return (await this.#deps.paloma.request("GET /sessions/{id}/contacts/{number}", { path, attempts: 1 })).data
        .pictureUrl;
    } catch (error) {
      if (error instanceof PalomaError) return null;
      throw error;
    }
  }

  /** The newest in this inbox, so that an earlier try that made one makes no second. */
  async #conversation(link: Link, chat: string, contact: Contact): Promise<number> {
    const { chatwoot } = this.#deps;
    const inThisInbox = ({ inbox_id }: Conversation) => inbox_id === link.inbox;
    const found = (await chatwoot.conversationsOf(contact.id)).filter(inThisInbox).map(({ id }) => id);
    if (found.length > 0) {
      const conversation = Math.max(...found);
      await this.#begin(link, chat, conversation, true);
      return conversation;
    }
    const source = contact.contact_inboxes?.find(({ inbox }) => inbox.id === link.inbox)?.source_id;
    const { id } = await chatwoot.createConversation({
      source_id: source ?? contact.identifier ?? chat,
      inbox_id: link.inbox,
      contact_id: contact.id,
      status: "open",
    });
    await this.#begin(link, chat, id, false);
    return id;
  }

  async #begin({ sessionId }: Link, chat: string, conversation: number, isOld: boolean): Promise<Thread> {
    const { store, chatwoot } = this.#deps;
    const known = await store.threads.get(conversation);
    if (known !== null) return known;
    const newest = isOld ? (await chatwoot.messagesBefore(conversation, null)).map(({ id }) => id) : [];
    const thread = { sessionId, chat, seen: 0, doubtful: Math.max(0, ...newest) };
    await store.threads.set(thread, conversation);
    return thread;
  }
}

export function isGone(error: unknown): boolean {
  return error instanceof ChatwootError && error.status === 404;
}
