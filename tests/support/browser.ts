/** Debian's Chromium, headless, with a profile of its own: what a person sees of the gateway, and what the page asks for. */
import assert from "node:assert/strict";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
/** No sandbox, for tests may run as root; no traffic of the browser's own. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export interface Visit {
  readonly page: Page;
  /** Fails if a page logged an error, threw, or asked another host for anything. */
  assertQuiet(): void;
}

/** A test in a browser; skipped, and saying so, where there is none. */
export function inBrowser(name: string, run: (visit: Visit) => Promise<void>): void {
  const executablePath = PLACES.find(exists);
  if (!executablePath) {
    Deno.test({ name: `${name} (skipped: there is no Chromium; apt-get install chromium)`, ignore: true, fn() {} });
    return;
  }
  // The library keeps timers and streams of its own until its process ends.
  const test = { name, sanitizeOps: false, sanitizeResources: false };
  Deno.test({
    ...test,
    async fn() {
      const profile = await Deno.makeTempDir({ prefix: "paloma-browser-" });
      let context: BrowserContext | null = null;
      try {
        context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args: FLAGS });
        await run(await visit(context));
      } finally {
        await context?.close();
        await Deno.remove(profile, { recursive: true });
      }
    },
  });
}

async function visit(context: BrowserContext): Promise<Visit> {
  const page = context.pages()[0] ?? await context.newPage();
  const trouble: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") trouble.push(message.text());
  });
  page.on("pageerror", (error) => trouble.push(String(error)));
  context.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && hostname !== "127.0.0.1") {
      trouble.push(`asked ${request.url()}`);
    }
  });
  return { page, assertQuiet: () => assert.deepEqual(trouble, []) };
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
