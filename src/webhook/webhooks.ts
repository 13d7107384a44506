/** Management of webhooks, as used by the API and the panel. */
import { invalid, notFound } from "../errors.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import { EVENT_NAMES, type EventName, USUAL_EVENTS } from "../event/event.ts";
import type { EventLog } from "../event/event_log.ts";
import { eventKeys } from "../event/rows.ts";
import type { Claims } from "../cluster/holder.ts";
import type { Runtime } from "../runtime.ts";
import { WEBHOOK, webhookKeys } from "./rows.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import type { WebhookOwner } from "./dispatcher.ts";
import { EVENTS_OF, type FormatName } from "./format.ts";
import { purgeWebhook } from "./sweep.ts";
import { makeSecret } from "./signature.ts";
import type { Target } from "./target.ts";
import { changedAt, type ShownWebhook, shownWebhook, type Webhook, type WebhookRow } from "./webhook.ts";

interface NewWebhook {
  url: string;
  /** "paloma" by default. */
  format?: FormatName;
  /** What the target of the format "cloud" is asked with; null for other formats. */
  verifyToken?: string | null;
  /** Null: all. */
  events: readonly EventName[] | null;
  sessionId: string | null;
  /** "all" by default; in the format "cloud", whose clients may not tell groups from people, "direct". */
  chats?: Webhook["chats"];
  /** Sent with every request beside the gateway's own headers; none by default. */
  headers?: Readonly<Record<string, string>>;
  /** How many webhooks the account may have; unlimited by default. */
  most?: number;
  /** Adds mutations to be committed together with the webhook; called again for each attempt. */
  commitWith?: (change: Change, made: MadeWebhook) => void;
}

/** A webhook with its current secret, which is shown only now. */
export interface MadeWebhook {
  webhook: ShownWebhook;
  secret: string;
}

/** How long the previous secret also signs after a rotation. */
const SECRET_OVERLAP_MS = 24 * 3_600_000;

interface WebhooksDeps {
  kv: Kv;
  events: EventLog;
  target: Pick<Target, "vet" | "verify">;
  seal: Seal;
  runtime: Runtime;
  owner: WebhookOwner;
  /** Null on data that only this process uses. */
  claims: Claims | null;
  /** Makes the secrets; by default, each webhook has its own. */
  makeSecret?: typeof makeSecret | undefined;
  /** The account's sessions, oldest first. */
  sessions: { list(accountId: string): Promise<readonly { id: string; name: string }[]> };
}

export type Webhooks = ReturnType<typeof makeWebhooks>;

/** All methods throw Problem not_found for an unknown webhook, including another account's. */
export function makeWebhooks({ kv, events, target, seal, runtime, owner, claims, sessions, ...deps }: WebhooksDeps) {
  const { clock, ids, random } = runtime;
  /**
   * Serialises creations by account: concurrent ones would conflict and re-read all of its webhooks again and again.
   */
  const creations = new KeyedQueue();

  /** Lists the account's webhooks, oldest first. */
  async function list(accountId: string): Promise<ShownWebhook[]> {
    return await Promise.all((await rowsOf(accountId)).map((row) => shown(row)));
  }

  async function get(accountId: string, webhookId: string): Promise<ShownWebhook> {
    return await shown((await existingWebhook(kv, accountId, webhookId)).value);
  }

  /**
   * Creates a webhook. Throws Problem validation_failed for a forbidden target and one that fails the handshake of its
   * format, not_found for an unknown session.
   */
  async function create(accountId: string, wanted: NewWebhook): Promise<MadeWebhook> {
    const { url, sessionId, most = Infinity, format = "paloma", verifyToken = null, commitWith } = wanted;
    if ((verifyToken !== null) !== (format === "cloud")) throw invalid("verifyToken", "belongs to the format cloud");
    const events = checkedEvents(
      wanted.events ?? USUAL_EVENTS.filter((name) => EVENTS_OF[format].includes(name)),
      format,
    );
    const chats = wanted.chats ?? (format === "cloud" ? "direct" : undefined);
    await target.vet(url);
    if (sessionId !== null && !(await findSession(accountId, sessionId))) throw notFound("session");
    if (verifyToken !== null) await target.verify(url, verifyToken);
    const { secret, sealed } = sealedSecret();
    const now = clock.now();
    const row: WebhookRow = {
      id: ids.next("whk"),
      accountId,
      url,
      ...(format === "paloma" ? {} : { format }),
      events,
      sessionId,
      ...(chats === undefined ? {} : { chats }),
      ...sealedHeaders(wanted.headers ?? {}),
      active: true,
      switchedOff: null,
      previousSecretUntil: null,
      createdAt: now,
      updatedAt: now,
      secret: sealed,
      previousSecret: null,
      ...(verifyToken === null ? {} : { verifyToken: sealedText(verifyToken) }),
    };
    const creation = async () => {
      const change = await creationOf(row, most);
      const result = { webhook: shownWebhook(row, { failingSince: null, now }), secret };
      commitWith?.(change, result);
      return { change, result };
    };
    const made = await creations.add(accountId, () => retryOnConflict(kv, creation));
    owner.changed(row);
    return made;
  }

  /** Changes a webhook. Throws Problem validation_failed as `create` does. */
  async function update(
    accountId: string,
    webhookId: string,
    wanted: Partial<Pick<Webhook, "url" | "events" | "active" | "chats"> & Pick<NewWebhook, "headers">>,
  ): Promise<ShownWebhook> {
    const { value: existing } = await existingWebhook(kv, accountId, webhookId);
    const { format = "paloma" } = existing;
    const events = wanted.events && checkedEvents(wanted.events, format);
    if (wanted.url !== undefined) {
      await target.vet(wanted.url);
      const { verifyToken } = existing;
      if (verifyToken) await target.verify(wanted.url, new TextDecoder().decode(seal.open(verifyToken)));
    }
    const headers = wanted.headers && sealedHeaders(wanted.headers);
    const row = await rewrite(accountId, webhookId, (before) => ({
      ...(wanted.chats === undefined ? {} : { chats: wanted.chats }),
      ...headers,
      url: wanted.url ?? before.url,
      events: events ?? before.events,
      active: wanted.active ?? before.active,
      switchedOff: wanted.active === true ? null : before.switchedOff,
    }));
    return await shown(row);
  }

  /** Removes a webhook with its pending deliveries and its delivery log. Resolves to the last record. */
  async function remove(accountId: string, webhookId: string): Promise<ShownWebhook> {
    const last = await retryOnConflict(kv, async () => {
      const slot = await existingWebhook(kv, accountId, webhookId);
      const change = new Change().check(slot).delete(slot.key);
      await claims?.withdraw(change, WEBHOOK, WEBHOOK.nameOf(slot.value));
      return { change, result: await shown(slot.value) };
    });
    await owner.removed(webhookId);
    await purgeWebhook(kv, webhookId);
    return last;
  }

  /** Creates a new secret; the previous one also signs until `previousSecretUntil`. */
  async function rotateSecret(accountId: string, webhookId: string): Promise<MadeWebhook> {
    const { secret, sealed } = sealedSecret();
    const row = await rewrite(accountId, webhookId, (before) => ({
      secret: sealed,
      previousSecret: before.secret,
      previousSecretUntil: clock.now() + SECRET_OVERLAP_MS,
    }));
    return { webhook: await shown(row), secret };
  }

  /** Sends `webhook.test` to this webhook only, regardless of its subscription. Resolves to the event's id. */
  async function test(accountId: string, webhookId: string): Promise<{ eventId: string }> {
    const { value: webhook } = await existingWebhook(kv, accountId, webhookId);
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
  }

  async function shown(row: WebhookRow): Promise<ShownWebhook> {
    const { value: progress } = await kv.get(webhookKeys.webhookProgress(row.id));
    return shownWebhook(row, { failingSince: progress?.failingSince ?? null, now: clock.now() });
  }

  async function rowsOf(accountId: string): Promise<WebhookRow[]> {
    const listed = kv.list({ prefix: webhookKeys.webhooksOfAccount(accountId) });
    const rows = await Array.fromAsync(listed, ({ value }) => value);
    return rows.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }

  /** Resolves to the given session, or the account's oldest; null if there is none. */
  async function findSession(accountId: string, sessionId: string | null) {
    const all = await sessions.list(accountId);
    return all.find(({ id }) => sessionId === null || id === sessionId) ?? null;
  }

  /** Builds the commit that creates the webhook. Throws Problem validation_failed if the account has too many. */
  async function creationOf(row: WebhookRow, most: number): Promise<Change> {
    const { id, accountId } = row;
    const made = await kv.get(webhookKeys.webhooksMade(accountId));
    if ((await rowsOf(accountId)).length >= most) {
      throw invalid("url", `the plan allows ${most} webhooks`);
    }
    const change = new Change().check(made).set(webhookKeys.webhooksMade(accountId), (made.value ?? 0) + 1)
      .checkAbsent(webhookKeys.webhook(accountId, id)).set(webhookKeys.webhook(accountId, id), row);
    claims?.offer(change, WEBHOOK, WEBHOOK.nameOf(row));
    // The cursor starts at this very commit: earlier events are not delivered to this webhook.
    change.ordered(eventKeys.eventOrder(accountId), (order) => [{
      kind: "set",
      key: webhookKeys.webhookProgress(id),
      value: { cursor: order, origin: order, failedInARow: 0, failingSince: null, announcedAt: null },
    }]);
    return change;
  }

  /** Writes the changed row and passes it to the worker. */
  async function rewrite(
    accountId: string,
    webhookId: string,
    alter: (row: WebhookRow) => Partial<WebhookRow>,
  ): Promise<WebhookRow> {
    const row = await retryOnConflict(kv, async () => {
      const slot = await existingWebhook(kv, accountId, webhookId);
      const updatedAt = changedAt(slot.value, clock.now());
      const result: WebhookRow = { ...slot.value, ...alter(slot.value), updatedAt };
      return { change: new Change().check(slot).set(webhookKeys.webhook(accountId, webhookId), result), result };
    });
    owner.changed(row);
    return row;
  }

  function sealedSecret(): { secret: string; sealed: Uint8Array } {
    const secret = (deps.makeSecret ?? makeSecret)(random);
    return { secret, sealed: sealedText(secret) };
  }

  function sealedText(text: string): Uint8Array {
    return seal.seal(new TextEncoder().encode(text));
  }

  /** Returns the part of the row that holds the headers, with their values sealed: they may be passwords. */
  function sealedHeaders(
    headers: Readonly<Record<string, string>>,
  ): Required<Pick<WebhookRow, "headers" | "headerNames">> {
    const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
    const sealed = sealedText(JSON.stringify(Object.fromEntries(lower)));
    return { headerNames: lower.map(([name]) => name), headers: sealed };
  }

  return { list, get, create, update, remove, rotateSecret, test };
}

/** Resolves to the webhook's row. Throws Problem not_found, also for another account's webhook. */
export async function existingWebhook(kv: Kv, accountId: string, webhookId: string): Promise<Row<WebhookRow>> {
  const slot = await kv.get(webhookKeys.webhook(accountId, webhookId));
  if (!isRow(slot)) throw notFound("webhook");
  return slot;
}

/**
 * Returns the names without duplicates, in the catalogue's order. Throws Problem validation_failed if there are none,
 * or one that the format cannot tell.
 */
function checkedEvents(names: readonly EventName[], format: FormatName): EventName[] {
  const untold = names.find((name) => !EVENTS_OF[format].includes(name));
  if (untold) throw invalid("events", `the format ${format} has no ${untold}`);
  if (names.length === 0) throw invalid("events", "needs at least one event, or is left out for all");
  return EVENT_NAMES.filter((name) => names.includes(name));
}
