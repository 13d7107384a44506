/** Builds the API and the panel, whichever processes hold the lines. Loaded on demand. */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import { addCloud } from "../cloud/cloud.ts";
import type { Config } from "../config.ts";
import { makeAsk } from "../cluster/calls.ts";
import { makeClaims } from "../cluster/leases.ts";
import type { ApiEnv } from "../http/api/route.ts";
import { makeServices, type ServicesDeps } from "../http/api/services.ts";
import { createApi } from "../http/server.ts";
import { CHANGED_TOPIC } from "../line/live.ts";
import { makeRemoteLines } from "../line/remote.ts";
import { addMcp } from "../mcp/mcp.ts";
import { commandsWith } from "../panel/commands.ts";
import { makePasswords } from "../panel/logins/password.ts";
import { addPanel } from "../panel/panel.ts";
import { makeRemoteWebhooks } from "../webhook/remote.ts";
import type { Context } from "./context.ts";
import { optOutsOn, recorderOn } from "./recording.ts";

export interface ApiOptions extends Pick<ServicesDeps, "network" | "accepted" | "budgets" | "probe" | "stopping"> {
  /** What holds the lines and webhooks in this process; null if any process on the shared store may. */
  own: Pick<ServicesDeps, "live" | "webhookOwner"> | null;
  panelUrl(): string;
}

/** Returns access to whichever processes on the shared store hold the lines and webhooks. */
function anyProcess(context: Context) {
  return {
    live: makeRemoteLines(makeAsk({ ...context, seal: context.data.seal })),
    webhookOwner: makeRemoteWebhooks(context.bell),
    claims: makeClaims(context.kv),
  };
}

export function makeApiApp(context: Context, options: ApiOptions): Hono<ApiEnv> {
  const { config, data, kv, bell, emulation } = context;
  const { network, own } = options;
  const services = makeServices({
    ...data,
    ...context,
    ...options,
    ...(own ? { ...own, claims: null } : anyProcess(context)),
    recorder: recorderOn(context, { kv, network }),
    optOuts: optOutsOn(context, network),
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
    ...(emulation ? { makeWebhookSecret: () => emulation.appSecret } : {}),
  });
  const app = createApi(services);
  addMcp(app, services);
  addCloud(app, services, emulation);
  addPanel(app, {
    ...services,
    plans: data.plans,
    queuedCount: context.queuedCount,
    passwords: makePasswords(context.runtime.random),
    watchLine: (lineId, look) => bell.hear(CHANGED_TOPIC + lineId, look),
    watchAllLines: (look) => bell.hear(CHANGED_TOPIC, look),
    run: commandsWith(() => settingsOf(config, context.url())),
    backupDir: config.backupDir ?? join(config.dataDir, "backups"),
    dataDir: config.store === null ? config.dataDir : null,
    webVersion: config.whatsapp.version,
    panelUrl: options.panelUrl,
  });
  return app;
}

/** Returns the settings with which a command finds this gateway: as given, but for what its start has decided. */
function settingsOf({ given, dataDir, whatsapp }: Config, url: string): Record<string, string> {
  const settings = Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return {
    ...Object.fromEntries(settings),
    PALOMA_DATA_DIR: dataDir,
    PALOMA_PORT: new URL(url).port,
    ...(whatsapp.url && { PALOMA_WHATSAPP_URL: whatsapp.url }),
  };
}
