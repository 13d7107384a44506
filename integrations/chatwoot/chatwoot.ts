/** The part of Chatwoot's API that the bridge uses: https://developers.chatwoot.com, "Application APIs". */

export interface Inbox {
  id: number;
  name: string;
  channel_type: string;
  /** Signs webhooks; versions of Chatwoot that sign none have none. Shown to administrators only. */
  secret?: string | null;
}

export interface Contact {
  id: number;
  identifier: string | null;
  phone_number: string | null;
  contact_inboxes?: { source_id: string; inbox: { id: number } }[];
}

export interface Conversation {
  id: number;
  inbox_id: number;
  last_activity_at: number;
  meta: { sender: { id: number; identifier: string | null; phone_number: string | null } };
}

export interface Attachment {
  id: number;
  file_type: string;
  data_url: string;
}

export const MESSAGE_TYPES = { incoming: 0, outgoing: 1, activity: 2, template: 3 } as const;

export interface Message {
  id: number;
  content: string | null;
  message_type: number;
  private: boolean;
  status: string;
  source_id: string | null;
  content_attributes: { in_reply_to?: number | null; deleted?: boolean; paloma?: string } | null;
  attachments?: Attachment[];
  sender?: { name?: string; available_name?: string; type?: string };
}

export interface NewMessage {
  content: string;
  message_type: "incoming" | "outgoing";
  /** What it is made of: Chatwoot has no idempotency key, so the bridge looks for this before it posts again. */
  marker: string;
  inReplyTo: number | null;
  file: File | null;
}

/** Chatwoot refused. */
export class ChatwootError extends Error {
  override readonly name = "ChatwootError";
  constructor(readonly status: number, text: string) {
    super(`Chatwoot answered ${status}: ${text.slice(0, 300)}`);
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status >= 500 || this.status === 429 || this.status === 401;
  }
}

/** Chatwoot could not be reached, or the connection was lost before its answer. */
export class ChatwootUnreachable extends Error {
  override readonly name = "ChatwootUnreachable";
}

export interface ChatwootOptions {
  /** Without a path. */
  url: string;
  account: number;
  /** The access token of an administrator. */
  token: string;
}

const TIMEOUT_MS = 30_000;
const FILE_TIMEOUT_MS = 300_000;

export class Chatwoot {
  readonly #base: string;
  readonly #token: string;

  constructor({ url, account, token }: ChatwootOptions) {
    this.#base = `${url.replace(/\/+$/, "")}/api/v1/accounts/${account}`;
    this.#token = token;
  }

  async createInbox(name: string, webhookUrl: string): Promise<Inbox> {
    return await this.#call("POST", "/inboxes", { name, channel: { type: "api", webhook_url: webhookUrl } });
  }

  /** Contacts whose name, e-mail address, phone number or identifier contains this. */
  async searchContacts(words: string): Promise<Contact[]> {
    return (await this.#call("GET", `/contacts/search?q=${encodeURIComponent(words)}`)).payload;
  }

  async createContact(contact: {
    inbox_id: number;
    name: string;
    identifier: string;
    phone_number?: string;
    avatar_url?: string;
  }): Promise<Contact> {
    const { payload } = await this.#call("POST", "/contacts", contact);
    const { source_id } = payload.contact_inbox;
    return { ...payload.contact, contact_inboxes: [{ source_id, inbox: { id: contact.inbox_id } }] };
  }

  async renameContact(id: number, name: string): Promise<void> {
    await this.#call("PUT", `/contacts/${id}`, { name });
  }

  async conversationsOf(contact: number): Promise<Conversation[]> {
    return (await this.#call("GET", `/contacts/${contact}/conversations`)).payload;
  }

  async createConversation(
    conversation: { source_id: string; inbox_id: number; contact_id: number; status: "open" },
  ): Promise<Conversation> {
    return await this.#call("POST", "/conversations", conversation);
  }

  async conversation(id: number): Promise<Conversation> {
    return await this.#call("GET", `/conversations/${id}`);
  }

  /** A page of 25, the last active first. */
  async conversations(inbox: number, page: number): Promise<Conversation[]> {
    return (await this.#call("GET", `/conversations?inbox_id=${inbox}&status=all&page=${page}`)).data.payload;
  }

  /** At most 100 after this one, oldest first. */
  async messagesAfter(conversation: number, after: number): Promise<Message[]> {
    const { payload } = await this.#call("GET", `/conversations/${conversation}/messages?after=${after}`);
    return payload.toSorted((a: Message, b: Message) => a.id - b.id);
  }

  /** At most 20 before this one, or the newest 20. */
  async messagesBefore(conversation: number, before: number | null): Promise<Message[]> {
    const query = before === null ? "" : `?before=${before}`;
    return (await this.#call("GET", `/conversations/${conversation}/messages${query}`)).payload;
  }

  async createMessage(conversation: number, message: NewMessage): Promise<Message> {
    const attributes = { paloma: message.marker, ...message.inReplyTo && { in_reply_to: message.inReplyTo } };
    const { content, message_type, file } = message;
    const path = `/conversations/${conversation}/messages`;
    const fields = { content, message_type, private: false, source_id: `paloma:${message.marker}` };
    if (!file) return await this.#call("POST", path, { ...fields, content_attributes: attributes });
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
    form.append("content_attributes", JSON.stringify(attributes));
    form.append("attachments[]", file);
    return await this.#call("POST", path, form);
  }

  /** Only a failure has a reason. */
  async setStatus(conversation: number, message: number, status: string, reason?: string): Promise<void> {
    await this.#call("PATCH", `/conversations/${conversation}/messages/${message}`, {
      status,
      ...reason !== undefined && { external_error: reason },
    });
  }

  async deleteMessage(conversation: number, message: number): Promise<void> {
    await this.#call("DELETE", `/conversations/${conversation}/messages/${message}`);
  }

  // deno-lint-ignore no-explicit-any -- each caller says what it expects
  async #call(method: string, path: string, body?: object): Promise<any> {
    const isForm = body instanceof FormData;
    try {
      const response = await fetch(this.#base + path, {
        method,
        headers: { api_access_token: this.#token, ...body && !isForm && { "content-type": "application/json" } },
        body: isForm ? body : body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(isForm ? FILE_TIMEOUT_MS : TIMEOUT_MS),
      });
      const text = await response.text();
      if (!response.ok) throw new ChatwootError(response.status, text);
      return text === "" ? undefined : JSON.parse(text);
    } catch (error) {
      if (error instanceof ChatwootError) throw error;
      throw new ChatwootUnreachable(`${method} ${path}: ${error instanceof Error ? error.message : error}`);
    }
  }
}

/** Whether the bridge has posted this message: Chatwoot reports it back as it does an agent's. */
export function isOurs({ source_id, content_attributes }: Message): boolean {
  return content_attributes?.paloma !== undefined || (source_id?.startsWith("paloma:") ?? false);
}

export function isMarked({ source_id, content_attributes }: Message, marker: string): boolean {
  return content_attributes?.paloma === marker || source_id === `paloma:${marker}`;
}

const TOLERANCE_SECONDS = 300;

/** Whether `X-Chatwoot-Signature` is the HMAC of `X-Chatwoot-Timestamp`, a dot and the body. */
export async function isSigned(headers: Headers, body: Uint8Array<ArrayBuffer>, secret: string): Promise<boolean> {
  const timestamp = headers.get("x-chatwoot-timestamp") ?? "";
  const [, hex] = /^sha256=((?:[0-9a-f]{2}){32})$/.exec(headers.get("x-chatwoot-signature") ?? "") ?? [];
  if (!hex || !/^\d+$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["verify"]);
  const signature = Uint8Array.from(hex.match(/../g)!, (pair) => Number.parseInt(pair, 16));
  const signed = new Uint8Array([...encoder.encode(`${timestamp}.`), ...body]);
  return await crypto.subtle.verify(algorithm, key, signature, signed);
}
