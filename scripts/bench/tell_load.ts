/** Loaded before a gateway's own code (`--preload`): has the process write its load into its log every second. */
import { NO_CALLS, watchLoad } from "./watch_load.ts";

const load = watchLoad(() => NO_CALLS);
await load();
// Not by the console, which the gateway silences.
const tell = async () => {
  Deno.stderr.writeSync(new TextEncoder().encode(JSON.stringify({ msg: "load", ...await load() }) + "\n"));
};
Deno.unrefTimer(setInterval(tell, 1_000));
