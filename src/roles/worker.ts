/**
 * The worker's part: it holds the connections of lines, delivers to webhooks, and runs the sweeps. Alone on its data it
 * serves all lines and webhooks; on a shared store those whose leases it holds (promise 9).
 */
import { type Service, type Step, together } from "../base/service.ts";
import { withEmulatedDelivery } from "../cloud/emulation.ts";
import { formatsOn } from "../cloud/formats.ts";
import { callMembers, type Holder, type Kind, soleHolder } from "../cluster/holder.ts";
import type { Line } from "../line/line.ts";
import { LINE } from "../line/rows.ts";
import { Supervisor } from "../line/supervisor.ts";
import { removeAllStaged } from "../message/bulk.ts";
import { addGauges } from "../ops/gauges.ts";
import { makeMaintenance, sweeps } from "../ops/maintenance.ts";
import { measuredWebhooks } from "../ops/metrics.ts";
import { makeTimeKeeper } from "../ops/time_keeper.ts";
import { key, type Kv, prefix } from "../store/kv.ts";
import { Dispatcher } from "../webhook/dispatcher.ts";
import { WEBHOOK } from "../webhook/rows.ts";
import { urlTarget } from "../webhook/url_target.ts";
import type { WebhookRow } from "../webhook/webhook.ts";
import { type Network, noteSetback } from "../whatsapp/network.ts";
import type { Context } from "./context.ts";

const SWEEP_PANEL_MS = 60 * 60_000;

interface WorkerPart {
  network: Network;
  supervisor: Supervisor;
  dispatcher: Dispatcher;
  /** In the order of their start. */
  services: readonly Step[];
}

export async function makeWorker(context: Context): Promise<WorkerPart> {
  return context.config.store === null ? soleWorker(context) : await sharedWorker(context);
}

/** Serves all lines and webhooks, on data that only this process uses. */
function soleWorker(context: Context): WorkerPart {
  const { kv, changes, openNetwork } = context;
  const network = openNetwork(() => kv);
  const supervisor = makeSupervisor(context, network, soleHolder(kv, LINE));
  const dispatcher = dispatcherOf(context, soleHolder(kv, WEBHOOK));
  addWorkerGauges(context, { network, supervisor, dispatcher });
  // Removes the staged rows of a bulk that a crash interrupted before it was accepted.
  const clearing = { start: () => removeAllStaged(kv) };
  const upkeep = upkeepOf(context, { kv, network });
  const timeKeeper = makeTimeKeeper(kv, context.runtime);
  const services = [clearing, timeKeeper, together(dispatcher, supervisor, upkeep), changes];
  return { network, supervisor, dispatcher, services };
}

function makeSupervisor(context: Context, network: Network, holder: Holder<Line>): Supervisor {
  const plansChanged = () => context.data.callers.plansChanged();
  const sessions = async () => (await import("./recording.ts")).makeSessions(context, network);
  return new Supervisor({ ...context, holder, plansChanged, sessions });
}

function dispatcherOf(context: Context, holder: Holder<WebhookRow>): Dispatcher {
  const { kv, runtime, emulation, data: { seal } } = context;
  const measured = measuredWebhooks(context.safeFetch, context.metrics);
  const safeFetch = emulation ? withEmulatedDelivery(measured, emulation, runtime.clock) : measured;
  return new Dispatcher({
    ...context,
    target: urlTarget({ safeFetch, runtime }),
    seal,
    formats: formatsOn(kv),
    holder,
  });
}

function upkeepOf(context: Context, options: { kv: Kv; network: Network }): Service {
  const { runtime } = context;
  const work = async () => (await import("./recording.ts")).upkeepWork(context, options);
  return makeMaintenance([
    ...sweeps(context, work),
    {
      name: "logins, links and the audit log",
      everyMs: SWEEP_PANEL_MS,
      run: async (signal) =>
        await (await import("../panel/sweep.ts")).sweepPanel(options.kv, runtime.confirmed.now(), signal),
    },
  ], runtime);
}

function addWorkerGauges(
  context: Context,
  { network, supervisor, dispatcher }: Omit<WorkerPart, "services">,
): void {
  const { metrics, media } = context;
  const webhookAttemptsWaiting = () => dispatcher.waiting();
  metrics.gauge("paloma_media_bytes", "Files on the data folder's disk", () => media.bytes?.() ?? 0);
  addGauges(metrics, { ...context, network, lines: supervisor, webhookAttemptsWaiting });
}

/** The only lease of its kind, which has no rows: its holder runs the sweeps, which write nothing once it is lost. */
const UPKEEP = "store";
const UPKEEPS: Kind<never> = {
  name: "upkeep",
  rows: prefix("upkeep"),
  nameOf: () => UPKEEP,
  keyOf: () => key("upkeep"),
};

/** Serves the lines and webhooks whose leases this process holds. */
async function sharedWorker(context: Context): Promise<WorkerPart> {
  const [{ Leases }, { Member }, { makeLineAnswers }] = await Promise.all([
    import("../cluster/leases.ts"),
    import("../cluster/member.ts"),
    import("../line/remote.ts"),
  ]);
  const { kv, bell, changes, runtime, metrics, openNetwork } = context;
  let parts: Omit<WorkerPart, "services"> | null = null;
  let upkeep: Service | null = null;

  const common = {
    kv: context.data.kv,
    runtime,
    freed: () => callMembers(bell),
    refused: () => metrics.refusedWrites.inc(),
  };
  const lines = new Leases({
    ...common,
    kind: LINE,
    taken: () => parts?.supervisor.taken(),
    drop: async (lineId) => await parts?.supervisor.drop(lineId),
  });
  const webhooks = new Leases({
    ...common,
    kind: WEBHOOK,
    taken: () => parts?.dispatcher.taken(),
    drop: async (thing) => await parts?.dispatcher.drop(thing.split("/")[1]!),
  });
  const upkeeps = new Leases({
    ...common,
    kind: UPKEEPS,
    always: UPKEEP,
    taken: () => void beginUpkeep(),
    drop: endUpkeep,
  });
  const member = new Member({
    ...context,
    kv: context.data.kv,
    leases: [lines, webhooks, upkeeps],
    setBack: () => noteSetback(kv, runtime),
  });
  const noStore = lines.refusing();
  const network = openNetwork((lineId) => lines.storeOf(lineId) ?? noStore);
  const supervisor = makeSupervisor(context, network, lines);
  const dispatcher = dispatcherOf(context, webhooks);
  parts = { network, supervisor, dispatcher };
  addWorkerGauges(context, parts);
  metrics.gaugeBy("kind", {
    name: "paloma_leases",
    help: "What this process is the owner of",
    read: () => Object.fromEntries(member.leases.map(({ kind, count }) => [kind, count])),
  });

  async function beginUpkeep(): Promise<void> {
    const store = upkeeps.storeOf(UPKEEP);
    if (upkeep || !store) return;
    upkeep = upkeepOf(context, { kv: store, network });
    await upkeep.start();
  }

  async function endUpkeep(): Promise<void> {
    const ending = upkeep;
    upkeep = null;
    await ending?.stop();
  }

  const { seal } = context.data;
  const answersFor = (lineId: string) => lines.storeOf(lineId) !== null;
  const answers = makeLineAnswers({ ...context, seal, supervisor, answersFor });
  // Services stop in reverse: `member` before the supervisor, so that other processes take over while the rest stops.
  return { ...parts, services: [makeTimeKeeper(kv, runtime), supervisor, dispatcher, answers, member, changes] };
}
