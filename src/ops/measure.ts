/** Measures parts of the gateway that know nothing of metrics, by wrapping them. */
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import type { EventLog } from "../event/log.ts";
import type { Message } from "../message/message.ts";
import type { Acknowledged, MessageRow, Recorder } from "../message/record.ts";
import type { Clock } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import type { Metrics } from "./metrics.ts";

/** Commits, by outcome and time. */
export function measuredStore(kv: ChunkedKv, metrics: Metrics, clock: Clock): ChunkedKv {
  return {
    ...kv,
    async commit(change, options) {
      const begun = clock.now();
      try {
        const version = await kv.commit(change, options);
        metrics.commits.inc({ outcome: version === null ? "conflict" : "committed" });
        return version;
      } catch (error) {
        metrics.commits.inc({ outcome: error instanceof StoreError ? error.code : "mistake" });
        throw error;
      } finally {
        if (!options?.patience) metrics.commitSeconds.observe((clock.now() - begun) / 1000);
      }
    },
  };
}

/** How messages end, and how long the network takes to acknowledge them. */
export function measuredRecorder(recorder: Recorder, metrics: Metrics, clock: Clock): Recorder {
  /** When each message on its way departed; at most one a line. */
  const departures = new Map<string, number>();

  function count({ id, error }: Message): void {
    metrics.ended.inc({ outcome: error?.code ?? "sent" });
    departures.delete(id);
  }

  async function ended(moved: Promise<Message | null>): Promise<Message | null> {
    const message = await moved;
    if (message) count(message);
    return message;
  }

  function left(row: MessageRow | null): MessageRow | null {
    if (row) departures.set(row.value.id, clock.now());
    return row;
  }

  /** Observes how long the network took to acknowledge a message. */
  function acknowledged({ row, at }: Acknowledged): void {
    const leftAt = departures.get(row.value.id);
    if (leftAt !== undefined) metrics.ackSeconds.observe(Math.max(0, at - leftAt) / 1000);
  }

  return {
    ...recorder,
    dispatched: async (row, alongside) => left(await recorder.dispatched(row, alongside)),
    async followed(sent, next, alongside) {
      const row = await recorder.followed(sent, next, alongside);
      if (row === null) return null; // its end is still to come
      acknowledged(sent);
      await ended(Promise.resolve(sent.row.value));
      return left(row);
    },
    requeued(row, why, alongside) {
      departures.delete(row.value.id);
      return recorder.requeued(row, why, alongside);
    },
    sent(sent, alongside) {
      acknowledged(sent);
      return ended(recorder.sent(sent, alongside));
    },
    proved: (messageId) => ended(recorder.proved(messageId)),
    failed: (row, error, alongside) => ended(recorder.failed(row, error, alongside)),
    dropped: (messageId, error) => ended(recorder.dropped(messageId, error)),
    async cancelled(messageIds, error) {
      const messages = await recorder.cancelled(messageIds, error);
      for (const message of messages) count(message);
      return messages;
    },
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

/** Messages that are reported although they could not be read. */
export function measuredEvents(events: EventLog, metrics: Metrics): EventLog {
  return {
    ...events,
    append(change, event) {
      if (event.event === "message.received" && event.data.details?.undecryptable === true) metrics.undecryptable.inc();
      return events.append(change, event);
    },
  };
}
