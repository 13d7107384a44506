/** Tries a journey with each of its calls broken, and holds what is then in the store against what it leaves unbroken. */
import { settleAllRefunds } from "../../src/message/history/counts.ts";
import { ApiWorld } from "../../tests/support/api_world.ts";
import { settle } from "../../tests/support/runtime.ts";
import { breakCall, type Fault } from "./faults.ts";
import type { Journey } from "./journey.ts";

export interface Tried {
  /** Calls that were broken, one a run. */
  points: number;
  /** One sentence for each run that left something else. */
  broken: string[];
}

const TRIES = 5;
/** How much time goes by during a try, and then until all that was put off is done. */
const TRY_MS = 30_000;

/** `upTo`: breaks no later call than this. */
export async function tryAll(journey: Journey, fault: Fault, upTo = Infinity): Promise<Tried> {
  const clean = await run(journey, fault, 0);
  if (!clean.isDone) throw new Error(`${journey.name} fails though nothing breaks`);
  const { event } = journey;
  if (event && !clean.left.has(`events ${event}`)) throw new Error(`${journey.name} leaves no ${event}`);
  const broken: string[] = [];
  const points = Math.min(clean.calls, upTo);
  for (let n = 1; n <= points; n++) {
    const { left, isDone } = await run(journey, fault, n);
    const differences = isDone ? differencesOf(clean.left, left) : ["it never succeeds"];
    if (differences.length > 0) broken.push(`${journey.name}, call ${n} ${fault}: ${differences.join(", ")}`);
  }
  return { points, broken };
}

async function run({ prepare, act }: Journey, fault: Fault, n: number) {
  let world = await ApiWorld.open();
  try {
    const on = await prepare(world);
    await settle();
    const calls = breakCall(world.kv, fault, n);
    let isDone = false;
    for (let i = 0; i < TRIES && !isDone; i++) {
      world = await living(world);
      const over = world.runtime.clock.advance(TRY_MS);
      // Who waits for a late answer asks again meanwhile.
      const tries = Array.from({ length: fault === "late" ? 2 : 1 }, () => act(world, on).catch(() => false));
      isDone = await Promise.race([Promise.all(tries).then((done) => done.includes(true)), over.then(() => false)]);
      await over;
    }
    world = await living(world);
    const { count } = calls;
    calls.mend();
    await world.runtime.clock.advance(TRY_MS);
    await settle();
    // A sweep of the gateway does it.
    await settleAllRefunds(world.kv);
    return { calls: count, isDone, left: censusOf(world) };
  } finally {
    await world.close();
  }
}

/** Another process on the same data, if this one has died. */
async function living(world: ApiWorld): Promise<ApiWorld> {
  if (world.kv.commitsLeft >= 0) return world;
  await world.die();
  const next = await ApiWorld.open({ after: world });
  await settle();
  return next;
}

/** A process tells it again when it begins. */
const TOLD_AGAIN = "session.connected";
/** Events are counted by name; when a key was last used is noted where it can be. */
const NOT_COUNTED = new Set(["event", "event_bytes", "account_key_used"]);

/** Rows by family, the sums of counters, statuses, events, and what the network was given. */
function censusOf({ kv: { disk }, network }: ApiWorld): Map<string, number> {
  const census = new Map<string, number>();
  const count = (name: string, amount = 1) => census.set(name, (census.get(name) ?? 0) + amount);
  for (const { key, value } of disk.rows.values()) {
    const family = String(key[0]);
    const { event, status } = (value ?? {}) as { event?: unknown; status?: unknown };
    if (typeof event === "string" && event !== TOLD_AGAIN) count(`events ${event}`);
    if (NOT_COUNTED.has(family)) continue;
    count(`rows of ${family}`);
    if (typeof value === "bigint") count(`the sum of ${family}`, Number(value));
    if (typeof status === "string") count(`${family} ${status}`);
  }
  count("messages that the network saw", new Set(network.departures.map(({ networkId }) => networkId)).size);
  return census;
}

function differencesOf(expected: ReadonlyMap<string, number>, found: ReadonlyMap<string, number>): string[] {
  const names = new Set([...expected.keys(), ...found.keys()]);
  return [...names].flatMap((name) => {
    const [before, after] = [expected.get(name) ?? 0, found.get(name) ?? 0];
    return before === after ? [] : [`${after} in place of ${before} ${name}`];
  });
}
