/** What happens to a webhook whose target refuses or fails: it is reported, or switched off. */
import type { LoggedEvent, NewEvent } from "../event/event.ts";
import type { EventLog } from "../event/log.ts";
import type { Runtime } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { changedAt, type WebhookProgress, type WebhookRow } from "./webhook.ts";

/** `webhook.failing` is emitted when this many deliveries in a row have used up their attempts … */
const FAILING_AFTER = 3;
/** … and at most this often while it continues. */
const FAILING_AGAIN_MS = 3_600_000;

/** A webhook that took nothing for this long is switched off, counted from its owner's last change of it. */
const OFF_AFTER_MS = 3 * 24 * 3_600_000;

export interface DeliveryContext {
  kv: Kv;
  events: EventLog;
  runtime: Runtime;
}

type FailingEvent = Extract<NewEvent, { event: "webhook.failing" }>;

interface FailingReport {
  /** The event whose delivery failed last. */
  event: LoggedEvent;
  progress: WebhookProgress;
  /** One sentence. */
  lastError: string;
}

/** Whether the webhook fails, and that was not reported lately. */
export function isNewlyFailing({ failedInARow, announcedAt }: WebhookProgress, now: number): boolean {
  return failedInARow >= FAILING_AFTER && (announcedAt === null || now - announcedAt >= FAILING_AGAIN_MS);
}

/** Why the webhook is to be switched off, its attempts having failed for so long; null when it is not. */
export function reasonToGiveUp(webhook: WebhookRow, { failingSince }: WebhookProgress, now: number): string | null {
  if (failingSince === null || now - Math.max(failingSince, webhook.updatedAt) < OFF_AFTER_MS) return null;
  return `Nothing was delivered since ${new Date(failingSince).toISOString()}.`;
}

/** The event that reports a webhook in trouble, in the name of the session whose event failed last. */
export function failingEvent(webhook: WebhookRow, { event, progress, lastError }: FailingReport): FailingEvent {
  return {
    event: "webhook.failing",
    accountId: webhook.accountId,
    sessionId: event.sessionId,
    sessionName: event.sessionName,
    data: {
      webhookId: webhook.id,
      url: webhook.url,
      active: webhook.active,
      failedInARow: Math.max(1, progress.failedInARow),
      lastError,
      since: new Date(progress.failingSince ?? event.createdAt).toISOString(),
    },
  };
}

function disabledEvent(webhook: WebhookRow, report: FailingReport): NewEvent {
  const { sessionId, sessionName, data: { webhookId, since } } = failingEvent(webhook, report);
  const data = { webhookId, since, reason: webhook.switchedOff ?? "" };
  return { event: "webhook.disabled", accountId: webhook.accountId, sessionId, sessionName, data };
}

/**
 * Switches the webhook off for this reason, and logs the events that say so, in one commit. Resolves to the row as it now
 * stands; null when it was removed. One that has got another target meanwhile stays on.
 */
export async function switchOff(
  { kv, events, runtime }: DeliveryContext,
  webhook: WebhookRow,
  { reason, ...report }: FailingReport & { reason: string },
): Promise<WebhookRow | null> {
  const row = await retryOnConflict(kv, async () => {
    const slot = await kv.get(webhookKeys.webhook(webhook.accountId, webhook.id));
    const change = new Change();
    if (slot.value === null || !slot.value.active || slot.value.url !== webhook.url) {
      return { change, result: slot.value };
    }
    const off: WebhookRow = {
      ...slot.value,
      active: false,
      switchedOff:
        `${reason} PUT /v1/webhooks/${webhook.id} with {"active":true} switches it on; events wait until then.`,
      updatedAt: changedAt(slot.value, runtime.clock.now()),
    };
    change.check(slot).set(webhookKeys.webhook(off.accountId, off.id), off);
    events.append(change, failingEvent(off, report));
    events.append(change, disabledEvent(off, report));
    return { change, result: off };
  });
  events.committed(webhook.accountId);
  return row;
}
