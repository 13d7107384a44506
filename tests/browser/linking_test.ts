/** A line is linked from the panel, by whoever has its phone. */
import assert from "node:assert/strict";
import { accountPage, asOperator, badge, button, customerLink, inPanel, scanFrom } from "../support/panel_pages.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";

inPanel(
  "who was sent the link to the phone that is to be linked links by a code, or by the QR after all",
  async ({ page, another }, stage) => {
    await asOperator(page, stage);
    await stage.addPhone(LINE);
    const { data: { _id } } = await stage.api.call("POST", "/sessions", { name: "Front desk" });
    const link = await customerLink(page, stage, _id);
    const guest = await another({ viewport: { width: 390, height: 844 } });
    await guest.goto(link);
    await guest.getByAltText("QR code to scan").waitFor();
    await button(guest, "I only have this phone").click();
    await guest.getByLabel("Your WhatsApp number").fill("0151 000");
    await button(guest, "Get a code").click();
    await guest.locator(".wrong").waitFor();
    await guest.getByLabel("Your WhatsApp number").fill(`+${LINE}`);
    await button(guest, "Get a code").click();
    const code = guest.locator("[data-code]");
    await code.waitFor();
    await button(guest, "Scan a QR code instead").click();
    await guest.getByAltText("QR code to scan").waitFor();
    await button(guest, "I only have this phone").click();
    await guest.getByLabel("Your WhatsApp number").fill(LINE);
    await button(guest, "Get a code").click();
    await code.waitFor();
    await stage.control.call("POST", `/phones/${LINE}/enter-code`, { code: await code.textContent() });
    await guest.getByRole("heading", { name: "Linked" }).waitFor();
  },
);

inPanel(
  "a line is linked by the QR on the page, changes before one's eyes, and is deleted with a word of what is lost",
  async ({ page, assertQuiet }, stage) => {
    await stage.addPhone(LINE);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/lines"));
    await button(page, "Link a line").first().click();
    await page.getByLabel("Name").fill("Front desk");
    // However often it is pressed, it is one line.
    await button(page, "Link").dblclick();
    const connected = badge(page, "connected");
    await scanFrom(page, stage, { number: LINE, done: connected });
    await page.getByText(`+${LINE}`).first().waitFor();
    const { data: lines } = await stage.api.call("GET", "/sessions");
    assert.equal(lines.length, 1);
    assert.equal(await page.title(), "Front desk · Paloma");

    // The phone unlinks it; its number stays on the page, and a QR comes all the same.
    await stage.control.call("POST", "/faults", { line: LINE, kind: "logout" });
    await button(page, "Link again").click();
    await scanFrom(page, stage, { number: LINE, done: connected });

    await button(page, "Disconnect").click();
    await badge(page, "disconnected").waitFor();
    await stage.addPhone(CUSTOMER);
    await stage.api.call("POST", "/messages/send/text", {
      sessionId: lines[0]._id,
      to: CUSTOMER,
      text: "this one waits",
    });
    const messages = Array.from({ length: 250 }, () => ({ to: CUSTOMER, text: "and these wait too" }));
    await stage.api.call("POST", "/messages/send/bulk", { sessionId: lines[0]._id, messages });
    await page.locator("main").getByText(`1. +${CUSTOMER}`, { exact: true }).waitFor();
    await page.getByRole("heading", { name: "Queue (251)" }).waitFor();
    await button(page, "Delete").click();
    await page.getByText("251 messages are waiting on this line and will fail.").waitFor();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("“Front desk” was deleted.").waitFor();
    await page.getByText("No lines yet").waitFor();
    const devices = async () => (await stage.control.call("GET", `/phones/${LINE}`)).devices;
    await until(async () => (await devices()).length === 0, "the phone to have no device");

    const { data: other } = await stage.api.call("POST", "/sessions", { name: "Back office" });
    await page.goto(accountPage(stage, `/lines/${other._id}`));
    await page.getByRole("heading", { name: "Back office" }).waitFor();
    // The page finds out by asking for what is gone, which the browser calls an error.
    assertQuiet();
    await stage.api.call("DELETE", `/sessions/${other._id}`);
    await page.getByText("“Back office” was deleted.").waitFor();
    await page.getByText("No lines yet").waitFor();
  },
);

inPanel("a line is linked by the code on the page", async ({ page, assertQuiet }, stage) => {
  await stage.addPhone(LINE);
  await asOperator(page, stage);
  await page.goto(accountPage(stage, "/lines"));
  await button(page, "Link a line").first().click();
  await page.getByLabel("Name").fill("By code");
  await page.getByLabel("Pairing code").check();
  // As an address book gives it: with a space, a hyphen and marks that nobody sees.
  await page.getByLabel("Phone number").fill(
    `\u202a00${LINE.slice(0, 2)} ${LINE.slice(2, 6)}\u2011${LINE.slice(6)}\u202c`,
  );
  await button(page, "Link").click();
  const code = page.locator("[data-code]");
  await code.waitFor();
  assert.match((await code.textContent())!, /^[A-Z0-9]{4}-[A-Z0-9]{4}$/);
  await stage.control.call("POST", `/phones/${LINE}/enter-code`, {
    code: (await code.textContent())!.replace("-", ""),
  });
  await badge(page, "connected").waitFor();
  assertQuiet();
});

inPanel(
  "a customer links the line by a link of their own, which shows nothing else and is dead after",
  async ({ page, another, assertQuiet }, stage) => {
    await stage.addPhone(LINE);
    await asOperator(page, stage);
    const { data: { _id } } = await stage.api.call("POST", "/sessions", { name: "Theirs" });
    const link = await customerLink(page, stage, _id);
    await page.keyboard.press("Escape");

    const customer = await another({ viewport: { width: 390, height: 844 } });
    await customer.goto(link);
    await customer.getByText("Link “Theirs”").waitFor();
    assert.equal(await customer.getByRole("navigation").count(), 0);
    await scanFrom(customer, stage, { number: LINE, done: customer.getByText("You can close this page") });
    await badge(page, "connected").waitFor();
    assertQuiet();
    // Only what is behind the `#` differs, for which no browser loads a page.
    await customer.evaluate("location.hash = 'none'");
    await customer.getByText("This link is no longer valid").waitFor();
    await customer.goto(link);
    await customer.getByText("This link is no longer valid").waitFor();
  },
);
