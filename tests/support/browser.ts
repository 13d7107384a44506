/** Debian's Chromium, headless: what a person sees of the gateway, and what the page asks for. */
import assert from "node:assert/strict";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import { isFile } from "./tools.ts";

const WHOLE = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
/** The same engine without the windows of the browser around it: for half of the processor. */
const SHELL = ["/usr/bin/chromium-headless-shell", ...WHOLE];
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

const OWN_PROTOCOLS = ["data:", "blob:", "chrome-extension:"];
/** Passkeys need a name. */
const OWN_HOSTS = ["127.0.0.1", "localhost"];

/** One of each kind for all tests of a file, by its path; each test visits it with cookies of its own. */
const browsing = new Map<string, Promise<Browser>>();
Deno.test.afterAll(async () => {
  for (const browser of browsing.values()) await (await browser).close();
});

export interface Visit {
  readonly page: Page;
  /** The page of a browser with cookies of its own: of somebody else, or of another size. */
  another(options?: BrowserContextOptions): Promise<Page>;
  /** Fails if a page logged an error or a warning: an answer that is none of 200, for one. */
  assertQuiet(): void;
}

export interface BrowserOptions {
  /** The whole browser, which alone knows passkeys and extensions. */
  whole?: boolean;
  /** A folder that is loaded as an extension. */
  extension?: string;
  /** Another host that the test has its pages go to. */
  elsewhere?: string;
}

/**
 * A test in a browser; skipped, and saying so, where there is none. Fails too if a page threw, broke the policy of its
 * content, or asked another host for anything.
 */
export function inBrowser(
  name: string,
  run: (visit: Visit) => Promise<void>,
  { extension, whole = extension !== undefined, elsewhere }: BrowserOptions = {},
): void {
  const executablePath = (whole ? WHOLE : SHELL).find(isFile);
  if (!executablePath) {
    Deno.test({ name: `${name} (skipped: there is no Chromium; apt-get install chromium)`, ignore: true, fn() {} });
    return;
  }
  // The library keeps timers and streams of its own until its process ends.
  const test = { name, sanitizeOps: false, sanitizeResources: false };
  async function play(newContext: NewContext): Promise<void> {
    const forbidden: string[] = [];
    await run(await visit(newContext, { forbidden, elsewhere }));
    assert.deepEqual(forbidden, []);
  }
  Deno.test({
    ...test,
    async fn() {
      const settings = { executablePath, headless: true };
      if (extension) {
        // Extensions are loaded into a profile, not into contexts of a visit's own.
        const flags = [`--load-extension=${extension}`, `--disable-extensions-except=${extension}`, "--headless=new"];
        const args = [...FLAGS, ...flags];
        const context = await chromium.launchPersistentContext("", { ...settings, args, locale: "en-US" });
        await play(() => Promise.resolve(context)).finally(() => context.close());
      } else {
        const browser = await browsing.getOrInsertComputed(
          executablePath,
          () => chromium.launch({ ...settings, args: FLAGS }),
        );
        const contexts: BrowserContext[] = [];
        const newContext = async (options: BrowserContextOptions) => {
          const context = await browser.newContext(options);
          contexts.push(context);
          return context;
        };
        await play(newContext).finally(() => Promise.all(contexts.map((context) => context.close())));
      }
    },
  });
}

type NewContext = (options: BrowserContextOptions) => Promise<BrowserContext>;

/** `forbidden` is filled with what no page may do. */
async function visit(
  newContext: NewContext,
  { forbidden, elsewhere }: { forbidden: string[]; elsewhere?: string },
): Promise<Visit> {
  const trouble: string[] = [];
  async function another(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await newContext({ locale: "en-US", ...options });
    context.setDefaultTimeout(GIVE_UP_AFTER_MS);
    const page = await context.newPage();
    page.on("console", (message) => {
      if (message.type() !== "error" && message.type() !== "warning") return;
      const said = `${message.text()} (${message.location().url})`;
      (/Content Security Policy|Permissions Policy|Refused to/i.test(said) ? forbidden : trouble).push(said);
    });
    page.on("pageerror", (error) => forbidden.push(String(error)));
    context.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      const isOwn = OWN_PROTOCOLS.includes(protocol) || OWN_HOSTS.includes(hostname);
      if (!isOwn && hostname !== elsewhere) forbidden.push(`asked ${request.url()}`);
    });
    return page;
  }
  return { page: await another(), another, assertQuiet: () => assert.deepEqual(trouble, []) };
}
