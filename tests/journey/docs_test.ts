/** The documentation as its reader meets it: every command of every page, typed into a shell in the order of the pages. */
import assert from "node:assert/strict";
import { httpClient, type Json, linkByQr } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { startNetwork } from "../../src/sandbox/network.ts";
import { freePort } from "../support/free_port.ts";
import { guides, shellBlocks, type ShellCommand } from "../support/guides.ts";
import { startPostgres, WITHOUT_POSTGRES } from "../support/postgres.ts";
import { s3Program, startS3 } from "../support/s3_server.ts";
import { staysUp, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { silentRuntime } from "../support/runtime.ts";

const LINE = "4915200000051";
const READER = "447700900123";
/** The phones that are in the sandbox from the start. */
const SANDBOX = ["447700900001", "447700900002"];
const SECRET_KEY = "a secret that all machines share";

/** What is not typed here, and why. That the tasks exist is a test of `tests/unit/docs_test.ts`. */
const NOT_TYPED: readonly (readonly [RegExp, string])[] = [
  [/^npx -y deno@[\d.]+ task (?:ok|test)$/, "would run this test"],
  [/^npx -y deno@[\d.]+ task (?:bench|chaos)$/, "takes many minutes"],
  [/^npx -y deno@[\d.]+ run .* main\.ts sandbox --demo$/, "tests/journey/sandbox_test.ts goes through it"],
  [/^paloma chatwoot /, "tests/journey/chatwoot_test.ts runs it, with a Chatwoot to talk to"],
  [/^npx -y deno@[\d.]+ task compile$/, "takes a minute; tests/journey/executable_test.ts is about what it makes"],
];

/** Pages that `tests/journey/recipes_test.ts` follows. */
const FOLLOWED = /^docs\/(?:recipes\/|es\/|pt\/|start\.md)/;

const isRequest = ({ text }: ShellCommand) => text.startsWith("curl ");

function placeOf({ path, hasRequest }: { path: string; hasRequest: boolean }): number {
  return path === "README.md" ? 0 : hasRequest ? 1 : 2;
}

Deno.test({
  name: "every command of the pages works as it stands",
  ignore: WITHOUT_POSTGRES || s3Program() === null,
  async fn() {
    const network = await startNetwork({ runtime: silentRuntime() });
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => network.close());
    const postgres = await startPostgres();
    cleanup.defer(() => postgres.remove());
    const bucket = await startS3();
    cleanup.defer(() => bucket.remove());
    const port = freePort();
    const control = httpClient(network.controlUrl);
    for (const number of [LINE, READER, ...SANDBOX]) await control.call("POST", "/phones", { number, name: "Phone" });

    await using terminal = await Terminal.open({
      PALOMA_WHATSAPP_URL: network.url,
      PALOMA_WHATSAPP_ROOT_KEY: network.rootKey,
      PALOMA_WHATSAPP_MEDIA_URL: network.mediaUrl,
      PALOMA_OUTBOUND_ALLOW: "127.0.0.0/8",
      PALOMA_SECRET_KEY: SECRET_KEY,
      PALOMA_PORT: String(port),
      ...bucket.env,
      PALOMA_MEDIA: "",
    });
    await Deno.writeTextFile(terminal.at("/etc/paloma.passphrase"), "correct horse battery\n");
    for (const folder of ["old", "paloma"]) {
      await Deno.symlink(terminal.at("/home/data"), terminal.at(`/srv/${folder}`));
    }

    // What stands for something of the reader's own, in the order in which it becomes known.
    const filled: [string, string][] = [
      ["'postgres://paloma:…@db/paloma'", await postgres.database()],
      ["postgres://…", await postgres.database()],
      ["'s3://bucket/prefix?endpoint=…&region=…'", `'${bucket.env.PALOMA_MEDIA}'`],
      ["s3://…", `'${bucket.env.PALOMA_MEDIA}'`],
      ["PALOMA_SECRET_KEY=…", `PALOMA_SECRET_KEY='${SECRET_KEY}'`],
      ["2026-11-22", new Date().toISOString().slice(0, 10)],
      // The line of the sandbox.
      ["/v21.0/447700900001/", `/v21.0/${LINE}/`],
      ["localhost:8080", `localhost:${port}`],
      ["localhost:8081", new URL(network.controlUrl).host],
    ];
    const fill = (text: string) => filled.reduce((typed, [from, to]) => typed.replaceAll(from, to), text);
    const api = () => {
      const key = filled.find(([from]) => from === "pk_…")?.[1];
      return httpClient(`http://localhost:${port}/v1`, { "x-api-key": key! });
    };
    const scan = async () => {
      const session = await until(
        async () => (await api().call("GET", "/sessions")).data[0],
        "the session of `paloma link`",
      );
      filled.push(["ses_01k…", session._id]);
      // The guides schedule for a day that will be past.
      filled.push(["2026-12-01T09:00:00Z", new Date(systemClock.now() + 86_400_000).toISOString()]);
      await linkByQr(systemClock, { api: api(), control, sessionId: session._id, phone: LINE });
    };

    // Requests come before what moves the line that they use.
    const blocks = guides().filter(({ path }) => !FOLLOWED.test(path)).flatMap((page) =>
      shellBlocks(page).map((block) => ({ path: page.path, block, hasRequest: block.some(isRequest) }))
    ).toSorted((a, b) => placeOf(a) - placeOf(b));
    const typed: string[] = [];
    /** By page: its first request says which key is used, for all others too. */
    const keys = new Map<string, string>();
    for (const { path, block } of blocks) {
      const exports = path === "docs/machines.md" ? ["export PALOMA_PORT=0"] : [keys.get(path) ?? []].flat();
      for (const command of block) {
        if (NOT_TYPED.some(([pattern]) => pattern.test(command.text))) continue;
        const text = fill(command.text);
        assert.ok(!text.includes("…"), `${command.place}: ${text}: nothing stands for … here`);
        const printed = await terminal.type(
          { ...command, text },
          exports,
          /^paloma link/.test(text) ? scan : undefined,
        );
        if (/^export PALOMA_API_KEY=/.test(text)) keys.set(path, text);
        if (/^(?:export )?[A-Z_]+=\S*$|^export /.test(text)) exports.push(text);
        if (/^paloma account create/.test(text)) {
          filled.push(["pk_…", /pk_[\w-]+/.exec(printed)![0]], ["acc_01k…", /acc_\w+/.exec(printed)![0]]);
        }
        if (isRequest(command)) {
          const { code, error } = JSON.parse(printed);
          assert.ok(!code && !error, `${command.place}: ${printed}`);
        }
        // The gateway of the README serves all pages.
        if (staysUp(command) && text !== "paloma serve") await terminal.end(command);
        typed.push(text);
      }
    }
    assert.ok(typed.length >= 25, `only ${typed.length} were typed`);
    await until(
      async () =>
        (await control.call("GET", `/phones/${READER}/messages`)).find((one: Json) => one.text === "Hello from Paloma"),
      "the README's message at the phone",
    );
  },
});
