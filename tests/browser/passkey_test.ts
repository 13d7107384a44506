/**
 * Signing with an account's passkey in a real browser: its authenticator holds the passkey, and WhatsApp's own site is
 * stood in for inside the browser, so that nothing leaves the machine.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { inBrowser } from "../support/browser.ts";
import { accountPage, asOperator, customerLink, scanFrom } from "../support/panel_pages.ts";
import { openStage, type Stage, WITH_REFRESH, withStage } from "../support/stage.ts";

const LINE = "4915100000001";
const EXTENSION = join(import.meta.dirname!, "..", "..", "extension");
const SITE = "https://web.whatsapp.com/";

/** As strict as the site: no script or style that stands in the page, and no link to the tab that opened it. */
const SITE_HEADERS = {
  "content-type": "text/html",
  "content-security-policy":
    "default-src 'self'; style-src 'self'; script-src 'self'; require-trusted-types-for 'script'",
  "cross-origin-opener-policy": "same-origin-allow-popups",
};

async function standIn(context: BrowserContext): Promise<void> {
  await context.route(
    `${SITE}**`,
    (route) =>
      route.fulfill({ headers: SITE_HEADERS, body: "<!doctype html><title>WhatsApp</title><h1>Stand-in</h1>" }),
  );
}

/** Gives the tab an authenticator that holds the passkey of the line's account, and whose owner is there. */
async function holdPasskey(page: Page, stage: Stage): Promise<void> {
  const { credentialId, privateKey, rpId, userHandle } = stage.network.phone(LINE)!.exportPasskey();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  const { authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  });
  const base64 = (text: string) => Buffer.from(text, "base64url").toString("base64");
  await devtools.send("WebAuthn.addCredential", {
    authenticatorId,
    credential: {
      credentialId: base64(credentialId),
      isResidentCredential: true,
      rpId,
      privateKey: Buffer.from(privateKey).toString("base64"),
      userHandle: base64(userHandle),
      signCount: 0,
    },
  });
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** The tab that opens when the panel is asked to sign. */
async function signingTab(page: Page): Promise<Page> {
  const opened = page.context().waitForEvent("page");
  await page.getByRole("link", { name: "Sign on web.whatsapp.com" }).click();
  return await opened;
}

inBrowser(
  "from the panel's button to connected: the extension asks on web.whatsapp.com, signs, and brings the signature back",
  ({ page }) =>
    withStage(() => openStage(WITH_REFRESH), async (stage) => {
      await standIn(page.context());
      await stage.control.call("POST", "/phones", { number: LINE, passkey: true });
      await asOperator(page, stage);
      await page.goto(accountPage(stage, "/lines"));
      await button(page, "Link a line").first().click();
      await page.getByLabel("Name").fill("With a passkey");
      await button(page, "Link").click();
      const asked = page.getByText("WhatsApp asks for this account's passkey");
      await scanFrom(page, stage, { number: LINE, done: asked });

      const refused = await signingTab(page);
      await refused.getByText(new URL(page.url()).origin).waitFor();
      assert.equal(refused.url(), SITE, "no script of the site sees what is asked for");
      await button(refused, "Sign with the passkey").click();
      await refused.getByText("The passkey was not used.").waitFor();
      await button(refused, "Cancel").click();
      await refused.getByRole("dialog").waitFor({ state: "detached" });
      await refused.close();
      await asked.waitFor();

      const tab = await signingTab(page);
      await holdPasskey(tab, stage);
      await button(tab, "Sign with the passkey").click();
      await tab.getByRole("heading", { name: "Signed" }).waitFor();
      assert.equal(new URL(tab.url()).hash, "", "the signature is not kept in the history");
      await page.locator("main .badge", { hasText: "connected" }).first().waitFor();
      await tab.reload();
      await tab.getByText("No page is waiting for this signature").waitFor();

      const stranger = await page.context().newPage();
      await stranger.goto(`${SITE}#paloma-passkey=%7B%22answerTo%22%3A%22javascript%3Aalert(1)%22%7D`);
      await stranger.getByText("can’t be read").waitFor();
      assert.equal(await button(stranger, "Sign with the passkey").count(), 0);
      await stranger.goto(SITE);
      assert.equal(await stranger.getByRole("dialog").count(), 0);
    }),
  { extension: EXTENSION, elsewhere: new URL(SITE).hostname },
);

inBrowser(
  "without the extension a customer signs in the site's console, and the customer's page takes what was copied",
  ({ page, another }) =>
    withStage(() => openStage(WITH_REFRESH), async (stage) => {
      await stage.control.call("POST", "/phones", { number: LINE, passkey: true });
      await asOperator(page, stage);
      const { data: { _id } } = await stage.api.call("POST", "/sessions", { name: "Theirs" });
      const link = await customerLink(page, stage, _id);

      const customer = await another();
      await customer.goto(link);
      await scanFrom(customer, stage, {
        number: LINE,
        done: customer.getByText("WhatsApp asks for this account's passkey"),
      });
      await customer.getByText("Without the extension").click();
      const field = customer.getByLabel("Signature");
      await field.fill("nothing of the kind");
      await button(customer, "Submit").click();
      await customer.getByText("must be an object").waitFor();

      await standIn(customer.context());
      const site = await customer.context().newPage();
      await site.goto(SITE);
      await holdPasskey(site, stage);
      // The console's own `copy` is not there for a test.
      const snippet = (await customer.locator("pre").textContent())!;
      const copied = await site.evaluate(`(async () => { const copy = (text) => text; return ${snippet}; })()`);
      await field.fill(copied as string);
      await button(customer, "Submit").click();
      await customer.getByText("You can close this page").waitFor();
    }),
  { whole: true, elsewhere: new URL(SITE).hostname },
);
