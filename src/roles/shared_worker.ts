/**
 * A worker that shares its store: it serves the lines and webhooks whose leases it holds (promise 9). Loaded on demand.
 */
import { inOrder, type Service } from "../base/service.ts";
import { Leases } from "../cluster/leases.ts";
import { callMembers, type Kind } from "../cluster/holder.ts";
import { Member } from "../cluster/member.ts";
import type { Place } from "../cluster/place.ts";
import { makeLineAnswers } from "../line/remote.ts";
import { LINE } from "../line/rows.ts";
import { key, prefix } from "../store/kv.ts";
import { WEBHOOK } from "../webhook/rows.ts";
import { makeTimeKeeper } from "../ops/time_keeper.ts";
import { noteSetback } from "../whatsapp/network.ts";
import type { Ground } from "./ground.ts";
import {
  addWorkerGauges,
  dispatcherOf,
  makeSupervisor,
  type OpenNetwork,
  upkeepOf,
  type WorkerPart,
} from "./worker.ts";

/** The only lease of its kind, which has no rows: its holder runs the sweeps, which write nothing once it is lost. */
const UPKEEP = "store";
const UPKEEPS: Kind<never> = {
  name: "upkeep",
  rows: prefix("upkeep"),
  nameOf: () => UPKEEP,
  keyOf: () => key("upkeep"),
};

/** Makes a worker on a shared store. `place`: where the next process finds this one's name. */
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
    kv: ground.data.kv,
    runtime,
    bell,
    place,
    leases: [lines, webhooks, upkeeps],
    setBack: () => noteSetback(kv, runtime),
  });
  const noStore = lines.refusing();
  const network = openNetwork((lineId) => lines.storeOf(lineId) ?? noStore);
  const supervisor = makeSupervisor(ground, network, lines);
  const dispatcher = dispatcherOf(ground, webhooks);
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
    upkeep = upkeepOf(ground, { kv: store, network });
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
    answersFor: (lineId) => lines.storeOf(lineId) !== null,
  });
  // Services stop in reverse: `member` before the supervisor, so that other processes take over while the rest stops.
  return { ...parts, service: inOrder(makeTimeKeeper(kv, runtime), supervisor, dispatcher, answers, member, changes) };
}
