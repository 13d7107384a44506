/**
 * Takes the network away from many lines at once and gives it back, over real connections. Prints when each line hears again, and how many tried at once; then what a 515 and a network that flaps cost a line.
 * Fails when a line hears again later than 10 s after the end.
 */
import { linkByQr, until } from "../../src/cli/client.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import type { Companion } from "../../src/sandbox/world/directory.ts";
import { type Relay, startRelay } from "../../tests/support/relay.ts";
import { openStage, type Stage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand, whole } from "../command.ts";
import { processorMs } from "../proc.ts";

const command = scriptCommand("outage", "Takes the network away from many lines, and prints when each hears again")
  .option("--lines <n>", "how many", whole, 40)
  .option("--seconds <n>", "how long", whole, 60);
const { options: { lines, seconds: outageSeconds } } = parsed<{ lines: number; seconds: number }>(command);

const ANA = "4917000000001";
const LINKED_AT_ONCE = 5;
const GOAL_MS = 10_000;
const LONGEST_MS = 120_000;
const FLAPS = 4;
const FLAP_MS = 2_000;

const numberOf = (index: number) => String(4915100000000 + index);
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

async function link(stage: Stage): Promise<Companion[]> {
  const numbers = Array.from({ length: lines }, (_, index) => numberOf(index));
  for (let from = 0; from < lines; from += LINKED_AT_ONCE) {
    await Promise.all(
      numbers.slice(from, from + LINKED_AT_ONCE).map(async (phone) => {
        await stage.addPhone(phone);
        const { data } = await stage.api.call("POST", "/sessions", { name: phone });
        await linkByQr(systemClock, { api: stage.api, control: stage.control, sessionId: data._id, phone });
      }),
    );
  }
  const { directory } = stage.network.switchboard;
  return numbers.map((number) => [...directory.account(number)!.companions.values()][0]!);
}

/** When each companion got there, ms from now. */
async function timed(companions: readonly Companion[], isSo: (companion: Companion) => boolean): Promise<number[]> {
  const begun = systemClock.now();
  const left = new Set(companions);
  const times: number[] = [];
  while (left.size > 0 && systemClock.now() - begun < LONGEST_MS) {
    for (const companion of left) {
      if (!isSo(companion)) continue;
      left.delete(companion);
      times.push(systemClock.now() - begun);
    }
    await sleep(systemClock, 20);
  }
  return [...times, ...Array.from(left, () => Infinity)];
}

/** The most of these times within one second. */
function most(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((time) => time >= from && time < from + 1_000).length));
}

async function outage(stage: Stage, relay: Relay, companions: readonly Companion[]): Promise<boolean> {
  const network = relay.to;
  relay.to = null;
  const begun = systemClock.now();
  relay.cut();
  for (const { account } of companions) {
    await stage.network.phone(ANA)!.sendMessage({ to: account.number, text: "sent in the outage" });
  }
  await sleep(systemClock, Math.max(0, begun + outageSeconds * 1000 - systemClock.now()));
  const during = relay.attempts.filter((time) => time >= begun).length;
  relay.to = network;
  const end = systemClock.now();
  const used = await processorMs(stage.gateway.pid);
  const heard = await timed(companions, ({ mailbox, session }) => session !== null && mailbox.size === 0);
  const cost = await processorMs(stage.gateway.pid) - used;
  const last = heard.at(-1)!;
  const after = relay.attempts.filter((time) => time >= end);
  console.log(
    `outage of ${outageSeconds} s, ${lines} lines: ${(during / lines).toFixed(1)} attempts a line while it lasted`,
  );
  console.log(
    `  hear again after ${seconds(heard[0]!)} (first), ${seconds(heard[lines >> 1]!)} (half), ${
      seconds(last)
    } (all); ` +
      `at most ${most(after)} connected within a second; ${seconds(cost)} of the gateway's processor`,
  );
  return last <= GOAL_MS;
}

/** How long a line is away after what ends its connection. */
async function away(stage: Stage, companion: Companion, kind: string): Promise<number> {
  const { session } = companion;
  await stage.control.call("POST", "/faults", { line: companion.account.number, kind });
  const [time] = await timed([companion], (now) => now.session !== null && now.session !== session);
  return time!;
}

async function flaps(stage: Stage, companion: Companion): Promise<void> {
  console.log(`one 515: back after ${seconds(await away(stage, companion, "restart"))}`);
  await sleep(systemClock, FLAP_MS);
  for (const kind of ["drop", "unavailable"]) {
    const times: number[] = [];
    for (let i = 0; i < FLAPS; i++) {
      times.push(await away(stage, companion, kind));
      await sleep(systemClock, FLAP_MS);
    }
    console.log(
      `${FLAPS} times ${kind}, each ${seconds(FLAP_MS)} after the login: back after ${times.map(seconds).join(", ")}`,
    );
  }
}

// Stands between the gateway and the network.
await using relay = await startRelay(null);
const stage = await openStage({
  env: { PALOMA_WHATSAPP_URL: `ws://127.0.0.1:${relay.port}/ws/chat`, PALOMA_LOG_LEVEL: "warn" },
});
try {
  relay.to = Number(new URL(stage.network.url).port);
  await stage.addPhone(ANA);
  const companions = await link(stage);
  await until(systemClock, () => Promise.resolve(companions.every(({ mailbox }) => mailbox.size === 0) || null), {
    what: "lines that have what they need",
  });
  const isGood = await outage(stage, relay, companions);
  await flaps(stage, companions[0]!);
  if (!isGood) Deno.exitCode = 1;
} finally {
  await stage.abandon();
}
