/**
 * The bell's wire on PostgreSQL: NOTIFY and LISTEN on a connection of its own, which reconnects when it breaks. It
 * needs a session: behind a pooler that shares sessions, rings are lost and listeners depend on their sweeps.
 */
import { Buffer } from "node:buffer";
// @ts-types="@types/pg"
import pg from "pg";
import { type Runtime, sleep } from "../../runtime.ts";
import { unlessMalformed } from "../../base/retry.ts";
import { settledWithin } from "../../base/within.ts";
import { StoreError } from "../kv.ts";
import type { OpenWire } from "../layers/shared_bell.ts";
import { serversOf } from "./connections.ts";
import { guarded, isOfOtherServer, storeError } from "./store_error.ts";

const CHANNEL = "paloma_bell";
/** PostgreSQL limits a notification to less than 8,000 bytes. */
const MOST_BYTES = 7_000;
/**
 * Rings may be lost, so this does not wait for the disk; set for the transaction only, because poolers share sessions.
 */
const SEND =
  `select set_config('synchronous_commit', 'off', true), pg_notify('${CHANNEL}', p) from unnest($1::text[]) p`;
const CONNECT_MS = 5_000;
const QUERY_MS = 5_000;
const RECONNECT_MS = 500;
/** A connection that died silently is detected by a query at this interval, and its end is awaited only this long. */
const ASK_EVERY_MS = 15_000;
const END_MS = 2_000;

export function postgresWire(url: string, { runtime }: { runtime: Runtime }): OpenWire {
  const { clock, log, random } = runtime;
  const self = random.bytes(8).toHex();
  const servers = serversOf(url);

  return async (events) => {
    const closing = new AbortController();
    const connect = servers.firstWritable(servers.urls.map((one) => () => connectTo(one)));
    let client: pg.Client | null = await guarded(connect);
    const kept = keep();

    /** Reconnects whenever the connection breaks. */
    async function keep(): Promise<void> {
      for (;;) {
        if (client !== null) await untilBroken(client);
        client = null;
        if (closing.signal.aborted) return;
        try {
          client = await guarded(connect);
          events.missed();
        } catch (error) {
          log.warn({ err: error }, "the bell's connection cannot be made");
          await sleep(clock, RECONNECT_MS, closing.signal);
        }
      }
    }

    async function untilBroken(client: pg.Client): Promise<void> {
      const broken = new AbortController();
      const end = () => broken.abort();
      client.once("end", end);
      // Already aborted if `close` was called while this connection was being opened.
      const over = AbortSignal.any([broken.signal, closing.signal]);
      while (!over.aborted) {
        await sleep(clock, ASK_EVERY_MS, over);
        if (!over.aborted) await servers.assertWritable(client).catch(end);
      }
      await hangUp(client);
    }

    async function connectTo(url: string): Promise<pg.Client> {
      const client = listener(url, (payload) => {
        const [from, ...topics] = payloadOf(payload);
        if (from !== self) topics.forEach((topic) => events.ring(topic));
      });
      try {
        await client.connect();
        await servers.assertWritable(client);
        await client.query(`listen ${CHANNEL}`);
        return client;
      } catch (error) {
        await hangUp(client);
        throw error;
      }
    }

    /** Does not wait long: if the other side vanished, the end may never be reported. */
    async function hangUp(client: pg.Client): Promise<void> {
      await settledWithin(clock, END_MS, client.end());
    }

    return {
      async send(topics) {
        if (client === null) throw new StoreError("unavailable", "the bell's connection is broken");
        try {
          await client.query(SEND, [payloads(self, topics)]);
        } catch (error) {
          // `untilBroken` notices its end, and `keep` reconnects.
          if (isOfOtherServer(error)) void hangUp(client);
          throw storeError(error);
        }
      },
      async close() {
        closing.abort();
        await kept;
      },
    };
  };
}

function listener(url: string, notified: (payload: string) => void): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    application_name: "paloma bell",
  });
  // An "end" event follows, which is the one handled.
  client.on("error", () => {});
  client.on("notification", ({ payload }) => notified(payload ?? ""));
  return client;
}

/** Parses a notification. Whoever may connect to the database may send others: those ring nothing. */
function payloadOf(text: string): readonly string[] {
  const payload: unknown = unlessMalformed(() => JSON.parse(text), null);
  return Array.isArray(payload) && payload.every((part) => typeof part === "string") ? payload : [];
}

/** Packs the topics into as few notifications as possible, each of the sender and topics. */
function payloads(self: string, topics: readonly string[]): string[] {
  const found: string[] = [];
  let some = [self];
  let bytes = 0;
  for (const topic of topics) {
    const size = Buffer.byteLength(JSON.stringify(topic)) + 1;
    if (bytes + size > MOST_BYTES && some.length > 1) {
      found.push(JSON.stringify(some));
      some = [self];
      bytes = 0;
    }
    some.push(topic);
    bytes += size;
  }
  return [...found, JSON.stringify(some)];
}
