/**
 * The node package for n8n: linted and built by n8n's own tool. With `--real` it is installed in a real n8n on a
 * sandbox, whose command line imports and runs the shipped workflows; the phones judge what arrives. Needs PostgreSQL.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type LinkedLine, openStage, type Stage, withStage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand } from "../command.ts";
import { run } from "./programs.ts";
import { judge, prepareActions, RETRIED } from "./n8n/actions.ts";
import { editor } from "./n8n/editor.ts";
import { openDoor, startOutside } from "./n8n/outside.ts";
import { buildPackage, PATH } from "./n8n/package.ts";
import { openN8n } from "./n8n/server.ts";
import { SHIPPED } from "./n8n/shipped.ts";
import { APPROVER, CUSTOMER, LINE, SILENT, type Trial } from "./n8n/trial.ts";
import { registered, switchesOff, verifies } from "./n8n/triggers.ts";
import { asking, nobodyAnswers, somebodyAnswers } from "./n8n/waiting.ts";
import { AGENT, chain, MANUALLY, MODEL, PALOMA, shippedWorkflows } from "./n8n/workflows.ts";

const command = scriptCommand("n8n", "Lints and builds the node package for n8n")
  .option("--real", "installs it in a real n8n as well, and runs the shipped workflows");
const { options } = parsed<{ real?: true }>(command);

const begun = performance.now();
const report = (text: string) => console.log(`${text} (${Math.round((performance.now() - begun) / 1000)} s)`);

/** Imports credentials and all workflows, runs one, and publishes the others: all by n8n's command line. */
async function byCommandLine(trial: Trial): Promise<void> {
  const { n8n, outside, door, stage } = trial;
  await using cleanup = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir();
  cleanup.defer(() => Deno.remove(folder, { recursive: true }));
  const credentials = join(folder, "credentials.json");
  const data = { baseUrl: door.url, apiKey: stage.apiKey };
  const { key } = (await stage.api.call("POST", "/account/keys", { name: "agent", scopes: ["read", "propose"] })).data;
  await Deno.writeTextFile(
    credentials,
    JSON.stringify([
      { ...PALOMA, type: "palomaApi", data },
      { ...AGENT, type: "palomaApi", data: { ...data, apiKey: key } },
      { ...MODEL, type: "openAiApi", data: { apiKey: "sk-none", url: outside.model } },
    ]),
  );
  await n8n.command("import:credentials", `--input=${credentials}`);
  await Deno.remove(credentials);

  const ids = await shippedWorkflows(folder, { webhook: outside.incoming, approver: APPROVER });
  assert.deepEqual(ids, Object.keys(SHIPPED).sort());
  const actions = await prepareActions(stage, trial.line);
  for (const workflow of [chain("actions", MANUALLY, actions), asking()]) {
    await Deno.writeTextFile(join(folder, `${workflow.id}.json`), JSON.stringify(workflow));
  }
  await n8n.command("import:workflow", "--separate", `--input=${folder}`);
  report("the workflows are imported");

  const said = await n8n.command("execute", "--id=actions", "--rawOutput");
  const { error, runData } = JSON.parse(said.slice(said.indexOf("{"))).data.resultData;
  assert.equal(error, undefined, JSON.stringify(error));
  for (const action of actions) {
    await judge(stage, action, runData[action.name][0].data.main[0].map(({ json }: { json: unknown }) => json));
  }
  assert.equal(door.lost, 1, "an answer was lost");
  const once = (await stage.inbox(CUSTOMER)).filter(({ text }) => text === RETRIED);
  assert.equal(once.length, 1, "and the retry sent nothing");
  report(`${actions.length} actions are run, and the phones have what was sent`);
  for (const id of [...ids, "asking"]) await n8n.command("publish:workflow", `--id=${id}`);
}

async function shipped(trial: Trial): Promise<void> {
  for (const [name, judge] of Object.entries(SHIPPED)) {
    await judge(trial);
    report(`${name} does what it should`);
  }
}

async function tryIt(trial: Trial): Promise<void> {
  await byCommandLine(trial);
  await trial.n8n.start();
  await registered(trial);
  report("n8n runs, and the workflows are published");
  await editor(trial);
  report("the credentials' test and the editor's menus work");
  // n8n looks once a minute for what has waited long enough.
  await Promise.all([nobodyAnswers(trial), shipped(trial)]);
  report("a question that nobody answers goes on when its time is up");
  await somebodyAnswers(trial);
  report("an answer wakes its question, also when n8n was killed in between");
  await verifies(trial);
  await switchesOff(trial);
  report("a trigger's webhook takes only what is signed, and is gone when it is switched off");
}

/** The actions that need neither n8n's expressions nor its files. */
async function alone(folder: string, stage: Stage, line: LinkedLine): Promise<void> {
  const actions = (await prepareActions(stage, line)).filter(({ parameters }) =>
    !JSON.stringify(parameters).includes("={{") && !("binaryField" in parameters)
  );
  const file = join(folder, "actions.json");
  await Deno.writeTextFile(file, JSON.stringify(actions.map(({ parameters }) => parameters)));
  const script = new URL("n8n/alone.ts", import.meta.url).pathname;
  const env = { PATH, PALOMA_URL: new URL(stage.gateway.baseUrl).origin, PALOMA_KEY: stage.apiKey };
  const outputs = JSON.parse(
    await run(folder, "node", ["--disable-warning=ExperimentalWarning", script, folder, file], env),
  );
  for (const [i, action] of actions.entries()) await judge(stage, action, outputs[i]);
  report(`${actions.length} actions are run without n8n, and the phone has what was sent`);
}

/** `use` gets a stage with a line, and phones to write to. */
function onLine(use: (stage: Stage, line: LinkedLine) => Promise<void>): Promise<void> {
  return withStage(openStage, async (stage) => {
    const line = await stage.linkLine(LINE);
    for (const [number, name] of [[CUSTOMER, "Ada"], [APPROVER, "Olga"], [SILENT, "Sam"]] as const) {
      await stage.addPhone(number, name);
    }
    await use(stage, line);
  });
}

const { folder, packed } = await buildPackage();
report("the lint is clean, and the package builds");
await onLine((stage, line) => alone(folder, stage, line));
if (options.real) {
  await using cleanup = new AsyncDisposableStack();
  const n8n = await openN8n(packed);
  cleanup.defer(() => n8n.end());
  const outside = startOutside();
  cleanup.defer(() => outside.end());
  await onLine(async (stage, line) => {
    const door = openDoor(new URL(stage.gateway.baseUrl).origin, RETRIED);
    try {
      await tryIt({ stage, line, n8n, outside, door });
    } finally {
      await door.end();
    }
  });
}
