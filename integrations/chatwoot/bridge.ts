/** The bridge: follows the feed, answers Chatwoot's webhooks, and looks for what a webhook did not report. */
import type { Paloma } from "../../clients/typescript/src/index.ts";
import { type Chatwoot, isSigned } from "./chatwoot.ts";
import { Incoming } from "./incoming.ts";
import { Outgoing } from "./outgoing.ts";
import { type Log, pause, untilDone } from "./patience.ts";
import { Places } from "./places.ts";
import type { Link, Store } from "./store.ts";

export interface BridgeOptions {
  store: Store;
  chatwoot: Chatwoot;
  paloma: Paloma;
  hostname: string;
  port: number;
  agentNames: boolean;
  log: Log;
}

export interface Bridge {
  readonly port: number;
  /** Rejects when it cannot go on: with a key that lacks a scope, for example. */
  readonly failed: Promise<never>;
  /** Ends what it does; what is not done is done after the next start. */
  stop(): Promise<void>;
}

const SEARCH_EVERY_MS = 60_000;
const LARGEST_WEBHOOK_BYTES = 2_000_000;

/** Where Chatwoot sends its webhooks, below the bridge's address. */
export function webhookPath(token: string): string {
  return `/chatwoot/${token}`;
}

export function startBridge(options: BridgeOptions): Bridge {
  const { store, chatwoot, paloma, hostname, port, agentNames, log } = options;
  const ending = new AbortController();
  const { signal } = ending;
  const patience = { signal, log };
  const places = new Places({ store, chatwoot, paloma });
  const incoming = new Incoming({ store, chatwoot, paloma, places });
  const outgoing = new Outgoing({ store, chatwoot, paloma, places, patience, agentNames });

  /** In the order of the feed; the cursor moves when an event is done. */
  async function follow(): Promise<void> {
    let again = true;
    await untilDone(patience, async () => {
      const after = await store.cursor.get() ?? undefined;
      const onGap = (cursor: string) => log(`events after ${cursor} are no longer kept: messages are missing`);
      for await (const event of paloma.events({ after, types: incoming.events, signal, onGap })) {
        // Before the first, an earlier process may have ended between doing and remembering.
        const mayBeDone = again;
        await untilDone(patience, (retried) => incoming.handle(event, mayBeDone || retried)).catch((error) => {
          signal.throwIfAborted();
          log(`${event.event} ${event.id} was left out: ${error.message}`);
        });
        again = false;
        await store.cursor.set(event.id);
      }
    });
  }

  async function search(): Promise<void> {
    while (!signal.aborted) {
      for (const link of await store.links()) await outgoing.search(link);
      await pause(SEARCH_EVERY_MS, signal);
    }
  }

  async function receive(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/healthz") return Response.json({ ok: true });
    const link = (await store.links()).find(({ token }) => pathname === webhookPath(token));
    if (!link || request.method !== "POST") return new Response(null, { status: 404 });
    const body = new Uint8Array(await request.arrayBuffer());
    if (body.length > LARGEST_WEBHOOK_BYTES) return new Response(null, { status: 413 });
    if (link.secret && !await isSigned(request.headers, body, link.secret)) {
      log("a webhook without Chatwoot's signature was refused");
      return new Response(null, { status: 401 });
    }
    notice(link, JSON.parse(new TextDecoder().decode(body)));
    return Response.json({ ok: true });
  }

  /** Only a hint: what is to be done is read from Chatwoot. */
  function notice({ inbox }: Link, payload: Webhook): void {
    if (payload.inbox?.id !== inbox || !payload.conversation) return;
    const isForCustomer = payload.message_type !== "incoming" && !payload.private;
    if (payload.event === "message_created" && isForCustomer) void outgoing.sync(payload.conversation.id);
    if (payload.event === "message_updated" && payload.content_attributes?.deleted) void outgoing.revoke(payload.id);
  }

  const server = Deno.serve({
    hostname,
    port,
    onListen: () => {},
    onError: (error) => {
      log(`a webhook was not understood: ${error instanceof Error ? error.message : error}`);
      return new Response(null, { status: 400 });
    },
  }, receive);
  const failure = Promise.withResolvers<never>();
  const work = [follow(), search()].map((running) =>
    running.catch((error) => {
      if (!signal.aborted) failure.reject(error);
    })
  );
  return {
    port: server.addr.port,
    failed: failure.promise,
    async stop() {
      ending.abort(new Error("the bridge stops"));
      await server.shutdown();
      await Promise.all(work);
    },
  };
}

interface Webhook {
  event: string;
  id: number;
  message_type?: string;
  private?: boolean;
  content_attributes?: { deleted?: boolean } | null;
  inbox?: { id: number };
  conversation?: { id: number };
}
