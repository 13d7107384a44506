/**
 * Big groups: what a group of 1,000 takes against one of 10, by the API of a whole gateway on the simulated network. The
 * gateway runs in this process, the network and all its phones in one other: while those decrypt a message, the next one
 * waits for its ack. So the gateway's processor time, which is its own work, is printed beside the time.
 */
import process from "node:process";
import { type Client, until } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { makeLinkedFolder, newPhones } from "./linked_folder.ts";
import type { Bench, Result } from "./measure.ts";
import { openSite } from "./network.ts";

const SMALL = 10;
const BIG = 1_000;
const ADDED = 50;

const STEPS = ["create", "list", "look at", `add ${ADDED}`, "first send, mention of all", "next send, mention of all"];

export const groups: Bench = {
  name: "groups",
  about: `a group of ${BIG} against one of ${SMALL}: create, list, add ${ADDED}, send with a mention of all`,
  async run({ rounds, report }) {
    await using site = await openSite();
    const { network } = site;
    const measured: { small: Taken[]; big: Taken[] }[] = [];
    await makeLinkedFolder(site, {
      accounts: 1,
      lines: rounds,
      async prepare(api, { sessionIds }) {
        const people = await newPhones(network, BIG + ADDED);
        report(`${people.length} phones`);
        for (const [i, sessionId] of sessionIds.entries()) {
          const small = await measure(api, { sessionId, people, size: SMALL });
          const big = await measure(api, { sessionId, people, size: BIG });
          measured.push({ small, big });
          report(
            `round ${i + 1}: ${STEPS.map((step, k) => `${step} ${shown(small[k]!)} and ${shown(big[k]!)}`).join("; ")}`,
          );
        }
      },
    });
    return STEPS.flatMap((step, k) =>
      (["time", "processor time"] as const).map((what): Result => ({
        name: `${step}: ${what} with ${BIG} to ${what} with ${SMALL}`,
        ratios: measured.map(({ small, big }) => big[k]![what] / small[k]![what]),
        goal: null,
        detail: `${ms(measured[0]!.small[k]![what])} and ${ms(measured[0]!.big[k]![what])} in the first round`,
      }))
    );
  },
};

/** Milliseconds; processor time is the gateway's and that of the few requests to it. */
type Taken = Record<"time" | "processor time", number>;

/** What each step takes, on a line that has so far asked for the smaller group only. */
async function measure(
  api: Client,
  { sessionId, people, size }: { sessionId: string; people: readonly string[]; size: number },
): Promise<Taken[]> {
  const path = `/sessions/${sessionId}/groups`;
  const times: Taken[] = [];
  async function timed<T>(work: () => Promise<T>): Promise<T> {
    const [begun, before] = [performance.now(), process.cpuUsage()];
    const done = await work();
    const { user, system } = process.cpuUsage(before);
    times.push({ "time": performance.now() - begun, "processor time": (user + system) / 1000 });
    return done;
  }
  const participants = people.slice(0, size - 1);
  const { data: group } = await timed(() => api.call("POST", path, { name: `${size}`, participants }));
  await timed(() => api.call("GET", path));
  await timed(() => api.call("GET", `${path}/${group.id}`));
  const added = { action: "add", participants: people.slice(-ADDED) };
  await timed(() => api.call("POST", `${path}/${group.id}/participants`, added));
  for (const text of ["first", "next"]) {
    await timed(async () => {
      const body = { sessionId, to: group.id, text, mentions: "all" };
      const { messageId } = await api.call("POST", "/messages/send/text", body);
      await until(systemClock, async () => {
        const { status } = await api.call("GET", `/messages/${messageId}/status`);
        if (status === "failed") throw new Error("the message failed");
        return status === "sent" || null;
      }, { what: "the message to be sent" });
    });
  }
  return times;
}

function shown(taken: Taken): string {
  return `${ms(taken.time)} (${ms(taken["processor time"])})`;
}

function ms(time: number): string {
  return `${Math.round(time)} ms`;
}
