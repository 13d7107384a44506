/** Tries a journey with each of its calls broken, and holds what is then in the store against what it leaves unbroken. */
import { basename } from "node:path";
import { ApiWorld, type ApiWorldOptions } from "../../tests/support/api_world.ts";
import { settle } from "../../tests/support/runtime.ts";
import { breakCall, breakRequest, type Fault, FAULTS, isOfWeb } from "./faults.ts";
import { mediaKeys } from "../../src/media/rows.ts";
import type { Journey, Outcome, Trial, Web } from "./journey.ts";

export interface Tried {
  /** Calls that were broken, one a run. */
  points: number;
  /** One sentence for each run that left something else. */
  broken: string[];
}

const TRIES = 5;
/** How much time goes by during a try, and then until all that was put off is done. */
const TRY_MS = 30_000;
const TURNS_OF_THE_DISK = 20;
/** A killed process ends nothing that it began. */
const MOST_TURNS_OF_THE_DISK = 200;
const TWO_DAYS_MS = 49 * 3_600_000;

/** Breaks each call up to `upTo`, or `most` of them, evenly spread. */
export async function tryAll(
  { name, event, run }: Trial,
  fault: Fault,
  { upTo = Infinity, most = Infinity }: { upTo?: number | undefined; most?: number } = {},
): Promise<Tried> {
  const clean = await run(fault, 0);
  if (!clean.isDone) throw new Error(`${name} fails though nothing breaks`);
  if (event && !clean.left.has(`events ${event}`)) throw new Error(`${name} leaves no ${event}`);
  const broken: string[] = [];
  let points = 0;
  const step = Math.max(1, Math.ceil(clean.calls / most));
  for (let n = 1; n <= Math.min(clean.calls, upTo); n += step) {
    points++;
    const { left, isDone } = await run(fault, n);
    const differences = isDone ? differencesOf(clean.left, left) : ["it never succeeds"];
    if (differences.length > 0) broken.push(`${name}, call ${n} ${fault}: ${differences.join(", ")}`);
  }
  return { points, broken };
}

/** A journey through the API, in which the calls of the store break, or those of the web. */
export function inWorld(journey: Journey): Trial {
  const { name, event, faults = FAULTS } = journey;
  return { name, faults, ...(event ? { event } : {}), run: (fault, n) => run(journey, fault, n) };
}

async function run(
  { prepare, act, web: makeWeb, bucket: makeBucket, breaks, isOnDisk = false, varies, overAfterMs = TWO_DAYS_MS }:
    Journey,
  fault: Fault,
  n: number,
): Promise<Outcome> {
  const web = makeWeb?.();
  const bucket = makeBucket?.();
  const places = { web, bucket };
  let world = await ApiWorld.open(places);
  try {
    const on = await prepare(world);
    await settle();
    const calls = breaks?.(world, fault, n, bucket) ??
      (isOfWeb(fault) ? breakRequest(web!, fault, n) : breakCall(world.kv, fault, n));
    let isDone = false;
    for (let i = 0; i < TRIES && !isDone; i++) {
      if (hasDied(world)) calls.begin?.();
      world = await living(world, places);
      // Who waits for a late answer asks again meanwhile.
      const tries = Array.from({ length: fault === "late" ? 2 : 1 }, () => act(world, on).catch(() => false));
      const tried = Promise.all(tries).then((done) => done.includes(true));
      const over = pass(world, isOnDisk ? tried : null);
      isDone = await Promise.race([tried, over.then(() => false)]);
      await over;
      calls.makeRoom?.();
    }
    if (hasDied(world)) calls.begin?.();
    world = await living(world, places);
    const { count } = calls;
    calls.mend();
    await pass(world, isOnDisk ? Promise.resolve() : null);
    await settle();
    // A sweep of the gateway does it.
    await world.sweeps["quota of cancelled messages"]();
    const left = await censusOf(world, { web, isOnDisk: !bucket });
    const ignored = varies?.(fault);
    if (ignored) { for (const name of left.keys()) if (ignored.test(name)) left.delete(name); }
    if (breaks) left.set("files that nobody needs", await leftovers(world, overAfterMs));
    return { calls: count, isDone, left };
  } finally {
    await world.close();
  }
}

/** Lets time pass, and then real time, which a disk needs: until the work that waits for it is done, and a little more. */
async function pass({ runtime: { clock } }: ApiWorld, onDisk: Promise<unknown> | null): Promise<void> {
  await clock.advance(TRY_MS);
  if (onDisk === null) return;
  let left = MOST_TURNS_OF_THE_DISK;
  void onDisk.then(() => left = Math.min(left, TURNS_OF_THE_DISK));
  while (left-- > 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await clock.advance(1_000);
  }
}

/** What is left in the place of files when all of it is over. */
async function leftovers(world: ApiWorld, overAfterMs: number): Promise<number> {
  const { runtime: { clock, confirmed }, sweeps } = world;
  const { signal } = new AbortController();
  // What was being written has the real time.
  const written = new Date(clock.wall());
  for (const path of await world.files()) await Deno.utime(path, written, written);
  clock.jump(overAfterMs);
  confirmed.confirm(clock.wall());
  await sweeps["received files"](signal);
  await sweeps["orphaned files"](signal);
  const looks = await Array.fromAsync(world.kv.list({ prefix: mediaKeys.objects() }));
  return looks.length + await world.kept();
}

const hasDied = ({ kv }: ApiWorld) => kv.commitsLeft < 0;

/** Another process on the same data, if this one has died. */
async function living(world: ApiWorld, places: Pick<ApiWorldOptions, "web" | "bucket">): Promise<ApiWorld> {
  if (!hasDied(world)) return world;
  world.die();
  const next = await ApiWorld.open({ after: world, ...places });
  await settle();
  return next;
}

/** A process tells it again when it begins. */
const TOLD_AGAIN = "session.connected";
/**
 * Events are counted by name, when a key was last used is noted where it can be, who asks twice erases twice, and what
 * looks after an object outlives it.
 */
const NOT_COUNTED = new Set(["event", "event_bytes", "account_key_used", "erasure_done", "file_object"]);

/** Rows by family, the sums of counters, statuses, events, and what the network was given. */
async function censusOf(
  world: ApiWorld,
  { web, isOnDisk }: { web: Web | undefined; isOnDisk: boolean },
): Promise<Map<string, number>> {
  const { kv: { disk }, network } = world;
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
  // Those without a row are removed a day later.
  const onDisk = new Set((await world.files()).map((path) => basename(path)));
  for (const { key: [family, id] } of disk.rows.values()) {
    if (family === "file" && isOnDisk) count(onDisk.has(String(id)) ? "files" : "lost files");
  }
  if (web) count("requests that the web saw", web.seen.size);
  return census;
}

function differencesOf(expected: ReadonlyMap<string, number>, found: ReadonlyMap<string, number>): string[] {
  const names = new Set([...expected.keys(), ...found.keys()]);
  return [...names].flatMap((name) => {
    const [before, after] = [expected.get(name) ?? 0, found.get(name) ?? 0];
    return before === after ? [] : [`${after} in place of ${before} ${name}`];
  });
}
