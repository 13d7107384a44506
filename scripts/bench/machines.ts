/**
 * Many processes on one PostgreSQL: two APIs against one, how long a message takes from its 202 at an API to its
 * departure from a worker, and what idle lines ask of the store. Needs Debian's postgresql.
 */
import { join } from "node:path";
import { openData } from "../../src/engines.ts";
import { type Client, httpClient, type Json, until } from "../../src/cli/client.ts";
import { newLine } from "../../src/line/line.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { makeLog } from "../../src/ops/log.ts";
import { sleep, systemClock, systemRuntime } from "../../src/runtime.ts";
import { Change } from "../../src/store/kv.ts";
import { startPostgres } from "../../tests/support/postgres.ts";
import { type Child, startChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";
import { type LinkedFolder, makeLinkedFolder } from "./linked_folder.ts";
import type { Machine } from "./machine.ts";
import { type Bench, percentile, type Result } from "./measure.ts";
import { openSite } from "./network.ts";
import { loadWith, pauseLine, SECRET_KEY, sendsOf, TEXT, TO } from "./sends.ts";

/** Of the measurement with two APIs: each takes the sends of every other account. */
const ACCOUNTS = 8;
/** How long lines have to be held and connected, and for how long their queries are then counted. */
const SETTLE_MS = 20_000;
const IDLE_MS = 10_000;
const FEW = 5;
const MANY = 500;
const TEXTS = 60;

export const machines: Bench = {
  name: "machines",
  about: "two APIs to one, 202 to departure across processes, queries of idle lines",
  async run({ rounds, report }) {
    await using stack = new AsyncDisposableStack();
    const site = stack.use(await openSite());
    const { root, network } = site;
    const server = stack.adopt(await startPostgres({}), (server) => server.remove());
    const clients = [
      stack.use(await startChild<true>("./load_client.ts", null)),
      stack.use(await startChild<true>("./load_client.ts", null)),
    ];
    const start = (machine: Machine) => startChild<GatewayReady>("./machine.ts", machine);
    const settings = () => ({ PALOMA_SECRET_KEY: SECRET_KEY });

    const linked = async (accounts: number, prepare?: typeof pauseLine): Promise<LinkedFolder> =>
      await makeLinkedFolder(site, {
        accounts,
        lines: 1,
        settings: { ...settings(), PALOMA_STORE: await server.database() },
        ...(prepare ? { prepare } : {}),
      });

    const paused = await linked(ACCOUNTS, pauseLine);
    /** The sends of so many accounts, divided among so many APIs; of one account all take them. */
    async function accepted(apis: number, accounts: number): Promise<number> {
      const requests = sendsOf(paused.accounts.slice(0, accounts));
      const servers = [];
      const children: Child<GatewayReady>[] = [];
      for (let i = 0; i < apis; i++) {
        const child = await start({ role: "api", settings: paused.settings });
        children.push(child);
        const own = requests.filter((_, n) => accounts === 1 || n % apis === i);
        servers.push({ url: child.ready.url, requests: own });
      }
      const results = await loadWith(clients, servers);
      for (const child of children) await child.stop();
      return results.reduce((sum, { perSecond }) => sum + perSecond, 0);
    }

    /** From the answer at an API to the network's server, on an idle line, ms. */
    async function departures(): Promise<number[]> {
      const { settings, accounts: [account] } = await linked(1);
      const worker = await start({ role: "worker", settings });
      const one = await start({ role: "api", settings });
      const api = httpClient(`${one.ready.url}/v1`, { "x-api-key": account!.apiKey });
      const control: Client = httpClient(network.ready.controlUrl);
      await control.call("POST", "/phones", { number: TO });
      const [sessionId] = account!.sessionIds;
      const answeredAt: number[] = [];
      const before = (await wireOf(control)).length;
      for (let i = 0; i < TEXTS; i++) {
        await api.call("POST", "/messages/send/text", { sessionId, to: TO, text: `${TEXT} ${i}` });
        answeredAt.push(Date.now());
        await until(systemClock, async () => (await wireOf(control)).length > before + i || null, {
          what: "a departure",
          pauseMs: 20,
        });
      }
      const wire = (await wireOf(control)).slice(before);
      await one.stop();
      await worker.stop();
      // The first one looks up the recipient.
      return wire.map(({ time }, i) => Math.max(0, time - answeredAt[i]!)).slice(5);
    }

    /** Transactions a second of a process whose lines are connected and have nothing to do. */
    async function idle(lines: number): Promise<number> {
      const PALOMA_STORE = await server.database();
      const place = { ...settings(), PALOMA_STORE, PALOMA_DATA_DIR: join(root, `idle_${lines}`) };
      await makeLines(place, lines);
      const gateway = await start({ role: "serve", settings: place, isNetworkFake: true });
      await sleep(systemClock, SETTLE_MS);
      const name = new URL(PALOMA_STORE).pathname.slice(1);
      const count = async () =>
        Number(await server.sql(`select xact_commit from pg_stat_database where datname = '${name}'`));
      const before = await count();
      await sleep(systemClock, IDLE_MS);
      const perSecond = (await count() - before) / (IDLE_MS / 1000);
      await gateway.stop();
      return perSecond;
    }

    const many: number[] = [], single: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const [one, two] = [await accepted(1, ACCOUNTS), await accepted(2, ACCOUNTS)];
      const [oneOfOne, twoOfOne] = [await accepted(1, 1), await accepted(2, 1)];
      const shown = (rates: number[]) => rates.map((rate) => `${rate.toFixed(0)}/s`).join(" and ");
      report(`round ${i + 1}: one API and two: ${shown([one, two])}, of one account ${shown([oneOfOne, twoOfOne])}`);
      many.push(two / one);
      single.push(twoOfOne / oneOfOne);
    }
    const tookMs = await departures();
    const [ofFew, ofMany] = [await idle(FEW), await idle(MANY)];
    const shown = [50, 90, 99].map((percent) => `p${percent} ${percentile(tookMs, percent)} ms`).join(", ");
    const results: Result[] = [
      {
        name: `accepted a second of ${ACCOUNTS} accounts, two APIs / one`,
        ratios: many,
        goal: null,
        detail: "each account at one of them, on the same cores",
      },
      { name: "accepted a second of one account, two APIs / one", ratios: single, goal: null, detail: "at both" },
      {
        name: "p50 from the 202 to the departure / 100 ms",
        ratios: [percentile(tookMs, 50) / 100],
        goal: { atMost: 1 },
        detail: shown,
      },
      {
        name: `queries a second, ${MANY} idle lines / ${FEW}`,
        ratios: [ofMany / ofFew],
        goal: { atMost: 1.5 },
        detail: `${ofMany.toFixed(1)}/s against ${ofFew.toFixed(1)}/s`,
      },
    ];
    return results;
  },
};

async function wireOf(control: Client): Promise<Json[]> {
  return await control.call("GET", "/wire");
}

/** Lines that are linked, as far as their rows say. */
async function makeLines(settings: Record<string, string>, count: number): Promise<void> {
  const { PALOMA_STORE: store, PALOMA_SECRET_KEY: secretKey, PALOMA_DATA_DIR: dataDir } = settings;
  const runtime = systemRuntime(makeLog("error"));
  const data = await openData({ dataDir: dataDir!, store: store!, secretKey: secretKey! }, runtime);
  const { account: { id: accountId } } = await data.accounts.create({ name: "idle", plan: "sandbox" });
  for (let i = 0; i < count; i++) {
    const id = runtime.ids.next("ses");
    const createdAt = systemClock.now() + i;
    const line = {
      ...newLine({ id, accountId, name: `line ${i}`, pairingPhone: null, createdAt }),
      linked: true,
      observedGeneration: 1,
    };
    await data.kv.commit(
      new Change().set(lineKeys.line(id), line).set(lineKeys.lineOfAccount(accountId, createdAt, id), id),
    );
  }
  data.close();
}
