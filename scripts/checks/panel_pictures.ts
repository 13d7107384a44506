/**
 * Pictures of every page of the panel in three widths, two themes and three languages, for a person to look at; and how
 * long a page takes until its first rows on a slow line. Needs Debian's Chromium. Everything is on this machine.
 */
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { systemClock } from "../../src/runtime.ts";
import { furnish, open } from "../../tests/support/furnished_panel.ts";
import { accountPage, asOperator, panelOf } from "../../tests/support/panel_pages.ts";
import { openStage, type Stage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand } from "../command.ts";

const command = scriptCommand("panel_pictures", "Takes pictures of every page of the panel")
  .argument("<folder>", "where the pictures go: LANGUAGE-THEME-WIDTH/PAGE.png")
  .option("--only <text>", "only variants with this in their name, such as es-dark", "");
const { options: { only }, args: [folder = "."] } = parsed<{ only: string }>(command);

const WIDTHS = [390, 1024, 1440];
const THEMES = ["light", "dark"] as const;
const LANGUAGES = { en: "en-GB", es: "es-ES", pt: "pt-BR" };
/** A slow line: round trip, and 1.6 Mbit/s. */
const LATENCY_MS = 150;
const BYTES_A_SECOND = 200_000;
/** Pages with rows, and what shows that they are there. */
const ROWS: readonly [below: string, first: string][] = [
  ["/messages", "table.cards tbody tr"],
  ["/lines", "table.cards tbody tr"],
  ["/chats", ".chat nav li a"],
  ["/events", ".steps li"],
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
        for (const url of pages) {
          await open(page, url);
          await page.screenshot({ path: join(folder, name, `${nameOf(url)}.png`), fullPage: true });
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

/** Prints how long it takes from nothing to the first rows, on a slow line; three tries each. */
async function firstRows(browser: Browser, stage: Stage, cookies: Cookies): Promise<void> {
  for (const [below, first] of ROWS) {
    const times: number[] = [];
    for (let i = 0; i < 3; i++) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      await context.addCookies(cookies);
      const page = await context.newPage();
      const devtools = await context.newCDPSession(page);
      await devtools.send("Network.enable");
      await devtools.send("Network.emulateNetworkConditions", {
        offline: false,
        latency: LATENCY_MS,
        downloadThroughput: BYTES_A_SECOND,
        uploadThroughput: BYTES_A_SECOND,
      });
      const begun = systemClock.now();
      await page.goto(accountPage(stage, below), { waitUntil: "commit" });
      await page.locator(first).first().waitFor();
      times.push(systemClock.now() - begun);
      await context.close();
    }
    console.log(JSON.stringify({ page: below, firstRowsMs: times.toSorted((a, b) => a - b) }));
  }
}

const stage = await openStage({ env: { PALOMA_LOG_LEVEL: "warn" } });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  const pages = await furnish(stage);
  const context = await browser.newContext();
  const page = await context.newPage();
  await asOperator(page, stage);
  const { cookies } = await context.storageState();
  await firstRows(browser, stage, cookies);
  console.log(JSON.stringify({ pictures: await pictures(browser, stage, pages, cookies), folder }));
} finally {
  await browser.close();
  await stage.abandon();
}
