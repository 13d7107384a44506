/** Messages are sent from the panel, wait, are found again and are cancelled. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { accountPage, asOperator, badge, button, inPanel, panelOf, PASSWORD } from "../support/panel_pages.ts";

const LINE = "4915100000001";
const CUSTOMER = "4917000000001";

inPanel(
  "a message is sent from the page and seen through, by keyboard alone, and answered in the chat",
  async ({ page, assertQuiet }, stage) => {
    await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    await page.context().clearCookies();
    await page.goto(panelOf(stage));
    const type = async (...keys: string[]) => {
      for (
        const key of keys
      ) await (/^[A-Z][a-z]+(\+|$)/.test(key) ? page.keyboard.press(key) : page.keyboard.type(key));
    };
    // A page that comes takes the focus to its heading.
    const comes = (name: string) => page.locator("main h1:focus", { hasText: name }).waitFor();
    await comes("Sign in");
    await focusBy(page, "login");
    await type("root@example.com", "Tab", PASSWORD, "Enter");
    await comes("Gateway");
    await page.locator("main").getByRole("link", { name: "stage", exact: true }).waitFor();
    await focusBy(page, "stage");
    await type("Enter");
    await comes("stage");
    await focusBy(page, "Send a message");
    await type("Enter");
    await comes("Send a message");
    await page.getByRole("heading", { name: "Message", exact: true }).waitFor();
    await focusBy(page, "to");
    await type(`+${CUSTOMER}`);
    await focusBy(page, "text");
    const text = "Typed without a mouse";
    stage.secrets.add(text);
    await type(text, "Tab", "Enter");
    await badge(page, "delivered").waitFor();
    const arrived = await stage.arrival(CUSTOMER, (message) => message.text === text);
    await stage.control.call("POST", `/phones/${CUSTOMER}/read`, { id: arrived.id });
    await badge(page, "read").waitFor();

    await page.locator("main").getByRole("link", { name: `+${CUSTOMER}` }).click();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    await page.getByRole("link", { name: "Chats" }).click();
    // The message's own page, which the click before is leaving, has the text too.
    await page.getByRole("navigation", { name: "Chats" }).getByText(text).click();
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "Thank you" });
    await page.locator(".turn").getByText("Thank you").waitFor();
    const answer = page.getByLabel("Reply");
    await answer.fill("You are welcome");
    await answer.press("Enter");
    await page.locator(".turn.mine").getByText("You are welcome").waitFor();
    await stage.arrival(CUSTOMER, (message) => message.text === "You are welcome");
    for (const said of ["Thank you", "You are welcome"]) stage.secrets.add(said);
    assertQuiet();
  },
);

inPanel(
  "a message that is sent again leaves once, though the first answer was lost",
  async ({ page }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    const { messageId } = await stage.api.call("POST", "/messages/send/text", {
      sessionId,
      to: CUSTOMER,
      text: "Once",
    });
    await page.goto(accountPage(stage, `/messages/${messageId}`));
    await button(page, "Send again").waitFor();
    await page.route("**/messages/send/text", async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    await button(page, "Send again").click();
    await page.locator(".toast", { hasText: "is not responding" }).waitFor();
    await button(page, "Send again").click();
    await page.getByText("Message queued again.").waitFor();
    assert.equal((await stage.api.call("GET", "/messages/history")).pagination.total, 2);
  },
);

inPanel(
  "a text that is changed after its answer was lost is a message of its own",
  async ({ page }, stage) => {
    await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, "/send"));
    await page.getByLabel("To", { exact: true }).fill(CUSTOMER);
    await page.getByRole("textbox", { name: "Text" }).fill("At five");
    await page.route("**/messages/send/text", async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    // Not what the form says of it: that goes with the next answer, which may come at once.
    const lost = page.waitForEvent("requestfailed", (request) => request.url().endsWith("send/text"));
    await button(page, "Send").click();
    await lost;
    await page.getByRole("textbox", { name: "Text" }).fill("At six");
    const answered = page.waitForResponse(/send\/text$/);
    await button(page, "Send").click();
    assert.equal((await answered).status(), 202);
    const { data } = await stage.api.call("GET", "/messages/history");
    assert.deepEqual(data.map(({ text }: { text: string }) => text).sort(), ["At five", "At six"]);
  },
);

inPanel(
  "a queue is held and a bulk waits in it, is cancelled, and who opted out is written to no more",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, `/lines/${sessionId}`));
    await button(page, "Pause queue").click();
    await page.getByText("Nothing is sent until you resume").waitFor();
    const messages = Array.from({ length: 3 }, (_, i) => ({ to: CUSTOMER, text: `one of the bulk, number ${i}` }));
    await stage.api.call("POST", "/messages/send/bulk", { sessionId, messages });
    await page.getByRole("cell", { name: "the queue to be resumed" }).first().waitFor();

    await page.getByRole("link", { name: "Bulks" }).click();
    await page.getByRole("img", { name: "0 sent, 0 failed, 3 waiting" }).waitFor();
    await page.getByRole("link", { name: "Bulk of 3" }).click();
    await page.getByRole("link", { name: "Show messages" }).click();
    await page.getByText("3 in total").waitFor();
    await page.getByRole("link", { name: "Show progress" }).click();
    await button(page, "Cancel waiting messages").click();
    await page.locator("dialog").getByRole("button", { name: "Cancel waiting messages" }).click();
    await page.getByRole("img", { name: "0 sent, 3 failed, 0 waiting" }).waitFor();
    await page.goto(accountPage(stage, `/lines/${sessionId}`));
    await button(page, "Resume").click();
    await button(page, "Pause queue").waitFor();

    await page.getByRole("link", { name: "Opt-outs" }).click();
    await page.getByLabel("Words that opt the sender out").fill("STOP\nBAJA");
    await button(page, "Save").click();
    await page.getByText("Saved.").waitFor();
    await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "stop" });
    const row = page.getByRole("row", { name: `+${CUSTOMER}` });
    await row.waitFor();
    const send = () =>
      stage.request("POST", "/messages/send/text", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ sessionId, to: CUSTOMER, text: "one of the bulk, once more" }),
      });
    const refused = await send();
    assert.deepEqual([refused.status, (await refused.json()).code], [403, "recipient_opted_out"]);
    await row.getByRole("button", { name: "Remove" }).click();
    await page.locator("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("No opt-outs").waitFor();
    const taken = await send();
    assert.equal(taken.status, 202);
    await taken.body?.cancel();
    await page.getByLabel("Number").last().fill(`+${CUSTOMER}`);
    await button(page, "Erase permanently").click();
    await page.locator("dialog").getByRole("button", { name: "Erase permanently" }).click();
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.equal(await page.locator("[name=erased]").inputValue(), "", "the number stays nowhere");
    await page.locator(".toast", { hasText: "rased" }).waitFor();
    stage.secrets.add("one of the bulk");
    assertQuiet();
  },
);

inPanel(
  "a long queue leads to all of its messages, and a search goes on behind the newest thousands",
  async ({ page, assertQuiet }, stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    await stage.addPhone(CUSTOMER);
    await stage.api.call("POST", `/sessions/${sessionId}/queue/pause`);
    const send = (path: string, body: Record<string, unknown>) =>
      stage.api.call("POST", `/messages/send/${path}`, { sessionId, ...body });
    await send("text", { to: CUSTOMER, text: "the needle" });
    await send("bulk", { messages: Array.from({ length: 2_100 }, () => ({ to: CUSTOMER, text: "one more straw" })) });
    for (const said of ["the needle", "one more straw"]) stage.secrets.add(said);
    await asOperator(page, stage);
    await page.goto(accountPage(stage, `/lines/${sessionId}`));
    await button(page, "Show 180 more").click();
    await page.getByRole("link", { name: "See all 2,101 messages" }).click();
    await page.getByText("2,101 in total").waitFor();
    await page.getByLabel("Search").fill("needle");
    await page.getByRole("cell", { name: "the needle" }).waitFor();
    await page.getByLabel("Search").fill("no such thing");
    await page.getByText("Try fewer words").waitFor();
    assertQuiet();
  },
);

/** Presses Tab until what has this name, or these words, has the focus. */
async function focusBy(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    const here = await page.evaluate(
      "[document.activeElement?.getAttribute('name'), document.activeElement?.textContent?.trim()]",
    ) as (string | null)[];
    if (here.includes(name)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${name} is not reached by Tab`);
}
