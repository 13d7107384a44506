/** What agents write in Chatwoot, to WhatsApp. A webhook only says where to look: the list of messages is the truth. */
import { type Paloma, PalomaError } from "../../clients/typescript/src/index.ts";
import {
  type Attachment,
  type Chatwoot,
  ChatwootUnreachable,
  isOurs,
  type Message,
  MESSAGE_TYPES,
} from "./chatwoot.ts";
import { tagOf } from "./incoming.ts";
import { type Patience, untilDone } from "./patience.ts";
import type { Places } from "./places.ts";
import type { Link, Position, Store, Thread } from "./store.ts";
import { asMarks } from "./words.ts";

export interface OutgoingDeps {
  store: Store;
  chatwoot: Chatwoot;
  paloma: Paloma;
  places: Places;
  patience: Patience;
  /** Whether a message begins with its agent's name. */
  agentNames: boolean;
}

const PAGE_SIZE = 25;

export class Outgoing {
  readonly #deps: OutgoingDeps;
  /** One after another, which keeps the order. */
  #last: Promise<void> = Promise.resolve();
  readonly #waiting = new Set<number>();
  /** Conversations of which this process has handled a message. */
  readonly #begun = new Set<number>();

  constructor(deps: OutgoingDeps) {
    this.#deps = deps;
  }

  /** Sends what is new in the conversation. Resolves when it is done. */
  sync(conversation: number): Promise<void> {
    if (this.#waiting.has(conversation)) return this.#last;
    this.#waiting.add(conversation);
    return this.#then(async () => {
      this.#waiting.delete(conversation);
      await this.#sync(conversation);
    });
  }

  /** An agent has deleted a message. */
  revoke(message: number): Promise<void> {
    return this.#then(async () => {
      const { store, paloma, patience } = this.#deps;
      for (const id of await store.sent.get(message) ?? []) {
        await untilDone(patience, () => paloma.request("POST /messages/{id}/revoke", { path: { id } }));
      }
      await store.sent.delete(message);
    });
  }

  /** Looks through what was active since the last time: Chatwoot repeats a webhook only a few times. */
  async search({ inbox }: Link): Promise<void> {
    const { store, chatwoot, patience } = this.#deps;
    const since = await store.searched.get(inbox) ?? 0;
    let newest = since;
    for (let page = 1;; page++) {
      const conversations = await untilDone(patience, () => chatwoot.conversations(inbox, page));
      const active = conversations.filter(({ last_activity_at }) => last_activity_at >= since);
      for (const { id, last_activity_at } of active) {
        await this.sync(id);
        newest = Math.max(newest, last_activity_at);
      }
      if (active.length < PAGE_SIZE) break;
    }
    await store.searched.set(newest, inbox);
  }

  #then(work: () => Promise<void>): Promise<void> {
    const { signal, log } = this.#deps.patience;
    this.#last = this.#last.then(work).catch((error) => {
      if (!signal.aborted) log(error instanceof Error ? error.message : String(error));
    });
    return this.#last;
  }

  async #sync(conversation: number): Promise<void> {
    const { store, chatwoot, places, patience } = this.#deps;
    const thread = await untilDone(patience, () => places.threadOf(conversation));
    if (thread === null) return;
    for (;;) {
      const messages = await untilDone(patience, () => chatwoot.messagesAfter(conversation, thread.seen));
      if (messages.length === 0) return;
      for (const message of messages) {
        if (isForCustomer(message)) await this.#send(thread, { conversation, message: message.id }, message);
        thread.seen = message.id;
        await store.threads.set(thread, conversation);
      }
    }
  }

  async #send(thread: Thread, position: Position, message: Message): Promise<void> {
    const { store, chatwoot, patience } = this.#deps;
    const isFirst = !this.#begun.has(position.conversation);
    this.#begun.add(position.conversation);
    try {
      // Of several files, some may be sent.
      const isOne = (message.attachments?.length ?? 0) <= 1;
      const isDoubtful = isOne && (isFirst || message.id <= thread.doubtful);
      const ids = await untilDone(patience, async () => {
        const done = isDoubtful ? await this.#alreadySent(position) : [];
        return done.length > 0 ? done : await this.#sendAll(thread, position, message);
      });
      await store.sent.set(ids, message.id);
      // As Chatwoot marks what it could not report.
      if (message.status === "failed") await this.#setStatus(position, "sent");
    } catch (error) {
      patience.signal.throwIfAborted();
      const reason = error instanceof PalomaError ? error.problem.detail ?? error.code : (error as Error).message;
      patience.log(`message ${message.id} of Chatwoot was not sent: ${reason}`);
      await untilDone(patience, () => chatwoot.setStatus(position.conversation, message.id, "failed", reason));
    }
  }

  async #setStatus({ conversation, message }: Position, status: string): Promise<void> {
    await untilDone(this.#deps.patience, () => this.#deps.chatwoot.setStatus(conversation, message, status));
  }

  /** An idempotency key lasts for a day; the history knows longer. */
  async #alreadySent(position: Position): Promise<string[]> {
    const { data } = await this.#deps.paloma.request("GET /messages/history", { query: { tag: tagOf(position) } });
    return data.map(({ messageId }) => messageId);
  }

  async #sendAll(thread: Thread, position: Position, message: Message): Promise<string[]> {
    const { paloma, store, agentNames } = this.#deps;
    const { content, attachments = [], content_attributes, sender } = message;
    const name = sender?.available_name || sender?.name;
    const said = asMarks(content ?? "");
    const text = agentNames && name && said ? `*${name}:*\n${said}` : said;
    const replied = content_attributes?.in_reply_to;
    const replyTo = replied ? await store.networkIds.get(replied) : null;
    const fields = { sessionId: thread.sessionId, to: thread.chat, tags: [tagOf(position)] };
    const options = { idempotencyKey: tagOf(position), signal: this.#deps.patience.signal };
    if (attachments.length === 0) {
      if (!text) return [];
      return [await quoting(replyTo, (quote) => paloma.sendText({ ...fields, ...quote, text }, options))];
    }
    const ids: string[] = [];
    for (const [i, attachment] of attachments.entries()) {
      const file = await download(attachment);
      const words = { filename: file.name, ...i === 0 && text && { caption: text } };
      const key = { ...options, idempotencyKey: `${tagOf(position)}:${attachment.id}` };
      ids.push(await quoting(replyTo, (quote) => paloma.sendFile(file, { ...fields, ...quote, ...words }, key)));
    }
    return ids;
  }
}

/** A message that the gateway no longer knows cannot be quoted: the answer matters more. */
async function quoting(
  replyTo: string | null,
  send: (quote: { replyTo?: string }) => Promise<{ messageId: string }>,
): Promise<string> {
  if (replyTo === null) return (await send({})).messageId;
  const sent = send({ replyTo }).catch((error) => {
    if (!(error instanceof PalomaError) || error.status !== 404 && error.status !== 400) throw error;
    return send({});
  });
  return (await sent).messageId;
}

/** Automatic messages (`template`) included; private notes, and what the bridge posted, not. */
function isForCustomer(message: Message): boolean {
  const { message_type, content_attributes } = message;
  const isOut = message_type === MESSAGE_TYPES.outgoing || message_type === MESSAGE_TYPES.template;
  return isOut && !message.private && !isOurs(message) && !content_attributes?.deleted;
}

async function download({ data_url }: Attachment): Promise<File> {
  const response = await fetch(data_url).catch((error) => {
    throw new ChatwootUnreachable(`the file of a message: ${error.message}`);
  });
  const name = decodeURIComponent(new URL(data_url).pathname.split("/").at(-1)!) || "file";
  if (!response.ok) {
    await response.body?.cancel();
    if (response.status >= 500) throw new ChatwootUnreachable(`the file of a message: ${response.status}`);
    throw new Error(`Chatwoot no longer has the file ${name}`);
  }
  return new File([await response.blob()], name);
}
