/** What happens to a webhook whose target does not want or does not work: that is reported, or it is switched off. */
import type { LoggedEvent, NewEvent } from "../event/event.ts";
import type { EventLog } from "../event/log.ts";
import type { Runtime } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { WebhookProgress, WebhookRow } from "./webhook.ts";

/** `webhook.failing` is emitted when so many deliveries in a row have used up their attempts … */
const FAILING_AFTER = 3;
/** … and again at most so often while it goes on. */
const FAILING_AGAIN_MS = 3_600_000;

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

/** Whether the webhook fails, and that was not reported lately. */
export function isFailingNews({ failedInARow, announcedAt }: WebhookProgress, now: number): boolean {
  return failedInARow >= FAILING_AFTER && (announcedAt === null || now - announcedAt >= FAILING_AGAIN_MS);
}

/** The event that reports a webhook in trouble, in the name of the session whose event failed last. */
export function failingEvent(webhook: WebhookRow, { event, progress, lastError }: FailingReport): NewEvent {
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

/**
 * Switches the webhook off because its target answered 410, and logs the event that says so, in one commit. Resolves to
 * the row as it now stands; null when it was removed. One that has got another target meanwhile stays on.
 */
export async function switchOff(
  { kv, events, runtime }: DeliveryContext,
  webhook: WebhookRow,
  report: FailingReport,
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
      switchedOff: "The target answered 410 (Gone).",
      updatedAt: runtime.clock.now(),
    };
    change.check(slot).set(webhookKeys.webhook(off.accountId, off.id), off);
    events.append(change, failingEvent(off, report));
    return { change, result: off };
  });
  events.committed(webhook.accountId);
  return row;
}
