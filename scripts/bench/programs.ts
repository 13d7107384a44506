/** Receiving and sending by the executable, `dist/paloma`, beside the source, both as users run them and in turn. */
import { startChild } from "./child.ts";
import { type Bench, median, type Result } from "./measure.ts";
import { openSite } from "./network.ts";
import { measureReceiving } from "./receive.ts";
import type { ReceiverReady } from "./receiver.ts";
import { linkedFolderBy, serveBy } from "./served.ts";
import { serverPrograms } from "./start.ts";
import { measureSending } from "./way.ts";

/** In which the two should be within a tenth of each other. */
const ALIKE = { atMost: 1.1 };

export const programs: Bench = {
  name: "programs",
  about: "receiving, at a steady pace and in a burst, and sending by the executable / by the source",
  async run({ rounds, report }) {
    const { source, executable } = await serverPrograms();
    if (!executable) {
      report("there is no dist/paloma: run deno task compile");
      return [];
    }
    await using site = await openSite();
    await using receiver = await startChild<ReceiverReady>("./receiver.ts", null);
    const folders = { source: await linkedFolderBy(source, site), executable: await linkedFolderBy(executable, site) };
    async function rowsOf(name: keyof typeof folders): Promise<Record<string, number>> {
      const serve = serveBy({ source, executable }[name]!);
      const stage = { ...site, receiver, folder: folders[name] };
      const { paced, burst } = await measureReceiving(stage, serve);
      const sent = await measureSending(stage, { over: 1, serve });
      return {
        "received, 50 a second: processor": paced.usedMs,
        "received, 50 a second: p50": paced.p50,
        "received, burst: processor": burst.usedMs,
        "received, burst: p50": burst.p50,
        "received, burst: all": burst.tookMs,
        "sent: processor": sent.usedMs,
        "sent: answer, p50": sent.answerP50,
        "sent: all": sent.tookMs,
        "sent on an idle line: to the network, p50": sent.departureP50!,
      };
    }
    const measured: Record<"source" | "executable", Record<string, number>>[] = [];
    for (let i = 0; i < rounds; i++) {
      const round = { source: await rowsOf("source"), executable: await rowsOf("executable") };
      measured.push(round);
      report(
        `round ${i + 1}: ${JSON.stringify(round, (_, value) => typeof value === "number" ? Math.round(value) : value)}`,
      );
    }
    return Object.keys(measured[0]!.source).map((name): Result => {
      const ms = (program: keyof (typeof measured)[0]) =>
        median(measured.map((round) => round[program][name]!)).toFixed(1);
      return {
        name,
        ratios: measured.map((round) => round.executable[name]! / round.source[name]!),
        goal: ALIKE,
        detail: `${ms("executable")} ms against ${ms("source")} ms`,
      };
    });
  },
};
