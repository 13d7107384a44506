/** The pages of operators: accounts, all lines, failed deliveries, store and disk, and the plan catalogue. */
import { statfsSync } from "node:fs";
import { z } from "zod";
import type { Account } from "../../account/account.ts";
import { WEEKDAYS } from "../../account/hours.ts";
import { DEFAULT_PLAN } from "../../account/plan.ts";
import { notFound } from "../../errors.ts";
import { VERSION } from "../../shipped.ts";
import type { Parts } from "./parts.ts";

const MOST_FAILED = 50;

export function addOperatorPages(parts: Parts): void {
  const { guard, accounts, callers, lines, webhooks, deliveries, quotaView, queuedCount, audit, dataDir, webVersion } =
    parts;
  const startedAt = parts.runtime.clock.now();

  async function accountView({ id, name, plan, active, expiresAt, createdAt }: Account) {
    const caller = await callers.of(id);
    const found = await lines.list(id);
    const connected = found.filter(({ status }) => status === "connected").length;
    const quota = caller &&
      { ...await quotaView(caller), daily: caller.plan.daily, monthly: caller.plan.monthly };
    return { id, name, plan, active, expiresAt, createdAt, lines: found.length, connected, quota };
  }

  guard.operator({ method: "GET", path: "/operator/overview" }, async () => ({
    data: {
      version: VERSION,
      deno: Deno.version.deno,
      webVersion,
      startedAt,
      memoryBytes: Deno.memoryUsage().rss,
      queued: await queuedCount(),
      accounts: await Promise.all((await accounts.list()).map(accountView)),
      disk: dataDir === null ? null : await diskOf(dataDir),
    },
  }));

  const Name = z.string().max(100);
  // The form may be sent before it has its plans to choose from.
  const NewAccount = z.strictObject({ name: Name, plan: z.string().max(40).default(DEFAULT_PLAN) });
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
    const all = await Promise.all((await accounts.list()).map(async ({ id: accountId, name: accountName }) => {
      const found = await lines.list(accountId);
      return found.map(({ id, name, status, phone, reason, passkey, restriction, lastUsed }) => {
        const shown = { status, phone, reason, passkey: passkey !== null, restriction, lastUsed };
        return { id, name, accountId, accountName, ...shown };
      });
    }));
    return { data: all.flat() };
  });

  guard.operator({ method: "GET", path: "/operator/deliveries" }, async () => {
    const query = { status: "failed", before: null, limit: MOST_FAILED } as const;
    const all = await Promise.all((await accounts.list()).map(async ({ id: accountId, name: accountName }) => {
      const found = await webhooks.list(accountId);
      const pages = await Promise.all(found.map(async ({ id: webhookId, url }) => {
        const failed = await deliveries.page(accountId, webhookId, query);
        return failed.deliveries.map((delivery) => ({ ...delivery, accountId, accountName, webhookId, url }));
      }));
      return pages.flat();
    }));
    return { data: all.flat().sort((a, b) => b.createdAt - a.createdAt).slice(0, MOST_FAILED) };
  });

  guard.operator({ method: "GET", path: "/operator/audit" }, async ({ query }) => ({
    data: await audit.page({ before: query("before"), limit: 50 }),
  }));

  addPlans(parts);
}

async function diskOf(folder: string) {
  const { blocks, bsize } = statfsSync(folder);
  return { storeBytes: await bytesIn(folder), freeBytes: freeBytes(folder), totalBytes: blocks * bsize };
}

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Returns the size of the store's files; media files are in a subfolder and do not count. */
async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (isFile) bytes += (await Deno.stat(`${folder}/${name}`).catch(() => ({ size: 0 }))).size;
  }
  return bytes;
}

const limit = z.number().nullable();

const PlanChange = z.strictObject({
  sessions: z.number(),
  daily: limit,
  monthly: limit,
  delayMinMs: z.number(),
  delayMaxMs: z.number(),
  requestsPerMinute: limit,
  webhooks: z.number().optional(),
  eventStreams: z.number().optional(),
  templates: z.number().optional(),
  verifications: z.number().optional(),
  /** Null for no restriction. */
  hours: z.strictObject({ days: z.array(z.enum(WEEKDAYS)), from: z.string(), to: z.string(), timeZone: z.string() })
    .nullable().optional(),
  newChatsDaily: limit.optional(),
  warmUp: z.boolean().optional(),
  typingMs: z.number().optional(),
});

function addPlans({ guard, accounts, plans }: Parts): void {
  guard.operator({ method: "GET", path: "/operator/plans" }, async () => {
    const used = new Map<string, number>();
    for (const { plan } of await accounts.list()) used.set(plan, (used.get(plan) ?? 0) + 1);
    const data = (await plans.list()).map((plan) => ({
      ...plan,
      accounts: used.get(plan.name) ?? 0,
      isDefault: plan.name === DEFAULT_PLAN,
    }));
    return { data };
  });

  guard.operator({ method: "PUT", path: "/operator/plans/:name", body: PlanChange }, async ({ param, body, did }) => {
    const plan = await plans.set({ ...body, name: param("name") });
    await did(`plan_set: ${plan.name}`, null);
    return { data: plan };
  });
}
