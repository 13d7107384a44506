/** The reference in a real browser: it needs nothing but the gateway, and its form sends a message that arrives. */
import assert from "node:assert/strict";
import { faultsOf, SIZES } from "../support/axe.ts";
import { inBrowser } from "../support/browser.ts";
import { asOperator, join, panelOf } from "../support/panel_pages.ts";
import { openStage, withStage } from "../support/stage.ts";

inBrowser(
  "the reference shows every operation and event, is searched, follows the scroll, and has no fault that axe finds",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const origin = new URL(stage.gateway.baseUrl).origin;
      const { paths, webhooks } = await (await fetch(`${origin}/openapi.json`)).json();
      await page.goto(`${origin}/docs`);
      await page.locator("#loading").waitFor({ state: "detached" });
      const text = await page.locator("body").innerText();
      for (const path of Object.keys(paths)) assert.ok(text.includes(path), `${path} is not on the page`);
      for (const name of Object.keys(webhooks)) {
        const example = await page.locator(`[id="event-${name}"] pre`).textContent();
        assert.equal(JSON.parse(example!).event, name);
      }

      const side = page.getByRole("navigation");
      await page.locator("#getBulk").scrollIntoViewIfNeeded();
      await page.evaluate("document.querySelector('#getBulk').scrollIntoView()");
      await side.locator('[aria-current="true"]', { hasText: "See how far a bulk is" }).waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("quota_exceeded");
      await side.getByRole("link", { name: "quota_exceeded API reference" }).waitFor();
      assert.equal(await side.getByRole("link", { name: "Create a session" }).isVisible(), false);
      await page.keyboard.press("Enter");
      await page.waitForURL(/#error-quota_exceeded$/);
      await page.keyboard.press("/");
      await page.keyboard.press("Escape");
      await side.getByRole("link", { name: "Create a session" }).waitFor();

      // A tablet has the layout of a phone.
      const layouts = ["desktop", "phone"];
      const found = await faultsOf(page, "/docs", layouts);
      await page.setViewportSize(SIZES.phone);
      await page.getByRole("button", { name: "Menu" }).click();
      await page.keyboard.press("Escape");
      await side.waitFor({ state: "hidden" });
      await page.getByRole("button", { name: "Menu" }).and(page.locator(":focus")).click();
      // Its text is found by another word for it, the keyboard goes through what was found.
      await side.getByRole("searchbox").fill("hmac");
      await side.getByRole("link", { name: "Verifying a request: Python Webhooks and events" }).waitFor();
      // Of the rest nothing has changed.
      await page.evaluate(
        "for (const it of document.querySelectorAll('main > h1 ~ :not([hidden])')) it.hidden = it.dataset.away = true",
      );
      found.push(...await faultsOf(page, "results", layouts));
      await page.evaluate("for (const it of document.querySelectorAll('[data-away]')) it.hidden = false");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowUp");
      await side.getByRole("link").and(page.locator(":focus")).press("Enter");
      await page.getByRole("heading", { name: "Webhooks and events", level: 1 }).waitFor();
      await page.getByRole("button", { name: "Copy" }).first().waitFor();
      await page.setViewportSize(SIZES.desktop);
      const outline = page.getByRole("navigation", { name: "On this page" });
      await outline.getByRole("link", { name: "When a delivery fails" }).click();
      await page.waitForURL(/guides\/webhooks#when-a-delivery-fails$/);
      assert.ok(await page.evaluate("CSS.highlights.get('keyword').size") as number > 5);
      found.push(...await faultsOf(page, "a guide"));
      await page.getByRole("link", { name: "Next Events" }).click();
      await page.getByRole("heading", { name: "Events", level: 1, exact: true }).waitFor();

      await page.setViewportSize(SIZES.desktop);
      // A program, and the commands that run it: a box for each, with this gateway's address and the reader's key.
      await page.getByRole("link", { name: "Send a first message" }).click();
      await page.getByRole("heading", { name: "Send a first message", level: 1 }).waitFor();
      await page.getByLabel("API key").fill("pk_of_a_reader");
      const commands = page.locator("pre").filter({ hasText: "python3 first.py 4" });
      await commands.filter({ hasText: `PALOMA_URL=${origin}/v1` }).filter({ hasText: "pk_of_a_reader" }).waitFor();
      assert.equal(await page.locator("main .code").count(), await page.locator("main pre").count());
      found.push(...await faultsOf(page, "a recipe"));
      assert.deepEqual(found, []);
      assertQuiet();
    }),
);

inBrowser(
  "a key that is typed before a page's scripts have come is filled into its samples, and into those of the next page",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const guides = `${new URL(stage.gateway.baseUrl).origin}/docs/guides`;
      const scripts = Promise.withResolvers<void>();
      await page.route("**/docs/reader.js", (route) => scripts.promise.then(() => route.continue()));
      await page.goto(`${guides}/messages`, { waitUntil: "commit" });
      await page.getByLabel("API key").fill("pk_of_a_reader");
      scripts.resolve();
      const samples = page.locator("pre").filter({ hasText: "pk_of_a_reader" });
      await samples.first().waitFor();
      await page.goto(`${guides}/webhooks`);
      await samples.first().waitFor();
      assertQuiet();
    }),
);

inBrowser(
  "the first page is in the reader's language, with the gateway's address, and the key if the panel knows it",
  ({ page, another, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const { origin } = new URL(stage.gateway.baseUrl);
      const spanish = await another({ locale: "es-MX" });
      await spanish.goto(`${origin}/docs`);
      await spanish.getByRole("heading", { name: "Empezar", level: 1 }).waitFor();
      assert.equal(await spanish.getByRole("heading", { name: "Start", level: 1 }).isVisible(), false);
      await spanish.getByRole("button", { name: "Português" }).click();
      await spanish.getByRole("heading", { name: "Começar", level: 1 }).waitFor();
      await spanish.reload();
      await spanish.getByRole("heading", { name: "Começar", level: 1 }).waitFor();

      await asOperator(page, stage);
      await page.goto(`${origin}/docs`);
      const send = page.locator('.start[lang="en"] pre').nth(1);
      await send.filter({ hasText: `${origin}/v1/messages/send/text` }).waitFor();
      const typed = (await send.textContent())!;
      assert.ok(typed.includes("pk_…"), typed);
      await page.getByLabel("API key").fill(stage.apiKey);
      assert.equal(await send.textContent(), typed.replace("pk_…", stage.apiKey));
      // An operator has no account of their own.
      assert.equal(await page.getByRole("button", { name: "Fill in the key" }).count(), 0);

      const member = await another();
      const invitations = `${panelOf(stage)}/api/accounts/${stage.accountId}/invitations`;
      const invited = await page.request.post(invitations, { headers: { "x-paloma-panel": "1" }, data: {} });
      const { data: { url, token } } = await invited.json();
      stage.secrets.add(token);
      await join(member, url, "ana@example.com");
      await member.goto(`${origin}/docs`);
      await member.getByRole("button", { name: "Fill in the key of stage" }).click();
      await member.locator('.start[lang="en"] pre').nth(1).filter({ hasText: stage.apiKey }).waitFor();
      assertQuiet();
    }),
);

inBrowser(
  "the form of the reference is in the samples, with the reader's key, and sends a text that arrives at the phone",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      await stage.addPhone("4917000000001");
      await stage.linkLine("4915100000001");
      await page.goto(`${new URL(stage.gateway.baseUrl).origin}/docs`);
      await page.getByLabel("API key").fill(stage.apiKey);
      const operation = page.locator("#sendText");
      await operation.getByText("Try it").click();
      const text = "Sent from the reference's own form";
      await operation.locator("textarea").fill(JSON.stringify({ to: "4917000000001", text }));
      await operation.getByRole("button", { name: "Python" }).click();
      const sample = (await operation.locator("pre").first().textContent())!;
      for (const part of ["import requests", stage.apiKey, text]) assert.ok(sample.includes(part), sample);
      // However often it is pressed, it is one message.
      await operation.getByRole("button", { name: "Send" }).dblclick();
      await operation.locator("pre").filter({ hasText: /^202 / }).waitFor();
      assert.ok(
        await page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        "the answer widened the page",
      );
      await stage.arrival("4917000000001", (message) => message.text === text);
      stage.secrets.add(text);
      assert.equal((await stage.api.call("GET", "/messages/history")).pagination.total, 1);

      const stream = page.locator("#streamEvents");
      await stream.getByText("Try it").click();
      const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/events/stream"));
      for (let i = 0; i < 2; i++) {
        await stream.getByRole("button", { name: "Send" }).click();
        await stream.locator("pre").filter({ hasText: /^200 / }).waitFor();
      }
      await ended;
      assertQuiet();
    }),
);
