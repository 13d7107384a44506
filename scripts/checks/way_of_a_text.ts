/**
 * Lists the files of `src/` that a text passes through, with the functions that run for it: first from its `POST` to its
 * 202, then those that follow until the webhook that reports `message.sent`. Only what runs for each of ten texts
 * counts: no sweep that runs just then, nothing that is loaded, read or opened for the first text of a process.
 */
import { Session } from "node:inspector/promises";
import { startGatewayHere } from "../../tests/support/gateway_here.ts";
import { openStageWith } from "../../tests/support/stage.ts";
import { subscribe } from "../../tests/support/subscriber.ts";
import { parsed, scriptCommand } from "../command.ts";

const SOURCE = new URL("../../src/", import.meta.url).href;
/** What runs in this process beside the gateway: the network, and the client that asks. */
const OTHERS = /^(sandbox|cli)\//;
const CUSTOMER = "4917560000001";
const TEXTS = 10;

/** The functions that ran, by file. */
type Ran = ReadonlyMap<string, ReadonlySet<string>>;

parsed(scriptCommand("way_of_a_text", "lists the files and functions that run for one text"));
const stage = await openStageWith(startGatewayHere);
await stage.addPhone(CUSTOMER);
const line = await stage.linkLine("4915560000001");
const subscriber = await subscribe(stage, { events: ["message.sent"] });

const inspector = new Session();
inspector.connect();
await inspector.post("Profiler.enable");
await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const whole = await ranForEach(async () => {
  const messageId = await stage.sendText(line, CUSTOMER, "Hello");
  await subscriber.event("message.sent", ({ data }) => data.messageId === messageId);
});
// A line that is offline accepts texts and leaves them in its queue, so that nothing that follows the 202 is counted.
await stage.api.call("POST", `/sessions/${line.sessionId}/disconnect`);
const accepted = await ranForEach(async () => void await stage.sendText(line, CUSTOMER, "Hello"));
inspector.disconnect();

const after = new Map([...whole].filter(([file]) => !accepted.has(file)));
show(`${accepted.size} files up to the 202`, accepted);
show(`${after.size} more up to the webhook, ${accepted.size + after.size} in all`, after);
await subscriber.end();
await stage.end();
Deno.exit(0);

/** Resolves to what ran for each text, the first ones aside. */
async function ranForEach(send: () => Promise<void>): Promise<Ran> {
  for (let i = 0; i < TEXTS; i++) await send();
  await ranSince();
  await send();
  let always = await ranSince();
  for (let i = 1; i < TEXTS; i++) {
    await send();
    always = inBoth(always, await ranSince());
  }
  return always;
}

function inBoth(one: Ran, other: Ran): Ran {
  const both = [...one].map(([file, ran]) => [file, ran.intersection(other.get(file) ?? new Set())] as const);
  return new Map(both.filter(([, ran]) => ran.size > 0));
}

/** Resolves to what ran since the last call. */
async function ranSince(): Promise<Ran> {
  const { result } = await inspector.post("Profiler.takePreciseCoverage");
  const files = result.filter(({ url }) => url.startsWith(SOURCE)).map(({ url, functions }) => {
    // What begins with the file is the file itself, which runs when it is loaded.
    const ran = functions.filter(({ ranges: [range] }) => range!.startOffset > 0 && range!.count > 0);
    return [url.slice(SOURCE.length), new Set(ran.map(({ functionName }) => functionName || "=>"))] as const;
  });
  return new Map(files.filter(([file, ran]) => ran.size > 0 && !OTHERS.test(file)));
}

function show(title: string, ran: Ran): void {
  console.log(`${title}:`);
  for (const file of [...ran.keys()].sort()) console.log(`  ${file}: ${[...ran.get(file)!].join(", ")}`);
}
