/** What strikes processes that share a store: kills, frozen workers, cut connections, a restarted server. */
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import type { Process, RolesStage } from "../../tests/support/roles_stage.ts";

export type Role = "api" | "worker";

/** Those that are up and can be struck; a frozen worker is not among them. */
export type Fleet = Record<Role, Process[]>;

export interface Blow {
  kind: "worker" | "api" | "freeze" | "cut" | "restart";
  /** Unix ms; of a restart, when the server answered again. */
  at: number;
  /** The process that was killed or frozen. */
  process: Process | null;
}

/** Over and over: sixteen kills in twenty. */
const CYCLE: readonly Blow["kind"][] = [
  ...["worker", "api", "worker", "cut", "worker", "api", "worker", "worker", "api", "freeze"] as const,
  ...["worker", "api", "worker", "cut", "worker", "api", "worker", "restart", "api", "worker"] as const,
];
const BETWEEN_BLOWS_MS = [500, 4_000] as const;
const FROZEN_MS = 20_000;
/** What a worker that wakes up still tries to write, it tries within this time. */
const WAKE_UP_MS = 3_000;

interface StrikeOptions {
  kills: number;
  /** Called after each blow with the kills so far. */
  struck(blow: Blow, kills: number): void;
  /** A worker that was frozen has had its time to write what it had. */
  woken(worker: Process): Promise<void>;
}

/** Strikes until so many processes were killed; resolves when the last frozen worker is awake again. */
export async function strike(stage: RolesStage, fleet: Fleet, { kills, struck, woken }: StrikeOptions): Promise<void> {
  const frozen: Promise<void>[] = [];
  for (let i = 0, killed = 0; killed < kills; i++) {
    await sleep(systemClock, systemRandom.between(...BETWEEN_BLOWS_MS));
    const kind = CYCLE[i % CYCLE.length]!;
    let process: Process | null = null;
    let at = systemClock.now();
    if (kind === "cut") {
      await stage.store.cut();
    } else if (kind === "restart") {
      await stage.store.restart();
      at = systemClock.now();
    } else if (kind === "freeze") {
      process = takeOne(fleet.worker);
      frozen.push(freeze(process, fleet, woken));
    } else {
      process = takeOne(fleet[kind]);
      await stage.end(process, "SIGKILL");
      fleet[kind].push(await stage.start(kind));
      killed++;
    }
    struck({ kind, at, process }, killed);
  }
  await Promise.all(frozen);
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
