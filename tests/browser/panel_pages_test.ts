/** Every page of the panel: nothing that axe finds, nothing the policy forbids, no wider than a phone, light to load. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { faultsOf, SIZES } from "../support/axe.ts";
import { inBrowser } from "../support/browser.ts";
import { hasNginx, startNginx } from "../support/nginx.ts";
import { CUSTOMER, furnish, LINE, open } from "../support/furnished_panel.ts";
import { accountPage, asOperator, join, operatorLink, panelOf, scanFrom } from "../support/panel_pages.ts";
import { openStage, WITH_REFRESH, withStage } from "../support/stage.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** Compressed, of all that a page loads from nothing. */
const MOST_BYTES = 70_000;

/** Counts what the page loads, nothing of it from a cache. */
async function weigh(page: Page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  const loaded = { bytes: 0, requests: 0 };
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => {
    loaded.bytes += encodedDataLength;
    loaded.requests++;
  });
  return {
    loaded,
    reset: () => void Object.assign(loaded, { bytes: 0, requests: 0 }),
    end: () => devtools.detach(),
  };
}

inBrowser(
  "no page or dialog has a fault that axe finds, in both themes and three sizes, none is wider than its screen, and each is light",
  ({ page, assertQuiet }) =>
    withStage(openStage, async (stage) => {
      const pages = await furnish(stage);
      await asOperator(page, stage);
      const found: string[] = [];
      const scale = await weigh(page);
      for (const url of pages) {
        scale.reset();
        await open(page, url);
        const { bytes, requests } = scale.loaded;
        assert.ok(bytes > 10_000 && bytes < MOST_BYTES, `${url} loads ${bytes} bytes in ${requests} requests`);
        found.push(...await faultsOf(page, new URL(url).pathname));
      }
      await scale.end();
      const dialogs: [path: string, button: string][] = [
        ["/lines", "Link a line"],
        ["/webhooks", "Add a webhook"],
        ["/key", "Regenerate key"],
        ["/people", "Invite someone"],
      ];
      for (const [path, name] of dialogs) {
        await open(page, accountPage(stage, path));
        await page.getByRole("button", { name, exact: true }).first().click();
        await page.locator("dialog[open]").waitFor();
        found.push(...await faultsOf(page, name));
      }
      assertQuiet();
      // Those of whoever has no login; their links are dead, which the browser calls an error.
      for (const below of ["/welcome#none", "/link-line#none", "/passkey-signed"]) {
        await open(page, panelOf(stage) + below);
        found.push(...await faultsOf(page, below));
      }
      assert.deepEqual(found, []);
    }),
);

inBrowser(
  "in Spanish, dark and 320 px wide a line is linked and seen, and a mistake is explained",
  ({ another, page, assertQuiet }) =>
    withStage(() => openStage(WITH_REFRESH), async (stage) => {
      await asOperator(page, stage);
      const { cookies } = await page.context().storageState();
      const phone = await another({ viewport: SIZES.phone, colorScheme: "dark", locale: "es-ES" });
      await phone.context().addCookies(cookies);
      await stage.addPhone(LINE);
      await phone.goto(accountPage(stage, "/lines"));
      await phone.getByRole("button", { name: "Vincular una línea" }).first().click();
      await phone.getByLabel("Nombre").fill("Recepción");
      await phone.getByRole("button", { name: "Vincular", exact: true }).click();
      await scanFrom(phone, stage, {
        number: LINE,
        picture: "Código QR para escanear",
        done: phone.locator("main .badge", { hasText: "conectada" }).first(),
      });
      assert.equal(await phone.getAttribute("html", "lang"), "es");
      // Name and number of a chat fit beside the way back and what marks it as read.
      await stage.addPhone(CUSTOMER, "Ana Customer");
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "¿Hola?" });
      await phone.goto(accountPage(stage, "/chats"));
      await phone.getByText("Ana Customer").click();
      await phone.getByRole("link", { name: "Todos los chats" }).waitFor();
      await phone.getByRole("button", { name: "Marcar como leído" }).waitFor();
      const header = "[...document.querySelectorAll('.chat header .clip')]";
      const cut = await phone.evaluate(`${header}.map((it) => it.scrollWidth > it.clientWidth)`);
      assert.deepEqual(cut, [false, false]);
      assertQuiet();
      // What the gateway says of it reads in Spanish too.
      await phone.goto(accountPage(stage, "/send"));
      await phone.getByLabel("Para", { exact: true }).fill("12");
      await phone.getByRole("textbox", { name: "Texto" }).fill("hola");
      await phone.getByRole("button", { name: "Enviar" }).click();
      await phone.locator(".wrong").getByText("debe tener de 7 a 15 dígitos").waitFor();
      const { data: { _id } } = await stage.api.call("POST", "/sessions", { name: "Segunda" });
      await phone.goto(accountPage(stage, `/lines/${_id}`));
      // As where its phone has scanned the QR a moment ago.
      const message = "This line is linked already: log it out first.";
      const problem = {
        code: "validation_failed",
        detail: `sessionId: ${message}`,
        errors: [{ path: "sessionId", message }],
      };
      await phone.route("**/customer-link", (route) => route.fulfill({ status: 400, json: problem }));
      await phone.getByRole("button", { name: "Que la vincule otra persona" }).click();
      await phone.getByText("Esta línea ya está vinculada: desvincúlala primero.", { exact: true }).waitFor();
      await phone.goto(`${panelOf(stage)}/accounts/acc_none`);
      await phone.getByText("No se encuentra: cuenta.").waitFor();
    }),
);

inBrowser(
  "behind nginx, below a path and under TLS, one signs in, and pages, stream and reference work",
  async ({ another, assertQuiet }) => {
    if (!await hasNginx()) return console.warn("there is no nginx: not looked at");
    await withStage(() => openStage({ env: { PALOMA_TRUSTED_PROXIES: "127.0.0.1" } }), async (stage) => {
      await using temp = await tempFolder();
      const nginx = await startNginx(new URL(stage.gateway.baseUrl).port, temp.path);
      const page = await another({ ignoreHTTPSErrors: true });
      try {
        const root = `https://127.0.0.1:${new URL(nginx.url).port}/paloma`;
        await join(page, (await operatorLink(stage)).replace(panelOf(stage), `${root}/panel`), "root@example.com");
        const [cookie] = await page.context().cookies();
        assert.deepEqual([cookie!.name, cookie!.secure, cookie!.httpOnly], ["__Host-paloma", true, true]);
        await page.goto(`${root}/panel/accounts/${stage.accountId}/lines`);
        await page.locator("main").getByText("No lines yet").waitFor();
        // Seen by the stream alone: nobody asks again.
        await stage.linkLine(LINE);
        await page.locator("main .badge", { hasText: "connected" }).waitFor();
        await page.getByRole("link", { name: "Webhooks" }).click();
        await page.getByText("No webhooks yet").waitFor();
        assert.equal(page.url(), `${root}/panel/accounts/${stage.accountId}/webhooks`);
        await page.reload();
        await page.getByText("No webhooks yet").waitFor();
        await page.goto(`${root}/docs`);
        await page.locator("#sendText").getByText("Try it").waitFor();
        await page.getByRole("link", { name: "Webhooks and events" }).click();
        await page.waitForURL(`${root}/docs/guides/webhooks`);
        assertQuiet();
      } finally {
        await page.goto("about:blank");
        await nginx.stop();
      }
    });
  },
);
