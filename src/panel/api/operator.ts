/** What an operator sees and does: accounts, every line, failed deliveries, store and disk. */
import { statfsSync } from "node:fs";
import { z } from "zod";
import type { Account } from "../../account/account.ts";
import type { Accounts } from "../../account/accounts.ts";
import { notFound } from "../../errors.ts";
import type { Lines } from "../../line/lines.ts";
import type { QueuedCount, QuotaView } from "../../message/history/counts.ts";
import type { Clock } from "../../runtime.ts";
import { VERSION } from "../../version.ts";
import type { DeliveryLog } from "../../webhook/delivery_log.ts";
import type { Webhooks } from "../../webhook/webhooks.ts";
import type { Audit } from "../audit.ts";
import type { Guard } from "./guard.ts";

const MOST_FAILED = 50;

interface OperatorDeps {
  guard: Guard;
  accounts: Accounts;
  lines: Pick<Lines, "list">;
  webhooks: Pick<Webhooks, "list">;
  deliveries: Pick<DeliveryLog, "page">;
  quotaView: QuotaView;
  queuedCount: QueuedCount;
  audit: Audit;
  clock: Clock;
  /** The folder of the store and the files. */
  dataDir: string;
  /** The version of WhatsApp Web that is announced; null: the latest. */
  webVersion: string | null;
}

export function addOperatorPages(deps: OperatorDeps): void {
  const { guard, accounts, lines, webhooks, deliveries, quotaView, queuedCount, audit, clock } = deps;
  const startedAt = clock.now();

  async function accountView(account: Account) {
    const caller = await accounts.caller(account.id);
    const found = await lines.list(account.id);
    return {
      id: account.id,
      name: account.name,
      plan: account.plan,
      active: account.active,
      expiresAt: account.expiresAt,
      createdAt: account.createdAt,
      lines: found.length,
      connected: found.filter(({ status }) => status === "connected").length,
      quota: caller && { ...await quotaView(caller), daily: caller.plan.daily, monthly: caller.plan.monthly },
    };
  }

  guard.operator({ method: "GET", path: "/operator/overview" }, async () => {
    const { bavail, blocks, bsize } = statfsSync(deps.dataDir);
    return {
      data: {
        version: VERSION,
        deno: Deno.version.deno,
        webVersion: deps.webVersion,
        startedAt,
        memoryBytes: Deno.memoryUsage().rss,
        queued: await queuedCount(),
        accounts: await Promise.all((await accounts.list()).map(accountView)),
        store: { storeBytes: await bytesIn(deps.dataDir) },
        disk: { freeBytes: bavail * bsize, totalBytes: blocks * bsize },
      },
    };
  });

  const Name = z.string().max(100);
  const NewAccount = z.strictObject({ name: Name, plan: z.string().max(40) });
  guard.operator({ method: "POST", path: "/operator/accounts", body: NewAccount }, async ({ body, did }) => {
    const { account } = await accounts.create(body);
    await did("account_created", account.id);
    return { data: await accountView(account) };
  });

  const AccountChange = z.strictObject({
    name: Name.optional(),
    plan: z.string().max(40).optional(),
    active: z.boolean().optional(),
    /** Unix ms. */
    expiresAt: z.number().nullable().optional(),
  });
  guard.operator({ method: "PATCH", path: "/operator/accounts/:id", body: AccountChange }, async (asked) => {
    const id = asked.param("id");
    if (await accounts.get(id) === null) throw notFound("account");
    const given = Object.entries(asked.body).filter(([, value]) => value !== undefined);
    const account = await accounts.update(id, Object.fromEntries(given));
    await asked.did(`account_changed: ${given.map(([name]) => name).join(", ")}`, id);
    return { data: await accountView(account) };
  });

  guard.operator({ method: "GET", path: "/operator/lines" }, async () => {
    const all = await Promise.all(
      (await accounts.list()).map(async ({ id, name }) =>
        (await lines.list(id)).map((line) => ({
          id: line.id,
          name: line.name,
          accountId: id,
          accountName: name,
          status: line.status,
          phone: line.phone,
          reason: line.reason,
          passkey: line.passkey !== null,
          restriction: line.restriction,
          lastUsed: line.lastUsed,
        }))
      ),
    );
    return { data: all.flat() };
  });

  guard.operator({ method: "GET", path: "/operator/deliveries" }, async () => {
    const query = { status: "failed", before: null, limit: MOST_FAILED } as const;
    const all = await Promise.all((await accounts.list()).map(async ({ id: accountId, name }) => {
      const found = await webhooks.list(accountId);
      const pages = await Promise.all(found.map(async ({ id, url }) => {
        const failed = await deliveries.page(accountId, id, query);
        return failed.deliveries.map((delivery) => ({ ...delivery, accountId, accountName: name, webhookId: id, url }));
      }));
      return pages.flat();
    }));
    return { data: all.flat().sort((a, b) => b.createdAt - a.createdAt).slice(0, MOST_FAILED) };
  });

  guard.operator({ method: "GET", path: "/operator/audit" }, async ({ query }) => ({
    data: await audit.page({ accountId: query("accountId"), before: query("before"), limit: 50 }),
  }));
}

/** Of the store's own files; the media lie in a folder of theirs. */
async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (isFile) bytes += (await Deno.stat(`${folder}/${name}`).catch(() => ({ size: 0 }))).size;
  }
  return bytes;
}
