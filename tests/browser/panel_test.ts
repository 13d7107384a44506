/** The web panel in a real browser, on a real gateway: signing in, linking by the picture on the page, linking by code. */
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { until } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { inBrowser } from "../support/browser.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const panelOf = ({ gateway }: Stage) => gateway.baseUrl.replace(/\/v1$/, "/panel");

/** The session's row on the page. */
const row = (page: Page, name: string): Locator => page.locator("#sessions > ul > li").filter({ hasText: name });

async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function link(page: Page, name: string, pairingPhone = ""): Promise<void> {
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Number, to link by code").fill(pairingPhone);
  await page.getByRole("button", { name: "Link a line" }).click();
}

inBrowser(
  "an owner signs in, sees the linked line, and links another by the picture on the page",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const { control } = stage;
      await stage.linkLine("4915100000001");
      await stage.addPhone("4915100000002");
      await page.goto(panelOf(stage));
      await signIn(page, stage.apiKey);
      const first = row(page, "line 4915100000001");
      await first.getByText("connected", { exact: true }).waitFor();
      await first.getByText("+4915100000001").waitFor();

      await link(page, "Second line");
      const second = row(page, "Second line");
      const picture = second.getByAltText("QR code to scan");
      await picture.waitFor();
      // As a camera would: what the screen shows, again for each new picture.
      let shown: string | null = null;
      await until(systemClock, async () => {
        if (await second.locator(".status").textContent() === "connected") return true;
        const source = await picture.getAttribute("src", { timeout: 1_000 }).catch(() => null);
        if (!source || source === shown || !await picture.isVisible()) return null;
        shown = source;
        const pixels = (await picture.screenshot()).toString("base64");
        await control.call("POST", "/phones/4915100000002/scan", { qr: `data:image/png;base64,${pixels}` });
        return null;
      }, { what: "the page to show the line connected" });
      assert.equal(await picture.isVisible(), false);
      await second.getByText("+4915100000002").waitFor();
      assertQuiet();
    }),
);

inBrowser(
  "a line is linked by the code on the page, paused, reconnected and deleted",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      await stage.addPhone("4915100000003");
      await page.goto(panelOf(stage));
      await signIn(page, stage.apiKey);
      await link(page, "By code", "4915100000003");
      const line = row(page, "By code");
      const code = line.locator(".code");
      await code.filter({ hasText: /\S/ }).waitFor();
      await stage.control.call("POST", "/phones/4915100000003/enter-code", { code: await code.textContent() });
      const status = (text: string) => line.getByText(text, { exact: true }).waitFor();
      await status("connected");

      await line.getByRole("button", { name: "Pause" }).click();
      await status("disconnected");
      await line.getByRole("button", { name: "Reconnect" }).click();
      await status("connected");
      page.once("dialog", (dialog) => dialog.accept());
      await line.getByRole("button", { name: "Delete" }).click();
      await line.waitFor({ state: "detached" });
      assert.deepEqual((await stage.control.call("GET", "/phones/4915100000003")).devices, []);
      assertQuiet();
    }),
);

inBrowser(
  "a wrong key is told on the page, and the page does not keep it",
  ({ page }) =>
    withStage(openStage, async (stage) => {
      await page.goto(panelOf(stage));
      await signIn(page, "pk_wrong_key_of_somebody_else");
      const alert = page.getByRole("alert").filter({ hasText: /\S/ });
      await alert.waitFor();
      assert.match(await alert.textContent() ?? "", /key/i);
      assert.equal(await page.evaluate("sessionStorage.length + localStorage.length"), 0);
    }),
);

inBrowser(
  "an owner regenerates the key, goes on with the new one, and the old one is refused",
  ({ page }) =>
    withStage(openStage, async (stage) => {
      await page.goto(panelOf(stage));
      await signIn(page, stage.apiKey);
      await page.locator("#key").getByText(stage.apiKey).waitFor();
      page.once("dialog", (dialog) => dialog.accept());
      await page.getByRole("button", { name: "Regenerate" }).click();
      const shown = page.locator("#key");
      await shown.filter({ hasNotText: stage.apiKey }).waitFor();
      const apiKey = await shown.textContent() ?? "";
      stage.secrets.add(apiKey);
      assert.equal((await stage.request("GET", "/account")).status, 401);
      assert.equal((await stage.request("GET", "/account", { headers: { "x-api-key": apiKey } })).status, 200);
      await link(page, "With the new key");
      await row(page, "With the new key").waitFor();
      await page.reload();
      await row(page, "With the new key").waitFor();
    }),
);

inBrowser(
  "an owner binds the key to addresses and domains, is kept from locking himself out, and goes on",
  ({ page }) =>
    withStage(openStage, async (stage) => {
      await page.goto(panelOf(stage));
      await signIn(page, stage.apiKey);
      const addresses = page.getByLabel("Allowed addresses");
      const domains = page.getByLabel("Allowed domains");
      const save = page.getByRole("button", { name: "Save" });
      await addresses.fill("192.0.2.0/24");
      await save.click();
      await page.locator("#account .error").getByText("lock you out").waitFor();

      await addresses.fill("127.0.0.0/8, ::1");
      await domains.fill(new URL(stage.gateway.baseUrl).hostname);
      await save.click();
      await page.getByRole("status").getByText("Saved").waitFor();
      assert.equal(await addresses.inputValue(), "127.0.0.0/8\n::1");
      assert.equal((await stage.request("GET", "/account")).status, 403, "no page asks here");
      await link(page, "From an allowed page");
      await row(page, "From an allowed page").waitFor();
    }),
);
