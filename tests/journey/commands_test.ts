/** Commands beside a running gateway on the same data: what they change is in force soon, a new key at once. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { httpClient, type Json } from "../../src/cli/client.ts";
import { openDiskMediaStore } from "../../src/media/disk_store.ts";
import { freePort } from "../support/free_port.ts";
import { runCommand, tryCommand } from "../support/gateway_process.ts";
import { HAS_TERMINAL, onTerminal } from "../support/pseudo_terminal.ts";
import { testRuntime } from "../support/runtime.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const run = async ({ env }: Stage, ...args: string[]): Promise<Json> =>
  JSON.parse(await runCommand([...args, "--json"], env));

/** The status and code with which the gateway answers the key now. */
async function answer({ gateway }: Stage, key: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`${gateway.baseUrl}/sessions`, { headers: { "x-api-key": key, ...headers } });
  const body = await response.json();
  return `${response.status}${body.code ? ` ${body.code}` : ""}`;
}

async function becomes(stage: Stage, key: string, expected: string): Promise<void> {
  await until(async () => await answer(stage, key) === expected, `the key to be answered with ${expected}`);
}

onStage("accounts are made, limited, stopped and let go on while the gateway runs", async (stage) => {
  const made = await run(stage, "account", "create", "--name", "acme", "--plan", "free");
  assert.deepEqual(Object.keys(made), ["accountId", "name", "plan", "apiKey"]);
  const { accountId: id, apiKey } = made;
  stage.secrets.add(apiKey);
  assert.equal(await answer(stage, apiKey), "200");

  for (
    const [command, expected] of [
      [["account", "deactivate", id], "401 account_deactivated"],
      [["account", "activate", id], "200"],
      [["account", "expire", id], "403 subscription_expired"],
      [["account", "expire", id, "--at", "never"], "200"],
      [["account", "restrict", id, "--allowed-ips", "10.0.0.0/8"], "403 ip_not_allowed"],
      [["account", "restrict", id, "--allowed-ips", "10.0.0.0/8,127.0.0.1"], "200"],
      [["account", "restrict", id, "--allowed-ips", "", "--allowed-domains", "acme.example"], "403 domain_not_allowed"],
    ] as const
  ) {
    await run(stage, ...command);
    await becomes(stage, apiKey, expected);
  }
  assert.equal(await answer(stage, apiKey, { origin: "https://shop.acme.example" }), "200");
  await run(stage, "account", "restrict", id, "--allowed-domains", "");
  await becomes(stage, apiKey, "200");

  const listed: Json[] = await run(stage, "account", "list");
  assert.deepEqual(listed.map(({ name }) => name).sort(), ["acme", "stage"]);
  assert.ok(!JSON.stringify(listed).includes(apiKey), "the list shows a key");
  assert.equal((await run(stage, "account", "show", id)).apiKey, apiKey);
});

onStage("a rotated key stops at once, and the new one works at once", async (stage) => {
  assert.equal(await answer(stage, stage.apiKey), "200");
  const { apiKey } = await run(stage, "account", "rotate-key", stage.accountId);
  stage.secrets.add(apiKey);
  assert.equal(await answer(stage, stage.apiKey), "401 api_key_invalid");
  assert.equal(await answer(stage, apiKey), "200");
});

onStage("a plan that is edited, and another plan, are in force for the next request", async (stage) => {
  const { accountId, apiKey } = await run(stage, "account", "create", "--name", "small", "--plan", "free");
  stage.secrets.add(apiKey);
  const api = httpClient(stage.gateway.baseUrl, { "x-api-key": apiKey });
  const create = () => api.call("POST", "/sessions", { name: "one more" });
  await create();
  await assert.rejects(create, /403.*session_limit_reached/);
  const pauses = ["--delay-min", "1s", "--delay-max", "2s"];
  await run(stage, "plan", "set", "team", "--sessions", "2", "--daily", "500", ...pauses);
  await run(stage, "account", "set-plan", accountId, "team");
  await until(() => create().catch(() => null), "a second session");
  await assert.rejects(create, /403.*session_limit_reached/);
  await run(stage, "plan", "set", "team", "--sessions", "3", ...pauses);
  await until(() => create().catch(() => null), "a third session");
  const team = (await run(stage, "plan", "list")).find(({ name }: Json) => name === "team");
  assert.deepEqual([team.sessions, team.daily, team.delayMinMs, team.delayMaxMs], [3, 500, 1_000, 2_000]);

  const limits = [
    "--hours",
    "mon-fri 09:00-18:00 Europe/Madrid",
    "--new-chats-daily",
    "20",
    "--warm-up",
    "--typing",
    "2s",
  ];
  const hours = { days: ["mon", "tue", "wed", "thu", "fri"], from: "09:00", to: "18:00", timeZone: "Europe/Madrid" };
  const limited = { ...team, hours, newChatsDaily: 20, warmUp: true, typingMs: 2_000 };
  assert.deepEqual(await run(stage, "plan", "set", "team", ...limits), limited);
  const lifted = ["--hours", "none", "--new-chats-daily", "none", "--no-warm-up", "--typing", "0"];
  assert.deepEqual(await run(stage, "plan", "set", "team", ...lifted), team);
  assert.equal((await tryCommand(["plan", "delete", "team"], stage.env)).code, 1, "an account is on it");
  await run(stage, "account", "set-plan", accountId, "own");
  assert.deepEqual(await run(stage, "plan", "delete", "team"), { name: "team", deleted: true });
  const renamed = await run(stage, "account", "rename", accountId, "Small & Sons");
  assert.deepEqual([renamed.name, renamed.plan], ["Small & Sons", "own"]);
  assert.deepEqual(await run(stage, "account", "delete", accountId), { accountId, deleted: true });
  assert.equal((await tryCommand(["account", "show", accountId], stage.env)).code, 1);
  await becomes(stage, apiKey, "401 api_key_invalid");
});

onStage(
  "a command that asks for nonsense says so, changes nothing, and tells failure from wrong usage",
  async (stage) => {
    const before = await run(stage, "account", "list");
    for (
      const [args, expected, says] of [
        [["account", "show", "acc_nobody"], 1, /There is no account acc_nobody/],
        [["account", "set-plan", stage.accountId, "gold"], 2, /gold/],
        [["account", "expire", stage.accountId, "--at", "soon"], 2, /"soon" is not a date/],
        [["account", "expire", stage.accountId, "--at", "01.02.2027"], 2, /"01.02.2027" is not a date/],
        [["account", "expire", stage.accountId, "--at", "2027-02-30"], 2, /"2027-02-30" is not a date/],
        [["plan", "set", "own", "--delay-min", "1m"], 2, /--delay-min must not exceed the maximum pause/],
        [["account", "restrict", stage.accountId], 2, /--allowed-ips, --allowed-domains/],
        [["account", "restrict", stage.accountId, "--allowed-ips", "300.1.1.1"], 2, /300\.1\.1\.1/],
        [
          ["plan", "set", "odd", "--sessions", "1", "--delay-min", "9s", "--delay-max", "1s"],
          2,
          /--delay-min must not exceed/,
        ],
        [["plan", "set", "odd", "--daily", "5"], 2, /--sessions is needed for a new plan; --delay-min is needed/],
        [["account", "create", "--name", "two\nlines"], 2, /must be one line/],
        [["account", "show", stage.accountId, "--data-dir", "/no/such/folder"], 1, /no data in \/no\/such\/folder/],
        [["rekey", "--data-dir", "/no/such/folder"], 1, /no data in \/no\/such\/folder/],
        [["plan", "set", "free", "--hours", "office"], 2, /mon-fri 09:00-18:00/],
        [["plan", "set", "free", "--hours", "mon 09:00-18:00 Nowhere"], 2, /time zone/],
        [["plan", "delete", "odd"], 1, /There is no such plan/],
        [["plan", "set", "odd", "--sessions", "many", "--delay-min", "1s", "--delay-max", "2s"], 2, /"many"/],
      ] as const
    ) {
      const { code, stdout, stderr } = await tryCommand(args, stage.env);
      assert.equal(code, expected, `${args.join(" ")}: ${stderr}`);
      assert.equal(stdout, "");
      assert.match(stderr, says);
    }
    assert.deepEqual(await run(stage, "account", "list"), before);
    assert.ok((await run(stage, "plan", "list")).every(({ name }: Json) => name !== "odd"));
  },
);

Deno.test("a mistyped data folder is found out: looking makes none, and what makes one says so", async () => {
  await using folder = await tempFolder();
  const dataDir = join(folder.path, "dtaa");
  const env = { PALOMA_DATA_DIR: dataDir };
  for (
    const args of [
      ["account", "list"],
      ["plan", "list"],
      ["plan", "delete", "own"],
      ["operator", "link"],
      ["link", "Office"],
    ]
  ) {
    const { code, stdout, stderr } = await tryCommand(args, env);
    assert.deepEqual([code, stdout], [1, ""], args.join(" "));
    assert.match(stderr, /^There is no data in \S+dtaa: check PALOMA_DATA_DIR \(--data-dir\)\./);
  }
  assert.deepEqual([...Deno.readDirSync(folder.path)], []);
  const create = ["account", "create", "--name", "first"];
  const { code, stderr } = await tryCommand(create, env);
  assert.deepEqual([code, stderr], [0, `There was no data in ${dataDir}: created it.\n`]);
  const again = await tryCommand(create, env);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /^Account acc_\w{26} is named first already: choose another name, or --same-name\.$/m);
  assert.equal((await tryCommand([...create, "--same-name"], env)).stderr, "");
});

Deno.test({
  name: "what root makes in the folder of a service belongs to the service",
  ignore: Deno.build.os === "windows" || Deno.uid() !== 0,
  async fn() {
    await using folder = await tempFolder();
    const SERVICE = 65_534;
    await Deno.chown(folder.path, SERVICE, SERVICE);
    await runCommand(["account", "create", "--name", "acme"], { PALOMA_DATA_DIR: folder.path });
    const media = await openDiskMediaStore(join(folder.path, "media"), testRuntime());
    await media.write(new Blob(["a file"]).stream(), 10);
    const paths = [...Deno.readDirSync(folder.path)].map(({ name }) => join(folder.path, name));
    for await (const files of media.folders()) for (const { path } of files) paths.push(path, join(path, ".."));
    assert.ok(paths.length >= 5, paths.join());
    assert.deepEqual(paths.filter((path) => Deno.statSync(path).uid !== SERVICE), []);
  },
});

onStage("of several accounts, a command uses the key of the one that is named", async (stage) => {
  const { accountId } = await run(stage, "account", "create", "--name", "acme");
  const namesake = await run(stage, "account", "create", "--name", "acme", "--same-name");
  for (const { apiKey } of [await run(stage, "account", "show", accountId), namesake]) stage.secrets.add(apiKey);
  const link = (...options: string[]) =>
    tryCommand(["link", "Office", "--number", "49", ...options, "--url", stage.gateway.baseUrl], stage.env);
  for (
    const [options, code, says] of [
      [[], 2, /^There are several accounts: choose one with --account NAME, --key, or PALOMA_API_KEY\.$/m],
      [["--account", "acme"], 2, /^There are several accounts named acme: choose one with --account ID\.$/m],
      [["--account", "nobody"], 1, /^There is no account named nobody: paloma account list shows them\.$/m],
      // The gateway has taken the key, and refuses the number.
      [["--account", "stage"], 1, /pairingPhone: must have 7 to 15 digits/],
      [["--account", accountId], 1, /pairingPhone: must have 7 to 15 digits/],
    ] as const
  ) {
    const outcome = await link(...options);
    assert.equal(outcome.code, code, outcome.stderr);
    assert.match(outcome.stderr, says);
  }
});

Deno.test({
  name: "on a terminal an account is deleted once its name was typed, or with --yes",
  ignore: !HAS_TERMINAL,
  async fn() {
    await using folder = await tempFolder();
    const env = { PALOMA_DATA_DIR: folder.path };
    const create = async () =>
      JSON.parse(await runCommand(["account", "create", "--name", "acme", "--json"], env)).accountId;
    /** Types the answer once the command asks. */
    const typed = (args: string[], answer: string) =>
      onTerminal(args, env, { when: "to delete it:", type: `${answer}\n` });
    const id = await create();
    const kept = await typed(["account", "delete", id], "amce");
    assert.match(kept.shown, /Type its name, acme, to delete it:[^]*Nothing is deleted\./);
    assert.equal(kept.code, 1);
    assert.match(await runCommand(["account", "show", id], env), /acme/);
    const deleted = await typed(["account", "delete", id], "acme");
    assert.deepEqual([deleted.code, /is deleted/.test(deleted.shown)], [0, true], deleted.shown);
    const unasked = await typed(["account", "delete", await create(), "--yes"], "");
    assert.deepEqual([unasked.code, /to delete it:/.test(unasked.shown)], [0, false], unasked.shown);
  },
});

onStage("what the gateway refuses is a sentence, and no document", async ({ gateway, apiKey }) => {
  const wrongKey = "401 (api_key_invalid): The key is unknown;";
  for (
    const [args, says] of [
      [["link", "Office", "--key", "pk_wrong"], `GET /sessions answered ${wrongKey}`],
      [["listen", "--key", "pk_wrong"], `The gateway answered ${wrongKey}`],
      [
        ["link", "Office", "--key", apiKey, "--number", "49"],
        "POST /sessions answered 400 (validation_failed): pairingPhone: must have 7 to 15 digits",
      ],
    ] as const
  ) {
    const { code, stderr } = await tryCommand([...args, "--url", gateway.baseUrl], {});
    assert.equal(code, 1);
    assert.ok(stderr.startsWith(says) && !stderr.includes("{"), stderr);
  }
});

Deno.test("commands that reach no gateway say why", async () => {
  const port = String(freePort());
  const url = `http://127.0.0.1:${port}/v1`;
  for (
    const args of [
      ["healthcheck", "--port", port],
      ["listen", "--key", "pk_any", "--url", url],
      ["listen", "--key", "pk_any", "--url", url, "--webhook"],
      ["link", "Office", "--key", "pk_any", "--url", url],
    ]
  ) {
    const { code, stderr } = await tryCommand(args, {});
    assert.equal(code, 1, args.join(" "));
    assert.match(stderr, /connection refused/i, args.join(" "));
  }
});

Deno.test("a data folder that the system refuses is one line, and no stack", async () => {
  const { code, stderr } = await tryCommand(["serve"], {
    PALOMA_DATA_DIR: `/tmp/${"long".repeat(100)}`,
    PALOMA_PORT: "0",
  });
  assert.equal(code, 1);
  assert.match(stderr, /^File name too long .*\n$/);
});

Deno.test("a data folder that is none is named by every command, and a finding of the doctor's among others", async () => {
  await using temp = await tempFolder();
  const env = { PALOMA_DATA_DIR: join(temp.path, "file"), PALOMA_WHATSAPP_URL: "ws://127.0.0.1:9/ws" };
  await Deno.writeTextFile(env.PALOMA_DATA_DIR, "");
  const unusable = /^the data folder \S+ cannot be used \(.*PALOMA_DATA_DIR \(--data-dir\) names another/;
  for (const args of [["account", "list"], ["plan", "set", "new"], ["rekey"], ["backup", join(temp.path, "b")]]) {
    const { code, stderr } = await tryCommand(args, env);
    assert.equal(code, 1);
    assert.match(stderr, unusable, args.join(" "));
  }
  const { code, stdout } = await tryCommand(["doctor", "--json"], env);
  assert.equal(code, 1);
  const findings = new Map(JSON.parse(stdout).map((finding: Json) => [finding.check, finding.detail]));
  assert.match(String(findings.get("data folder")), unusable);
  assert.ok(findings.has("messaging network"), [...findings.keys()].join());
});
