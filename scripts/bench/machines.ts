/**
 * Many processes on one PostgreSQL: two APIs against one, how long a message takes from its 202 at an API to its
 * departure from a worker, and what idle lines ask of the store. Needs Debian's postgresql.
 */
import { join } from "node:path";
import { dataFolder } from "../../src/app.ts";
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
import type { Load, LoadResult } from "./load_client.ts";
import type { Machine } from "./machine.ts";
import { type Bench, percentile, type Result } from "./measure.ts";
import type { NetworkReady } from "./network.ts";

const CONNECTIONS = 64;
const WARM_MS = 3_000;
const MEASURE_MS = 3_000;
/** How long lines have to be held and connected, and for how long their queries are then counted. */
const SETTLE_MS = 20_000;
const IDLE_MS = 10_000;
const FEW = 5;
const MANY = 500;
const TEXTS = 60;
const TO = "4915559999999";
const TEXT = "Your parcel is on its way and arrives tomorrow between 9 and 12.";
const SECRET_KEY = "the secret key of the bench";

export const machines: Bench = {
  name: "machines",
  about: "two APIs to one, 202 to departure across processes, queries of idle lines",
  async run({ rounds, report }) {
    await using stack = new AsyncDisposableStack();
    const root = stack.adopt(await Deno.makeTempDir(), (folder) => Deno.remove(folder, { recursive: true }));
    const server = stack.adopt(await startPostgres({}), (server) => server.remove());
    const network = await startChild<NetworkReady>("./network.ts", null);
    const clients = [
      await startChild<true>("./load_client.ts", null),
      await startChild<true>("./load_client.ts", null),
    ];
    stack.defer(() => Promise.all([network, ...clients].map((child) => child.stop())).then(() => {}));
    const start = (machine: Machine) => startChild<GatewayReady>("./machine.ts", machine);
    const settings = () => ({ PALOMA_SECRET_KEY: SECRET_KEY });

    const linked = async (isPaused: boolean): Promise<LinkedFolder> =>
      await makeLinkedFolder(network, {
        root,
        options: {
          accounts: 1,
          lines: 1,
          settings: { ...settings(), PALOMA_STORE: await server.database() },
          async prepare(api, { sessionIds: [id] }) {
            if (isPaused) await api.call("POST", `/sessions/${id}/disconnect`);
          },
        },
      });

    const paused = await linked(true);
    async function accepted(apis: number): Promise<number> {
      const children: Child<GatewayReady>[] = [];
      for (let i = 0; i < apis; i++) children.push(await start({ role: "api", settings: paused.settings }));
      const [{ apiKey, sessionIds: [sessionId] }] = paused.accounts as [LinkedFolder["accounts"][0]];
      const results = await Promise.all(children.map(({ ready }, i) =>
        clients[i]!.ask<LoadResult>(
          {
            url: ready.url,
            requests: [{
              path: "/v1/messages/send/text",
              headers: { "x-api-key": apiKey },
              body: { sessionId, to: TO, text: TEXT },
            }],
            connections: CONNECTIONS / apis,
            warmMs: WARM_MS,
            measureMs: MEASURE_MS,
            status: 202,
          } satisfies Load,
        )
      ));
      for (const child of children) await child.stop();
      return results.reduce((sum, { perSecond }) => sum + perSecond, 0);
    }

    /** From the answer at an API to the network's server, on an idle line, ms. */
    async function departures(): Promise<number[]> {
      const { settings, accounts: [account] } = await linked(false);
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

    const ratios: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const [one, two] = [await accepted(1), await accepted(2)];
      report(`round ${i + 1}: one API ${one.toFixed(0)}/s, two ${two.toFixed(0)}/s`);
      ratios.push(two / one);
    }
    const tookMs = await departures();
    const [few, many] = [await idle(FEW), await idle(MANY)];
    const shown = [50, 90, 99].map((percent) => `p${percent} ${percentile(tookMs, percent)} ms`).join(", ");
    const results: Result[] = [
      { name: "accepted a second, two APIs / one", ratios, goal: null, detail: "of one account, on the same cores" },
      {
        name: "p50 from the 202 to the departure / 100 ms",
        ratios: [percentile(tookMs, 50) / 100],
        goal: { atMost: 1 },
        detail: shown,
      },
      {
        name: `queries a second, ${MANY} idle lines / ${FEW}`,
        ratios: [many / few],
        goal: { atMost: 1.5 },
        detail: `${many.toFixed(1)}/s against ${few.toFixed(1)}/s`,
      },
    ];
    return results;
  },
};

async function wireOf(control: Client): Promise<Json[]> {
  return await control.call("GET", "/wire") as unknown as Json[];
}

/** Lines that are linked, as far as their rows say. */
async function makeLines(settings: Record<string, string>, count: number): Promise<void> {
  const { PALOMA_STORE: store, PALOMA_SECRET_KEY: secretKey, PALOMA_DATA_DIR: dataDir } = settings;
  const runtime = systemRuntime(makeLog("error"));
  const data = await dataFolder.open({ dataDir: dataDir!, store: store!, secretKey: secretKey! }, runtime);
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
