/**
 * The worker's part: it holds the sockets of lines, works for webhooks, and keeps the store tidy. Alone on its data it
 * does so for all there is; among others, for what it holds the leases of (promise 9).
 */
import { inOrder, type Service, together } from "../base/service.ts";
import { Leases } from "../cluster/leases.ts";
import { callMembers, Member } from "../cluster/member.ts";
import type { Place } from "../cluster/place.ts";
import { lineKeys } from "../line/rows.ts";
import { type Ownership, sharedOwnership, soleOwnership } from "../line/ownership.ts";
import { LINE_KIND, makeLineAnswers, ringQueue } from "../line/remote.ts";
import { Supervisor } from "../line/supervisor.ts";
import { removeAllStaged } from "../message/staged_bulk.ts";
import { addGauges } from "../ops/gauges.ts";
import { makeMaintenance } from "../ops/maintenance.ts";
import { measuredWebhooks } from "../ops/measure.ts";
import { sweeps } from "../ops/sweeps.ts";
import { removePanelRows, sweepPanel } from "../panel/sweep.ts";
import type { Kv } from "../store/kv.ts";
import { Dispatcher } from "../webhook/dispatcher.ts";
import { sharedWebhooks, WEBHOOK_KIND, webhookThings } from "../webhook/ownership.ts";
import type { Network } from "../whatsapp/network.ts";
import { noteSetback } from "../whatsapp/setback.ts";
import type { Ground } from "./ground.ts";
import type { SessionsOptions } from "./sessions.ts";

const SWEEP_PANEL_MS = 60 * 60_000;

/** The one lease of its kind: who holds it keeps the store tidy. */
const UPKEEP_KIND = "upkeep";
const UPKEEP = "store";

/** Opens the port to the messaging network; what a line writes there goes through the line's own store. */
export type OpenNetwork = (storeOf: (lineId: string) => Kv) => Network;

interface WorkerPart {
  network: Network;
  supervisor: Supervisor;
  dispatcher: Dispatcher;
  service: Service;
}

/** All there is, on data that is this process's alone. */
export function soleWorker(ground: Ground, openNetwork: OpenNetwork): WorkerPart {
  const { kv, changes } = ground;
  const network = openNetwork(() => kv);
  const supervisor: Supervisor = makeSupervisor(ground, {
    network,
    ownership: soleOwnership(kv),
    queueChanged: (lineId) => supervisor.queueChanged(lineId),
  });
  const dispatcher = dispatcherOf(ground);
  addWorkerGauges(ground, { network, supervisor, dispatcher });
  // What a crash left of a bulk that was never accepted.
  const clearing = { start: () => removeAllStaged(kv) };
  const upkeep = upkeepOf(ground, network, (lineId) => supervisor.queueChanged(lineId));
  const service = inOrder(clearing, together(dispatcher, supervisor, upkeep), changes);
  return { network, supervisor, dispatcher, service };
}

/** A share of what there is, on a store that many processes use. `place`: where the next process finds this one's name. */
export function sharedWorker(ground: Ground, openNetwork: OpenNetwork, place: Place | null): WorkerPart {
  const { kv, bell, changes, runtime, metrics } = ground;
  let parts: Omit<WorkerPart, "service"> | null = null;
  let upkeep: Service | null = null;

  const common = {
    kv: ground.data.kv,
    runtime,
    freed: () => callMembers(bell),
    refused: () => metrics.refusedWrites.inc(),
  };
  const lines = new Leases({
    ...common,
    kind: LINE_KIND,
    all: () => lineThings(kv),
    holder: {
      taken: () => parts?.supervisor.taken(),
      drop: async (lineId) => await parts?.supervisor.drop(lineId),
    },
  });
  const webhooks = new Leases({
    ...common,
    kind: WEBHOOK_KIND,
    all: () => webhookThings(kv),
    holder: {
      taken: () => parts?.dispatcher.taken(),
      drop: async (thing) => await parts?.dispatcher.drop(thing.split("/")[1]!),
    },
  });
  const upkeeps = new Leases({
    ...common,
    kind: UPKEEP_KIND,
    async *all() {
      yield UPKEEP;
    },
    holder: { taken: () => void beginUpkeep(), drop: endUpkeep },
  });
  const member = new Member({
    kv: ground.data.kv,
    runtime,
    bell,
    place,
    leases: [lines, webhooks, upkeeps],
    setBack: () => noteSetback(kv, runtime),
  });
  const noStore = lines.refusing();
  const network = openNetwork((lineId) => lines.storeOf(lineId) ?? noStore);
  const supervisor = makeSupervisor(ground, {
    network,
    ownership: sharedOwnership(lines),
    queueChanged: (lineId) => ringQueue(bell, lineId),
  });
  const dispatcher = dispatcherOf(ground, sharedWebhooks(webhooks));
  parts = { network, supervisor, dispatcher };
  addWorkerGauges(ground, parts);
  metrics.gaugeBy("kind", {
    name: "paloma_leases",
    help: "What this process is the owner of",
    read: () => Object.fromEntries(member.leases.map(({ kind, count }) => [kind, count])),
  });

  async function beginUpkeep(): Promise<void> {
    const store = upkeeps.storeOf(UPKEEP);
    if (upkeep || !store) return;
    upkeep = upkeepOf(ground, network, (lineId) => ringQueue(bell, lineId));
    await upkeep.start();
  }

  async function endUpkeep(): Promise<void> {
    const ending = upkeep;
    upkeep = null;
    await ending?.stop();
  }

  const answers = makeLineAnswers({
    kv,
    bell,
    seal: ground.data.seal,
    runtime,
    supervisor,
    holds: (lineId) => lines.storeOf(lineId) !== null,
  });
  // To its end first: what it gives up is taken by others while the rest goes on.
  return { ...parts, service: inOrder(supervisor, dispatcher, answers, member, changes) };
}

function makeSupervisor(
  ground: Ground,
  { ownership, ...options }: SessionsOptions & { ownership: Ownership },
): Supervisor {
  const { kv, runtime, bell, changes, data: { accounts } } = ground;
  const plansChanged = () => accounts.plansChanged();
  const sessions = async () => (await import("./sessions.ts")).makeSessions(ground, options);
  return new Supervisor({ kv, runtime, bell, changes, ownership, plansChanged, sessions });
}

function dispatcherOf(ground: Ground, ownership?: ReturnType<typeof sharedWebhooks>): Dispatcher {
  const { kv, events, runtime, safeFetch, metrics, bell, data: { seal } } = ground;
  return new Dispatcher({
    kv,
    events,
    runtime,
    safeFetch: measuredWebhooks(safeFetch, metrics),
    seal,
    bell,
    ...(ownership ? { ownership } : {}),
  });
}

function upkeepOf(
  { kv, runtime, bell, changes, media, diskShares, events, config, recorderOn }: Ground,
  network: Network,
  queueChanged: (lineId: string) => void,
): Service {
  const { eventDays, historyDays, mediaDisk: mediaBytes } = config;
  const recorder = recorderOn(kv);
  const removeAbove = (accountId: string) => removePanelRows(kv, accountId);
  return makeMaintenance([
    ...sweeps({
      kv,
      runtime,
      bell,
      changes,
      media,
      shares: diskShares,
      mediaBytes,
      events,
      eventDays,
      historyDays,
      network,
      recorder,
      queueChanged,
      removeAbove,
    }),
    {
      name: "logins, links and the audit log",
      everyMs: SWEEP_PANEL_MS,
      run: (signal) => sweepPanel(kv, runtime.clock.now(), signal),
    },
  ], runtime);
}

function addWorkerGauges(
  { metrics, kv, media, runtime: { clock }, queuedCount }: Ground,
  { network, supervisor, dispatcher }: Omit<WorkerPart, "service">,
): void {
  const webhookAttemptsWaiting = () => dispatcher.waiting();
  metrics.gauge("paloma_media_bytes", "Files on the data folder's disk", () => media.bytes?.() ?? 0);
  addGauges(metrics, { kv, clock, network, lines: supervisor, queuedCount, webhookAttemptsWaiting });
}

async function* lineThings(kv: Kv): AsyncIterable<string> {
  for await (const { value } of kv.list({ prefix: lineKeys.lines() })) yield value.id;
}
