/** Reads an account's feed, and checks what a flood of events left behind: in it, at the webhook, and at the phones. */
import type { Client, Json } from "../../src/cli/client.ts";

/** The whole event feed of an account, as a client reads it. */
export class Feed {
  /** All that was read so far, oldest first. */
  readonly events: Json[] = [];
  readonly #call: Client["call"];
  readonly #query: string;
  #after = "";

  /** `query` narrows it: `types=message.received`. `after`: the cursor from which it is read. */
  constructor(call: Client["call"], { query = "", after = null }: { query?: string; after?: string | null } = {}) {
    this.#call = call;
    this.#query = query && `&${query}`;
    this.#after = after ? `&after=${after}` : "";
  }

  /** Reads to its present end. A page of few types may end before the feed does: `next` leads on. */
  async readOn(): Promise<Json[]> {
    for (;;) {
      const { data, next } = await this.#call("GET", `/events?limit=1000${this.#query}${this.#after}`);
      this.events.push(...data);
      if (next === null) return this.events;
      this.#after = `&after=${next}`;
    }
  }
}

/** A message that a phone wrote. */
export interface Written {
  id: string;
  number: string;
  chat: string;
  text: string;
}

/** A message that the gateway accepted. */
export interface Accepted {
  messageId: string;
  to: string;
  text: string;
}

/** A request at the webhook. */
export interface Posted {
  id: string;
  body: string;
}

/**
 * Each event once; outgoing messages in the order of their chat, delivered once; incoming ones in the order of theirs.
 * Across chats there is no order to check: a reply overtakes a cold message.
 */
export function* checkFeed(
  feed: Json[],
  { written, accepted }: { written: Written[]; accepted: Accepted[] },
): Iterable<string> {
  const eventIds = feed.map(({ id }) => id);
  if (eventIds.some((id, i) => i > 0 && id <= eventIds[i - 1])) {
    yield "the feed is not in the order of its ids, each once";
  }

  const sent = feed.filter(({ event }) => event === "message.sent").map(({ data }) => data.messageId);
  const ids = accepted.map(({ messageId }) => messageId);
  yield* compare("message.sent", sent.toSorted(), ids.toSorted());
  for (const [chat, messages] of Map.groupBy(accepted, ({ to }) => to)) {
    const wanted = messages.map(({ messageId }) => messageId);
    yield* compare(`message.sent to ${chat}`, sent.filter((id) => wanted.includes(id)), wanted);
  }
  const delivered = feed.filter(({ data }) => data.status === "delivered").map(({ data }) => data.messageId);
  yield* compare("delivered", delivered.toSorted(), ids.toSorted());

  const received = feed.filter(({ event }) => event === "message.received");
  for (const [chat, messages] of Map.groupBy(written, ({ chat }) => chat)) {
    const got = received.filter(({ data }) => data.from === chat);
    const describe = (id: string, number: string, text: string) => `${id} ${number} ${text}`;
    yield* compare(
      `chat ${chat}`,
      got.map(({ data }) => describe(data.messageId, data.number, data.text)),
      messages.map(({ id, number, text }) => describe(id, number, text)),
    );
  }
  if (received.length !== written.length) yield `${received.length} events for ${written.length} messages that came in`;
}

/** Each event at least once, as the feed shows it; copies have the same bytes, first copies the order of the chat. */
export function* checkWebhook(events: Json[], posted: Posted[]): Iterable<string> {
  const known = new Map(events.map((event) => [event.id, event]));
  const bodies = new Map<string, string>();
  for (const { id, body } of posted) {
    const { event, sessionId, sessionName, data } = known.get(id) ?? {};
    if (!event) yield `${id} was posted and is not in the feed`;
    else if (body !== JSON.stringify({ event, sessionId, sessionName, data })) yield `${id}: not what the feed shows`;
    if (!bodies.has(id)) bodies.set(id, body);
    else if (bodies.get(id) !== body) yield `copies of ${id} differ`;
  }
  for (const { id } of events) if (!bodies.has(id)) yield `${id} never came`;
  const chats = Map.groupBy(bodies.keys(), (id) => known.get(id)?.data.from);
  chats.delete(undefined);
  for (const [chat, ids] of chats) {
    if (ids.some((id, i) => i > 0 && id < ids[i - 1]!)) yield `chat ${chat}: not in order at the webhook`;
  }
}

/** Every accepted text at its phone exactly once, in order. */
export function* checkPhones(inboxes: Map<string, Json[]>, accepted: Accepted[]): Iterable<string> {
  for (const [number, inbox] of inboxes) {
    const got = inbox.filter(({ chat, fromMe }) => !fromMe && !chat.endsWith("@g.us"));
    const wanted = accepted.filter(({ to }) => to === number);
    yield* compare(`phone ${number}`, got.map(({ text }) => text), wanted.map(({ text }) => text));
    for (const { text, copies } of got) if (copies !== 1) yield `"${text}" was delivered ${copies} times`;
  }
}

/** Says what is missing, what is superfluous, and the first that is out of place. */
export function* compare(what: string, got: readonly string[], wanted: readonly string[]): Iterable<string> {
  const missing = wanted.filter((one) => !got.includes(one));
  const extra = got.filter((one, i) => !wanted.includes(one) || got.indexOf(one) < i);
  if (missing.length > 0) yield `${what}: ${missing.length} missing, the first is ${missing[0]}`;
  if (extra.length > 0) yield `${what}: ${extra.length} too many, the first is ${extra[0]}`;
  if (missing.length > 0 || extra.length > 0) return;
  const first = got.findIndex((one, i) => one !== wanted[i]);
  if (first >= 0) yield `${what}: in another order, from place ${first} on: ${got[first]} for ${wanted[first]}`;
}
