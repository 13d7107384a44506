/** Searching an account's messages by what is in them: the history has no index of that. */
import type { Act } from "./act.ts";
import type { Guard } from "./guard.ts";

/** A search looks at this many messages, newest first, and says how far it came. */
const SEARCH_PAGES = 20;
const SEARCH_PAGE = 100;
const MOST_HITS = 50;

export function addSearch({ guard, act }: { guard: Guard; act: Act }): void {
  guard.account({ method: "GET", path: "/accounts/:accountId/search" }, async (asked) => {
    const wanted = (asked.query("q") ?? "").toLowerCase().normalize("NFKC");
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
        if (texts.some((text) => text?.toLowerCase().normalize("NFKC").includes(wanted))) found.push(item);
      }
      if (data.length < SEARCH_PAGE) return { data: found, next: null };
      if (found.length >= MOST_HITS) return { data: found, next: page + 1 };
    }
    return { data: found, next: first + SEARCH_PAGES };
  });
}
