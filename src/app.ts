/**
 * The composition root: picks the engines, wires the services, starts and stops them in order. Nothing else knows which
 * engine is behind a port.
 */
import { join } from "node:path";
import type { Accounts } from "./account/account.ts";
import { DEFAULT_PLANS } from "./account/plan.ts";
import { makeIdempotency } from "./account/idempotency.ts";
import type { Config } from "./config.ts";
import { openDataFolder } from "./data/data_folder.ts";
import { readAllowList } from "./egress/address.ts";
import { makeSafeFetch } from "./egress/safe_fetch.ts";
import { makeEventLog } from "./event/event_log.ts";
import { addGauges } from "./ops/gauges.ts";
import { listen } from "./http/listen/listen.ts";
import { createApi } from "./http/server.ts";
import { makeLines } from "./line/lines.ts";
import { delaysOf } from "./line/pacing.ts";
import { makeQueueView } from "./line/queue_view.ts";
import { Supervisor } from "./line/supervisor.ts";
import { lockGateway } from "./data/gateway_lock.ts";
import { startMaintenance } from "./ops/maintenance.ts";
import { openDiskMediaStore } from "./media/disk.ts";
import { makeMediaIngest } from "./media/ingest.ts";
import { makeMediaLinks } from "./media/link.ts";
import { makeServeMedia } from "./media/serve.ts";
import { makeAccept } from "./message/accept.ts";
import { removeDrafts } from "./message/bulk_draft.ts";
import { makeCancel } from "./message/cancel.ts";
import { makeFetchFile } from "./message/fetch_file.ts";
import { makeFirstAnswer } from "./message/first_answer.ts";
import { makeHistory, recordStatus } from "./message/history/history.ts";
import { makeQueuedCount } from "./message/history/counts.ts";
import { makeQuotaView } from "./message/history/counts.ts";
import { makeRecorder } from "./message/record.ts";
import { makeMetrics } from "./ops/metrics.ts";
import { addPanel } from "./panel/panel.ts";
import type { Runtime } from "./runtime.ts";
import { dataKeys } from "./data/rows.ts";
import { timerAlarmClock } from "./store/timer_alarm.ts";
import { sweeps } from "./ops/sweeps.ts";
import { makeDispatcher } from "./webhook/dispatcher.ts";
import { makeWebhooks } from "./webhook/webhooks_on_store.ts";
import { baileysNetwork, type BaileysNetworkOptions } from "./whatsapp/baileys/network.ts";
import type { Network } from "./whatsapp/connection.ts";

export interface Gateway {
  /** `http://HOST:PORT/v1`. */
  baseUrl: string;
  panelUrl: string;
  accounts: Accounts;
  /** Stops taking requests, lets what is on its way come to its end, closes the lines and the store. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  config: Config;
  runtime: Runtime;
  /** The engine behind the port to the messaging network; Baileys unless given. */
  openNetwork?: (options: BaileysNetworkOptions) => Network;
}

/** Starts a gateway; resolves when it listens and its lines begin to connect. Throws StoreError, AlreadyRunning. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, runtime, openNetwork = baileysNetwork } = options;
  const lock = await lockGateway(config.dataDir);
  const data = await openDataFolder(config, runtime);
  const { kv, seal, accounts } = data;
  await removeDrafts(kv);

  const stopping = new AbortController();
  const media = await openDiskMediaStore(join(config.dataDir, "media"), runtime);
  const links = makeMediaLinks(() => config.publicUrl ?? server.url, data.key);
  const events = makeEventLog(kv, runtime);
  const idempotency = makeIdempotency({ kv, clock: runtime.clock, seal });
  const recorder = makeRecorder({ kv, events, recordStatus, files: media, runtime });
  const safeFetch = makeSafeFetch({ clock: runtime.clock, allow: readAllowList(config.outboundAllow) });
  const delays = async (accountId: string) => delaysOf((await accounts.caller(accountId))?.plan ?? DEFAULT_PLANS[0]!);

  const network = openNetwork({ runtime, kv, seal, whatsapp: config.whatsapp });
  const alarms = timerAlarmClock({ runtime });
  const supervisor = new Supervisor({
    kv,
    runtime,
    alarms,
    recorder,
    files: media,
    fetchFile: makeFetchFile({ kv, runtime, safeFetch, files: media, recorder }),
    delays,
    events,
    media: makeMediaIngest({ media, links, runtime }),
    network,
  });
  const queueChanged = (lineId: string) => supervisor.queueChanged(lineId);
  const lines = makeLines({ kv, runtime, accounts, supervisor });
  const dispatcher = makeDispatcher({ kv, events, runtime, safeFetch, seal });

  const metrics = makeMetrics();
  addGauges(metrics, { kv, lines: supervisor, queuedCount: makeQueuedCount(kv) });

  const api = createApi({
    runtime,
    metrics,
    accounts,
    idempotency,
    lines,
    accept: makeAccept({ kv, runtime, idempotency, queued: queueChanged }),
    firstAnswer: makeFirstAnswer({ kv, idempotency }),
    history: makeHistory(kv),
    cancel: makeCancel({ kv, recorder, dequeued: queueChanged }),
    quotaView: makeQuotaView({ kv, clock: runtime.clock }),
    queueView: makeQueueView({ kv, clock: runtime.clock, accounts }),
    media,
    serveMedia: makeServeMedia({ kv, media, links, runtime }),
    events,
    webhooks: makeWebhooks({ kv, events, safeFetch, seal, runtime, dispatcher, sessions: lines }),
    trustedProxies: config.trustedProxies,
    probe: async () => void await kv.get(dataKeys.schemaVersion()),
    stopping: stopping.signal,
  });
  addPanel(api);

  const server = await listen(api, { ...config, runtime });
  await dispatcher.start();
  await supervisor.start();
  const maintenance = startMaintenance(sweeps({ kv, runtime, media, network }), { runtime });
  runtime.log.info({ url: server.url, dataDir: config.dataDir }, "the gateway is up");

  return {
    baseUrl: `${server.url}/v1`,
    panelUrl: `${server.url}/panel`,
    accounts,
    async stop() {
      stopping.abort();
      await server.stop();
      await Promise.all([supervisor.stop(), dispatcher.stop(), maintenance.stop()]);
      alarms.close();
      data.close();
      await lock.release();
      runtime.log.info("the gateway has stopped");
    },
  };
}
