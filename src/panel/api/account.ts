/** What a person can do for an account beyond the public API: its key and from where it works, usage by day, search. */
import { partOfNumber } from "../../base/phone_number.ts";
import { z } from "zod";
import { ipAllowed, parseAllowedDomains, parseAllowedIps } from "../../account/account.ts";
import { invalid } from "../../errors.ts";
import type { Parts } from "./parts.ts";

const DAY_MS = 24 * 60 * 60_000;
const ACCOUNT = "/accounts/:accountId";
export function addAccountPages(parts: Parts): void {
  const { guard, accounts, usage, budgets, runtime: { clock } } = parts;

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
    return { data: await budgets.reads.run({ party: account.id }, () => usage.days(account.id, from)) };
  });

  addSearch(parts);
}

/** Limits of one search request: messages read (newest first), and hits. The answer says where to continue. */
const SEARCH_PAGES = 20;
const SEARCH_PAGE = 100;
const MOST_HITS = 50;

/** Adds the search of an account's messages by their contents, for which the history has no index. */
function addSearch({ guard, act }: Parts): void {
  guard.account({ method: "GET", path: `${ACCOUNT}/search`, agents: true }, async (asked) => {
    const wanted = (asked.query("q") ?? "").toLowerCase().normalize("NFKC");
    const digits = partOfNumber(wanted);
    const first = Math.max(1, Number(asked.query("page") ?? 1) || 1);
    const filters = ["status", "from", "to", "sessionId", "type", "recipient", "bulkId"].flatMap((name) => {
      const value = asked.query(name);
      return value === null ? [] : [[name, value]];
    });
    const found: unknown[] = [];
    for (let page = first; page < first + SEARCH_PAGES; page++) {
      const query = new URLSearchParams([...filters, ["page", String(page)], ["limit", String(SEARCH_PAGE)]]);
      const response = await act.fetch(asked, `/v1/messages/history?${query}`);
      if (!response.ok) return response;
      const { data } = await response.json();
      for (const item of data) {
        const texts = [item.to, item.text, item.caption, item.filename, item.messageId, item.error?.message];
        const isFound = texts.some((text) => text?.toLowerCase().normalize("NFKC").includes(wanted));
        if (isFound || (digits !== null && item.to.includes(digits))) found.push(item);
      }
      if (data.length < SEARCH_PAGE) return { data: found, next: null };
      if (found.length >= MOST_HITS) return { data: found, next: page + 1 };
    }
    return { data: found, next: first + SEARCH_PAGES };
  });
}
