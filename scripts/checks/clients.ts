/**
 * Checks, builds and tests the client of each language, runs its README, and has it send through lost connections and a
 * `kill -9` of the gateway: each text is then at the phone once. The full size is `--sends 1000`.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { Receiver } from "../../tests/support/receiver.ts";
import { sampleFile } from "../../tests/support/sample_files.ts";
import { openStage, type Stage, withStage } from "../../tests/support/stage.ts";
import { until } from "../../tests/support/until.ts";
import { eachOnce } from "../clients/each_once.ts";
import { parsed, scriptCommand, whole } from "../command.ts";
import { type Language, LANGUAGES } from "./clients/languages.ts";
import { startScripted } from "./clients/scripted.ts";
import { run } from "./programs.ts";

const command = scriptCommand("clients", "Checks, builds and tests the clients of all languages")
  .argument("[names...]", "languages; all if left out")
  .option("--sends <number>", "texts that each client sends through lost connections", whole, 120);
const { args: names, options: { sends } } = parsed<{ sends: number }>(command);

const CLIENTS = join(import.meta.dirname!, "../../clients");
const LINE = "447700900001";
/** The number in the READMEs. */
const TO = "447700900123";

/** The client of a language, installed, and the gateway that it is tried on. */
interface Trial {
  language: Language;
  stage: Stage;
  folder: string;
  /** What is made, and where programs run. */
  made: string;
  env: Record<string, string>;
}

async function tryClient(name: string, language: Language): Promise<void> {
  const folder = join(CLIENTS, name);
  const made = await Deno.makeTempDir({ prefix: `client-${name}-` });
  await language.build(folder, made);
  console.log(`${name}: checked and built`);
  await withStage(openStage, async (stage) => {
    await stage.linkLine(LINE);
    await stage.addPhone(TO);
    await using scripted = startScripted();
    const env = {
      ...language.shell(made),
      // For the README, and for the tests.
      PALOMA_URL: stage.gateway.baseUrl,
      PALOMA_API_KEY: stage.apiKey,
      BASE_URL: stage.gateway.baseUrl,
      API_KEY: stage.apiKey,
      CONTROL_URL: stage.network.controlUrl,
      SCRIPTED_URL: scripted.url,
      WEBHOOK: await signedRequest(stage, made),
      TO,
    };
    const trial = { language, stage, folder, made, env };
    await followReadme(trial);
    console.log(`${name}: the README does what it says`);
    await run(made, ...argumentsOf(language.test(folder)), env);
    console.log(`${name}: its own tests pass`);
  });
  await withStage(openStage, async (stage) => {
    const [program, ...args] = language.run(join(folder, language.flood));
    const begun = performance.now();
    const spawn = (env: Record<string, string>) =>
      new Deno.Command(program, { args, cwd: made, env, stdin: "null", stdout: "piped", stderr: "piped" }).spawn();
    const lost = await eachOnce(stage, { sends, spawn });
    const seconds = Math.round((performance.now() - begun) / 1_000);
    console.log(
      `${name}: ${sends} sends in ${seconds} s, each once; ${lost.requests} requests, ${lost.answers} answers lost`,
    );
  });
  await Deno.remove(made, { recursive: true });
}

/** A request that the gateway signed with two secrets, in a file. */
async function signedRequest(stage: Stage, folder: string): Promise<string> {
  const receiver = await Receiver.start();
  const { data: webhook } = await stage.api.call("POST", "/webhooks", { url: receiver.url });
  const { data: rotated } = await stage.api.call("POST", `/webhooks/${webhook.id}/rotate-secret`);
  await stage.api.call("POST", `/webhooks/${webhook.id}/test`);
  const { body, headers } = await until(() => receiver.requests[0], "a request of the webhook");
  await stage.api.call("DELETE", `/webhooks/${webhook.id}`);
  await receiver.close();
  const path = join(folder, "webhook.json");
  const secrets = [rotated.secret, webhook.secret];
  await Deno.writeTextFile(path, JSON.stringify({ body: Buffer.from(body).toString("base64"), headers, secrets }));
  return path;
}

/** Types the README's commands into a shell and runs its code, in its order. */
async function followReadme({ language, stage, folder, made, env }: Trial): Promise<void> {
  const { fence, ending } = language;
  await Deno.writeFile(join(made, "invoice.pdf"), sampleFile("pdf"));
  const readme = await Deno.readTextFile(join(folder, "README.md"));
  const said = { sent: false, received: false, verified: false };
  let number = 0;
  for (const [, kind, code] of readme.matchAll(/^```(\w+)\n([^]*?)^```$/gm)) {
    if (kind === "sh") {
      await run(made, "bash", ["-ec", code!], env);
      continue;
    }
    assert.equal(kind, fence, "what the README's code is written in");
    const file = join(made, `readme${++number}.${ending}`);
    const isReceiver = /verify_?webhook|Webhook::verify/i.test(code!);
    await Deno.writeTextFile(file, isReceiver ? code + language.webhook : code!);
    if (/events\(/.test(code!)) {
      for (const text of ["one", "two"]) {
        const child = new Deno.Command(...commandOf(language.run(file), made, env)).spawn();
        await stage.control.call("POST", `/phones/${TO}/messages`, { to: LINE, text });
        await stage.arrival(TO, (message) => message.text === `You wrote: ${text}`);
        await until(() => Deno.readTextFile(join(made, "cursor")).catch(() => ""), "a cursor");
        child.kill("SIGKILL");
        await child.status;
      }
      said.received = true;
    } else {
      const printed = await run(made, ...argumentsOf(language.run(file)), env);
      if (isReceiver) said.verified = /200 401\s*$/.test(printed);
      else if (printed.includes("msg_")) said.sent = printed.includes("400 validation_failed");
    }
  }
  assert.deepEqual(said, { sent: true, received: true, verified: true });
  await stage.arrival(TO, ({ text }) => text === "Your table is ready.");
  await stage.arrival(TO, ({ caption, filename }) => caption === "Your invoice" && filename === "invoice.pdf");
  await stage.arrival(TO, ({ poll }) => poll?.question === "When shall we come?");
}

function argumentsOf([program, ...args]: [string, ...string[]]): [string, string[]] {
  return [program, args];
}

function commandOf(
  [program, ...args]: [string, ...string[]],
  cwd: string,
  env: Record<string, string>,
): [string, Deno.CommandOptions] {
  return [program, { args, cwd, env, stdin: "null", stdout: "null", stderr: "inherit" }];
}

const wanted = Object.entries(LANGUAGES).filter(([name]) => names.length === 0 || names.includes(name));
const outcomes = await Promise.allSettled(wanted.map(([name, language]) => tryClient(name, language)));
for (const [i, outcome] of outcomes.entries()) {
  if (outcome.status === "rejected") console.error(`${wanted[i]![0]}: FAILED:`, outcome.reason);
}
Deno.exit(outcomes.some(({ status }) => status === "rejected") ? 1 : 0);
