/** What needs a person: of an account, and for operators of the whole gateway. */
import type { Account } from "../../account/account.ts";
import { isBackupDue } from "../../data/kept_backups.ts";
import { dataKeys } from "../../data/rows.ts";
import type { Line } from "../../line/line.ts";
import type { AskedOfAccount } from "./guard.ts";
import { freeBytes } from "./operator.ts";
import type { Parts } from "./parts.ts";

const DAY_MS = 24 * 60 * 60_000;
/** A subscription, and a version of WhatsApp Web, is mentioned when it ends within this time. */
const SOON_MS = 7 * DAY_MS;
/** Limits of what is read: failed messages, unread chats of a line, items for operators. */
const MOST_FAILED = 100;
const MOST_UNREAD = 100;
const MOST_ITEMS = 50;
const LOW_DISK_BYTES = 1024 ** 3;
/** Failures that somebody has wanted. */
const WANTED = ["cancelled", "cancelled_by_reply"];

/** `at` and `until` are Unix ms. */
type Item =
  | { kind: "expired" | "expires"; at: number }
  | { kind: "line_unlinked" | "line_down"; id: string; name: string; reason: string | null }
  | { kind: "line_restricted"; id: string; name: string; until: number | null }
  | { kind: "webhook_failing"; id: string; url: string; at: number }
  | { kind: "webhook_off"; id: string; url: string }
  | { kind: "proposed"; count: number }
  | { kind: "failed"; count: number; isMore: boolean; reasons: { code: string; count: number }[] };

export function addAttention(parts: Parts): void {
  const { guard, kv, act, accounts, lines, webhooks, chatHistory, dataDir, runtime: { clock } } = parts;

  async function ofAccount({ id, active, expiresAt }: Account): Promise<Item[]> {
    const now = clock.now();
    const items: Item[] = [];
    if (active && expiresAt !== null && expiresAt - now < SOON_MS) {
      items.push({ kind: expiresAt <= now ? "expired" : "expires", at: expiresAt });
    }
    items.push(...(await lines.list(id)).flatMap(ofLine));
    for (const { id: webhookId, url, active, failingSince } of await webhooks.list(id)) {
      if (!active) items.push({ kind: "webhook_off", id: webhookId, url });
      else if (failingSince !== null) items.push({ kind: "webhook_failing", id: webhookId, url, at: failingSince });
    }
    return items;
  }

  /** Resolves to the messages that have failed today (UTC), with the reasons of the newest; null for none. */
  async function failedToday(asked: AskedOfAccount): Promise<Item | null> {
    const from = new Date(clock.now()).toISOString().slice(0, 10);
    const query = new URLSearchParams({ status: "failed", from, limit: String(MOST_FAILED) });
    const response = await act.fetch(asked, `/v1/messages/history?${query}`);
    if (!response.ok) return null;
    const { data, pagination }: Page = await response.json();
    const codes = data.flatMap(({ error }) => error && !WANTED.includes(error.code) ? error.code : []);
    if (codes.length === 0) return null;
    const reasons = [...Map.groupBy(codes, (code) => code)].map(([code, all]) => ({ code, count: all.length }))
      .sort((a, b) => b.count - a.count);
    return { kind: "failed", count: codes.length, isMore: pagination.total > data.length, reasons };
  }

  /** Resolves to how many messages wait for approval; null for none. */
  async function proposed(asked: AskedOfAccount): Promise<Item | null> {
    const response = await act.fetch(asked, "/v1/messages/proposals?limit=1");
    if (!response.ok) return null;
    const { pagination: { total } }: Page = await response.json();
    return total > 0 ? { kind: "proposed", count: total } : null;
  }

  guard.account({ method: "GET", path: "/accounts/:accountId/attention", agents: true }, async (asked) => {
    const { account, visitor } = asked;
    const all = await lines.list(account.id);
    const counts = await Promise.all(all.map(({ id }) => chatHistory.countUnread(id, MOST_UNREAD)));
    const unread = counts.reduce((sum, count) => sum + count, 0);
    const waiting = await proposed(asked);
    const isAgent = visitor.person.role === "agent";
    const [own, failed] = isAgent ? [[], null] : [await ofAccount(account), await failedToday(asked)];
    return { data: { items: [...own, waiting, failed].filter((item) => item !== null), unread } };
  });

  guard.operator({ method: "GET", path: "/operator/attention" }, async () => {
    const all = await accounts.list();
    const found = await Promise.all(
      all.filter(({ active }) => active).map(async (account) => {
        const { id: accountId, name: accountName } = account;
        return (await ofAccount(account)).map((item) => ({ ...item, accountId, accountName }));
      }),
    );
    const free = dataDir === null ? null : freeBytes(dataDir);
    const own = free !== null && free < LOW_DISK_BYTES ? [{ kind: "disk_full", bytes: free }] : [];
    const items = [...own, ...await backupMissing(all), ...await versionEnding(all), ...found.flat()];
    return { data: { items: items.slice(0, MOST_ITEMS), more: Math.max(0, items.length - MOST_ITEMS) } };
  });

  /** Resolves to when the last backup was made (null: never), if another is due. */
  async function backupMissing(all: readonly Account[]): Promise<{ kind: "backup_missing"; at: number | null }[]> {
    const { value: at } = await kv.get(dataKeys.backedUpAt());
    return isBackupDue(at, { accounts: all, now: clock.now() }) ? [{ kind: "backup_missing", at }] : [];
  }

  /** Resolves to the end of the announced version of WhatsApp Web, if it is near, as a connected line knows it. */
  async function versionEnding(all: readonly Account[]): Promise<{ kind: "version_expires"; at: number }[]> {
    for (const { id } of all) {
      const line = (await lines.list(id)).find(({ status }) => status === "connected");
      const { connection = null } = line ? await lines.health(id, line.id) : {};
      if (connection === null) continue;
      const { expiresAt } = connection.webVersion;
      return expiresAt !== null && expiresAt - clock.now() < SOON_MS
        ? [{ kind: "version_expires", at: expiresAt }]
        : [];
    }
    return [];
  }
}

interface Page {
  data: { error: { code: string } | null }[];
  pagination: { total: number };
}

function ofLine({ id, name, status, wanted, reason, restriction }: Line): Item[] {
  // Not what the owner wanted so.
  if (status === "logged_out" && wanted === "connected") return [{ kind: "line_unlinked", id, name, reason }];
  if (status === "disconnected" && wanted === "connected") return [{ kind: "line_down", id, name, reason }];
  if (restriction) return [{ kind: "line_restricted", id, name, until: restriction.until }];
  return [];
}
