/**
 * Prints the executable's size, the time until a new gateway answers its first request with 200, and
 * what it keeps resident after ten seconds at rest. Of five starts the best counts: other work on the machine only adds.
 */
import { firstResponse } from "../bench/first_response.ts";
import { parsed, scriptCommand } from "../command.ts";

const command = scriptCommand("executable", "Prints the executable's size, time to the first answer, and memory")
  .argument("[path]", "of the executable; dist/paloma if left out");
const { args: [path = "dist/paloma"] } = parsed(command);
const GOALS = { megabytes: 125, firstResponseMs: 300, residentMegabytes: 120 };
const STARTS = 5;
const REST_MS = 10_000;

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
