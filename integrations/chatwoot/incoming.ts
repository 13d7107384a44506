/** From the gateway's feed into Chatwoot. Every handler may be repeated. */
import {
  type AnyEvent,
  type FeedEvent,
  type MessageReceivedEventData,
  type Paloma,
  PalomaConnectionError,
} from "../../clients/typescript/src/index.ts";
import { type Chatwoot, ChatwootError, isMarked, type Message, MESSAGE_TYPES, type NewMessage } from "./chatwoot.ts";
import { isGone, type Places } from "./places.ts";
import type { Link, Position, Store } from "./store.ts";
import { asMarkdown, wordsOf } from "./words.ts";

export interface IncomingDeps {
  store: Store;
  chatwoot: Chatwoot;
  paloma: Paloma;
  places: Places;
}

type Named<Name extends AnyEvent["event"]> = Extract<AnyEvent, { event: Name }>;
type Handler<Name extends AnyEvent["event"]> = (
  link: Link,
  event: Named<Name> & FeedEvent,
  again: boolean,
) => Promise<void>;

/** A message for a chat. */
interface Post extends Omit<NewMessage, "marker" | "file"> {
  jid: string;
  /** The network's id; null for what nobody can reply to. */
  networkId: string | null;
  media?: MessageReceivedEventData["media"];
}

/** How many pages are searched for a message that an earlier try may have posted. */
const SEARCHED_PAGES = 10;
/** Later ones include earlier ones. */
const RANKS = ["sent", "delivered", "read", "failed"];

/** `again`: an earlier try may have done it. */
export class Incoming {
  readonly #deps: IncomingDeps;

  readonly #handlers: { [Name in AnyEvent["event"]]?: Handler<Name> } = {
    "message.received": async (link, { id, data }, again) => {
      const author = data.participant && `**${data.pushName ?? "?"}**${data.number ? ` (+${data.number})` : ""}:\n`;
      await this.#post(link, id, await this.#message(link, data, "incoming", author || ""), again);
    },
    "message.echo": async (link, { id, data }, again) => {
      await this.#post(link, id, await this.#message(link, data, "outgoing", ""), again);
    },
    "message.edited": async (link, { id, data }, again) => {
      const original = await this.#deps.store.positions.get(link.sessionId, data.messageId);
      const message_type = original && await this.#isOutgoing(original) ? "outgoing" : "incoming";
      const content = `✏️ ${asMarkdown(data.text ?? "")}`;
      const inReplyTo = original?.message ?? null;
      await this.#post(link, id, { jid: data.chat, networkId: null, content, message_type, inReplyTo }, again);
    },
    "message.deleted": async ({ sessionId }, { data }) => {
      const { store, chatwoot } = this.#deps;
      const position = await store.positions.get(sessionId, data.messageId);
      if (!position) return;
      // Chatwoot will report the deletion, as if an agent had asked for it.
      await store.sent.delete(position.message);
      await chatwoot.deleteMessage(position.conversation, position.message).catch(ignoreGone);
    },
    "message.sent": async ({ sessionId }, { data }) => {
      const position = positionIn(data.tags);
      if (!position) return;
      await this.#remember(sessionId, data.networkId, position);
    },
    "message.status": async (_, { data }) => await this.#setStatus(positionIn(data.tags), data.status),
    "message.failed": async (_, { data: { tags, error } }) =>
      await this.#setStatus(positionIn(tags), "failed", `${error.code}: ${error.message}`),
    "call.received": async (link, { id, data }, again) => {
      const content = data.video ? "📹 Video call" : "📞 Call";
      const post = { jid: data.chat, networkId: null, content, message_type: "incoming", inReplyTo: null } as const;
      await this.#post(link, id, post, again);
    },
    "group.updated": async ({ sessionId }, { data: { group } }) => {
      const { store, chatwoot } = this.#deps;
      const place = group.name ? await store.places.get(sessionId, group.id) : null;
      if (place) await chatwoot.renameContact(place.contact, group.name!).catch(ignoreGone);
    },
  };

  constructor(deps: IncomingDeps) {
    this.#deps = deps;
  }

  get events(): AnyEvent["event"][] {
    return Object.keys(this.#handlers) as AnyEvent["event"][];
  }

  async handle(event: FeedEvent, again: boolean): Promise<void> {
    const link = (await this.#deps.store.links()).find(({ sessionId }) => sessionId === event.sessionId);
    const handler = this.#handlers[event.event] as Handler<AnyEvent["event"]> | undefined;
    if (link) await handler?.(link, event, again);
  }

  async #message(
    { sessionId }: Link,
    data: Named<"message.received" | "message.echo">["data"],
    message_type: Post["message_type"],
    author: string,
  ): Promise<Post> {
    const target = data.details && "target" in data.details ? data.details.target : undefined;
    const referred = data.quoted?.messageId ?? target?.messageId;
    const position = referred === undefined ? null : await this.#deps.store.positions.get(sessionId, referred);
    return {
      jid: data.chat ?? data.from,
      networkId: data.messageId,
      content: author + wordsOf(data),
      message_type,
      inReplyTo: position?.message ?? null,
      ...data.media && { media: data.media },
    };
  }

  async #post(link: Link, marker: string, post: Post, again: boolean): Promise<void> {
    const { places } = this.#deps;
    const chat = await places.chatOf(link, post.jid);
    const create = async (): Promise<Position> => {
      const { conversation } = await places.of(link, chat);
      const done = again ? await this.#find(conversation, marker) : null;
      return { conversation, message: (done ?? await this.#create(conversation, marker, post)).id };
    };
    const position = await create().catch(async (error) => {
      if (!isGone(error)) throw error;
      await places.forget(link, chat);
      return await create();
    });
    if (post.networkId !== null) await this.#remember(link.sessionId, post.networkId, position);
  }

  /** Without the file where there is none any more, or Chatwoot does not take it. */
  async #create(
    conversation: number,
    marker: string,
    { jid: _, networkId: __, media, ...message }: Post,
  ): Promise<Message> {
    const { chatwoot } = this.#deps;
    const without = (reason: string) => {
      const content = [message.content, `[${media!.filename}: ${reason}]`].filter(Boolean).join("\n");
      return chatwoot.createMessage(conversation, { ...message, content, file: null, marker });
    };
    if (!media?.url) return await chatwoot.createMessage(conversation, { ...message, file: null, marker });
    const file = await download(media.url, media);
    if (file === null) return await without("the file is no longer available");
    return await chatwoot.createMessage(conversation, { ...message, file, marker }).catch((error) => {
      if (!(error instanceof ChatwootError) || error.status !== 413 && error.status !== 422) throw error;
      return without("Chatwoot does not take the file");
    });
  }

  async #find(conversation: number, marker: string): Promise<Message | null> {
    let before: number | null = null;
    for (let page = 0; page < SEARCHED_PAGES; page++) {
      const messages: Message[] = await this.#deps.chatwoot.messagesBefore(conversation, before);
      const found = messages.find((message) => isMarked(message, marker));
      if (found) return found;
      if (messages.length === 0) return null;
      before = Math.min(...messages.map(({ id }) => id));
    }
    return null;
  }

  async #remember(sessionId: string, networkId: string, position: Position): Promise<void> {
    const { store } = this.#deps;
    await store.positions.set(position, sessionId, networkId);
    await store.networkIds.set(networkId, position.message);
  }

  async #setStatus(position: Position | null, status: string, reason?: string): Promise<void> {
    if (!position) return;
    const { store, chatwoot } = this.#deps;
    const told = await store.statuses.get(position.message);
    if (told !== null && RANKS.indexOf(told) >= RANKS.indexOf(status)) return;
    await chatwoot.setStatus(position.conversation, position.message, status, reason).catch(ignoreGone);
    await store.statuses.set(status, position.message);
  }

  async #isOutgoing({ conversation, message }: Position): Promise<boolean> {
    const [found] = await this.#deps.chatwoot.messagesAfter(conversation, message - 1);
    return found?.id === message && found.message_type === MESSAGE_TYPES.outgoing;
  }
}

/** The tag of what the bridge sends for an agent: receipts carry it. */
export function tagOf({ conversation, message }: Position): string {
  return `chatwoot:${conversation}:${message}`;
}

function positionIn(tags: readonly string[] | undefined): Position | null {
  for (const tag of tags ?? []) {
    const [, conversation, message] = /^chatwoot:(\d+):(\d+)$/.exec(tag) ?? [];
    if (message) return { conversation: Number(conversation), message: Number(message) };
  }
  return null;
}

/** Null when its link has expired, after a day. */
async function download(
  url: string,
  { filename, mimetype }: { filename: string; mimetype: string },
): Promise<File | null> {
  try {
    const response = await fetch(url);
    const blob = await response.blob();
    if (response.status >= 500) throw new Error(`${response.status}`);
    return response.ok ? new File([blob], filename, { type: mimetype }) : null;
  } catch (cause) {
    throw new PalomaConnectionError(`the file ${filename} could not be read`, { cause });
  }
}

function ignoreGone(error: unknown): void {
  if (!isGone(error)) throw error;
}
