/** The template editor in a real browser: written with a preview, changed, sent, removed. */
import assert from "node:assert/strict";
import { inBrowser } from "../support/browser.ts";
import { accountPage, asOperator } from "../support/panel_pages.ts";
import { openStage, withStage } from "../support/stage.ts";

inBrowser(
  "a template is written with a preview, changed and removed",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      await asOperator(page, stage);
      await page.goto(accountPage(stage));
      await page.getByRole("link", { name: "Templates" }).click();
      await page.getByRole("button", { name: "New template" }).click();
      await page.getByLabel("Name", { exact: true }).fill("due");
      await page.getByLabel("Heading").fill("Acme");
      await page.getByRole("textbox", { name: "Text" }).fill("Hello {{person}}");
      await page.getByLabel("Options, one per line").fill("Paid\nLater");
      const preview = page.locator("[data-preview]");
      assert.equal((await preview.innerText()).trim(), "Acme\n\nHello {{person}}\n\n1. Paid\n2. Later");
      await page.getByLabel("person").fill("Anna");
      assert.match(await preview.innerText(), /Hello Anna/);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("row").filter({ hasText: "due" }).waitFor();
      const get = async () => (await stage.api.call("GET", "/templates/due")).data;
      const { text, header, options } = await get();
      assert.deepEqual([text, header, options.map(({ label }: { label: string }) => label)], [
        "Hello {{person}}",
        "Acme",
        ["Paid", "Later"],
      ]);
      await page.getByRole("row").filter({ hasText: "due" }).getByRole("button", { name: "Edit" }).click();
      await page.getByRole("textbox", { name: "Text" }).fill("Dear {{person}}");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("row").filter({ hasText: "Dear" }).waitFor();
      assert.deepEqual([(await get()).text, (await get()).options], ["Dear {{person}}", options]);
      await page.getByRole("row").filter({ hasText: "due" }).getByRole("button", { name: "Remove" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
      await page.getByText("No templates yet").waitFor();
      assertQuiet();
    }),
);
