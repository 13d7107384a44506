/** What strikes processes that share a store: kills, frozen workers, cut connections, a restarted server. */
import { retry } from "../../src/base/retry.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import type { Process, RolesStage } from "../../tests/support/roles_stage.ts";

type Role = "api" | "worker";

/** Those that are up and can be struck; a frozen worker is not among them. */
export type Fleet = Record<Role, Process[]>;

export interface Blow {
  kind: "worker" | "api" | "freeze" | "cut" | "restart";
  /** Unix ms; of a restart, when the server answered again. */
  at: number;
  /** The process that was killed or frozen. */
  process: Process | null;
}

/** Over and over: sixteen kills in twenty. The last one strikes alone, with everything up before it and a calm after it. */
const CYCLE: readonly Blow["kind"][] = [
  ...["worker", "api", "worker", "cut", "worker", "api", "worker", "worker", "api", "freeze"] as const,
  ...["worker", "api", "worker", "cut", "worker", "api", "worker", "restart", "api", "worker"] as const,
];
const BETWEEN_BLOWS_MS = [500, 4_000] as const;
/** Before the blow that strikes alone: lines that move to whoever has come have moved. */
const CALM_BEFORE_MS = 8_000;
/** And after it: nobody comes in its place meanwhile, as when a machine is gone. */
const CALM_AFTER_MS = 12_000;
const FROZEN_MS = 20_000;
/** What a worker that wakes up still tries to write, it tries within this time. */
const WAKE_UP_MS = 3_000;

/** So many of a role are there when one of them is struck, frozen ones included: what was killed comes back first. */
const STRUCK_AMONG: Readonly<Record<Role, number>> = { api: 2, worker: 3 };
const LOOK_EVERY_MS = 50;
const START_AGAIN_MS = Array.from({ length: 20 }, () => 500);

interface StrikeOptions {
  kills: number;
  /** No more blows after this time. */
  minutes: number;
  /** Called after each blow with the kills so far. */
  struck(blow: Blow, kills: number): void;
  /** A worker that was frozen has had its time to write what it had. */
  woken(worker: Process): Promise<void>;
}

/** Strikes until so many processes were killed, or the time is over; resolves when all are up and awake again. */
export async function strike(
  stage: RolesStage,
  fleet: Fleet,
  { kills, minutes, struck, woken }: StrikeOptions,
): Promise<void> {
  const over = systemClock.now() + minutes * 60_000;
  const coming: Promise<void>[] = [];
  let frozen = 0;
  const there = (role: Role) => fleet[role].length + (role === "worker" ? frozen : 0);
  for (let i = 0, killed = 0; killed < kills && systemClock.now() < over; i++) {
    const isAlone = (i + 1) % CYCLE.length === 0;
    if (isAlone) await Promise.all(coming);
    await sleep(systemClock, isAlone ? CALM_BEFORE_MS : systemRandom.between(...BETWEEN_BLOWS_MS));
    const kind = CYCLE[i % CYCLE.length]!;
    const role: Role | null = kind === "api" ? "api" : kind === "worker" || kind === "freeze" ? "worker" : null;
    while (role && there(role) < STRUCK_AMONG[role]) await sleep(systemClock, LOOK_EVERY_MS);
    const process = role && takeOne(fleet[role]);
    let at = systemClock.now();
    if (kind === "cut") {
      await stage.store.cut();
    } else if (kind === "restart") {
      await stage.store.restart();
      at = systemClock.now();
    } else if (kind === "freeze") {
      frozen++;
      coming.push(freeze(process!, fleet, woken).finally(() => frozen--));
    } else {
      await stage.end(process!, "SIGKILL");
      killed++;
    }
    struck({ kind, at, process }, killed);
    if (isAlone) await sleep(systemClock, CALM_AFTER_MS);
    if (kind === "worker" || kind === "api") coming.push(replace(kind, { stage, fleet }));
  }
  await Promise.all(coming);
}

/** As whatever supervises processes does: one that finds no store ends, and is started again. */
async function replace(role: Role, { stage, fleet }: { stage: RolesStage; fleet: Fleet }): Promise<void> {
  fleet[role].push(await retry(() => stage.start(role), { clock: systemClock, pauseMs: START_AGAIN_MS }));
}

function takeOne(processes: Process[]): Process {
  return processes.splice(systemRandom.between(0, processes.length - 1), 1)[0]!;
}

async function freeze(worker: Process, fleet: Fleet, woken: (worker: Process) => Promise<void>): Promise<void> {
  Deno.kill(worker.pid, "SIGSTOP");
  await sleep(systemClock, FROZEN_MS);
  Deno.kill(worker.pid, "SIGCONT");
  await sleep(systemClock, WAKE_UP_MS);
  await woken(worker);
  fleet.worker.push(worker);
}
