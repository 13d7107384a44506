/** Builds the API and the panel, whichever processes hold the lines. Loaded by `api.ts` on demand. */
import type { Hono } from "@hono/hono";
import { AccountKeys } from "../account/keys.ts";
import { Idempotency } from "../account/idempotency.ts";
import { makeAsk } from "../cluster/calls.ts";
import { Erasures } from "../erasure/erasures.ts";
import type { ApiEnv } from "../http/api/route.ts";
import type { Services } from "../http/api/services.ts";
import { createApi } from "../http/server.ts";
import { Amendments } from "../line/amendments.ts";
import { Forecast } from "../line/forecast.ts";
import { laneOf } from "../line/chats.ts";
import { makeLines } from "../line/lines.ts";
import type { LiveLines } from "../line/live.ts";
import { References } from "../line/references.ts";
import { makeRemoteLines } from "../line/remote.ts";
import { Unread } from "../line/seen.ts";
import { makeServeMedia } from "../media/serve.ts";
import { type Accept, makeAccept } from "../message/accept.ts";
import { Queued } from "../message/queued.ts";
import { History } from "../message/history/history.ts";
import { makeQuotaView } from "../message/history/counts.ts";
import { makeTallyOf } from "../message/receipts.ts";
import { findReplay } from "../message/send.ts";
import { addPanel } from "../panel/panel.ts";
import { DeliveryLog } from "../webhook/delivery_log.ts";
import type { WebhookOwner } from "../webhook/dispatcher.ts";
import { makeRemoteWebhooks } from "../webhook/remote.ts";
import { Webhooks } from "../webhook/webhooks.ts";
import type { Network } from "../whatsapp/network.ts";
import type { Ground } from "./ground.ts";
import { optOutsOn, recorderOn } from "./recording.ts";

/** Access to the processes that hold lines and webhooks, and to the network. */
export interface Holders {
  live: LiveLines;
  webhooks: WebhookOwner;
  network: Pick<Network, "recall" | "numberOf" | "lidOf">;
}

export interface ApiOptions extends Holders {
  /** Wraps `accept`, to check each send before it is accepted. */
  accepted(accept: Accept): Accept;
  stopping: AbortSignal;
}

/** Services made before the API, because they are also used without it. */
type Standing = Pick<Services, "budgets" | "probe"> & { panelUrl(): string };

/** Returns access to whichever processes on the shared store hold the lines and webhooks. */
export function anyProcess({ kv, bell, runtime, data: { seal } }: Ground): Omit<Holders, "network"> {
  return {
    live: makeRemoteLines({ ask: makeAsk({ kv, bell, seal, runtime }), bell }),
    webhooks: makeRemoteWebhooks({ kv, bell }),
  };
}

export function makeApiApp(ground: Ground, options: ApiOptions & Standing): Hono<ApiEnv> {
  const { config, runtime, data, bell, metrics, kv, events, media, links, lookups, safeFetch, queuedCount } = ground;
  const { live, network, stopping, budgets, probe, panelUrl } = options;
  const { clock } = runtime;
  const { accounts, callers, seal } = data;
  const recorder = recorderOn(ground, kv);
  const idempotency = new Idempotency({ kv, clock, seal, isShared: config.store !== null });
  const lines = makeLines({ kv, runtime, callers, live, seal, safeFetch, names: ground.names });
  const queueChanged = (lineId: string) => live.queueChanged(lineId);

  const services: Services = {
    runtime,
    metrics,
    accounts,
    callers,
    keys: new AccountKeys({ kv, callers, runtime }),
    idempotency,
    lines,
    accept: options.accepted(makeAccept({ kv, runtime, idempotency, queued: queueChanged })),
    optOuts: optOutsOn(ground, { network, queueChanged }),
    erasures: new Erasures({ kv, runtime, bell }),
    replay: (request) => findReplay({ kv, idempotency }, request),
    references: new References({ kv, network }),
    history: new History(kv),
    amendments: new Amendments({ kv, runtime, recorder, live, queueChanged }),
    tallyOf: makeTallyOf(kv),
    quotaView: makeQuotaView({ kv, clock }),
    queued: new Queued({
      kv,
      recorder,
      laneOf: (lineId, chat) => laneOf(kv, lineId, { chat, now: clock.now() }),
      queueChanged,
    }),
    forecast: new Forecast({ kv, clock, callers }),
    lookups,
    unread: new Unread({ kv, clock }),
    media,
    diskShares: ground.diskShares,
    serveMedia: makeServeMedia({ kv, media, links, runtime }),
    events,
    webhooks: new Webhooks({ kv, events, safeFetch, seal, runtime, owner: options.webhooks, sessions: lines }),
    deliveries: new DeliveryLog({ kv, clock, owner: options.webhooks }),
    budgets,
    trustedProxies: config.trustedProxies,
    probe,
    stopping,
  };
  const app = createApi(services);
  addPanel(app, {
    ...services,
    kv,
    seal,
    plans: data.plans,
    queuedCount,
    watchLine: (lineId, look) => live.watch(lineId, look),
    watchAllLines: (look) => live.watchAll(look),
    publicUrl: config.publicUrl,
    dataDir: config.store === null ? config.dataDir : null,
    webVersion: config.whatsapp.version,
    panelUrl,
  });
  return app;
}
