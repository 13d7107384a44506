/** Reports webhooks whose target fails, and eventually switches them off. */
import type { LoggedEvent, NewEvent } from "../event/event.ts";
import type { EventLog } from "../event/event_log.ts";
import type { Runtime } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { changedAt, type WebhookProgress, type WebhookRow } from "./webhook.ts";

/** `webhook.failing` is emitted when this many deliveries in a row have used up their attempts … */
const FAILING_AFTER = 3;
/** … and at most this often while it continues. */
const FAILING_AGAIN_MS = 3_600_000;

/**
 * A webhook without a successful delivery for this long is switched off, if that many have failed; its owner's changes
 * restart the time.
 */
const OFF_AFTER_MS = 3 * 24 * 3_600_000;

export interface DeliveryContext {
  kv: Kv;
  events: EventLog;
  runtime: Runtime;
}

interface FailingReport {
  /** The event whose delivery failed last. */
  event: LoggedEvent;
  progress: WebhookProgress;
  /** One sentence. */
  lastError: string;
}

/** Whether the webhook is failing and has not been reported recently. */
export function isNewlyFailing({ failedInARow, announcedAt }: WebhookProgress, now: number): boolean {
  return failedInARow >= FAILING_AFTER && (announcedAt === null || Math.abs(now - announcedAt) >= FAILING_AGAIN_MS);
}

/** Returns why the webhook should be switched off after failing for so long; null if it should not. */
export function reasonToGiveUp(
  webhook: WebhookRow,
  { failingSince, failedInARow }: WebhookProgress,
  now: number,
): string | null {
  if (failingSince === null || failedInARow < FAILING_AFTER) return null;
  if (now - Math.max(failingSince, webhook.updatedAt) < OFF_AFTER_MS) return null;
  return `Nothing was delivered since ${new Date(failingSince).toISOString()}.`;
}

/** Returns the event that reports a failing webhook, attributed to the session whose event failed last. */
export function failingEvent(
  webhook: WebhookRow,
  { event, progress, lastError }: FailingReport,
): Extract<NewEvent, { event: "webhook.failing" }> {
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
 * Switches the webhook off for the given reason and logs the events about it, in one commit. Resolves to the current
 * row; null if the webhook was removed. A webhook whose target has changed in the meantime stays on.
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
