/**
 * Prints the executable's size, the time until a new gateway answers its first request with 200, what it keeps resident
 * after ten seconds at rest, and how many texts a second it sends on one line, beside the source. Of five starts the
 * best counts: other work on the machine only adds.
 */
import { sleep, systemClock } from "../../src/runtime.ts";
import { firstResponse } from "../bench/first_response.ts";
import { parsed, scriptCommand } from "../command.ts";

const command = scriptCommand("executable", "Prints the executable's size, time to the first answer, and memory")
  .argument("[path]", "of the executable; dist/paloma if left out");
const { args: [path = "dist/paloma"] } = parsed(command);
const GOALS = { megabytes: 125, firstResponseMs: 300, residentMegabytes: 120 };
const STARTS = 5;
const REST_MS = 10_000;
const TEXTS = 480;
const RECIPIENT = "447700900123";

const starts = [];
for (let start = 1; start <= STARTS; start++) {
  starts.push(await firstResponse({ command: path, args: ["serve"], restMs: start === STARTS ? REST_MS : 0 }));
}
const megabytes = (await Deno.stat(path)).size / 1e6;
const firstResponseMs = Math.min(...starts.map(({ tookMs }) => tookMs));
const residentMegabytes = starts.at(-1)!.bytes / 1e6;
console.log(`size         ${megabytes.toFixed(0)} MB   (goal ${GOALS.megabytes})`);
console.log(`first 200    ${firstResponseMs.toFixed(0)} ms   (goal ${GOALS.firstResponseMs})`);
console.log(`resident     ${residentMegabytes.toFixed(0)} MB   (goal ${GOALS.residentMegabytes})`);
console.log(`one line     ${(await textsASecond(path, [])).toFixed(0)} texts/s, 16 clients`);
console.log(`… source     ${(await textsASecond(Deno.execPath(), ["run", "-A", "main.ts"])).toFixed(0)} texts/s`);

/** From the first request of 16 clients to the moment when nothing waits any more, on a sandbox of its own. */
async function textsASecond(program: string, before: readonly string[]): Promise<number> {
  const child = new Deno.Command(program, {
    args: [...before, "sandbox", "--json"],
    env: { PALOMA_PORT: "0", PALOMA_SANDBOX_PORT: "0", PALOMA_LOG_LEVEL: "warn" },
    stdout: "piped",
  }).spawn();
  try {
    const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
    const { baseUrl, controlUrl, apiKey, sessionId } = JSON.parse(value!);
    const call = async (url: string, body?: unknown) => {
      const method = body === undefined ? "GET" : "POST";
      const headers = { "x-api-key": apiKey, "content-type": "application/json" };
      const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
      return await response.json();
    };
    await call(`${controlUrl}/phones`, { number: RECIPIENT });
    const send = (text: string) => call(`${baseUrl}/messages/send/text`, { to: RECIPIENT, text });
    const hasEnded = async () => (await call(`${baseUrl}/sessions/${sessionId}/queue`)).data.length === 0;
    await send("first contact");
    while (!await hasEnded()) await sleep(systemClock, 10);
    const began = performance.now();
    await Promise.all(Array.from({ length: 16 }, async (_, client) => {
      for (let i = 0; i < TEXTS / 16; i++) await send(`text ${i} of client ${client}`);
    }));
    while (!await hasEnded()) await sleep(systemClock, 10);
    return TEXTS * 1000 / (performance.now() - began);
  } finally {
    child.kill("SIGTERM");
    await child.status;
  }
}
