/**
 * Accepting messages over real HTTP, against a bare server that writes one raw commit a request and against one without
 * storage. The lines are linked and paused, so that nothing departs; every measurement has a fresh process on a fresh copy
 * of its data.
 */
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";
import { copyFolder, type LinkedFolder, makeLinkedFolder } from "./linked_folder.ts";
import type { LoadResult } from "./load_client.ts";
import { type Bench, type BenchOptions, medians, type Result } from "./measure.ts";
import { openSite, type Site } from "./network.ts";
import { bareSends, loadWith, pauseLine, sendsOf, TEXT, TO } from "./sends.ts";

/** Of the measurement with several accounts: each writes commits of its own. */
const ACCOUNTS = 8;
const BULK = 10_000;

export const api: Bench = {
  name: "api",
  about: "accepted messages a second and p99, against a raw commit a request",
  async run(options) {
    await using site = await openSite();
    await using client = await startChild<true>("./load_client.ts", null);
    return await compare({ ...site, client }, options);
  },
};

interface Stage extends Pick<Site, "root" | "network"> {
  client: Child<true>;
}

type Round = Record<"bare" | "raw" | "empty" | "backlog" | "accounts", LoadResult>;

async function compare(stage: Stage, { rounds, backlog, report }: BenchOptions): Promise<Result[]> {
  const empty = await makeLinkedFolder(stage, { accounts: ACCOUNTS, lines: 1, prepare: pauseLine });
  const full = await makeLinkedFolder(stage, {
    accounts: 1,
    lines: 1,
    async prepare(api, account) {
      await pauseLine(api, account);
      for (let left = backlog; left > 0; left -= BULK) {
        const messages = Array.from({ length: Math.min(left, BULK) }, () => ({ to: TO, text: TEXT }));
        await api.call("POST", "/messages/send/bulk", { sessionId: account.sessionIds[0], messages });
      }
    },
  });
  report(`linked; ${backlog} messages wait in the one, none in the other`);

  const measured: Round[] = [];
  for (let i = 0; i < rounds; i++) {
    const round: Round = {
      bare: await measureBare(stage, null),
      raw: await measureBare(stage, join(stage.root, `raw-${i}.db`)),
      empty: await measureGateway(stage, empty, 1),
      backlog: await measureGateway(stage, full, 1),
      accounts: await measureGateway(stage, empty, ACCOUNTS),
    };
    measured.push(round);
    const shown = Object.entries(round).map(([name, { perSecond, p99Ms }]) =>
      `${name} ${perSecond.toFixed(0)}/s p99 ${p99Ms.toFixed(1)} ms`
    );
    report(`round ${i + 1}: ${shown.join(", ")}`);
  }
  return conclude(measured);
}

function conclude(measured: readonly Round[]): Result[] {
  const rate = (of: keyof Round, to: keyof Round) => measured.map((round) => round[of].perSecond / round[to].perSecond);
  const tail = (of: keyof Round, to: keyof Round) => measured.map((round) => round[of].p99Ms / round[to].p99Ms);
  const of = (name: keyof Round) => {
    const { perSecond, p99Ms } = medians(measured.map((round) => ({ ...round[name] })));
    return `${perSecond.toFixed(0)}/s, p99 ${p99Ms.toFixed(1)} ms`;
  };
  const goal = { atLeast: 2 };
  return [
    {
      name: "accepted a second / raw commit a request",
      ratios: rate("empty", "raw"),
      goal,
      detail: `${of("empty")} against ${of("raw")}`,
    },
    {
      name: `accepted a second, ${ACCOUNTS} accounts / raw commit a request`,
      ratios: rate("accounts", "raw"),
      goal,
      detail: of("accounts"),
    },
    {
      name: "accepted a second / Hono without storage",
      ratios: rate("empty", "bare"),
      goal: null,
      detail: `against ${of("bare")}`,
    },
    { name: "p99 / raw commit a request", ratios: tail("empty", "raw"), goal: null, detail: "" },
    { name: "p99 / Hono without storage", ratios: tail("empty", "bare"), goal: null, detail: "" },
    {
      name: "accepted a second, with a backlog / with an empty queue",
      ratios: rate("backlog", "empty"),
      goal: { atLeast: 0.9 },
      detail: of("backlog"),
    },
    { name: "p99, with a backlog / with an empty queue", ratios: tail("backlog", "empty"), goal: null, detail: "" },
  ];
}

async function measureBare(stage: Stage, path: string | null): Promise<LoadResult> {
  const server = await startChild<{ url: string }>("./bare_server.ts", { path });
  const [result] = await loadWith([stage.client], [{ url: server.ready.url, requests: bareSends }]);
  await server.stop();
  return result!;
}

async function measureGateway(stage: Stage, folder: LinkedFolder, accounts: number): Promise<LoadResult> {
  const dataDir = await copyFolder(folder, stage.root);
  const gateway = await startChild<GatewayReady>("./gateway.ts", { ...folder.settings, PALOMA_DATA_DIR: dataDir });
  const requests = sendsOf(folder.accounts.slice(0, accounts));
  const [result] = await loadWith([stage.client], [{ url: gateway.ready.url, requests }]);
  await gateway.stop();
  await Deno.remove(dataDir, { recursive: true });
  return result!;
}
