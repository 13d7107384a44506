/** Builds the API and the panel, whichever processes hold the lines. Loaded by `api.ts` on demand. */
import type { Hono } from "@hono/hono";
import { addCloud } from "../cloud/cloud.ts";
import { makeAsk } from "../cluster/calls.ts";
import type { ApiEnv } from "../http/api/route.ts";
import { makeServices, type ServicesDeps } from "../http/api/services.ts";
import { createApi } from "../http/server.ts";
import { makeRemoteLines } from "../line/remote.ts";
import { addMcp } from "../mcp/mcp.ts";
import { makePasswords } from "../panel/logins/password.ts";
import { addPanel } from "../panel/panel.ts";
import { makeRemoteWebhooks } from "../webhook/remote.ts";
import type { Ground } from "./ground.ts";
import { optOutsOn, recorderOn } from "./recording.ts";

/** Access to the processes that hold lines and webhooks, and to the network. */
export type Holders = Pick<ServicesDeps, "live" | "webhookOwner" | "network">;

export interface ApiOptions extends Holders, Pick<ServicesDeps, "accepted" | "budgets" | "probe" | "stopping"> {
  panelUrl(): string;
}

/** Returns access to whichever processes on the shared store hold the lines and webhooks. */
export function anyProcess({ kv, bell, runtime, data: { seal } }: Ground): Omit<Holders, "network"> {
  return {
    live: makeRemoteLines({ ask: makeAsk({ kv, bell, seal, runtime }), bell }),
    webhookOwner: makeRemoteWebhooks({ kv, bell }),
  };
}

export function makeApiApp(ground: Ground, options: ApiOptions): Hono<ApiEnv> {
  const { config, data, kv, emulation } = ground;
  const { live, network } = options;
  const { accounts, callers, seal } = data;
  const services = makeServices({
    ...ground,
    ...options,
    isShared: config.store !== null,
    seal,
    accounts,
    callers,
    recorder: recorderOn(ground, { kv, network }),
    optOuts: optOutsOn(ground, { network, queueChanged: (lineId) => live.queueChanged(lineId) }),
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
    ...(emulation ? { makeWebhookSecret: () => emulation.appSecret } : {}),
  });
  const app = createApi(services);
  addMcp(app, services);
  addCloud(app, services, emulation ? { emulation, kv } : null);
  addPanel(app, {
    ...services,
    kv,
    seal,
    plans: data.plans,
    queuedCount: ground.queuedCount,
    passwords: makePasswords(ground.runtime.random),
    watchLine: (lineId, look) => live.watch(lineId, look),
    watchAllLines: (look) => live.watchAll(look),
    dataDir: config.store === null ? config.dataDir : null,
    webVersion: config.whatsapp.version,
    panelUrl: options.panelUrl,
  });
  return app;
}
