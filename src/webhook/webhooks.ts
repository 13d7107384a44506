/** Webhooks as the HTTP floor and the panel use them: records, secrets, the delivery log, redelivery. */
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { invalid, notFound } from "../errors.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import { EVENT_NAMES, type EventName, USUAL_EVENTS } from "../event/event.ts";
import type { EventLog } from "../event/log.ts";
import { eventKeys } from "../event/rows.ts";
import type { Runtime } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict, type Slot } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import { type DeliveryQuery, listDeliveries, redeliverAll, redeliverOne } from "./delivery_log.ts";
import type { WebhookKeeper } from "./ownership.ts";
import { purgeWebhook } from "./sweep.ts";
import { makeSecret } from "./sign.ts";
import { type Delivery, publicWebhook, type Webhook, type WebhookRow } from "./webhook.ts";

interface NewWebhook {
  url: string;
  /** Null: all. */
  events: readonly EventName[] | null;
  sessionId: string | null;
  /** How many the account may have; any number if left out. */
  most?: number;
  /** Adds what is to be written with the webhook or not at all; called anew for each try. */
  commitWith?: (change: Change, made: MadeWebhook) => void;
}

/** A webhook and the secret that it has now, which is shown this once. */
export interface MadeWebhook {
  webhook: Webhook;
  secret: string;
}

/** Every method throws Problem not_found for an unknown webhook, also for another account's. */
export interface Webhooks {
  /** Oldest first. */
  list(accountId: string): Promise<Webhook[]>;
  get(accountId: string, webhookId: string): Promise<Webhook>;
  /** Throws Problem validation_failed for a target that may not be called, not_found for an unknown session. */
  create(accountId: string, options: NewWebhook): Promise<MadeWebhook>;
  /** Throws Problem validation_failed as `create` does. */
  update(
    accountId: string,
    webhookId: string,
    change: Partial<Pick<Webhook, "url" | "events" | "active">>,
  ): Promise<Webhook>;
  /** Also drops what waits for it and its delivery log. Resolves to the last record. */
  remove(accountId: string, webhookId: string): Promise<Webhook>;
  /** A new secret; the previous one also signs until `previousSecretUntil`. */
  rotateSecret(accountId: string, webhookId: string): Promise<MadeWebhook>;
  /** Sends the event `webhook.test` to this webhook alone, whatever it subscribes to. Resolves to the event's id. */
  test(accountId: string, webhookId: string): Promise<{ eventId: string }>;
  /** Newest event first; `next` goes into `before` for the following page, null: there is none. */
  deliveries(
    accountId: string,
    webhookId: string,
    query: DeliveryQuery,
  ): Promise<{ deliveries: Delivery[]; next: string | null }>;
  /** One more series of attempts for one delivery, at once. Throws not_found also when the event is no longer kept. */
  redeliver(accountId: string, webhookId: string, deliveryId: string): Promise<Delivery>;
  /** The same for every event since the time (Unix ms) that the webhook subscribes to, delivered or not. */
  redeliverSince(accountId: string, webhookId: string, since: number): Promise<{ scheduled: number }>;
}

/** Each lost try means that another request made a webhook meanwhile. */
const MOST_TRIES = 101;
/** How long the previous secret still signs after a rotation. */
const SECRET_OVERLAP_MS = 24 * 3_600_000;

interface WebhooksContext {
  kv: Kv;
  events: EventLog;
  safeFetch: SafeFetch;
  seal: Seal;
  runtime: Runtime;
  keeper: WebhookKeeper;
  /** What webhooks need to know of sessions: those of the account, oldest first. */
  sessions: { list(accountId: string): Promise<readonly { id: string; name: string }[]> };
}

export function makeWebhooks(context: WebhooksContext): Webhooks {
  const { kv, events, runtime, seal, keeper, sessions } = context;
  const { clock } = runtime;
  /** Creations of an account: at once, all but one of them would look through its webhooks in vain, time and again. */
  const creations = new KeyedQueue();
  const shown = (row: WebhookRow) => publicWebhook(row, clock.now());

  async function existing(accountId: string, webhookId: string): Promise<Slot<WebhookRow> & { value: WebhookRow }> {
    const slot = await kv.get(webhookKeys.webhook(accountId, webhookId));
    if (slot.value === null) throw notFound("webhook");
    return { ...slot, value: slot.value };
  }

  async function rowsOf(accountId: string): Promise<WebhookRow[]> {
    const rows: WebhookRow[] = [];
    for await (const { value } of kv.list({ prefix: webhookKeys.webhooksOfAccount(accountId) })) rows.push(value);
    return rows.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }

  /** The given session, else the account's oldest; null when there is none. */
  async function findSession(accountId: string, sessionId: string | null) {
    return (await sessions.list(accountId)).find(({ id }) => sessionId === null || id === sessionId) ?? null;
  }

  /** The commit that makes the webhook. Throws Problem validation_failed when the account has enough of them. */
  async function creationOf(row: WebhookRow, most: number): Promise<Change> {
    const { id, accountId } = row;
    const made = await kv.get(webhookKeys.webhooksMade(accountId));
    if ((await rowsOf(accountId)).length >= most) {
      throw invalid("url", `the plan allows ${most} webhooks`);
    }
    const change = new Change().check(made).set(webhookKeys.webhooksMade(accountId), (made.value ?? 0) + 1)
      .checkAbsent(webhookKeys.webhook(accountId, id)).set(webhookKeys.webhook(accountId, id), row);
    keeper.offer(change, row);
    // The cursor begins at this very commit: what happened before is none of this webhook's.
    change.ordered(eventKeys.eventOrder(accountId), (order) => [{
      kind: "set",
      key: webhookKeys.webhookProgress(id),
      value: { cursor: order, origin: order, failedInARow: 0, failingSince: null, announcedAt: null },
    }]);
    return change;
  }

  /** Writes the changed row and hands it to its worker. */
  async function change(
    accountId: string,
    webhookId: string,
    alter: (row: WebhookRow) => Partial<WebhookRow>,
  ): Promise<WebhookRow> {
    const row = await retryOnConflict(kv, async () => {
      const slot = await existing(accountId, webhookId);
      const result: WebhookRow = { ...slot.value, ...alter(slot.value), updatedAt: clock.now() };
      return { change: new Change().check(slot).set(webhookKeys.webhook(accountId, webhookId), result), result };
    });
    keeper.changed(row);
    return row;
  }

  function sealedSecret(): { secret: string; sealed: Uint8Array } {
    const secret = makeSecret(runtime.random);
    return { secret, sealed: seal.seal(new TextEncoder().encode(secret)) };
  }

  async function vetTarget(url: string): Promise<void> {
    try {
      await context.safeFetch.vet(url, ["https:"]);
    } catch (error) {
      if (error instanceof EgressError) throw invalid("url", error.message);
      throw error;
    }
  }

  return {
    async list(accountId) {
      return (await rowsOf(accountId)).map(shown);
    },

    async get(accountId, webhookId) {
      return shown((await existing(accountId, webhookId)).value);
    },

    async create(accountId, { url, events: subscribed, sessionId, most = Infinity, commitWith }) {
      await vetTarget(url);
      if (sessionId !== null && !(await findSession(accountId, sessionId))) throw notFound("session");
      const { secret, sealed } = sealedSecret();
      const now = clock.now();
      const row: WebhookRow = {
        id: runtime.ids.next("whk"),
        accountId,
        url,
        events: checkedEvents(subscribed ?? USUAL_EVENTS),
        sessionId,
        active: true,
        switchedOff: null,
        previousSecretUntil: null,
        createdAt: now,
        updatedAt: now,
        secret: sealed,
        previousSecret: null,
      };
      const creation = async () => {
        const change = await creationOf(row, most);
        const result = { webhook: shown(row), secret };
        commitWith?.(change, result);
        return { change, result };
      };
      const made = await creations.add(accountId, () => retryOnConflict(kv, creation, MOST_TRIES));
      keeper.changed(row);
      return made;
    },

    async update(accountId, webhookId, wanted) {
      await existing(accountId, webhookId);
      if (wanted.url !== undefined) await vetTarget(wanted.url);
      const row = await change(accountId, webhookId, (before) => ({
        url: wanted.url ?? before.url,
        events: wanted.events === undefined ? before.events : checkedEvents(wanted.events),
        active: wanted.active ?? before.active,
        switchedOff: wanted.active === true ? null : before.switchedOff,
      }));
      return shown(row);
    },

    async remove(accountId, webhookId) {
      const row = await retryOnConflict(kv, async () => {
        const slot = await existing(accountId, webhookId);
        const change = new Change().check(slot).delete(slot.key);
        await keeper.withdraw(change, slot.value);
        return { change, result: slot.value };
      });
      await keeper.removed(webhookId);
      await purgeWebhook(kv, webhookId);
      return shown(row);
    },

    async rotateSecret(accountId, webhookId) {
      const { secret, sealed } = sealedSecret();
      const row = await change(accountId, webhookId, (before) => ({
        secret: sealed,
        previousSecret: before.secret,
        previousSecretUntil: clock.now() + SECRET_OVERLAP_MS,
      }));
      return { webhook: shown(row), secret };
    },

    async test(accountId, webhookId) {
      const { value: webhook } = await existing(accountId, webhookId);
      const session = await findSession(accountId, webhook.sessionId);
      const change = new Change();
      const appended = events.append(change, {
        event: "webhook.test",
        accountId,
        sessionId: session?.id ?? webhook.sessionId ?? "",
        sessionName: session?.name ?? "",
        data: { webhookId, at: new Date(clock.now()).toISOString() },
      });
      await kv.commit(change);
      events.committed(accountId);
      return { eventId: appended.id! };
    },

    async deliveries(accountId, webhookId, query) {
      await existing(accountId, webhookId);
      return await listDeliveries(context, webhookId, query);
    },

    async redeliver(accountId, webhookId, deliveryId) {
      const { value: row } = await existing(accountId, webhookId);
      const delivery = await redeliverOne(context, row, deliveryId);
      keeper.wake(webhookId);
      return delivery;
    },

    async redeliverSince(accountId, webhookId, since) {
      const { value: row } = await existing(accountId, webhookId);
      const scheduled = await redeliverAll(context, row, since);
      keeper.wake(webhookId);
      return { scheduled };
    },
  };
}

/** Each name once, in the order of the catalogue. */
function checkedEvents(names: readonly EventName[]): EventName[] {
  if (names.length === 0) throw invalid("events", "needs at least one event, or is left out for all");
  return EVENT_NAMES.filter((name) => names.includes(name));
}
