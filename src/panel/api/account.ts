/** What a person can do for an account beyond the public API: its key and from where it works, usage by day, search. */
import { partOfNumber } from "../../base/phone_number.ts";
import { z } from "zod";
import { type Account, ipAllowed, parseAllowedDomains, parseAllowedIps } from "../../account/account.ts";
import { invalid, notFound } from "../../errors.ts";
import type { LoggedEvent } from "../../event/event.ts";
import { fits, orderOf } from "../../event/event_log.ts";
import { eventKeys } from "../../event/rows.ts";
import { feedEventOf } from "../../http/resources/event_stream.ts";
import type { Parts } from "./parts.ts";

/** Events that the page begins with. */
const LATEST_EVENTS = 100;
/** Names asked for at once: as many as a page has rows. */
const MOST_NAMES = 60;
const DAY_MS = 24 * 60 * 60_000;
const ACCOUNT = "/accounts/:accountId";
export function addAccountPages(parts: Parts): void {
  const { guard, kv, accounts, lines, chatHistory, events, webhooks, deliveries, usage, budgets, runtime: { clock } } =
    parts;

  guard.account({ method: "GET", path: ACCOUNT, agents: true }, ({ account, visitor }) => {
    const { id, name, plan, active, expiresAt, allowedIps, allowedDomains } = account;
    const places = visitor.person.role === "agent" ? {} : { allowedIps, allowedDomains };
    return Promise.resolve({ data: { id, name, plan, active, expiresAt, ...places } });
  });

  guard.account({ method: "POST", path: `${ACCOUNT}/key/show` }, async ({ account, did }) => {
    await did("key_shown");
    return { data: { apiKey: await accounts.apiKey(account.id) } };
  });

  guard.account({ method: "POST", path: `${ACCOUNT}/key/regenerate` }, async ({ account, did }) => {
    // Of several concurrent requests only one is answered with a key, and that key is the valid one.
    const apiKey = await accounts.replaceKey(await accounts.apiKey(account.id));
    await did("key_regenerated");
    return { data: { apiKey } };
  });

  const entries = z.array(z.string().max(255)).max(100);
  const Places = z.strictObject({
    allowedIps: entries,
    allowedDomains: entries,
    /** Confirms that the person's own address may be missing from the list. */
    elsewhere: z.boolean().default(false),
  });
  guard.account({ method: "PUT", path: `${ACCOUNT}/key/places`, body: Places }, async (asked) => {
    const { account, body, address, did } = asked;
    const allowedIps = parseAllowedIps(body.allowedIps);
    const allowedDomains = parseAllowedDomains(body.allowedDomains);
    if (!body.elsewhere && !ipAllowed(allowedIps, address)) {
      throw invalid("allowedIps", `This would lock out ${address}, your current address.`);
    }
    await accounts.update(account.id, { allowedIps, allowedDomains });
    await did("key_places_changed");
    return { data: { allowedIps, allowedDomains } };
  });

  guard.account({ method: "GET", path: `${ACCOUNT}/usage` }, async ({ account, query }) => {
    const days = Math.min(90, Math.max(1, Number(query("days") ?? 30) || 30));
    const from = new Date(clock.now() - (days - 1) * DAY_MS).toISOString().slice(0, 10);
    return { data: await budgets.read(account.id, () => usage.days(account.id, from)) };
  });

  guard.account({ method: "GET", path: `${ACCOUNT}/events` }, async ({ account: { id } }) => {
    const latest = await budgets.read(id, () => events.latest(id, LATEST_EVENTS));
    return { data: latest.filter((event) => fits(event, { types: null, sessionId: null })).map(shownEvent) };
  });

  // The names that people have given themselves, and those of groups, by address: what lists show before the number.
  guard.account({ method: "GET", path: `${ACCOUNT}/lines/:sessionId/names`, agents: true }, async (asked) => {
    const { account, param, query } = asked;
    const line = await lines.get(account.id, param("sessionId"));
    const chats = (query("chats") ?? "").split(",").filter(Boolean).slice(0, MOST_NAMES);
    const names = await chatHistory.names({ lineId: line.id, accountId: account.id }, chats);
    return { data: Object.fromEntries(names) };
  });

  // As a webhook gets it, while it is kept.
  guard.account({ method: "GET", path: `${ACCOUNT}/events/:eventId` }, async ({ account: { id }, param }) => {
    const { value } = await kv.get(eventKeys.event(id, orderOf(param("eventId"))));
    if (value === null) throw notFound("event");
    return { data: shownEvent(value) };
  });

  // Which webhooks an event was delivered to, and how that went.
  guard.account(
    { method: "GET", path: `${ACCOUNT}/events/:eventId/deliveries` },
    async ({ account: { id }, param }) => {
      const eventId = param("eventId");
      const found = await Promise.all((await webhooks.list(id)).map(async (webhook) => {
        const { deliveries: page } = await deliveries.page(id, webhook.id, { status: null, before: null, limit: 100 });
        return page.filter((delivery) => delivery.eventId === eventId)
          .map((delivery) => ({ ...delivery, webhookId: webhook.id, url: webhook.url }));
      }));
      return { data: found.flat() };
    },
  );

  addSearch(parts);
}

/** Returns the event without the picture of a QR, which has expired, and would be most of the page. */
function shownEvent(event: LoggedEvent) {
  const shown = feedEventOf(event);
  return event.event === "session.qr" ? { ...shown, data: { ...event.data, qr: "…" } } : shown;
}

/** Limits of one search request: messages read (newest first), and hits. The answer says where to continue. */
const SEARCH_PAGES = 20;
const SEARCH_PAGE = 100;
const MOST_HITS = 50;
/** Lines whose chats are searched by name. */
const MOST_LINES = 20;

/** Adds the search of an account's messages by their contents, for which the history has no index. */
function addSearch({ guard, act, lines, chatHistory }: Parts): void {
  /** Resolves to the addresses of the account's chats with this in their name, each with its line. */
  async function named(account: Account, q: string): Promise<Set<string>> {
    const found = new Set<string>();
    if (q.trim() === "") return found;
    for (const { id: lineId } of (await lines.list(account.id)).slice(0, MOST_LINES)) {
      const query = { limit: MOST_HITS, after: null, q, unread: false, wrote: false };
      const { chats } = await chatHistory.list({ lineId, accountId: account.id }, query);
      for (const { record: { chat, number, lid } } of chats) {
        for (const address of [chat, number, lid]) if (address) found.add(`${lineId} ${address}`);
      }
    }
    return found;
  }

  guard.account({ method: "GET", path: `${ACCOUNT}/search`, agents: true }, async (asked) => {
    const wanted = (asked.query("q") ?? "").toLowerCase().normalize("NFKC");
    const digits = partOfNumber(wanted);
    const first = Math.max(1, Number(asked.query("page") ?? 1) || 1);
    const filters = ["status", "from", "to", "sessionId", "type", "recipient", "bulkId"].flatMap((name) => {
      const value = asked.query(name);
      return value === null ? [] : [[name, value]];
    });
    const chats = await named(asked.account, wanted);
    const found: unknown[] = [];
    for (let page = first; page < first + SEARCH_PAGES; page++) {
      const query = new URLSearchParams([...filters, ["page", String(page)], ["limit", String(SEARCH_PAGE)]]);
      const response = await act.fetch(asked, `/v1/messages/history?${query}`);
      if (!response.ok) return response;
      const { data } = await response.json();
      for (const item of data) {
        const texts = [item.to, item.text, item.caption, item.filename, item.messageId, item.error?.message];
        const isFound = texts.some((text) => text?.toLowerCase().normalize("NFKC").includes(wanted));
        const isNamed = chats.has(`${item.sessionId} ${item.to.replace(/@s\.whatsapp\.net$/, "")}`);
        if (isFound || isNamed || (digits !== null && item.to.includes(digits))) found.push(item);
      }
      if (data.length < SEARCH_PAGE) return { data: found, next: null };
      if (found.length >= MOST_HITS) return { data: found, next: page + 1 };
    }
    return { data: found, next: first + SEARCH_PAGES };
  });
}
