/** What counts beside the work: each wraps a part of the gateway that knows nothing of metrics. */
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import type { EventLog } from "../event/log.ts";
import type { Message } from "../message/message.ts";
import type { Recorder } from "../message/record.ts";
import type { Clock } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import type { Metrics } from "./metrics.ts";

/** Commits, by outcome and time. */
export function measuredStore(kv: ChunkedKv, metrics: Metrics, clock: Clock): ChunkedKv {
  return {
    ...kv,
    async commit(change) {
      const begun = clock.now();
      try {
        const version = await kv.commit(change);
        metrics.commits.inc({ outcome: version === null ? "conflict" : "committed" });
        return version;
      } catch (error) {
        metrics.commits.inc({ outcome: error instanceof StoreError ? error.code : "mistake" });
        throw error;
      } finally {
        metrics.commitSeconds.observe((clock.now() - begun) / 1000);
      }
    },
  };
}

/** How messages end, and how long the network takes to acknowledge them. */
export function measuredRecorder(recorder: Recorder, metrics: Metrics, clock: Clock): Recorder {
  /** When each message that is on its way left; at most one a line. */
  const departures = new Map<string, number>();

  async function ended(moved: Promise<Message | null>): Promise<Message | null> {
    const message = await moved;
    if (message) {
      metrics.ended.inc({ outcome: message.error?.code ?? "sent" });
      departures.delete(message.id);
    }
    return message;
  }

  return {
    ...recorder,
    async dispatched(read, alongside) {
      const message = await recorder.dispatched(read, alongside);
      if (message) departures.set(message.id, clock.now());
      return message;
    },
    requeued(messageId, why, alongside) {
      departures.delete(messageId);
      return recorder.requeued(messageId, why, alongside);
    },
    sent(messageId, at, alongside) {
      const left = departures.get(messageId);
      if (left !== undefined) metrics.ackSeconds.observe(Math.max(0, at - left) / 1000);
      return ended(recorder.sent(messageId, at, alongside));
    },
    proved: (messageId) => ended(recorder.proved(messageId)),
    failed: (messageId, error, alongside) => ended(recorder.failed(messageId, error, alongside)),
    dropped: (messageId, error) => ended(recorder.dropped(messageId, error)),
    cancelled: (messageId, error) => ended(recorder.cancelled(messageId, error)),
  };
}

/** Attempts of webhooks, by outcome. */
export function measuredWebhooks(safeFetch: SafeFetch, metrics: Metrics): SafeFetch {
  return {
    ...safeFetch,
    async fetch(request) {
      try {
        const response = await safeFetch.fetch(request);
        metrics.webhookAttempts.inc({ outcome: `${Math.floor(response.status / 100)}xx` });
        return response;
      } catch (error) {
        metrics.webhookAttempts.inc({ outcome: error instanceof EgressError ? error.code : "failed" });
        throw error;
      }
    },
  };
}

/** Messages that are reported though they could not be read. */
export function measuredEvents(events: EventLog, metrics: Metrics): EventLog {
  return {
    ...events,
    append(change, event) {
      if (event.event === "message.received" && event.data.details?.undecryptable === true) metrics.undecryptable.inc();
      return events.append(change, event);
    },
  };
}
