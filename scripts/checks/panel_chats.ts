/**
 * The panel's chats in Chromium with thousands of chats and a long one: how long until the first rows of the list, of the
 * chat, and of the rest of it, scrolled back to its first message. Everything is on this machine; times want a quiet one.
 */
import assert from "node:assert/strict";
import { systemClock } from "../../src/runtime.ts";
import { faultsOf } from "../../tests/support/axe.ts";
import { fillChats, THE_LONG_ONE } from "../../tests/support/filled_chats.ts";
import { accountPage, asOperator } from "../../tests/support/panel_pages.ts";
import { openStage, withStage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand, whole } from "../command.ts";
import { launchChromium } from "./chromium.ts";

const command = scriptCommand(
  "panel_chats",
  "Opens the panel's chats with thousands of them, and scrolls a long one back",
)
  .option("--chats <n>", "chats of one message", whole, 5_000)
  .option("--messages <n>", "messages of the long chat", whole, 10_000)
  .option("--tries <n>", "how often the list is opened", whole, 5);
const { options: { chats, messages, tries } } = parsed<{ chats: number; messages: number; tries: number }>(command);

const LINE = "4915100000012";
/** In the page: notes when the list has its first row, Unix ms. Playwright itself looks only now and then. */
const WATCH = `new MutationObserver(() => {
  if (document.querySelector(".chat nav li a")) globalThis.rowsAt ??= Date.now();
}).observe(document, { childList: true, subtree: true });`;
const browser = await launchChromium();
try {
  await withStage(() => openStage({ env: { PALOMA_LOG_LEVEL: "warn" } }), async (stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await fillChats(stage, sessionId, { messages, chats });
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.addInitScript(WATCH);
    await asOperator(page, stage);
    const list = page.getByRole("navigation", { name: "Chats" });
    const rows = list.getByRole("link");
    const [loaded, clicked]: [number[], number[]] = [[], []];
    const rowsAfter = async (begun: number) => {
      await rows.first().waitFor();
      return await page.evaluate<number>("globalThis.rowsAt") - begun;
    };
    for (let i = 0; i < tries; i++) {
      const begun = systemClock.now();
      await page.goto(accountPage(stage, `/chats/${sessionId}`), { waitUntil: "commit" });
      loaded.push(await rowsAfter(begun));
      await page.goto(accountPage(stage, "/lines"));
      await page.getByRole("link", { name: "Chats", exact: true }).first().waitFor();
      const left = await page.evaluate<number>(
        `const at = Date.now(); [...document.querySelectorAll("nav a")].find((it) => it.textContent.trim() === "Chats").click(); at`,
      );
      clicked.push(await rowsAfter(left));
    }
    const sorted = (times: number[]) => times.toSorted((a, b) => a - b);
    console.log(JSON.stringify({ chats, firstRowsMs: { fromTheMenu: sorted(clicked), fromNothing: sorted(loaded) } }));

    const turns = page.getByRole("region", { name: "Messages" });
    const begun = systemClock.now();
    await rows.filter({ hasText: THE_LONG_ONE }).click();
    await turns.getByText(`message ${messages - 1}`, { exact: true }).waitFor();
    const opened = systemClock.now() - begun;
    let pages = 0;
    const top = turns.getByText("message 0", { exact: true });
    while (await top.count() === 0) {
      const before = await turns.locator(".turn").count();
      await turns.evaluate((it) => it.scrollTo(0, 0));
      await turns.locator(".turn").nth(before).waitFor({ state: "attached" });
      pages++;
    }
    const scrolledMs = systemClock.now() - begun - opened;
    const texts = await turns.locator(".turn > div").allTextContents();
    assert.deepEqual(texts, Array.from({ length: messages }, (_, i) => `message ${i}`));
    console.log(JSON.stringify({ messages, openedMs: opened, pages, scrolledMs }));
    for (const width of [390, 1024, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(accountPage(stage, `/chats/${sessionId}`));
      await rows.first().waitFor();
      const faults = await faultsOf(page, `at ${width}`);
      console.log(JSON.stringify({ width, axe: faults.length }));
      assert.deepEqual(faults, []);
    }
  });
} finally {
  await browser.close();
}
