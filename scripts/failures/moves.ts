/** A line's move to another gateway, with calls of the store broken of the command that exports or imports. */
import type { Line } from "../../src/line/line.ts";
import { exportLine, importLine } from "../../src/line/transfer.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { ACCOUNT, World } from "../../tests/support/line_world.ts";
import { commandOn, oldPlace } from "../../tests/support/moving.ts";
import { breakCall, type Fault, FAULTS } from "./faults.ts";
import type { Outcome, Trial } from "./journey.ts";

const passphrase = "correct horse battery";
const LINE = "ses_1";
const TRIES = 5;
const TRY_MS = 60_000;

/** Runs a command on the world until it has succeeded, with the n-th call of its store broken. */
async function broken(
  world: World,
  { fault, n, files }: { fault: Fault; n: number; files: Map<string, Uint8Array> },
  command: (deps: ReturnType<typeof commandOn>["deps"]) => Promise<unknown>,
  isDone: () => Promise<boolean>,
): Promise<{ calls: number; isDone: boolean }> {
  let { kv, deps } = commandOn(world, files);
  const calls = breakCall(kv, fault as typeof FAULTS[number], n);
  for (let i = 0; i < TRIES && !await isDone(); i++) {
    // One that died is started again.
    if (kv.commitsLeft < 0) ({ kv, deps } = commandOn(world, files));
    const over = world.clock.advance(TRY_MS);
    await Promise.race([command(deps).catch(() => {}), over]);
    await over;
  }
  const { count } = calls;
  calls.mend();
  return { calls: count, isDone: await isDone() };
}

/** Exports the line, writing what it hands out to `written`, in which nothing stays that was discarded. */
async function exporting(deps: ReturnType<typeof commandOn>["deps"], written: Uint8Array[]): Promise<void> {
  let own: Uint8Array | null = null;
  await exportLine(deps, LINE, {
    passphrase,
    gatewayRuns: false,
    write: (file) => Promise.resolve(void written.push(own = file)),
    discard: () => Promise.resolve(void (own && written.splice(written.indexOf(own), 1))),
  });
}

/** Imports the file into a new place, lets it send, and counts what is where. */
async function counted(
  old: Awaited<ReturnType<typeof oldPlace>>,
  files: Uint8Array[],
  world: World,
): Promise<Outcome["left"]> {
  const here = world.network.departures.map(({ networkId }) => networkId);
  const ids = new Set(old.messages.map(({ networkId }) => networkId));
  await old.world.boot();
  await old.world.clock.advance(120_000);
  await old.world.supervisor.stop();
  const there = old.world.network.departures.length;
  return new Map([
    ["messages sent at the new place", new Set(here.filter((id) => ids.has(id))).size],
    ["sent there twice", here.length - new Set(here).size],
    ["sent at the old place", there],
    ["links at the old place", old.world.network.linked.has(LINE) ? 1 : 0],
    ["links at the new place", world.network.linked.size],
    ["files with the link", files.length],
  ]);
}

async function settledIn(deps: ReturnType<typeof commandOn>["deps"], world: World, file: Uint8Array): Promise<void> {
  await importLine(deps, ACCOUNT, { passphrase, file });
  await world.boot();
  await world.clock.advance(180_000);
  await world.supervisor.stop();
}

async function runExport(fault: Fault, n: number): Promise<Outcome> {
  const old = await oldPlace();
  old.world.network.linked.add(LINE);
  const written: Uint8Array[] = [];
  const isGone = async () => !(await commandOn(old.world).kv.get<Line>(lineKeys.line(LINE))).value?.linked;
  const isDone = async () => await isGone() && !old.world.network.linked.has(LINE);
  const { calls } = await broken(
    old.world,
    { fault, n, files: old.files },
    // The gateway drops the link of a line that was given up by one who then died.
    async (deps) => await isGone() ? void await deps.link.drop(LINE) : await exporting(deps, written),
    isDone,
  );
  const world = new World();
  const done = await isDone() && written.length > 0;
  if (done) await settledIn(commandOn(world).deps, world, written.at(-1)!);
  // Who is killed can discard nothing; the owner is told that the file may be complete.
  const files = fault === "ends" ? written.slice(-1) : written;
  return { calls, isDone: done, left: await counted(old, files, world) };
}

async function runImport(fault: Fault, n: number): Promise<Outcome> {
  const old = await oldPlace();
  old.world.network.linked.add(LINE);
  const written: Uint8Array[] = [];
  await exporting(commandOn(old.world, old.files).deps, written);
  const world = new World();
  let imported = false;
  const { calls, isDone } = await broken(
    world,
    { fault, n, files: new Map() },
    async (deps) => {
      await importLine(deps, ACCOUNT, { passphrase, file: written[0]! });
      imported = true;
    },
    () => Promise.resolve(imported),
  );
  await world.boot();
  await world.clock.advance(180_000);
  await world.supervisor.stop();
  return { calls, isDone, left: await counted(old, written, world) };
}

export const MOVES: readonly Trial[] = [
  { name: "export a line", faults: FAULTS, run: runExport },
  { name: "import a line", faults: FAULTS, run: runImport },
];
