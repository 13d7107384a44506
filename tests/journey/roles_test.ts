/** The API apart from the workers, on one PostgreSQL: who holds what, and what happens to it. */
import assert from "node:assert/strict";
import { type Client, type Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { tryCommand } from "../support/gateway_process.ts";
import { freePort } from "../support/free_port.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { type Process, RolesStage } from "../support/roles_stage.ts";
import { until } from "../support/until.ts";
import { tempFolder } from "../support/temp_folder.ts";

const ANA = "4917000000099";
const NUMBERS = Array.from({ length: 6 }, (_, i) => `49152000001${String(i).padStart(2, "0")}`);

Deno.test("a role apart needs a store that processes share, and says so", async () => {
  await using temp = await tempFolder();
  for (const role of ["api", "worker"]) {
    const env = { PALOMA_DATA_DIR: temp.path, PALOMA_STORE: "" };
    const { code, stderr } = await tryCommand([role], env);
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(`paloma ${role} needs a store that processes share: set PALOMA_STORE`));
  }
});

Deno.test({
  name: "two APIs and two workers serve the lines of one store, through kills, a freeze, a drain and a newcomer",
  ignore: postgresPrograms() === null,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn(t) {
    const stage = await RolesStage.open();
    try {
      await walk(t, stage);
    } catch (error) {
      for (const { stderr } of stage.processes) console.error(`A log ends with:\n${stderr().slice(-2500)}\n`);
      throw error;
    } finally {
      await stage.close();
    }
  },
});

async function walk(t: Deno.TestContext, stage: RolesStage): Promise<void> {
  const [one, two] = [await stage.start("api"), await stage.start("api")];
  const workers = [await stage.start("worker"), await stage.start("worker")];
  const [api, otherApi] = [stage.client(one), stage.client(two)];
  await stage.control.call("POST", "/phones", { number: ANA });
  let lines = new Map<string, string>();
  const sent: string[] = [];

  /** One text of each line; resolves to how long it took until all were at the phone, ms. */
  async function textFromEach(word: string, through: Client = api): Promise<number> {
    const begun = systemClock.now();
    await Promise.all([...lines].map(async ([number, sessionId]) => {
      const text = `${word} ${number}`;
      sent.push(text);
      await through.call("POST", "/messages/send/text", { sessionId, to: ANA, text });
    }));
    await until(async () => {
      const there = new Set((await stage.inbox(ANA)).map(({ text }: Json) => text));
      return sent.every((text) => there.has(text));
    }, `all texts "${word}"`);
    return systemClock.now() - begun;
  }

  const spread = async (of: readonly Process[]) => await Promise.all(of.map((worker) => stage.linesOf(worker)));
  const isEven = async (of: readonly Process[]) => {
    const counts = await spread(of);
    const all = counts.reduce((sum, count) => sum + count, 0) === NUMBERS.length;
    return all && Math.max(...counts) - Math.min(...counts) <= 1 ? counts : null;
  };

  await t.step("the doctor names the store and who works on it, and looks for no folder", async () => {
    const env = { ...stage.env, PALOMA_PORT: new URL(one.url).port, PALOMA_DATA_DIR: "/nowhere/at/all" };
    const { code, stdout, stderr } = await tryCommand(["doctor", "--json"], env);
    assert.equal(code, 0, stdout + stderr);
    const findings = new Map(JSON.parse(stdout).map(({ check, detail, hint }: Json) => [check, `${detail} → ${hint}`]));
    for (
      const [check, says] of [
        ["settings", "valid; links to received files point to the worker, which serves none → set PALOMA_PUBLIC_URL"],
        [
          "store",
          `${
            stage.env.PALOMA_STORE!.replace(/\/\/.*@/, "//")
          } can be read and written, 1 account, keys can be decrypted → null`,
        ],
        ["gateway", `ready at ${one.url} → null`],
        ["workers", "running: 2, with lines: 0, 0 → null"],
      ]
    ) assert.equal(findings.get(check), says);
    assert.match(findings.get("files") as string, /→ set PALOMA_MEDIA$/);
    for (const check of ["data folder", "file rights", "disk space"]) assert.ok(!findings.has(check), check);
  });

  await t.step("a worker serves health and metrics, and no API", async () => {
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      const answer = await fetch(workers[0]!.url + path);
      assert.equal(answer.status, 200, path);
      await answer.body?.cancel();
    }
    const { status, body } = await fetch(`${workers[0]!.url}/v1/account`, { headers: { "x-api-key": stage.apiKey } });
    await body?.cancel();
    assert.equal(status, 404);
  });

  await t.step("an operator looks at the gateway through an API, which has no disk to tell of", async () => {
    const { stdout } = await tryCommand(["operator", "link", "--json"], stage.env);
    const [, token] = JSON.parse(stdout).url.split("#");
    const panel = (path: string, init: RequestInit) => fetch(`${one.url}/panel/api${path}`, init);
    const joined = await panel("/join", {
      method: "POST",
      headers: { "x-paloma-panel": "1" },
      body: JSON.stringify({ token, login: "root", password: "a dove on the roof" }),
    });
    assert.equal(joined.status, 200, await joined.text());
    const cookie = joined.headers.get("set-cookie")!.split(";")[0]!;
    const overview = await panel("/operator/overview", { headers: { cookie } });
    const text = await overview.text();
    assert.equal(overview.status, 200, text);
    const { data } = JSON.parse(text);
    assert.deepEqual([data.accounts.length, data.disk], [1, null]);
  });

  await t.step("lines are linked through one API, spread evenly, and send through both", async () => {
    lines = await stage.linkLines(api, NUMBERS);
    await until(() => isEven(workers), "an even spread");
    await textFromEach("first", otherApi);
  });

  await t.step("what an API asks of a live line comes back from its owner", async () => {
    for (const sessionId of lines.values()) {
      const asked = await otherApi.call("GET", `/sessions/${sessionId}/contacts/${ANA}`);
      assert.equal(asked.data.exists, true);
      const health = await api.call("GET", `/sessions/${sessionId}/health`);
      assert.ok(health.data.connectedSince);
    }
  });

  await t.step("files are refused where no place for them is set, and nothing else is", async () => {
    const given = { file: btoa("name,number"), filename: "a.csv" };
    // No worker could keep what it fetches when the message's turn comes.
    const named = { fileUrl: `${one.url}/openapi.json` };
    for (
      const [kind, body] of [
        ["document", { to: ANA, ...given }],
        ["document", { to: ANA, ...named }],
        ["bulk", { sessionId: lines.get(NUMBERS[0]!), messages: [{ to: ANA, ...named }] }],
      ] as const
    ) {
      const answer = await fetch(`${one.url}/v1/messages/send/${kind}`, {
        method: "POST",
        headers: { "x-api-key": stage.apiKey, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      assert.equal(answer.status, 503, await answer.text());
    }
  });

  await t.step("the API answers as a fetch handler, without a right to write, run or load", async () => {
    const handler = await stage.startHandler(freePort());
    try {
      assert.equal((await stage.client(handler).call("GET", "/sessions")).data.length, NUMBERS.length);
    } finally {
      await handler.end();
    }
  });

  await t.step("a killed worker's lines send again within 10 s", async () => {
    const [dead] = workers.splice(0, 1);
    await stage.end(dead!, "SIGKILL");
    const took = await textFromEach("after a kill");
    console.log(`      all lines sent again ${(took / 1000).toFixed(1)} s after the kill`);
  });

  await t.step("a newcomer has its share soon, and no line loses anything", async () => {
    const begun = systemClock.now();
    workers.push(await stage.start("worker"));
    const counts = await until(() => isEven(workers), "an even spread");
    console.log(`      ${counts} lines, ${((systemClock.now() - begun) / 1000).toFixed(1)} s after its start`);
    await textFromEach("after a newcomer");
  });

  await t.step(
    "a worker that stood still until others had its lines changes nothing any more, and joins anew",
    async () => {
      const frozen = workers[0]!;
      Deno.kill(frozen.pid, "SIGSTOP");
      await textFromEach("during a freeze");
      Deno.kill(frozen.pid, "SIGCONT");
      await textFromEach("after a freeze");
      await until(() => isEven(workers), "an even spread");
      await until(() => /after a silence|nothing was written/.test(frozen.stderr()), "a word of it in its log");
      console.log(`      ${await stage.metric(frozen, "paloma_refused_writes_total")} of its writes were refused`);
    },
  );

  await t.step("a worker that is told to stop gives its lines up first", async () => {
    const [leaving] = workers.splice(0, 1);
    const ended = stage.end(leaving!, "SIGTERM");
    const took = await textFromEach("during a drain");
    assert.equal(await ended, 0);
    console.log(`      all lines sent ${(took / 1000).toFixed(1)} s after the signal`);
  });

  await t.step("while the store is away requests are 503 and roles stay up", async () => {
    await stage.store.halt();
    const answer = await fetch(`${one.url}/v1/account`, { headers: { "x-api-key": stage.apiKey } });
    assert.equal(answer.status, 503, await answer.text());
    await stage.store.start();
    await until(async () => {
      const ready = await fetch(`${one.url}/readyz`);
      await ready.body?.cancel();
      return ready.status === 200;
    }, "a store that is back");
    await textFromEach("after an outage");
  });

  await t.step("where nobody holds the line a question is answered with 504", async () => {
    for (const worker of workers.splice(0)) await stage.end(worker, "SIGKILL");
    const [sessionId] = lines.values();
    const answer = await fetch(`${one.url}/v1/sessions/${sessionId}/blocklist`, {
      headers: { "x-api-key": stage.apiKey },
    });
    assert.equal(answer.status, 504);
    assert.equal((await answer.json()).code, "network_timeout");
  });

  await t.step("each text was there once, each line's in order, and each event once in the feed", async () => {
    const texts = (await stage.inbox(ANA)).map(({ text }: Json) => text);
    assert.deepEqual([...texts].sort(), [...sent].sort());
    const own = (list: string[], number: string) => list.filter((text) => text.endsWith(number));
    for (const number of NUMBERS) assert.deepEqual(own(texts, number), own(sent, number));
    // What a killed worker could not record, the next one does.
    await stage.start("worker");
    const delivered = await until(async () => {
      const ids = (await feed(api)).filter(({ event }) => event === "message.sent").map(({ data }) => data.messageId);
      return ids.length >= sent.length ? ids : null;
    }, "an event of each message");
    assert.equal(delivered.length, sent.length);
    assert.equal(new Set(delivered).size, sent.length);
  });
}

/** Every event, oldest first. */
async function feed(api: Client): Promise<Json[]> {
  const events: Json[] = [];
  for (let after: string | null = null;;) {
    const page: Json = await api.call("GET", `/events?limit=100${after ? `&after=${after}` : ""}`);
    events.push(...page.data);
    if (page.next === null) return events;
    after = page.next;
  }
}
