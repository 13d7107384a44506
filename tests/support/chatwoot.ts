/**
 * A strict double of Chatwoot's API channel, from its documented API and what its source is known to do: it knows only the
 * parameters that the real one knows, and refuses all others; reports every message back, also the bridge's own; delivers
 * webhooks at once, in no order, and marks a message as failed whose webhook was not taken. Its data outlive its server.
 */
import { createHmac, randomBytes } from "node:crypto";
import { freePort } from "./free_port.ts";
import { inTime } from "./until.ts";

// deno-lint-ignore no-explicit-any -- JSON as it goes over the wire
type Json = any;

const ACCOUNT = 1;
const PAGE = 25;
const WEBHOOK_TIMEOUT_MS = 5_000;
const E164 = /^\+[1-9]\d{1,14}$/;
const TYPES = ["incoming", "outgoing", "activity", "template"];
const STATUSES = ["sent", "delivered", "read", "failed"];
const AGENT = { id: 7, name: "Maria Gomez", available_name: "Maria", type: "user" };

interface Message {
  id: number;
  conversation_id: number;
  content: string | null;
  message_type: number;
  private: boolean;
  status: string;
  source_id: string | null;
  content_type: "text";
  content_attributes: Json;
  attachments: { id: number; file_type: string; data_url: string; file_size: number }[];
  sender: Json;
  created_at: number;
  external_error?: string;
}

interface Conversation {
  id: number;
  inbox_id: number;
  contact_id: number;
  source_id: string;
  status: string;
  last_activity_at: number;
}

class Refusal extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

export class ChatwootDouble {
  readonly token = "chatwoot-token";
  readonly secret = randomBytes(16).toString("hex");
  readonly contacts: Json[] = [];
  readonly conversations: Conversation[] = [];
  readonly messages: Message[] = [];
  readonly files = new Map<number, { name: string; type: string; bytes: Uint8Array<ArrayBuffer> }>();
  /** Requests that the real one would not have understood. */
  readonly violations: string[] = [];
  /** Of every so-many-th new message, which it keeps, a proxy loses the answer; 0: of none. */
  losesAnswers = 0;
  /** In bytes; larger ones are refused. */
  largestFile = 40 * 1024 * 1024;
  readonly #inboxes: Json[] = [];
  #posts = 0;
  #ids = 100;
  readonly #port = freePort();
  #server: Deno.HttpServer<Deno.NetAddr> | null = null;
  #ending = new AbortController();

  static start(): ChatwootDouble {
    const double = new ChatwootDouble();
    double.start();
    return double;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** On the port that it had. */
  start(): void {
    this.#ending = new AbortController();
    const options = { hostname: "127.0.0.1", port: this.#port, signal: this.#ending.signal, onListen: () => {} };
    this.#server = Deno.serve(options, (request) => this.#answer(request));
  }

  /** Ends it with what it is doing; its data stay. */
  async kill(): Promise<void> {
    this.#ending.abort();
    await inTime(this.#server!.finished.catch(() => {}), "Chatwoot to close");
  }

  webhookUrl(inbox: number): string {
    return this.#inbox(inbox).webhook_url;
  }

  /** The messages of a conversation. */
  of(conversation: number): Message[] {
    return this.messages.filter((message) => message.conversation_id === conversation);
  }

  agentSays(
    conversation: number,
    content: string,
    { isPrivate = false, inReplyTo, file }: { isPrivate?: boolean; inReplyTo?: number; file?: File } = {},
  ): Promise<Message> {
    return this.#add(conversation, {
      content,
      message_type: 1,
      private: isPrivate,
      content_attributes: inReplyTo === undefined ? {} : { in_reply_to: inReplyTo },
      sender: AGENT,
    }, file ? [file] : []);
  }

  agentDeletes(id: number): void {
    this.#delete(this.#message(id));
  }

  /** A conversation that an agent begins with a contact who has not written. */
  agentOpens(inbox: number, phone: string): Conversation {
    const contact = {
      id: ++this.#ids,
      name: phone,
      identifier: null,
      phone_number: phone,
      contact_inboxes: [] as Json[],
    };
    this.contacts.push(contact);
    return this.#converse(contact, inbox, randomBytes(16).toString("hex"));
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const file = /^\/rails\/active_storage\/blobs\/redirect\/(\d+)\//.exec(pathname);
    if (file) {
      const { bytes, type } = this.files.get(Number(file[1]))!;
      return new Response(bytes, { headers: { "content-type": type } });
    }
    if (request.headers.get("api_access_token") !== this.token) {
      return Response.json({ errors: ["You need to sign in or sign up before continuing."] }, { status: 401 });
    }
    const prefix = `/api/v1/accounts/${ACCOUNT}`;
    for (const [method, path, handle] of this.#routes) {
      const found = new URLPattern({ pathname: prefix + path }).exec({ pathname });
      if (!found || method !== request.method) continue;
      try {
        const ids = Object.values(found.pathname.groups).map(Number);
        const answer = await handle(ids, await bodyOf(request), searchParams);
        if (
          path.endsWith("/messages") && method === "POST" && this.losesAnswers &&
          ++this.#posts % this.losesAnswers === 0
        ) {
          return new Response("<h1>Bad gateway</h1>", { status: 502 });
        }
        return Response.json(answer);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (error.status === 422) this.violations.push(`${method} ${pathname}: ${error.message}`);
        return Response.json({ message: error.message, error: error.message }, { status: error.status });
      }
    }
    this.violations.push(`${request.method} ${pathname} does not exist`);
    return Response.json({ error: "not found" }, { status: 404 });
  }

  readonly #routes: [string, string, (ids: number[], body: Json, query: URLSearchParams) => Json][] = [
    ["POST", "/inboxes", (_, body) => {
      permit(body, { name: "string", channel: "object" }, ["name", "channel"]);
      permit(body.channel, { type: "string", webhook_url: "string" }, ["type"]);
      if (body.channel.type !== "api") throw new Refusal(422, "only API channels here");
      const inbox = {
        id: ++this.#ids,
        name: body.name,
        channel_type: "Channel::Api",
        webhook_url: body.channel.webhook_url,
        inbox_identifier: randomBytes(12).toString("hex"),
        secret: this.secret,
      };
      this.#inboxes.push(inbox);
      return inbox;
    }],
    ["GET", "/contacts/search", (_, __, query) => {
      const words = query.get("q")?.toLowerCase();
      if (!words) throw new Refusal(422, "Specify search string with parameter q");
      const fits = (value: string | null) => value?.toLowerCase().includes(words);
      const payload = this.contacts.filter((one) => [one.name, one.phone_number, one.identifier].some(fits));
      return { meta: { count: payload.length, current_page: 1 }, payload: payload.slice(0, 15) };
    }],
    ["POST", "/contacts", (_, body) => {
      permit(body, {
        inbox_id: "number",
        name: "string",
        identifier: "string",
        phone_number: "string",
        avatar_url: "string",
      }, ["inbox_id"]);
      const { inbox_id, identifier = null, phone_number = null, name = "", avatar_url } = body;
      const inbox = this.#inbox(inbox_id);
      if (phone_number !== null && !E164.test(phone_number)) {
        throw new Refusal(422, "Phone number should be in e164 format");
      }
      const isTaken = (one: Json) =>
        identifier !== null && one.identifier === identifier ||
        phone_number !== null && one.phone_number === phone_number;
      if (this.contacts.some(isTaken)) throw new Refusal(422, "Identifier or phone number has already been taken");
      const contact_inbox = { source_id: randomBytes(16).toString("hex"), inbox: { id: inbox.id, name: inbox.name } };
      const contact = { id: ++this.#ids, name, identifier, phone_number, avatar_url, contact_inboxes: [contact_inbox] };
      this.contacts.push(contact);
      return { payload: { contact, contact_inbox } };
    }],
    ["PUT", "/contacts/:id", ([id], body) => {
      permit(body, { name: "string" }, []);
      return { payload: Object.assign(this.#contact(id!), body) };
    }],
    ["GET", "/contacts/:id/conversations", ([id]) => ({
      payload: this.conversations.filter((one) => one.contact_id === this.#contact(id!).id).map(this.#shown),
    })],
    ["POST", "/conversations", (_, body) => {
      permit(body, { source_id: "string", inbox_id: "number", contact_id: "number", status: "string" }, ["source_id"]);
      return this.#shown(this.#converse(this.#contact(body.contact_id), body.inbox_id, body.source_id));
    }],
    ["GET", "/conversations", (_, __, query) => {
      const inbox = Number(query.get("inbox_id"));
      const all = this.conversations.filter(({ inbox_id }) => inbox_id === inbox)
        .toSorted((a, b) => b.last_activity_at - a.last_activity_at);
      const from = (Number(query.get("page") ?? 1) - 1) * PAGE;
      return { data: { meta: { all_count: all.length }, payload: all.slice(from, from + PAGE).map(this.#shown) } };
    }],
    ["GET", "/conversations/:id", ([id]) => this.#shown(this.#conversation(id!))],
    ["GET", "/conversations/:id/messages", ([id], _, query) => {
      const { id: conversation } = this.#conversation(id!);
      const [after, before] = [query.get("after"), query.get("before")];
      const all = this.of(conversation);
      if (after) return { meta: {}, payload: all.filter((one) => one.id > Number(after)).slice(0, 100) };
      return { meta: {}, payload: all.filter((one) => !before || one.id < Number(before)).slice(-20) };
    }],
    ["POST", "/conversations/:id/messages", async ([id], body) => {
      permit(body, {
        content: "string",
        message_type: "string",
        private: "boolean",
        // Known to its source, though its documentation leaves it out.
        source_id: "string",
        content_attributes: "object",
        "attachments[]": "object",
      }, ["content"]);
      const { content, message_type = "outgoing", source_id = null, content_attributes = {} } = body;
      const type = TYPES.indexOf(message_type);
      if (type !== 0 && type !== 1) throw new Refusal(422, `${message_type} is not a type`);
      const fields = { content, message_type: type, private: body.private ?? false, source_id, content_attributes };
      const files = body["attachments[]"] ? [body["attachments[]"]] : [];
      if (files.some(({ size }) => size > this.largestFile)) throw new Refusal(422, "File size is too big");
      if (content === "" && files.length === 0) throw new Refusal(422, "Content is empty");
      return await this.#add(this.#conversation(id!).id, { ...fields, sender: type === 1 ? AGENT : null }, files);
    }],
    ["PATCH", "/conversations/:id/messages/:message", ([, id], body) => {
      permit(body, { status: "string", external_error: "string" }, ["status"]);
      const message = this.#message(id!);
      if (!STATUSES.includes(body.status)) throw new Refusal(422, `${body.status} is not a status`);
      if (message.status === "read" && body.status === "delivered") return message;
      message.status = body.status;
      if (body.status === "failed") message.external_error = body.external_error;
      this.#report("message_updated", message);
      return message;
    }],
    ["DELETE", "/conversations/:id/messages/:message", ([, id]) => this.#delete(this.#message(id!))],
  ];

  #converse(contact: Json, inbox: number, source_id: string): Conversation {
    if (!contact.contact_inboxes.some((one: Json) => one.source_id === source_id)) {
      contact.contact_inboxes.push({ source_id, inbox: { id: this.#inbox(inbox).id } });
    }
    const conversation = {
      id: ++this.#ids,
      inbox_id: inbox,
      contact_id: contact.id,
      source_id,
      status: "open",
      last_activity_at: now(),
    };
    this.conversations.push(conversation);
    return conversation;
  }

  async #add(conversation: number, fields: Partial<Message>, files: File[]): Promise<Message> {
    const id = ++this.#ids;
    const attachments = [];
    for (const file of files) {
      const fileId = ++this.#ids;
      const bytes = new Uint8Array(await file.arrayBuffer());
      this.files.set(fileId, { name: file.name, type: file.type, bytes });
      const data_url = `${this.url}/rails/active_storage/blobs/redirect/${fileId}/${encodeURIComponent(file.name)}`;
      const [kind] = file.type.split("/");
      const file_type = ["image", "audio", "video"].includes(kind!) ? kind! : "file";
      attachments.push({ id: fileId, file_type, data_url, file_size: bytes.length });
    }
    const message: Message = {
      id,
      conversation_id: conversation,
      content: null,
      message_type: 1,
      private: false,
      status: "sent",
      source_id: null,
      content_type: "text",
      content_attributes: {},
      sender: null,
      created_at: now(),
      ...fields,
      attachments,
    };
    this.messages.push(message);
    this.#conversation(conversation).last_activity_at = now();
    this.#report("message_created", message);
    return message;
  }

  #delete(message: Message): Message {
    message.content = "This message was deleted";
    message.content_attributes = { deleted: true };
    message.attachments = [];
    this.#report("message_updated", message);
    return message;
  }

  /** As a job of its own, so that none waits for another. */
  #report(event: string, message: Message): void {
    const conversation = this.#conversation(message.conversation_id);
    const inbox = this.#inbox(conversation.inbox_id);
    const { id, name } = inbox;
    const body = JSON.stringify({
      ...message,
      message_type: TYPES[message.message_type],
      event,
      inbox: { id, name },
      conversation: this.#shown(conversation),
      account: { id: ACCOUNT, name: "Acme" },
    });
    const timestamp = String(now());
    const signature = createHmac("sha256", this.secret).update(`${timestamp}.${body}`).digest("hex");
    void fetch(inbox.webhook_url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-chatwoot-delivery": randomBytes(16).toString("hex"),
        "x-chatwoot-timestamp": timestamp,
        "x-chatwoot-signature": `sha256=${signature}`,
      },
      body,
      signal: AbortSignal.timeout(WEBHOOK_TIMEOUT_MS),
    }).then(async (response) => {
      await response.body?.cancel();
      if (!response.ok) throw new Error(String(response.status));
    }).catch((error) => {
      message.status = "failed";
      message.external_error = String(error);
    });
  }

  #shown = (conversation: Conversation): Json => {
    const { id, name, identifier, phone_number } = this.#contact(conversation.contact_id);
    const { source_id, contact_id, ...shown } = conversation;
    const contact_inbox = { source_id, contact_id, inbox_id: conversation.inbox_id };
    return { ...shown, contact_inbox, meta: { sender: { id, name, identifier, phone_number, type: "contact" } } };
  };

  #inbox = (id: number): Json => found(this.#inboxes, id);
  #contact = (id: number): Json => found(this.contacts, id);
  #conversation = (id: number): Conversation => found(this.conversations, id);
  #message = (id: number): Message => found(this.messages, id);
}

function found<T extends { id: number }>(rows: readonly T[], id: number): T {
  const row = rows.find((one) => one.id === id);
  if (!row) throw new Refusal(404, "Resource could not be found");
  return row;
}

function now(): number {
  return Math.floor(Date.now() / 1_000);
}

async function bodyOf(request: Request): Promise<Json> {
  if (request.method === "GET" || request.method === "DELETE") return null;
  if (!request.headers.get("content-type")?.startsWith("multipart/form-data")) return await request.json();
  const body: Json = Object.fromEntries(await request.formData());
  if (body.private) body.private = body.private === "true";
  // Rails takes JSON here, as the API's documentation of attachments says.
  if (body.content_attributes) body.content_attributes = JSON.parse(body.content_attributes);
  return body;
}

/** Throws for a parameter that is unknown, missing or of another type. */
function permit(body: Json, types: Record<string, string>, required: string[]): void {
  for (const [name, value] of Object.entries(body)) {
    if (!Object.hasOwn(types, name)) throw new Refusal(422, `${name} is not a parameter`);
    const type: string = typeof value;
    if (type !== types[name]) throw new Refusal(422, `${name} is not a ${types[name]}`);
  }
  for (const name of required) if (!Object.hasOwn(body, name)) throw new Refusal(422, `${name} is missing`);
}
