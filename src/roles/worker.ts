/**
 * The worker's part: it holds the connections of lines, delivers to webhooks, and runs the sweeps. Alone on its data it
 * serves all lines and webhooks; on a shared store (`shared_worker.ts`) those whose leases it holds.
 */
import { inOrder, type Service, together } from "../base/service.ts";
import { withEmulatedDelivery } from "../cloud/emulation.ts";
import { formatsOn } from "../cloud/formats.ts";
import { type Holder, soleHolder } from "../cluster/holder.ts";
import type { Line } from "../line/line.ts";
import { LINE } from "../line/rows.ts";
import { Supervisor } from "../line/supervisor.ts";
import { removeAllStaged } from "../message/bulk.ts";
import { addGauges } from "../ops/gauges.ts";
import { makeMaintenance, sweeps } from "../ops/maintenance.ts";
import { measuredWebhooks } from "../ops/metrics.ts";
import { makeTimeKeeper } from "../ops/time_keeper.ts";
import type { Kv } from "../store/kv.ts";
import { Dispatcher } from "../webhook/dispatcher.ts";
import { WEBHOOK } from "../webhook/rows.ts";
import { urlTarget } from "../webhook/url_target.ts";
import type { WebhookRow } from "../webhook/webhook.ts";
import type { Network } from "../whatsapp/network.ts";
import type { Ground } from "./ground.ts";

const SWEEP_PANEL_MS = 60 * 60_000;

/** Opens the port to the messaging network, which writes each line's rows through that line's own store. */
export type OpenNetwork = (storeOf: (lineId: string) => Kv) => Network;

export interface WorkerPart {
  network: Network;
  supervisor: Supervisor;
  dispatcher: Dispatcher;
  service: Service;
}

/** Makes the worker for all lines and webhooks, on data that only this process uses. */
export function soleWorker(ground: Ground, openNetwork: OpenNetwork): WorkerPart {
  const { kv, changes } = ground;
  const network = openNetwork(() => kv);
  const supervisor = makeSupervisor(ground, network, soleHolder(kv, LINE));
  const dispatcher = dispatcherOf(ground, soleHolder(kv, WEBHOOK));
  addWorkerGauges(ground, { network, supervisor, dispatcher });
  // Removes the staged rows of a bulk that a crash interrupted before it was accepted.
  const clearing = { start: () => removeAllStaged(kv) };
  const upkeep = upkeepOf(ground, { kv, network });
  const service = inOrder(
    clearing,
    makeTimeKeeper(kv, ground.runtime),
    together(dispatcher, supervisor, upkeep),
    changes,
  );
  return { network, supervisor, dispatcher, service };
}

export function makeSupervisor(ground: Ground, network: Network, holder: Holder<Line>): Supervisor {
  const { kv, runtime, bell, changes, data: { callers } } = ground;
  const plansChanged = () => callers.plansChanged();
  const sessions = async () => (await import("./sessions.ts")).makeSessions(ground, network);
  return new Supervisor({ kv, runtime, bell, changes, holder, plansChanged, sessions });
}

export function dispatcherOf(ground: Ground, holder: Holder<WebhookRow>): Dispatcher {
  const { kv, events, runtime, metrics, bell, emulation, data: { seal } } = ground;
  const measured = measuredWebhooks(ground.safeFetch, metrics);
  const safeFetch = emulation ? withEmulatedDelivery(measured, emulation, runtime.clock) : measured;
  return new Dispatcher({
    kv,
    events,
    runtime,
    target: urlTarget({ safeFetch, runtime }),
    seal,
    bell,
    formats: formatsOn(kv),
    holder,
  });
}

export function upkeepOf(ground: Ground, options: { kv: Kv; network: Network }): Service {
  const { runtime } = ground;
  const work = async () => (await import("./upkeep.ts")).upkeepWork(ground, options);
  return makeMaintenance([
    ...sweeps(ground, work),
    {
      name: "logins, links and the audit log",
      everyMs: SWEEP_PANEL_MS,
      run: async (signal) =>
        await (await import("../panel/sweep.ts")).sweepPanel(options.kv, runtime.confirmed.now(), signal),
    },
  ], runtime);
}

export function addWorkerGauges(
  { metrics, kv, media, runtime, queuedCount }: Ground,
  { network, supervisor, dispatcher }: Omit<WorkerPart, "service">,
): void {
  const webhookAttemptsWaiting = () => dispatcher.waiting();
  metrics.gauge("paloma_media_bytes", "Files on the data folder's disk", () => media.bytes?.() ?? 0);
  addGauges(metrics, { kv, runtime, network, lines: supervisor, queuedCount, webhookAttemptsWaiting });
}
