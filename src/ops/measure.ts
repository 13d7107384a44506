/** Measures parts of the gateway that know nothing of metrics, by wrapping them. */
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import type { EventLog } from "../event/log.ts";
import { hasEnded, type Message } from "../message/message.ts";
import type { Clock } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import type { Metrics } from "./metrics.ts";

/** Returns a store that counts its commits by outcome and measures their duration. */
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
        if (!options?.lingerUntil) metrics.commitSeconds.observe((clock.now() - begun) / 1000);
      }
    },
  };
}

/** How messages end, and how long the network takes to acknowledge them: called with each as it has moved. */
export function measuredMoves(metrics: Metrics, clock: Clock): (message: Message, acknowledgedAt?: number) => void {
  /** When each message on its way departed; at most one a line. */
  const departures = new Map<string, number>();
  return ({ id, status, error }, acknowledgedAt) => {
    const leftAt = departures.get(id);
    if (status === "processing") departures.set(id, clock.now());
    else departures.delete(id);
    if (!hasEnded({ status })) return;
    metrics.ended.inc({ outcome: error?.code ?? "sent" });
    if (acknowledgedAt === undefined || leftAt === undefined) return;
    metrics.ackSeconds.observe(Math.max(0, acknowledgedAt - leftAt) / 1000);
  };
}

/** Returns a `SafeFetch` that counts webhook attempts by outcome. */
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

/** Returns an event log that counts messages reported although they could not be decrypted. */
export function measuredEvents(events: EventLog, metrics: Metrics): EventLog {
  return {
    ...events,
    append(change, event) {
      if (event.event === "message.received" && event.data.details?.undecryptable === true) metrics.undecryptable.inc();
      return events.append(change, event);
    },
  };
}
