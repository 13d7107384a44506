/**
 * What onlookers cost: tabs of the panel open on an account with many lines, beside a customer who sends at
 * the rate of their plan. No request of the customer may be refused, and an idle tab costs next to nothing.
 * Needs Debian's Chromium. Everything is on this machine. Exits 0 when no answer was 429, else 1.
 */
import type { Page } from "playwright-core";
import { sleep, systemClock } from "../../src/runtime.ts";
import { asOperator, panelOf } from "../../tests/support/panel_pages.ts";
import { openStage } from "../../tests/support/stage.ts";
import { parsed, scriptCommand, whole } from "../command.ts";
import { launchChromium } from "./chromium.ts";
import { processorMs } from "../proc.ts";

const command = scriptCommand("open_tabs", "Measures what open tabs of the panel cost an account's customers")
  .option("--lines <n>", "of the account", whole, 50)
  .option("--unlinked <n>", "how many of them show a QR that rotates", whole, 12)
  .option("--minutes <n>", "how long the customer sends", whole, 10)
  .option(
    "--idle <n>",
    "seconds that the idle gateway is watched: without tabs, with two, with two operators'",
    whole,
    60,
  );
const { options: { lines, unlinked, minutes, idle: idleSeconds } } = parsed<
  Record<"lines" | "unlinked" | "minutes" | "idle", number>
>(command);

const CUSTOMER = "4917000000001";
const RATE = 600;
/** A window of the limit begins with a request, whenever that comes: this many fit into any window. */
const SENT_A_MINUTE = 590;

const wait = (seconds: number) => sleep(systemClock, seconds * 1000);
const plan = { sessions: lines, requestsPerMinute: RATE, delayMinMs: 0, delayMaxMs: 0 };
const stage = await openStage({ plan, env: { PALOMA_LOG_LEVEL: "warn" } });
const browser = await launchChromium();
let refused = 0;
const waiting: string[] = [];

const idle = async (name: string, without?: number): Promise<number> => {
  // A round of QRs that nobody scans ends after some minutes.
  for (const id of waiting) await stage.api.call("POST", `/sessions/${id}/reconnect`);
  await wait(5);
  const before = await processorMs(stage.gateway.pid);
  await wait(idleSeconds);
  const percent = (await processorMs(stage.gateway.pid) - before) / idleSeconds / 10;
  const ratio = without === undefined ? "" : `, ${(percent / without).toFixed(2)} times that of no tab`;
  console.log(`  ${name}: processor ${percent.toFixed(2)} %${ratio}`);
  return percent;
};

try {
  const first = await stage.linkLine("4915100000000");
  for (let i = 1; i < lines - unlinked; i++) await stage.linkLine(String(4915100000000 + i));
  await stage.addPhone(CUSTOMER);
  const account = `${panelOf(stage)}/accounts/${stage.accountId}`;

  for (let i = 0; i < unlinked; i++) {
    waiting.push((await stage.api.call("POST", "/sessions", { name: `unlinked ${i}` })).data._id);
  }
  console.log(`${lines} lines, ${unlinked} of them showing a QR; idle for ${idleSeconds} s each time`);
  const without = await idle("no tab");
  const context = await browser.newContext();
  const pages: Page[] = [await context.newPage(), await context.newPage()];
  await asOperator(pages[0]!, stage);
  let asked = 0;
  context.on("request", () => asked++);
  const open = async (...urls: string[]) => {
    for (const [i, page] of pages.entries()) {
      await page.goto(urls[i]!);
      await page.locator("main h1").waitFor();
    }
    await wait(5);
    asked = 0;
  };
  await open(`${panelOf(stage)}/gateway`, `${panelOf(stage)}/gateway/lines`);
  await idle("two tabs of the operator", without);
  await open(`${account}/lines`, account);
  await idle("two tabs of the account", without);

  console.log(
    `sends for ${minutes} min at ${SENT_A_MINUTE} a minute, the plan's rate being ${RATE}, the two tabs open`,
  );
  const answers = new Map<number, number>();
  const before = await processorMs(stage.gateway.pid);
  asked = 0;
  const begun = performance.now();
  const sends: Promise<void>[] = [];
  for (let n = 0; n < minutes * SENT_A_MINUTE; n++) {
    const late = begun + n * 60_000 / SENT_A_MINUTE - performance.now();
    if (late > 0) await wait(late / 1000);
    sends.push(send(first.sessionId, `number ${n}`, answers));
  }
  await Promise.all(sends);
  const seconds = (performance.now() - begun) / 1000;
  refused = answers.get(429) ?? 0;
  const statuses = [...answers].map(([status, count]) => `${count} times ${status}`).join(", ");
  const busy = (await processorMs(stage.gateway.pid) - before) / seconds / 10;
  console.log(`  ${statuses}; 429: ${refused}; processor ${busy.toFixed(1)} %; the tabs asked ${asked} times`);
} finally {
  await browser.close();
  await stage.abandon();
}
Deno.exit(refused === 0 ? 0 : 1);

async function send(sessionId: string, text: string, answers: Map<number, number>): Promise<void> {
  const body = JSON.stringify({ sessionId, to: CUSTOMER, text });
  const headers = { "content-type": "application/json" };
  const response = await stage.request("POST", "/messages/send/text", { headers, body });
  await response.body?.cancel();
  answers.set(response.status, (answers.get(response.status) ?? 0) + 1);
}
