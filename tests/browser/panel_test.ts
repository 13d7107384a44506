/** What the panel's pages say and where they lead, when all is well and when the gateway is gone. */
import assert from "node:assert/strict";
import { faultsOf } from "../support/axe.ts";
import { accountPage, asOperator, badge, button, inPanel, panelOf } from "../support/panel_pages.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";

inPanel(
  "account and gateway begin with what a person has to do, each with its action, and say nothing when all is well",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await asOperator(page, stage);
    await page.goto(accountPage(stage));
    await page.getByRole("heading", { name: "stage" }).waitFor();
    await page.getByText("Last 30 days").waitFor();
    assert.equal(await page.getByText("Needs attention").count(), 0);
    const menu = page.getByRole("navigation", { name: "Pages" });
    assert.equal(await menu.locator(".count").count(), 0);

    const text = "to nobody";
    stage.secrets.add(text);
    const { messageId } = await stage.api.call("POST", "/messages/send/text", { sessionId, to: "4917999999999", text });
    await stage.status(messageId, "failed");
    await stage.control.call("POST", "/faults", { line: LINE, kind: "client_expiration", at: Date.now() + 86_400_000 });
    await page.goto(`${panelOf(stage)}/gateway`);
    await stage.control.call("POST", "/faults", { line: LINE, kind: "logout" });
    await page.goto(accountPage(stage));
    const card = page.locator(".attention");
    await card.getByText("1 message failed today: 1 not on WhatsApp.").waitFor();
    await card.getByText("lost its link and neither sends nor receives").waitFor();
    await menu.getByRole("link", { name: "Lines" }).first().getByText("1", { exact: true }).waitFor();
    await page.goto(`${panelOf(stage)}/gateway`);
    await card.getByRole("link", { name: "stage", exact: true }).waitFor();
    await card.getByRole("link", { name: "Link again" }).click();
    await page.getByRole("heading", { name: `line ${LINE}` }).waitFor();
    assertQuiet();
  },
);

inPanel(
  "lists tell: the name before the number, why something failed, who was erased; rows and events lead on",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER, "Carla");
    for (const text of ["a question", "an answer", "to nobody"]) stage.secrets.add(text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "a question" });
    const { data: hook } = await stage.api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/hook" });
    stage.secrets.add(hook.secret);
    const send = (to: string, text: string) =>
      stage.api.call("POST", "/messages/send/text", { sessionId, to, text }).then(({ messageId }) => messageId);
    await stage.status(await send("4917999999999", "to nobody"), "failed");
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/messages"));
    await page.getByRole("row", { name: "to nobody" }).getByText("not on WhatsApp", { exact: true }).waitFor();
    const answer = await send(CUSTOMER, "an answer");
    await stage.status(answer, "sent");
    const row = page.getByRole("row", { name: "an answer" });
    await row.getByRole("link", { name: "Carla" }).waitFor();
    await row.getByText(`+${CUSTOMER}`).waitFor();
    for (const words of ["carl", `+49 1700 ${CUSTOMER.slice(6)}`]) {
      await page.getByLabel("Search").fill(words);
      await page.getByRole("row", { name: "to nobody" }).waitFor({ state: "detached" });
      await row.waitFor();
      await page.getByLabel("Search").fill("");
      await page.getByRole("row", { name: "to nobody" }).waitFor();
    }
    // The row is the link, wherever one clicks.
    await row.click();
    await page.getByRole("heading", { name: "Carla" }).waitFor();

    await page.goto(accountPage(stage, "/webhooks"));
    await badge(page, "retrying").waitFor();
    await page.goto(accountPage(stage, "/events"));
    const sent = page.getByRole("listitem").filter({ hasText: "message.sent" }).first();
    await sent.locator("summary").click();
    await sent.getByRole("link", { name: hook.url }).waitFor();
    await sent.getByText("waiting").waitFor();
    await sent.getByRole("link", { name: "Show the message" }).click();
    await page.getByRole("heading", { name: "Carla" }).waitFor();

    // To a chat, a message and a page by the keyboard alone.
    const reach = async (words: string, name: string) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Go to" }).and(page.locator(":focus")).waitFor();
      // All at once: what was found for the first letters goes again.
      await page.keyboard.insertText(words);
      await page.getByRole("option", { name, selected: true }).waitFor();
      await page.keyboard.press("Enter");
    };
    await reach("carl", "Carla");
    await page.locator(".turn").getByText("a question").waitFor();
    await reach("audit", "Audit log");
    await page.getByRole("heading", { name: "Audit log" }).waitFor();
    await page.goto(accountPage(stage));
    await page.getByText("Last 30 days").waitFor();
    await reach(answer, answer);
    await page.getByRole("heading", { name: "Carla" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).waitFor();
    assert.deepEqual(await faultsOf(page, "the palette"), []);
    await page.keyboard.press("Escape");

    await stage.api.call("DELETE", `/data/${CUSTOMER}`);
    await page.goto(accountPage(stage, "/messages"));
    await page.getByRole("link", { name: "erased" }).waitFor();
    assertQuiet();
  },
);

inPanel("a page that was left loads nothing more, although it meant to look again soon", async ({ page }, stage) => {
  const { data: webhook } = await stage.api.call("POST", "/webhooks", { url: "http://127.0.0.1:1099/hook" });
  stage.secrets.add(webhook.secret);
  await asOperator(page, stage);
  await page.clock.install();
  await page.goto(accountPage(stage, `/webhooks/${webhook.id}`));
  await button(page, "Send test event").click();
  await page.getByText("A test event is on its way.").waitFor();
  await button(page, "Sign out").click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  await page.clock.fastForward(10_000);
  await page.evaluate("fetch('/healthz')");
  assert.deepEqual(requests, ["/healthz"]);
});

inPanel(
  "an operator who renames an account leaves the hour of its end, and no new plan takes the place of another",
  async ({ page }, stage) => {
    await asOperator(page, stage);
    const at = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10) + "T18:30:00.000Z";
    await page.goto(`${panelOf(stage)}/gateway/accounts`);
    const ask = (method: string, below: string, body?: object) =>
      page.evaluate(async ([method, below, body]) => {
        const headers = { "x-paloma-panel": "1", "content-type": "application/json" };
        return await (await fetch(`../api${below}`, { method, headers, body })).json();
      }, [method, below, body && JSON.stringify(body)] as [string, string, string | undefined]);
    await ask("PATCH", `/operator/accounts/${stage.accountId}`, { expiresAt: Date.parse(at) });
    await page.reload();
    await button(page, "Edit").click();
    await page.getByLabel("Name").fill("Renamed");
    await page.locator("dialog option").first().waitFor({ state: "attached" });
    await button(page, "Save").click();
    await page.getByRole("link", { name: "Renamed" }).waitFor();
    assert.equal((await stage.api.call("GET", "/account")).data.expiresAt, at);

    await button(page, "Edit").click();
    await page.getByLabel("Subscription ends").evaluate((field) => Object.assign(field, { value: "20260-01-01" }));
    await button(page, "Save").click();
    assert.equal(await page.locator("dialog input:invalid").count(), 1, "a slip of the finger is not never");
    assert.equal((await stage.api.call("GET", "/account")).data.expiresAt, at);

    const plans = await ask("GET", "/operator/plans");
    await page.goto(`${panelOf(stage)}/gateway/plans`);
    await button(page, "New plan").click();
    await page.getByLabel("Name").fill(plans.data[0].name);
    await button(page, "Save").click();
    await page.locator("dialog").getByText("There is already a plan with this name").waitFor();
    assert.deepEqual(await ask("GET", "/operator/plans"), plans);
    await page.getByLabel("Name").fill("small");
    await page.getByLabel("Lines", { exact: true }).fill("");
    await button(page, "Save").click();
    assert.equal(await page.locator("dialog :invalid").count() > 0, true, "no lines are not none");
    await page.getByLabel("Lines", { exact: true }).fill("2");
    await button(page, "Save").click();
    await page.getByRole("cell", { name: "small" }).waitFor();

    const offered = async () => {
      await page.goto(`${panelOf(stage)}/gateway/accounts`);
      await button(page, "New account").click();
      const field = page.locator("dialog").getByLabel("Plan");
      await field.locator("option").first().waitFor({ state: "attached" });
      return { chosen: await field.inputValue(), names: await field.locator("option").allTextContents() };
    };
    // The stage's account is on it, as a sandbox's is.
    const { chosen, names } = await offered();
    assert.deepEqual([chosen, names.includes("sandbox")], ["free", true]);
    await ask("PATCH", `/operator/accounts/${stage.accountId}`, { plan: "own" });
    assert.equal((await offered()).names.includes("sandbox"), false);
  },
);

inPanel(
  "whoever removes the last number of the last page does not read that nobody has opted out",
  async ({ page }, stage) => {
    const numbers = Array.from({ length: 51 }, (_, i) => String(4917100001000 + i));
    for (const number of numbers) await stage.api.call("PUT", `/optouts/${number}`);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/opt-outs?page=2"));
    await button(page, "Remove").click();
    await page.locator("dialog").getByRole("button", { name: "Remove" }).click();
    await page.locator("tbody tr").waitFor({ state: "detached" });
    assert.equal(await page.getByText("No opt-outs").count(), 0);
    await page.getByRole("link", { name: "Newer" }).click();
    await page.locator("tbody tr").nth(49).waitFor();
  },
);

inPanel(
  "on a phone the menu comes where one reads, and goes by Escape and by the link of the page itself",
  async ({ page }, stage) => {
    await asOperator(page, stage);
    await page.setViewportSize({ width: 390, height: 700 });
    await page.goto(`${panelOf(stage)}/me`);
    await page.getByRole("heading", { name: "Active sessions" }).waitFor();
    await page.evaluate("document.querySelector('main').style.minHeight = '3000px'");
    await page.evaluate("scrollTo(0, 1500)");
    const menu = button(page, "Menu");
    const side = page.getByRole("navigation", { name: "Pages" });
    await menu.click();
    assert.deepEqual(await side.evaluate((it) => Math.round(it.getBoundingClientRect().top)), 53);
    await page.keyboard.press("Escape");
    await side.waitFor({ state: "hidden" });
    await page.locator("header button:focus").waitFor();
    await menu.click();
    await side.getByRole("link", { name: "root@example.com" }).click();
    await side.waitFor({ state: "hidden" });
  },
);

inPanel("an open page says that the gateway is gone, and goes on when it is back", async ({ page }, stage) => {
  const line = await stage.linkLine(LINE);
  await asOperator(page, stage);
  await page.goto(accountPage(stage, `/lines/${line.sessionId}`));
  await badge(page, "connected").waitFor();
  const renaming = await page.context().newPage();
  await renaming.goto(page.url());
  await button(renaming, "Rename").click();
  await renaming.getByLabel("Name", { exact: true }).fill("Renamed while it was gone");
  await stage.gateway.stop();
  await button(renaming, "Save").click();
  const refused = renaming.locator("dialog").getByText("The gateway is not responding");
  await refused.waitFor();
  await page.getByText("Offline: the gateway is not responding").waitFor();
  await button(page, "Sign out").click();
  await page.locator(".toast").getByText("The gateway is not responding").waitFor();
  // A page that was never open comes as soon as it can be fetched; nobody was signed out.
  await page.getByRole("link", { name: "Events" }).click();
  await stage.gateway.start();
  await page.getByRole("listitem").getByText("session.connected", { exact: true }).first().waitFor();
  await page.getByText("Offline: the gateway is not responding").waitFor({ state: "detached" });
  await refused.waitFor({ state: "detached" });
  await button(renaming, "Save").click();
  await renaming.getByRole("heading", { name: "Renamed while it was gone" }).waitFor();
  await renaming.close();

  // What happens while another tab is in front is there afterwards, once.
  const inFront = (yes: boolean) =>
    page.evaluate(`Object.defineProperty(document, "hidden", { value: ${!yes}, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"))`);
  await inFront(false);
  await stage.addPhone(CUSTOMER);
  for (const text of ["while nobody looked", "and again"]) {
    stage.secrets.add(text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text });
  }
  await inFront(true);
  await page.getByText("and again").first().waitFor();
  await page.goBack();
  await badge(page, "connected").waitFor();
  await page.goForward();
  await page.getByText("and again", { exact: true }).waitFor();
});
