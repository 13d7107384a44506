/**
 * The chats of a line, and the messages of one chat, sent and received, in chronological order. Combines the history
 * and the event log.
 */
import { partOfNumber } from "../../base/phone_number.ts";
import type { ChatEvent } from "../../event/event.ts";
import { chatOf } from "../../message/message.ts";
import { isGroup } from "../../whatsapp/chats.ts";
import { STATUS_CHAT } from "../../whatsapp/outgoing.ts";
import type { AskedOfAccount } from "./guard.ts";
import type { Parts } from "./parts.ts";

const LINE = "/accounts/:accountId/lines/:sessionId";
/** How much is read, newest first: received messages, and pages of the history. */
const MOST_EVENTS = 2_000;
const MOST_PAGES = 10;
const PAGE = 100;
const MOST_SHOWN = 200;
const CHATS = 100;
const MOST_CHATS = 2_000;
/** Length of a text in the list of chats. */
const PREVIEW = 100;
const JUST_NOW_MS = 5_000;

interface Turn {
  id: string;
  chat: string;
  at: string;
  mine: boolean;
  /** The author of a received message. */
  name: string | null;
  type: string;
  text: string | null;
  filename: string | null;
  url: string | null;
  /** The state of a sent message. */
  status: string | null;
  error: { code: string; message: string } | null;
}

interface Chat {
  chat: string;
  name: string | null;
  /** Whether the peer has written. */
  wrote: boolean;
  last: Pick<Turn, "at" | "mine" | "type" | "text" | "filename">;
}

export function addChats({ guard, act, events, budgets }: Parts): void {
  /** Returns the messages of the whole line, or of one of its chats; a Response if the API refuses. */
  async function turnsOf(asked: AskedOfAccount, chat: string | null): Promise<Turn[] | Response> {
    const sessionId = asked.param("sessionId");
    // Refuses a line of another account.
    const known = await act.fetch(asked, `/v1/sessions/${encodeURIComponent(sessionId)}/status`);
    if (!known.ok) return known;
    const party = asked.account.id;
    const written = await budgets.reads.run(
      { party },
      () => events.inChats(party, { sessionId, limit: MOST_EVENTS }),
    );
    const turns = [...written.map(turnOfEvent), ...await sent(asked, { sessionId, chat })];
    return turns.filter((turn) => chat === null ? turn.chat !== STATUS_CHAT : turn.chat === chat).sort(inOrder);
  }

  async function sent(asked: AskedOfAccount, of: { sessionId: string; chat: string | null }): Promise<Turn[]> {
    const turns: Turn[] = [];
    const wanted = { sessionId: of.sessionId, ...(of.chat !== null && { recipient: of.chat }) };
    for (let page = 1; page <= (of.chat === null ? MOST_PAGES : MOST_SHOWN / PAGE); page++) {
      const query = new URLSearchParams({ ...wanted, page: String(page), limit: String(PAGE) });
      const response = await act.fetch(asked, `/v1/messages/history?${query}`);
      if (!response.ok) break;
      const { data } = await response.json();
      turns.push(...data.map(turnOfItem));
      if (data.length < PAGE) break;
    }
    return turns;
  }

  guard.account({ method: "GET", path: `${LINE}/chats` }, async (asked) => {
    const turns = await turnsOf(asked, null);
    if (turns instanceof Response) return turns;
    const chats = new Map<string, Chat>();
    for (const turn of turns) {
      const before = chats.get(turn.chat);
      // A group does not take the name of a member who writes in it.
      const name = isGroup(turn.chat) ? null : turn.name ?? before?.name ?? null;
      const { chat, at, mine, type, text, filename } = turn;
      const last = { at, mine, type, text: text?.slice(0, PREVIEW) ?? null, filename };
      chats.set(chat, { chat, name, wrote: !mine || (before?.wrote ?? false), last });
    }
    const found = [...chats.values()].filter(searchOf(asked)).sort((a, b) => a.last.at < b.last.at ? 1 : -1);
    const limit = Math.min(Number(asked.query("limit")) || CHATS, MOST_CHATS);
    return { data: found.slice(0, limit), total: found.length };
  });

  guard.account({ method: "GET", path: `${LINE}/chats/:chat` }, async (asked) => {
    const turns = await turnsOf(asked, asked.param("chat"));
    return turns instanceof Response ? turns : { data: turns.slice(-MOST_SHOWN) };
  });
}

/**
 * Returns the filter for the requested chats: by words of a name, part of a number, and whether the peer has written.
 */
function searchOf({ query }: Pick<AskedOfAccount, "query">): (chat: Chat) => boolean {
  const words = (query("q") ?? "").trim().toLowerCase();
  const digits = partOfNumber(words);
  // Only the network, and therefore the page, knows the names of groups.
  const groups = query("groups")?.split(",") ?? [];
  const isCalled = ({ chat, name }: Chat) =>
    name?.toLowerCase().includes(words) || (digits !== null && chat.includes(digits)) || groups.includes(chat);
  return (chat) => (query("wrote") === null || chat.wrote) && (words === "" || isCalled(chat));
}

const waits = ({ status }: Turn) => status === "queued" || status === "processing";

/** Sorts by time, waiting messages last. Messages of the same millisecond, as in a bulk, are sorted by id. */
function inOrder(a: Turn, b: Turn): number {
  if (waits(a) !== waits(b)) return waits(a) ? 1 : -1;
  const [left, right] = a.at === b.at ? [a.id.slice(4), b.id.slice(4)] : [a.at, b.at];
  return left < right ? -1 : Number(left > right);
}

/**
 * Returns the id of a chat: a person's number if it is known; the JID of a group, or of a person who hides the number.
 */
function chatWith(jid: string, number: string | null): string {
  return isGroup(jid) || number === null ? chatOf(jid) : number;
}

function turnOfEvent({ id, event, data, createdAt }: ChatEvent): Turn {
  const { from, number, pushName, timestamp, type, text, media } = data;
  // The network's timestamps are in seconds. For a message received just now use our own time, so that messages of the
  // same second keep their order of arrival.
  const at = createdAt - timestamp * 1000 < JUST_NOW_MS ? createdAt : timestamp * 1000;
  const mine = event === "message.echo";
  return {
    id,
    chat: chatWith(from, mine ? null : number),
    at: new Date(at).toISOString(),
    mine,
    name: mine ? null : pushName,
    type,
    text,
    filename: media?.filename ?? null,
    url: media?.url ?? null,
    status: null,
    error: null,
  };
}

/** Converts an item of the history. */
// deno-lint-ignore no-explicit-any
function turnOfItem(item: any): Turn {
  const { messageId: id, to, type, text, caption, filename, status, error, createdAt, sentAt } = item;
  const seen = item.readAt ? "read" : item.deliveredAt ? "delivered" : status;
  return {
    id,
    chat: chatOf(to),
    at: sentAt ?? createdAt,
    mine: true,
    name: null,
    type,
    text: text ?? caption,
    filename,
    url: null,
    status: seen,
    error,
  };
}
