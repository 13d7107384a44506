/**
 * The API as a fetch handler, for hosts that listen themselves and have no disk (`deno serve deploy.ts`): docs/machines.md.
 * It needs PALOMA_STORE and PALOMA_SECRET_KEY, and a worker beside it that holds the sockets.
 */
import { openApi } from "./src/app.ts";
import { configOf } from "./src/cli/settings.ts";
import { makeLog, quietConsole } from "./src/ops/log.ts";
import { systemRuntime } from "./src/runtime.ts";

const config = configOf({});
const log = makeLog(config.logLevel);
quietConsole(log);
const answer = await openApi({ config, runtime: systemRuntime(log) });

/** What is in hand at SIGTERM has this long. */
const DRAIN_MS = 3_000;

// `deno serve` then stops listening and waits for what is open; the store's connections always are.
try {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => setTimeout(() => Deno.exit(0), DRAIN_MS));
  }
} catch { /* A host that ends its instances in its own way. */ }

export default {
  fetch(request, info) {
    return answer(request, info.remoteAddr.transport === "tcp" ? info.remoteAddr.hostname : "");
  },
} satisfies Deno.ServeDefaultExport;
