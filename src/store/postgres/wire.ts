/**
 * The bell's wire on PostgreSQL: NOTIFY and LISTEN, on a connection of its own that is made anew when it breaks. It
 * needs a session: behind a pooler that shares sessions, rings get lost, and the sweeps of whoever hears have to do.
 */
import { Buffer } from "node:buffer";
// @ts-types="@types/pg"
import pg from "pg";
import { type Runtime, sleep } from "../../runtime.ts";
import { settledWithin } from "../../base/within.ts";
import { StoreError } from "../kv.ts";
import type { OpenWire } from "../layers/shared_bell.ts";
import { Servers } from "./servers.ts";
import { isOfOtherServer, storeError } from "./store_error.ts";

const CHANNEL = "paloma_bell";
/** PostgreSQL takes less than 8,000 bytes a notification. */
const MOST_BYTES = 7_000;
/** A ring may be lost, so nobody waits until it is on the disk: for this transaction only, since poolers share sessions. */
const SEND =
  `select set_config('synchronous_commit', 'off', true), pg_notify('${CHANNEL}', p) from unnest($1::text[]) p`;
const CONNECT_MS = 5_000;
const QUERY_MS = 5_000;
const RECONNECT_MS = 500;
/** A connection that died without a word is found out by asking, and is not waited for when it is given up. */
const ASK_EVERY_MS = 15_000;
const END_MS = 2_000;

/** A notification: who rang, and what. */
type Payload = [from: string, ...topics: string[]];

export function postgresWire(url: string, { runtime }: { runtime: Runtime }): OpenWire {
  const { clock, log, random } = runtime;
  const self = Buffer.from(random.bytes(8)).toString("hex");
  const servers = new Servers(url);

  return async (events) => {
    const closing = new AbortController();
    const connect = servers.firstWritable(servers.urls.map((one) => () => connectTo(one)));
    let client: pg.Client | null = await open();
    const kept = keep();

    /** Notices when the connection breaks, and makes another. */
    async function keep(): Promise<void> {
      for (;;) {
        if (client !== null) await untilBroken(client);
        client = null;
        if (closing.signal.aborted) return;
        try {
          client = await open();
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
      // Closed already, when that came while this connection was being made.
      const over = AbortSignal.any([broken.signal, closing.signal]);
      while (!over.aborted) {
        await sleep(clock, ASK_EVERY_MS, over);
        if (!over.aborted) await servers.assertWritable(client).catch(end);
      }
      await hangUp(client);
    }

    async function open(): Promise<pg.Client> {
      try {
        return await connect();
      } catch (error) {
        throw storeError(error);
      }
    }

    async function connectTo(url: string): Promise<pg.Client> {
      const client = listener(url, (payload) => {
        const [from, ...topics]: Payload = JSON.parse(payload);
        if (from !== self) topics.forEach((topic) => events.rang(topic));
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

    /** Its end may never be reported, when the other side has gone without a word. */
    async function hangUp(client: pg.Client): Promise<void> {
      await settledWithin(clock, END_MS, client.end());
    }

    return {
      async send(topics) {
        if (client === null) throw new StoreError("unavailable", "the bell's connection is broken");
        try {
          await client.query(SEND, [payloads(self, topics)]);
        } catch (error) {
          // Its end is heard of above, and another one is made.
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
  // "end" follows, and is what counts.
  client.on("error", () => {});
  client.on("notification", ({ payload }) => notified(payload ?? "[]"));
  return client;
}

/** The topics in as few notifications as they fit into. */
function payloads(self: string, topics: readonly string[]): string[] {
  const found: string[] = [];
  let some: Payload = [self];
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
