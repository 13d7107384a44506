/**
 * Accepting messages on PostgreSQL, against a bare server that makes one raw INSERT commit a request on the same server;
 * and by how much a message makes it grow. Needs Debian's postgresql.
 */
import { join } from "node:path";
import { messageKeys } from "../../src/message/rows.ts";
import type { Range } from "../../src/store/kv.ts";
import { rangeBytes } from "../../src/store/layers/key_bytes.ts";
import { startPostgres } from "../../tests/support/postgres.ts";
import { startChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";
import { makeLinkedFolder } from "./linked_folder.ts";
import type { Load, LoadResult } from "./load_client.ts";
import { type Bench, medians, type Result } from "./measure.ts";
import { openSite } from "./network.ts";
import { bareSends, loadWith, pauseLine, SECRET_KEY, sendsOf } from "./sends.ts";

export const postgres: Bench = {
  name: "postgres",
  about: "accepted messages a second on PostgreSQL, against a raw INSERT a request; growth",
  async run({ rounds, report }) {
    await using stack = new AsyncDisposableStack();
    const site = stack.use(await openSite());
    const server = stack.adopt(await startPostgres({}), (server) => server.remove());
    const client = stack.use(await startChild<true>("./load_client.ts", null));

    const load = async (url: string, requests: Load["requests"]): Promise<LoadResult> =>
      (await loadWith([client], [{ url, requests }]))[0]!;
    const number = async (sql: string, database: string) => Number(await server.sql(sql, database));
    const nameOf = (url: string) => new URL(url).pathname.slice(1);

    const store = await server.database();
    const folder = await makeLinkedFolder(site, {
      accounts: 1,
      lines: 1,
      settings: { PALOMA_STORE: store, PALOMA_SECRET_KEY: SECRET_KEY },
      prepare: pauseLine,
    });
    async function accepted(round: number): Promise<LoadResult & { rows: number; bytes: number }> {
      const name = `round_${round}`;
      await server.sql(`create database ${name} template ${nameOf(store)}`);
      const before = await number("select count(*) from paloma.row", name);
      const PALOMA_STORE = store.replace(nameOf(store), name);
      const settings = { ...folder.settings, PALOMA_STORE, PALOMA_DATA_DIR: join(site.root, name) };
      const gateway = await startChild<GatewayReady>("./gateway.ts", settings);
      const result = await load(gateway.ready.url, sendsOf(folder.accounts));
      await gateway.stop();
      const rows = await number("select count(*) from paloma.row", name) - before;
      const messages = await number(countIn({ prefix: messageKeys.messages() }), name);
      const bytes = await number("select pg_total_relation_size('paloma.row')", name);
      return { ...result, rows: rows / messages, bytes: bytes / messages };
    }

    async function raw(): Promise<LoadResult> {
      const bare = await startChild<{ url: string }>("./bare_server.ts", { path: await server.database() });
      const result = await load(bare.ready.url, bareSends);
      await bare.stop();
      return result;
    }

    const measured: { raw: LoadResult; gateway: Awaited<ReturnType<typeof accepted>> }[] = [];
    for (let i = 0; i < rounds; i++) {
      const round = { raw: await raw(), gateway: await accepted(i) };
      measured.push(round);
      const shown = (of: LoadResult) => `${of.perSecond.toFixed(0)}/s p99 ${of.p99Ms.toFixed(1)} ms`;
      report(`round ${i + 1}: raw ${shown(round.raw)}, gateway ${shown(round.gateway)}`);
    }
    const gateway = medians(measured.map((round) => ({ ...round.gateway })));
    const bare = medians(measured.map((round) => ({ ...round.raw })));
    report(`${gateway.rows.toFixed(1)} rows a message that waits, ${gateway.bytes.toFixed(0)} bytes with the index`);
    const results: Result[] = [
      {
        name: "accepted a second / raw INSERT commit a request",
        ratios: measured.map((round) => round.gateway.perSecond / round.raw.perSecond),
        goal: { atLeast: 2 },
        detail: `${gateway.perSecond.toFixed(0)}/s against ${bare.perSecond.toFixed(0)}/s`,
      },
    ];
    return results;
  },
};

function countIn(range: Range<unknown>): string {
  const { from, to } = rangeBytes(range);
  return `select count(*) from paloma.row where key >= '\\x${from.toString("hex")}' and key < '\\x${
    to.toString("hex")
  }'`;
}
