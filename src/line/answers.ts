/**
 * Answers to choices: which option an incoming message chooses, by its text, a vote or a tap. An answer closes nothing:
 * a changed one is another answer.
 */
import type { EventData } from "../event/event.ts";
import { typeOf } from "../message/content.ts";
import { type ChoicesContent, chosenBy } from "../message/kinds/choices.ts";
import type { Message } from "../message/message.ts";
import { messageKeys } from "../message/rows.ts";
import { filled } from "../message/templates/filled.ts";
import { deleteUnchanged } from "../store/delete_range.ts";
import { firstRow, type Kv, type Row } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/incoming.ts";

/** How long after their departure a text without a quote answers choices. */
const OPEN_MS = 7 * 24 * 3_600_000;
/** Choices of a chat read to find the newest that was not refused. */
const LOOKED_AT = 5;

type Asked = Message & { content: ChoicesContent };

export type Answer = EventData<"choice.made">;

interface AnswersDeps {
  kv: Kv;
  now: number;
  /** Resolves to all addresses by which the line may have asked the sender. */
  addresses: () => Promise<readonly string[]>;
}

/** Returns the answer that the message is, as its event tells it; null if it is none. */
export async function answerIn(
  deps: AnswersDeps,
  lineId: string,
  incoming: Incoming,
): Promise<Answer | null> {
  const found = await chosenIn(deps, lineId, incoming);
  if (!found) return null;
  const { asked: { id: messageId, networkId }, option: { id, label }, how } = found;
  const { chat, number } = incoming;
  return { messageId, networkId, chat, number, id, label, how };
}

async function chosenIn(deps: AnswersDeps, lineId: string, incoming: Incoming) {
  const { kv } = deps;
  const { fromMe, change, text, type, quoted, details, undecryptable } = incoming;
  if (fromMe || undecryptable) return null;
  if (change) {
    if (change.kind !== "vote" || change.options.length !== 1) return null;
    const asked = await askedBy(kv, lineId, change.target);
    const option = asked?.content.options.find(({ label }) => label === change.options[0]);
    return asked && option ? { asked, option, how: "vote" as const } : null;
  }
  const tapped = typeof details?.selectedId === "string" ? details.selectedId : null;
  if (tapped === null && (text === null || !TEXTS.has(type))) return null;
  // A message that is quoted is the one that is answered, or what is said is about something else.
  const asked = quoted ? await askedBy(kv, lineId, quoted.messageId) : await newestOpen(deps, lineId);
  const option = asked &&
    (tapped === null
      ? chosenBy(text ?? "", asked.content.options)
      : asked.content.options.find(({ id }) => id === tapped));
  return asked && option ? { asked, option, how: tapped === null ? "text" as const : "tap" as const } : null;
}

const TEXTS: ReadonlySet<Incoming["type"]> = new Set(["conversation", "extendedTextMessage"]);

/** Returns the choices that the line sent under this network id. */
async function askedBy(kv: Kv, lineId: string, networkId: string): Promise<Asked | null> {
  const { value: messageId } = await kv.get(messageKeys.messageOfNetworkId(lineId, networkId));
  return messageId === null ? null : await read(kv, messageId);
}

async function newestOpen({ kv, now, addresses }: AnswersDeps, lineId: string): Promise<Asked | null> {
  // Most lines have none, which the store's memory knows.
  if (!await firstRow(kv, { prefix: messageKeys.choicesAskedOnLine(lineId) })) return null;
  const rows: Row<string>[] = [];
  for (const chat of await addresses()) {
    const range = { prefix: messageKeys.choicesAskedOf(lineId, chat) };
    rows.push(...await Array.fromAsync(kv.list(range, { limit: LOOKED_AT, reverse: true })));
  }
  for (const row of rows.sort((a, b) => askedAt(b) - askedAt(a))) {
    if (askedAt(row) <= now - OPEN_MS) return null;
    const asked = await read(kv, row.value);
    if (asked) return asked;
  }
  return null;
}

async function read(kv: Kv, messageId: string): Promise<Asked | null> {
  const { value } = await kv.get(messageKeys.message(messageId));
  if (!value || value.status === "failed" || value.erasedAt !== undefined || typeOf(value.content) !== "choices") {
    return null;
  }
  const [message] = await filled(kv, [value]);
  return message?.content.kind === "choices" ? { ...message, content: message.content } : null;
}

function askedAt({ key }: Row<string>): number {
  return Number(key[3]);
}

/** Removes the rows of choices that no text answers any more; resolves to their number. */
export async function sweepAsked(kv: Kv, now: number, signal: AbortSignal): Promise<number> {
  async function* old() {
    for await (const row of kv.list({ prefix: messageKeys.allChoicesAsked() })) {
      if (askedAt(row) <= now - OPEN_MS) yield row;
    }
  }
  return await deleteUnchanged(kv, old(), { signal });
}
