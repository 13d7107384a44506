/**
 * Pictures of every page of the panel in three widths, two themes and three languages, for a person to look at; and how
 * long a page takes until its first rows on a slow line. Needs Debian's Chromium. Everything is on this machine.
 */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { systemClock } from "../../src/runtime.ts";
import { furnish, open } from "../../tests/support/furnished_panel.ts";
import { accountPage, asOperator, panelOf } from "../../tests/support/panel_pages.ts";
import { openStage, type Stage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand } from "../command.ts";
import { launchChromium } from "./chromium.ts";

const command = scriptCommand("panel_pictures", "Takes pictures of every page of the panel")
  .argument("<folder>", "where the pictures go: LANGUAGE-THEME-WIDTH/NUMBER-PAGE.png")
  .option("--only <text>", "only variants with this in their name, such as es-dark", "");
const { options: { only }, args: [folder = "."] } = parsed<{ only: string }>(command);

const WIDTHS = [390, 1024, 1440];
const THEMES = ["light", "dark"] as const;
const LANGUAGES = { en: "en-GB", es: "es-ES", pt: "pt-BR" };
/** A slow line: round trip, and 1.6 Mbit/s. */
const LATENCY_MS = 150;
const BYTES_A_SECOND = 200_000;
const TABLE = "table.cards tbody tr";
/** Pages with rows, and what shows that they are there. */
const rowsOf = (stage: Stage): [url: string, first: string][] => [
  [accountPage(stage, "/chats"), ".chat nav li a"],
  [accountPage(stage, "/events"), ".steps li"],

  ...["/messages", "/lines", "/approvals", "/bulks", "/templates", "/webhooks", "/opt-outs"]
    .map((below): [string, string] => [accountPage(stage, below), TABLE]),
  ...["/accounts", "/lines", "/plans", "/people", "/audit"]
    .map((below): [string, string] => [`${panelOf(stage)}/gateway${below}`, TABLE]),
];

async function pictures(browser: Browser, stage: Stage, pages: readonly string[], cookies: Cookies): Promise<number> {
  let count = 0;
  for (const [language, locale] of Object.entries(LANGUAGES)) {
    for (const colorScheme of THEMES) {
      for (const width of WIDTHS) {
        const name = `${language}-${colorScheme}-${width}`;
        if (!name.includes(only)) continue;
        await Deno.mkdir(join(folder, name), { recursive: true });
        const viewport = { width, height: 900 };
        const known = await browser.newContext({ locale, colorScheme, viewport, reducedMotion: "reduce" });
        await known.addCookies(cookies);
        const page = await known.newPage();
        for (const [i, url] of pages.entries()) {
          await open(page, url);
          await page.screenshot({ path: join(folder, name, `${i + 1}-${nameOf(url)}.png`), fullPage: true });
          count++;
        }
        await known.close();
        const strange = await browser.newContext({ locale, colorScheme, viewport, reducedMotion: "reduce" });
        const guest = await strange.newPage();
        for (const below of ["/sign-in", "/welcome#none", "/link-line#none"]) {
          await guest.goto(panelOf(stage) + below);
          await guest.locator("main h1").first().waitFor();
          await guest.screenshot({
            path: join(folder, name, `guest-${below.slice(1).split("#")[0]}.png`),
            fullPage: true,
          });
          count++;
        }
        await strange.close();
      }
    }
  }
  return count;
}

type Cookies = Awaited<ReturnType<ReturnType<Page["context"]>["storageState"]>>["cookies"];

/** By its path, without the ids, which differ from run to run. */
function nameOf(url: string): string {
  const path = new URL(url).pathname.replace(/^\/panel\//, "").replace(/accounts\/acc_[^/]+/, "account");
  return path.replaceAll(/(ses|msg|blk|whk)_\w{26}/g, "$1").replaceAll("/", "-");
}

/**
 * Prints how long it takes from nothing to the first rows, on a slow line, three tries each; and how much of that is the
 * line's, whatever else the machine does: rounds (requests that wait for one another, also for one of the browser's six
 * connections) and bytes. What is left is the processor's.
 */
async function firstRows(browser: Browser, stage: Stage, cookies: Cookies): Promise<void> {
  for (const [url, first] of rowsOf(stage)) {
    const tries = [];
    for (let i = 0; i < 3; i++) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      await context.addCookies(cookies);
      tries.push(await firstRow(await context.newPage(), url, first));
      await context.close();
    }
    const { ms: _, ...line } = tries.toSorted((a, b) => a.lineMs - b.lineMs)[1]!;
    const ms = tries.map(({ ms }) => ms).sort((a, b) => a - b);
    console.log(
      JSON.stringify({ page: new URL(url).pathname.replace(/acc_\w+/, "account"), ...line, firstRowsMs: ms }),
    );
  }
}

async function firstRow(page: Page, url: string, first: string) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: LATENCY_MS,
    downloadThroughput: BYTES_A_SECOND,
    uploadThroughput: BYTES_A_SECOND,
  });
  const asked = new Map<string, { from: number; to: number; bytes: number }>();
  devtools.on("Network.responseReceived", ({ requestId, response: { timing } }) => {
    if (timing) asked.set(requestId, { from: timing.requestTime + timing.sendStart / 1_000, to: Infinity, bytes: 0 });
  });
  devtools.on("Network.loadingFinished", ({ requestId, timestamp, encodedDataLength }) => {
    const one = asked.get(requestId);
    if (one) Object.assign(one, { to: timestamp, bytes: encodedDataLength });
  });
  const begun = systemClock.now();
  await page.goto(url, { waitUntil: "commit" });
  await page.locator(first).first().waitFor();
  const ms = systemClock.now() - begun;
  const ended = [...asked.values()].filter(({ to }) => to < Infinity).sort((a, b) => b.to - a.to);
  let rounds = 0;
  for (let last = ended[0]; last; last = ended.find(({ to }) => to <= last!.from)) rounds++;
  const bytes = ended.reduce((sum, one) => sum + one.bytes, 0);
  const lineMs = Math.round(rounds * LATENCY_MS + bytes / BYTES_A_SECOND * 1_000);
  return { requests: ended.length, rounds, bytes, lineMs, ms };
}

const stage = await openStage({ env: { PALOMA_LOG_LEVEL: "warn" } });
const browser = await launchChromium();
try {
  const pages = await furnish(stage);
  const context = await browser.newContext();
  const page = await context.newPage();
  await asOperator(page, stage);
  // The audit log's first row.
  const invitations = `${panelOf(stage)}/api/accounts/${stage.accountId}/invitations`;
  await page.request.post(invitations, { headers: { "x-paloma-panel": "1" }, data: {} });
  const { cookies } = await context.storageState();
  await firstRows(browser, stage, cookies);
  console.log(JSON.stringify({ pictures: await pictures(browser, stage, pages, cookies), folder }));
} finally {
  await browser.close();
  await stage.abandon();
}
