/** A gateway on PostgreSQL: what its commands refuse, and how it takes a server that goes away and comes back. */
import assert from "node:assert/strict";
import { palomaCommand, runCommand, tryCommand } from "../support/gateway_process.ts";
import { startPostgres, WITHOUT_POSTGRES } from "../support/postgres.ts";
import { openStage, withStage } from "../support/stage.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { inTime, until } from "../support/until.ts";

const FRIEND = "5511900000077";
const KEY = "a key of all machines";

Deno.test({
  name: "on PostgreSQL a gateway outlives the server, and loses nothing that it has accepted",
  ignore: WITHOUT_POSTGRES,
  async fn() {
    const server = await startPostgres();
    try {
      // At the first of its hosts is nobody.
      const PALOMA_STORE = (await server.database()).replace("paloma@", "paloma:a-password@127.0.0.1:1,");
      const env = { PALOMA_STORE, PALOMA_SECRET_KEY: KEY };
      const plan = { delayMinMs: 20, delayMaxMs: 40 };
      await withStage(() => openStage({ env, plan }), async (stage) => {
        const { PALOMA_SECRET_KEY: _, ...keyless } = stage.env;
        const attempt = async (changed: Record<string, string>) =>
          await tryCommand(["account", "list", "--json"], changed);
        const refused = async (changed: Record<string, string>, code: number, words: RegExp) => {
          const { code: found, stderr } = await attempt(changed);
          assert.equal(found, code, stderr);
          assert.match(stderr, words);
          assert.doesNotMatch(stderr, /a-password/);
        };
        await refused(keyless, 2, /PALOMA_SECRET_KEY: is required with PALOMA_STORE/);
        await refused(
          { ...stage.env, PALOMA_SECRET_KEY: "another key, as long" },
          1,
          /is not the key that the data in/,
        );
        await refused({ ...stage.env, PALOMA_STORE: "postgres://127.0.0.1:1/none" }, 1, /PostgreSQL cannot be used/);
        assert.match(await runCommand(["account", "list"], stage.env), /stage/);

        const line = await stage.linkLine("4915550100071");
        await stage.addPhone(FRIEND);
        const texts: string[] = [];
        const send = async (text: string) => {
          const answer = await stage.request("POST", "/messages/send/text", {
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ ...line, to: FRIEND, text, sessionId: line.sessionId, number: undefined }),
          });
          const { code } = await answer.json();
          if (answer.status === 202) texts.push(text);
          return { status: answer.status, code };
        };
        for (let i = 0; i < 20; i++) assert.equal((await send(`before ${i}`)).status, 202);
        await server.halt();
        assert.deepEqual(await send("meanwhile"), { status: 503, code: "storage_unavailable" });
        const root = stage.gateway.baseUrl.replace(/\/v1$/, "");
        const statusOf = async (path: string) => {
          const answer = await fetch(root + path);
          await answer.body?.cancel();
          return answer.status;
        };
        assert.equal(await statusOf("/healthz"), 200);
        assert.equal(await statusOf("/readyz"), 503);
        await server.start();
        await until(async () => await statusOf("/readyz") === 200, "the gateway to be ready");
        for (let i = 0; i < 20; i++) assert.equal((await send(`after ${i}`)).status, 202);
        await stage.arrival(FRIEND, ({ text }) => text === texts.at(-1));
        assert.deepEqual((await stage.inbox(FRIEND)).map(({ text }) => text), texts);
      });
    } finally {
      await server.remove();
    }
  },
});

Deno.test({
  name: "commands that only look leave an empty database as a restore wants it, and a sandbox keeps off one in use",
  ignore: WITHOUT_POSTGRES,
  async fn() {
    await using temp = await tempFolder();
    const server = await startPostgres();
    try {
      const env = { PALOMA_STORE: await server.database(), PALOMA_SECRET_KEY: KEY, PALOMA_DATA_DIR: temp.path };
      const folder = { PALOMA_SECRET_KEY: KEY, PALOMA_DATA_DIR: temp.path };
      await runCommand(["account", "create", "--name", "restored"], folder);
      await runCommand(["backup", `${temp.path}/a.backup`], folder);

      const looked = await tryCommand(["doctor", "--json"], { ...env, PALOMA_WHATSAPP_URL: "ws://127.0.0.1:9/ws" });
      const found = JSON.parse(looked.stdout).find(({ check }: { check: string }) => check === "store");
      assert.match(found.detail, /^there is no data in postgres:\/\/127\.0\.0\.1:\d+\/paloma_1 yet$/);
      for (const args of [["account", "list"], ["plan", "list"]]) {
        const { code, stderr } = await tryCommand(args, env);
        assert.equal(code, 1);
        assert.match(stderr, /^There is no data in postgres:\S+: check PALOMA_STORE \(--store\)\./);
      }
      await runCommand(["restore", `${temp.path}/a.backup`], env);
      assert.match(await runCommand(["account", "list"], env), /restored/);
      // A backup opens no row, and says all the same that the key is another.
      const copied = await tryCommand(["backup", `${temp.path}/b.backup`], {
        ...env,
        PALOMA_SECRET_KEY: "another key, as long",
      });
      assert.equal(copied.code, 1, copied.stderr);
      assert.match(copied.stderr, /is not the key that the data in/);

      const { code, stderr } = await tryCommand(["sandbox", "--demo"], { ...env, PALOMA_PORT: "0" });
      assert.equal(code, 1);
      assert.match(stderr, /^postgres:\S+ is not a sandbox's own: /m);
      assert.equal(JSON.parse(await runCommand(["account", "list", "--json"], env)).length, 1);
    } finally {
      await server.remove();
    }
  },
});

Deno.test({
  name: "a role that starts while PostgreSQL is away, or goes away meanwhile, waits for it and says so",
  ignore: WITHOUT_POSTGRES,
  async fn() {
    await using temp = await tempFolder();
    const server = await startPostgres();
    try {
      const PALOMA_STORE = await server.database();
      const env = { PALOMA_STORE, PALOMA_SECRET_KEY: KEY, PALOMA_DATA_DIR: temp.path, PALOMA_PORT: "0" };
      await runCommand(["account", "create", "--name", "early"], env);
      for (const role of ["serve", "api", "worker"]) {
        await server.halt();
        const early = startingCommand(role, env);
        await until(() => early.stderr().includes("the store is away"), `${role} to say that it waits`);
        await server.start();
        await until(() => early.stdout().includes("\n"), `${role} to listen`);
        assert.equal(await early.end(), 0, early.stderr());

        // Another session holds all rows, so that the start is under way when the server goes.
        const holder = server.sql("begin; lock table paloma.row; select pg_sleep(60)", "paloma_1").catch(() => {});
        const waiting = (query: string) => `select count(*) from pg_stat_activity where ${query}`;
        await until(async () => await server.sql(waiting("wait_event = 'PgSleep'")) === "1", "the rows to be held");
        const interrupted = startingCommand(role, env);
        await until(
          async () => await server.sql(waiting("wait_event_type = 'Lock' and datname = 'paloma_1'")) !== "0",
          `${role} to read rows`,
        );
        await server.restart();
        await holder;
        await until(() => interrupted.stdout().includes("\n"), `${role} to listen`);
        assert.match(interrupted.stderr(), /the store is away/);
        assert.equal(await interrupted.end(), 0, interrupted.stderr());
      }

      await server.halt();
      const stopped = startingCommand("serve", env);
      await until(() => stopped.stderr().includes("the store is away"), "it to say that it waits");
      assert.equal(await stopped.end(), 0, stopped.stderr());
      await server.start();
      // Nothing that waiting would change.
      const wrong = { ...env, PALOMA_STORE: PALOMA_STORE.replace("paloma_1", "nowhere") };
      const { code, stderr } = await tryCommand(["serve"], wrong);
      assert.equal(code, 1);
      assert.match(stderr, /database "nowhere" does not exist/);
    } finally {
      await server.remove();
    }
  },
});

/** A command that stays up, and may take long to be ready. */
function startingCommand(role: string, env: Record<string, string>) {
  const child = palomaCommand([role, "--json"], env).spawn();
  const printed = { stdout: "", stderr: "" };
  const drained = (["stdout", "stderr"] as const).map((name) =>
    child[name].pipeThrough(new TextDecoderStream()).pipeTo(
      new WritableStream({ write: (part) => void (printed[name] += part) }),
    )
  );
  return {
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
    async end(): Promise<number> {
      child.kill("SIGTERM");
      const [{ code }] = await inTime(Promise.all([child.status, ...drained]), `${role} to end: ${printed.stderr}`);
      return code;
    },
  };
}
