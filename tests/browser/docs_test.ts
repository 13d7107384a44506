/** The reference in a real browser: it needs nothing but the gateway, and its form sends a message that arrives. */
import assert from "node:assert/strict";
import { inBrowser } from "../support/browser.ts";
import { openStage, withStage } from "../support/stage.ts";

inBrowser(
  "the reference shows every operation, offline and without an error",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const origin = new URL(stage.gateway.baseUrl).origin;
      const { paths } = await (await fetch(`${origin}/openapi.json`)).json();
      await page.goto(`${origin}/docs`);
      await page.getByText("/v1/messages/send/text").first().waitFor();
      const text = await page.locator("body").innerText();
      for (const path of Object.keys(paths)) assert.ok(text.includes(path), `${path} is not on the page`);
      await page.setViewportSize({ width: 390, height: 844 });
      assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than a phone");
      assertQuiet();
    }),
);

inBrowser(
  "the form of the reference sends a text that arrives at the phone",
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
      await operation.getByRole("button", { name: "Send" }).click();
      await operation.locator("pre").filter({ hasText: /^202 / }).waitFor();
      assert.ok(
        await page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        "the answer widened the page",
      );
      await stage.arrival("4917000000001", (message) => message.text === text);
      stage.secrets.add(text);
      assertQuiet();
    }),
);
